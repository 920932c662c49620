//! [`Breaker`]: a circuit breaker for nodes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::Services;

/// A circuit breaker shared by nodes of one graph, or of several graphs in one process. While a service is
/// down, its nodes fail fast instead of calling it. Clones share the breaker.
///
/// It opens after `failures` consecutive failed attempts. While it is open, attempts fail with
/// [`BreakerOpen`] (`E_BREAKER_OPEN`). After the pause it lets one trial attempt through: if that succeeds,
/// the breaker closes, otherwise it stays open for another pause. An attempt that asks a question counts
/// neither as a success nor as a failure.
///
/// ```
/// # use agentgraph::prelude::*;
/// use std::time::Duration;
///
/// use agentgraph::Code;
/// use agentgraph::policy::Breaker;
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Trip { found: String }
/// async fn search() -> Result<TripUpdate> {
///     Err("the service is down".into())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let service = Breaker::new("flights", 2, Duration::from_secs(30));
/// let graph = StateGraph::new().node("search", search.breaker(&service)).edge(START, "search").compile()?;
/// let mut codes = Vec::new();
/// for _ in 0..3 {
///     codes.push(graph.invoke(Trip::update()).await.unwrap_err().code());
/// }
/// assert_eq!(codes, [Code::NodeFailed, Code::NodeFailed, Code::BreakerOpen]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Breaker(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    failures: u32,
    pause: Duration,
    condition: Lock<Condition>,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    /// The number of consecutive failures.
    Closed(u32),
    /// Until this time, by [`Services::elapsed`].
    Open(Duration),
    /// A trial attempt is running.
    Trial,
}

/// An attempt was rejected because its breaker is open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the breaker `{name}` is open after failed attempts: {}", when(*.wait))]
#[non_exhaustive]
pub struct BreakerOpen {
    /// The name of the breaker.
    pub name: Arc<str>,
    /// The time until a trial is allowed; zero while a trial is running.
    pub wait: Duration,
}

fn when(wait: Duration) -> String {
    if wait.is_zero() {
        "a trial attempt is running".to_owned()
    } else {
        format!("the next trial is allowed in {wait:?}")
    }
}

impl Breaker {
    /// Opens for `pause` after `failures` consecutive failures; 0 counts as 1. The name is informational.
    pub fn new(name: impl Into<Arc<str>>, failures: u32, pause: Duration) -> Self {
        let condition = Lock::new(Condition::Closed(0));
        Breaker(Arc::new(Shared { name: name.into(), failures: failures.max(1), pause, condition }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Fails if an attempt would be rejected now.
    pub(crate) fn check(&self, services: &dyn Services) -> Result<(), BreakerOpen> {
        let refused = |wait| Err(BreakerOpen { name: Arc::clone(&self.0.name), wait });
        match *self.0.condition.lock() {
            Condition::Closed(_) => Ok(()),
            Condition::Trial => refused(Duration::ZERO),
            Condition::Open(until) => match until.saturating_sub(services.elapsed()) {
                Duration::ZERO => Ok(()),
                wait => refused(wait.min(self.0.pause)),
            },
        }
    }

    /// Lets an attempt through, or rejects it.
    pub(crate) fn admit(&self, services: &dyn Services) -> Result<Admitted<'_>, BreakerOpen> {
        self.check(services)?;
        let mut condition = self.0.condition.lock();
        let is_trial = match *condition {
            Condition::Closed(_) => false,
            Condition::Open(_) => true,
            // Another attempt became the trial between `check` and the lock.
            Condition::Trial => {
                return Err(BreakerOpen { name: Arc::clone(&self.0.name), wait: Duration::ZERO });
            }
        };
        if is_trial {
            *condition = Condition::Trial;
        }
        Ok(Admitted { breaker: self, is_trial })
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = *self.0.condition.lock();
        out.debug_struct("Breaker").field("name", &self.0.name).field("condition", &condition).finish()
    }
}

/// An attempt that passed its breaker.
pub(crate) struct Admitted<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Admitted<'_> {
    pub(crate) fn succeeded(mut self) {
        let mut condition = self.breaker.0.condition.lock();
        // Only the trial closes an open breaker: an older attempt says nothing about the service now.
        if self.is_trial || matches!(*condition, Condition::Closed(_)) {
            *condition = Condition::Closed(0);
        }
        self.is_trial = false;
    }

    pub(crate) fn failed(mut self, services: &dyn Services) {
        let Shared { failures, pause, .. } = &*self.breaker.0;
        let mut condition = self.breaker.0.condition.lock();
        let failed = match *condition {
            Condition::Closed(failed) => failed.saturating_add(1),
            Condition::Open(_) | Condition::Trial => 0,
        };
        if self.is_trial || failed >= *failures {
            *condition = Condition::Open(services.elapsed().saturating_add(*pause));
        } else if let Condition::Closed(count) = &mut *condition {
            *count = failed;
        }
        self.is_trial = false;
    }
}

impl Drop for Admitted<'_> {
    /// A trial without a result, because it was dropped or asked a question, allows the next trial at once.
    fn drop(&mut self) {
        if self.is_trial {
            *self.breaker.0.condition.lock() = Condition::Open(Duration::ZERO);
        }
    }
}
