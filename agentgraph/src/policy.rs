//! Policies for slow and failing nodes: timeouts, retries and limits.
//!
//! Every attempt is a new call of the node with the same snapshot. A node that waits for an answer has not
//! failed: no further attempt starts while an interrupt of its task is open.

mod breaker;
mod cache;
mod limit;
mod on_end;
mod places;
mod retry;
mod siblings;
mod slow_polls;
mod timeout;

pub use breaker::{Breaker, BreakerOpen};
pub(crate) use cache::Cache;
pub use limit::Limit;
pub use on_end::OnEnd;
pub(crate) use places::{Places, take_place};
pub use retry::RetryPolicy;
pub use siblings::Siblings;
pub(crate) use slow_polls::SlowPolls;
pub(crate) use timeout::{Heartbeats, in_time, within};
pub use timeout::{Timeout, TimeoutKind};

use crate::words::Timeouts;

/// The policies of a node: in its own settings, or by default for all nodes of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    /// The first policy that retries an error decides.
    pub(crate) retry: Vec<RetryPolicy>,
    pub(crate) timeouts: Timeouts,
    /// Reuses updates of earlier attempts.
    pub(crate) cache: Option<Cache>,
    /// Rejects attempts after too many failures.
    pub(crate) breaker: Option<Breaker>,
    /// Limits concurrent attempts and their rate.
    pub(crate) limit: Option<Limit>,
    /// Which thread polls attempts; `None`: that of the run.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// The thread that polls the attempts of a node instead of that of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Any worker of the runtime.
    Spawned,
    /// A thread that may be blocked.
    Blocking,
}

impl Policies {
    pub(crate) fn is_empty(&self) -> bool {
        let Policies { retry, timeouts: Timeouts { run, idle }, cache, breaker, limit, elsewhere } = self;
        let has_timeout = run.is_some() || idle.is_some();
        let waits = breaker.is_some() || limit.is_some();
        retry.is_empty() && !has_timeout && cache.is_none() && !waits && elsewhere.is_none()
    }

    /// The policies of one task: its own limits override those of its node.
    pub(crate) fn of_task(limits: Timeouts, node: Option<&Policies>) -> Self {
        let own = Policies { timeouts: limits, ..Policies::default() };
        match node {
            None => own,
            Some(node) => own.or(node),
        }
    }

    /// The policies of a node, with the defaults for those it does not set.
    pub(crate) fn or(mut self, defaults: &Policies) -> Self {
        if self.retry.is_empty() {
            self.retry.clone_from(&defaults.retry);
        }
        self.timeouts.run = self.timeouts.run.or(defaults.timeouts.run);
        self.timeouts.idle = self.timeouts.idle.or(defaults.timeouts.idle);
        self.cache = self.cache.or_else(|| defaults.cache.clone());
        self.breaker = self.breaker.or_else(|| defaults.breaker.clone());
        self.limit = self.limit.or_else(|| defaults.limit.clone());
        self.elsewhere = self.elsewhere.or(defaults.elsewhere);
        self
    }
}
