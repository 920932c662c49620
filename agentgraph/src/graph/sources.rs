//! The sources of an edge: one node, or several joined nodes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::words::owned_names;

/// The sources of an edge. A list of names, [`all`], [`any`] and [`n_of`] make a *join*.
#[derive(Clone, Debug)]
#[must_use = "sources do nothing until an edge starts at them"]
pub struct Sources {
    pub(super) names: Vec<String>,
    pub(super) joins: bool,
    pub(super) policy: JoinPolicy,
    pub(super) timeout: Option<Duration>,
}

/// The number of sources that a join waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinPolicy {
    All,
    AtLeast(usize),
}

impl Sources {
    fn one(name: &str) -> Self {
        Sources { names: vec![name.to_owned()], joins: false, policy: JoinPolicy::All, timeout: None }
    }

    fn joined<T: AsRef<str>>(names: impl IntoIterator<Item = T>, policy: JoinPolicy) -> Self {
        Sources { names: owned_names(names), joins: true, policy, timeout: None }
    }

    /// Fires the join with the arrived sources once this time has passed since the first source of the round,
    /// by the clock of the run's services. The clock is read when a superstep is merged. When nothing else
    /// can run, the join fires at once, since nothing more can arrive. The time is in the checkpoint, so it
    /// survives a stop.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Default)]
    /// # struct Offers { #[reduce(append)] prices: Vec<u32> }
    /// use agentgraph::all;
    /// use std::time::Duration;
    ///
    /// # async fn ask() {}
    /// let graph = StateGraph::<Offers>::new()
    ///     .node("ask_a", ask)
    ///     .node("ask_b", ask)
    ///     .node("choose", ask)
    ///     .edge(START, "ask_a")
    ///     .edge(START, "ask_b")
    ///     .edge(all(["ask_a", "ask_b"]).timeout(Duration::from_secs(30)), "choose")
    ///     .compile();
    /// assert!(graph.is_ok());
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

/// A join that waits for all of these sources. A plain list of names means the same.
pub fn all<T: AsRef<str>>(sources: impl IntoIterator<Item = T>) -> Sources {
    Sources::joined(sources, JoinPolicy::All)
}

/// A join that fires with the first of these sources. The other sources of the round have no effect. The
/// round is over when all have arrived, or when one arrives a second time, which starts the next round.
/// Sources of one superstep arrive together: if one of them has arrived before, all of them belong to the
/// next round.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Found { #[reduce(append)] by: Vec<String> }
/// use agentgraph::any;
///
/// async fn note(ctx: Ctx) -> FoundUpdate {
///     Found::update().by([ctx.node()])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("cache", note)
///     .node("web", note)
///     .node("parse", note)
///     .node("answer", note)
///     .edge(START, "cache")
///     .edge(START, "web")
///     .edge("web", "parse")
///     .edge(any(["cache", "parse"]), "answer")
///     .compile()?;
/// let found = graph.invoke(Found::update()).finish().await?;
/// assert_eq!(found.by, ["cache", "web", "parse", "answer"]); // once: `parse` came too late to ask again
/// # Ok(())
/// # }
/// ```
pub fn any<T: AsRef<str>>(sources: impl IntoIterator<Item = T>) -> Sources {
    Sources::joined(sources, JoinPolicy::AtLeast(1))
}

/// A join that fires when `n` of these sources have arrived; the others are treated as in [`any`].
pub fn n_of<T: AsRef<str>>(n: usize, sources: impl IntoIterator<Item = T>) -> Sources {
    Sources::joined(sources, JoinPolicy::AtLeast(n))
}

/// A value that names the sources of an edge: one name, a list of names for a join, or [`Sources`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the start of an edge",
    label = "not a node's name or a list of names",
    note = "use a name, such as `\"plan\"` or `START`; for a join an array or `Vec` of names, `all(&names)`, `any([..])` or `n_of(2, [..])`"
)]
pub trait IntoSources {
    /// Converts it into the sources.
    fn into_sources(self) -> Sources;
}

impl IntoSources for Sources {
    fn into_sources(self) -> Sources {
        self
    }
}

/// One name: everything that other functions take as `impl AsRef<str>`. An implementation for all such types
/// would overlap with that for arrays.
macro_rules! one_source {
    ($($name:ty),*) => {$(
        impl IntoSources for $name {
            fn into_sources(self) -> Sources {
                Sources::one(self.as_ref())
            }
        }
    )*};
}

one_source!(String, Cow<'_, str>, Box<str>, Arc<str>);

#[diagnostic::do_not_recommend]
impl<T: AsRef<str> + ?Sized> IntoSources for &T {
    fn into_sources(self) -> Sources {
        Sources::one(self.as_ref())
    }
}

impl<T: AsRef<str>, const N: usize> IntoSources for [T; N] {
    fn into_sources(self) -> Sources {
        all(self)
    }
}

impl<T: AsRef<str>> IntoSources for Vec<T> {
    fn into_sources(self) -> Sources {
        all(self)
    }
}
