//! [`TaskRuntime`]: where and how the tasks of a run are called.

use std::sync::Arc;

use crate::context::RunShared;
use crate::policy::Siblings;

/// Where and how the tasks of a run are called. It does not change while the call goes on.
pub(crate) struct TaskRuntime<R> {
    /// Calls a node here, or sends it to a host.
    pub(in crate::engine) runner: R,
    /// What every task sees of its run.
    pub(in crate::engine) shared: Arc<RunShared>,
    /// What becomes of the others when one task fails.
    pub(in crate::engine) siblings: Siblings,
    /// How many tasks run side by side at most.
    pub(in crate::engine) max_concurrency: usize,
}

impl<R> TaskRuntime<R> {
    pub(crate) fn new(runner: R, shared: Arc<RunShared>, siblings: Siblings, max_concurrency: usize) -> Self {
        TaskRuntime { runner, shared, siblings, max_concurrency }
    }
}
