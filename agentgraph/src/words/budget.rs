//! [`Budget`]: the limits of one run, over all its calls.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The limits of one run, counted over every call of `invoke`, `resume` and `proceed` that belongs to it. A
/// run that reaches a limit ends with [`Outcome::Stopped`](crate::Outcome::Stopped),
/// [`StopReason::Budget`](crate::StopReason::Budget) and the last state; a later call with a larger budget
/// continues it.
///
/// Nodes count units of their own with [`Ctx::spend`](crate::Ctx::spend): tokens, or money in its smallest
/// unit. They are checked between two supersteps, so a running superstep is not cut off and may exceed the
/// limit.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Talk { #[reduce(append)] said: Vec<String> }
/// use agentgraph::Budget;
///
/// async fn speak(ctx: Ctx) -> TalkUpdate {
///     ctx.spend("tokens", 400);
///     Talk::update().said(["..."])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("speak", speak).edge(START, "speak").edge("speak", "speak").compile()?;
/// let outcome = graph.invoke(Talk::update()).budget(Budget::new().units("tokens", 1_000)).await?;
/// assert!(matches!(outcome, Outcome::Stopped { reason: StopReason::Budget, .. }));
/// assert_eq!(outcome.output().said.len(), 3);
/// assert_eq!(outcome.spent("tokens"), 1_200);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a budget limits nothing until a run is given it"]
pub struct Budget {
    pub(crate) supersteps: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) units: BTreeMap<Cow<'static, str>, u64>,
}

impl Budget {
    /// A budget without limits.
    pub fn new() -> Self {
        Budget::default()
    }

    /// The most supersteps in the whole run. [`max_supersteps`](crate::RunBuilder::max_supersteps) limits
    /// one call.
    pub fn supersteps(mut self, steps: u64) -> Self {
        self.supersteps = Some(steps);
        self
    }

    /// The longest time by the clock of the run's services, without the time between calls. A superstep
    /// that is running at the limit is cut off like by a [`deadline`](crate::RunBuilder::deadline).
    pub fn time(mut self, limit: Duration) -> Self {
        self.time = Some(limit);
        self
    }

    /// The most of a unit that nodes count. Once the limit is reached, no further superstep starts.
    pub fn units(mut self, unit: impl AsRef<str>, limit: u64) -> Self {
        self.units.insert(Cow::Owned(unit.as_ref().to_owned()), limit);
        self
    }
}
