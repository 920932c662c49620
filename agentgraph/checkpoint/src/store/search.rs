//! [`SearchQuery`]: what a search finds, and in which order.

use serde_json::Value;

use super::filter::Filter;
use super::item::{Found, Item};
use super::namespace::Namespace;
use crate::error::{StoreCode, StoreError};

/// The most items or namespaces that one call returns.
pub(crate) const MAX_LIMIT: usize = 1_000;

/// The most results that a call skips.
pub(crate) const MAX_OFFSET: usize = 1_000_000;

/// What a search finds; the argument of [`Store::find`](crate::Store::find).
///
/// Without a text, the items come in order of their [versions](crate::Item::version), the highest first:
/// those that were stored last. With a text, those that are most similar to it come first, equal ones by
/// namespace and key; items without a vector are not found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The items are in this namespace.
    pub within: Namespace,
    /// Their values match this.
    pub filter: Option<Filter>,
    /// They are compared with this text.
    pub text: Option<String>,
    /// The most items to return; at most 1,000.
    pub limit: usize,
    /// The number of items to skip; at most 1,000,000.
    pub offset: usize,
    /// Only items with a lower version. Pages by this number neither skip nor repeat an item, whatever is
    /// stored meanwhile.
    pub before: Option<u64>,
    /// Whether the times of the results begin anew; `None` for the store's default.
    pub refresh: Option<bool>,
}

/// The version below which a query looks, as a number of a database.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn before(query: &SearchQuery) -> i64 {
    crate::signed::integer(query.before.unwrap_or(u64::MAX))
}

impl SearchQuery {
    /// All items in a namespace, ten at most.
    pub fn within(namespace: &Namespace) -> Self {
        SearchQuery {
            within: namespace.clone(),
            filter: None,
            text: None,
            limit: 10,
            offset: 0,
            before: None,
            refresh: None,
        }
    }

    /// Fails unless it is within the limits.
    ///
    /// # Errors
    /// [`StoreCode::ItemQuery`].
    pub fn check(&self) -> Result<(), StoreError> {
        check_page(self.limit, self.offset)?;
        self.filter.as_ref().map_or(Ok(()), Filter::check)
    }
}

pub(crate) fn check_page(limit: usize, offset: usize) -> Result<(), StoreError> {
    let problem = if limit > MAX_LIMIT {
        "a search returns at most 1000 results: ask for them in pages"
    } else if offset > MAX_OFFSET {
        "a search skips at most 1000000 results: narrow its namespace or its filter"
    } else {
        return Ok(());
    };
    Err(StoreError::new(StoreCode::ItemQuery, problem))
}

/// The results of a search, which are collected from items in any order.
pub(crate) struct Results<'a> {
    query: &'a SearchQuery,
    found: Vec<Found>,
    scanned: usize,
    scan_limit: usize,
}

impl<'a> Results<'a> {
    pub(crate) fn new(query: &'a SearchQuery, scan_limit: usize) -> Self {
        Results { query, found: Vec::new(), scanned: 0, scan_limit }
    }

    /// Counts items that are looked at.
    pub(crate) fn count(&mut self, items: usize) -> Result<(), StoreError> {
        self.scanned = self.scanned.saturating_add(items);
        if self.scanned <= self.scan_limit {
            return Ok(());
        }
        let problem = format!(
            "a search in {} would look at more than {} items: search in a longer namespace, or raise the `scan_limit` \
             of the store",
            self.query.within, self.scan_limit
        );
        Err(StoreError::new(StoreCode::ScanLimit, problem))
    }

    /// Whether the filter matches a value.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        self.query.filter.as_ref().is_none_or(|filter| filter.matches(value))
    }

    /// Adds an item, unless the filter does not match it or it cannot be compared with the text.
    pub(crate) fn add(&mut self, item: Item, score: Option<f64>) {
        if !self.fits(&item.value) || (score.is_none() && self.query.text.is_some()) {
            return;
        }
        self.found.push(Found::new(item, score));
        // Twice as many are kept as needed, so that sorting costs little for each.
        if self.found.len() >= 2 * self.wanted().max(64) {
            self.order();
            self.found.truncate(self.wanted());
        }
    }

    /// Whether enough items were found, if they arrive in order of their versions.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= self.wanted()
    }

    /// The page that the caller gets.
    pub(crate) fn page(mut self) -> Vec<Found> {
        self.order();
        self.found.into_iter().skip(self.query.offset).take(self.query.limit).collect()
    }

    fn wanted(&self) -> usize {
        self.query.offset + self.query.limit
    }

    fn order(&mut self) {
        match self.query.text {
            None => self.found.sort_by_key(|found| std::cmp::Reverse(found.item.version)),
            Some(_) => self.found.sort_by(|a, b| {
                let score = |found: &Found| found.score.unwrap_or(f64::NEG_INFINITY);
                let place = |found: &Found| (found.item.namespace.clone(), found.item.key.clone());
                score(b).total_cmp(&score(a)).then_with(|| place(a).cmp(&place(b)))
            }),
        }
    }
}
