//! [`NamespacePattern`] and [`NamespaceQuery`]: which namespaces a list shows.

use super::namespace::Namespace;
use crate::error::{StoreCode, StoreError};

/// The segments at the start or the end of a namespace, each by its text or any.
///
/// From a list of texts, `"*"` is any segment; [`exactly`](Self::exactly) takes the text as it is.
///
/// ```
/// use agentgraph_checkpoint::{Namespace, NamespacePattern};
///
/// let facts = NamespacePattern::from(["users", "*", "facts"]);
/// assert!(facts.starts(&Namespace::new(["users", "ada", "facts", "2026"])?));
/// assert!(!facts.starts(&Namespace::new(["users", "ada"])?));
/// let star = NamespacePattern::default().exactly("*");
/// assert!(star.ends(&Namespace::new(["a", "*"])?) && !star.ends(&Namespace::new(["a", "b"])?));
/// # Ok::<(), agentgraph_checkpoint::StoreError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespacePattern(Vec<Option<String>>);

impl NamespacePattern {
    /// Adds a segment with this text.
    #[must_use]
    pub fn exactly(mut self, segment: impl Into<String>) -> Self {
        self.0.push(Some(segment.into()));
        self
    }

    /// Adds any one segment.
    #[must_use]
    pub fn any(mut self) -> Self {
        self.0.push(None);
        self
    }

    /// Whether `namespace` starts with segments like these.
    pub fn starts(&self, namespace: &Namespace) -> bool {
        self.fits(namespace.segments().iter(), self.0.iter())
    }

    /// Whether `namespace` ends with segments like these.
    pub fn ends(&self, namespace: &Namespace) -> bool {
        self.fits(namespace.segments().iter().rev(), self.0.iter().rev())
    }

    fn fits<'a>(
        &self,
        mut segments: impl Iterator<Item = &'a String>,
        mut pattern: impl Iterator<Item = &'a Option<String>>,
    ) -> bool {
        pattern.all(|wanted| match (segments.next(), wanted) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(segment), Some(text)) => segment == text,
        })
    }

    /// The segments before the first that may be any: a namespace that starts like this is in it.
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "encryption"))]
    pub(crate) fn fixed(&self) -> Result<Namespace, StoreError> {
        Namespace::new(self.0.iter().map_while(Clone::clone))
    }
}

impl<const N: usize> From<[&str; N]> for NamespacePattern {
    fn from(segments: [&str; N]) -> Self {
        Self::from(&segments[..])
    }
}

impl From<&[&str]> for NamespacePattern {
    fn from(segments: &[&str]) -> Self {
        let segment = |text: &&str| (*text != "*").then(|| (*text).to_owned());
        NamespacePattern(segments.iter().map(segment).collect())
    }
}

/// Exactly the segments of a namespace.
impl From<&Namespace> for NamespacePattern {
    fn from(namespace: &Namespace) -> Self {
        NamespacePattern(namespace.segments().iter().cloned().map(Some).collect())
    }
}

/// Which namespaces a list shows; the argument of [`Store::list`](crate::Store::list).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceQuery {
    /// They start like this.
    pub prefix: NamespacePattern,
    /// They end like this.
    pub suffix: NamespacePattern,
    /// Longer ones are cut to this number of segments, and each result is shown once.
    pub max_depth: Option<usize>,
    /// The most namespaces to return; at most 1,000.
    pub limit: usize,
    /// The number of namespaces to skip.
    pub offset: usize,
}

/// All of them, a hundred at most.
impl Default for NamespaceQuery {
    fn default() -> Self {
        NamespaceQuery {
            prefix: NamespacePattern::default(),
            suffix: NamespacePattern::default(),
            max_depth: None,
            limit: 100,
            offset: 0,
        }
    }
}

impl NamespaceQuery {
    /// The namespace that a stored one is shown as, if it is shown.
    pub fn shows(&self, namespace: &Namespace) -> Option<Namespace> {
        let fits = self.prefix.starts(namespace) && self.suffix.ends(namespace);
        fits.then(|| match self.max_depth {
            Some(depth) => namespace.cut_to(depth),
            None => namespace.clone(),
        })
    }

    /// Fails unless it is within the limits.
    ///
    /// # Errors
    /// [`StoreCode::ItemQuery`].
    pub fn check(&self) -> Result<(), StoreError> {
        super::search::check_page(self.limit, self.offset)?;
        for pattern in [&self.prefix, &self.suffix] {
            if pattern.0.len() > Namespace::MAX_SEGMENTS {
                let problem = "a pattern has more than 16 segments, and no namespace has";
                return Err(StoreError::new(StoreCode::ItemQuery, problem));
            }
        }
        Ok(())
    }
}

/// Collects a page of namespaces that arrive in order.
pub(crate) struct NamespacePage<'a> {
    query: &'a NamespaceQuery,
    seen: usize,
    last: Option<Namespace>,
    found: Vec<Namespace>,
}

impl<'a> NamespacePage<'a> {
    pub(crate) fn new(query: &'a NamespaceQuery) -> Self {
        NamespacePage { query, seen: 0, last: None, found: Vec::new() }
    }

    /// Adds a stored namespace; `false` once the page is full.
    pub(crate) fn add(&mut self, namespace: &Namespace) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(shown) = self.query.shows(namespace) else { return true };
        if self.last.as_ref() != Some(&shown) {
            self.seen += 1;
            if self.seen > self.query.offset {
                self.found.push(shown.clone());
            }
            self.last = Some(shown);
        }
        !self.is_full()
    }

    /// The namespaces of the page.
    pub(crate) fn into_found(self) -> Vec<Namespace> {
        self.found
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.query.limit
    }
}
