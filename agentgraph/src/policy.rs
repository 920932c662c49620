//! Policies for slow and failing nodes: timeouts and retries.
//!
//! Every attempt is a new call of the node with the same snapshot. A node that waits for an answer has not
//! failed: no further attempt starts while an interrupt of its task is open.

mod on_end;
mod retry;
mod siblings;
mod timeout;

pub use on_end::OnEnd;
pub use retry::RetryPolicy;
pub use siblings::Siblings;
pub(crate) use timeout::{Heartbeats, in_time, within};
pub use timeout::{Timeout, TimeoutKind};

use crate::words::Timeouts;

/// The policies of a node: in its own settings, or by default for all nodes of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    /// The first policy that retries an error decides.
    pub(crate) retry: Vec<RetryPolicy>,
    pub(crate) timeouts: Timeouts,
}

impl Policies {
    pub(crate) fn is_empty(&self) -> bool {
        self.retry.is_empty() && self.timeouts.run.is_none() && self.timeouts.idle.is_none()
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
        self
    }
}
