//! [`Breaker`]: no attempts for a while after too many have failed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agentgraph_checkpoint::services::Services;

/// A circuit breaker that nodes share, those of one graph or of several in one process: when a service is
/// down, its nodes fail at once instead of calling it. Clones are the same breaker.
///
/// It opens after so many failed attempts in a row. While it is open, attempts fail with [`BreakerOpen`]
/// (`E_BREAKER_OPEN`). After the pause one attempt may try; it closes the breaker or opens it for a further
/// pause. Questions of a node are no failures.
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
    condition: Mutex<Condition>,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    /// So many attempts have failed, one after the other.
    Closed(u32),
    /// Until this time of the services' clock.
    Open(Duration),
    /// An attempt tries.
    Tried,
}

/// An attempt was not made, since too many before it have failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the breaker `{name}` is open after failed attempts: {}", when(*.wait))]
#[non_exhaustive]
pub struct BreakerOpen {
    /// The name of the breaker.
    pub name: Arc<str>,
    /// The time until an attempt may try; zero if one is trying now.
    pub wait: Duration,
}

fn when(wait: Duration) -> String {
    if wait.is_zero() {
        "another attempt is trying whether it may close".to_owned()
    } else {
        format!("it lets one through in {wait:?}")
    }
}

impl Breaker {
    /// Opens after `failures` failed attempts in a row, at least one, for `pause`. The name is for people.
    pub fn new(name: impl Into<Arc<str>>, failures: u32, pause: Duration) -> Self {
        let condition = Mutex::new(Condition::Closed(0));
        Breaker(Arc::new(Shared { name: name.into(), failures: failures.max(1), pause, condition }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The error of an attempt that began now, if there is one.
    pub(crate) fn check(&self, services: &dyn Services) -> Result<(), BreakerOpen> {
        let refused = |wait| Err(BreakerOpen { name: Arc::clone(&self.0.name), wait });
        match *self.condition() {
            Condition::Closed(_) => Ok(()),
            Condition::Tried => refused(Duration::ZERO),
            Condition::Open(until) => match until.saturating_sub(services.elapsed()) {
                Duration::ZERO => Ok(()),
                wait => refused(wait.min(self.0.pause)),
            },
        }
    }

    /// Begins an attempt.
    pub(crate) fn admit(&self, services: &dyn Services) -> Result<Admitted<'_>, BreakerOpen> {
        self.check(services)?;
        let mut condition = self.condition();
        let tries = match *condition {
            Condition::Closed(_) => false,
            Condition::Open(_) => true,
            // Another one was faster.
            Condition::Tried => {
                return Err(BreakerOpen { name: Arc::clone(&self.0.name), wait: Duration::ZERO });
            }
        };
        if tries {
            *condition = Condition::Tried;
        }
        Ok(Admitted { breaker: self, tries })
    }

    fn condition(&self) -> MutexGuard<'_, Condition> {
        self.0.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = *self.condition();
        out.debug_struct("Breaker").field("name", &self.0.name).field("condition", &condition).finish()
    }
}

/// An attempt that a breaker has let through.
pub(crate) struct Admitted<'a> {
    breaker: &'a Breaker,
    /// Whether the breaker was open, and this attempt tries.
    tries: bool,
}

impl Admitted<'_> {
    pub(crate) fn succeeded(mut self) {
        let mut condition = self.breaker.condition();
        // An attempt from before the breaker opened does not close it.
        if self.tries || matches!(*condition, Condition::Closed(_)) {
            *condition = Condition::Closed(0);
        }
        self.tries = false;
    }

    pub(crate) fn failed(mut self, services: &dyn Services) {
        let Shared { failures, pause, .. } = &*self.breaker.0;
        let mut condition = self.breaker.condition();
        let failed = match *condition {
            Condition::Closed(failed) => failed.saturating_add(1),
            Condition::Open(_) | Condition::Tried => 0,
        };
        if self.tries || failed >= *failures {
            *condition = Condition::Open(services.elapsed().saturating_add(*pause));
        } else if let Condition::Closed(count) = &mut *condition {
            *count = failed;
        }
        self.tries = false;
    }
}

impl Drop for Admitted<'_> {
    /// An attempt that tried and says nothing, since it was dropped or asks a question, lets the next one
    /// try.
    fn drop(&mut self) {
        if self.tries {
            *self.breaker.condition() = Condition::Open(Duration::ZERO);
        }
    }
}
