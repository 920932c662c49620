//! [`TaskRuntime`]: the settings with which the tasks of a run are called.

use std::sync::Arc;

use crate::context::RunShared;
use crate::engine::host::TaskRunner;
use crate::policy::{Places, Siblings};

/// The settings with which the tasks of a run are called. They do not change during the call.
pub(crate) struct TaskRuntime {
    /// Calls a node here, or sends it to a host.
    pub(in crate::engine) runner: TaskRunner,
    /// The part of the run that every task sees.
    pub(in crate::engine) shared: Arc<RunShared>,
    /// The treatment of siblings when a task fails.
    pub(in crate::engine) siblings: Siblings,
    /// Limits the number of tasks that run side by side.
    pub(in crate::engine) places: Places,
}

impl TaskRuntime {
    pub(crate) fn new(
        runner: TaskRunner,
        shared: Arc<RunShared>,
        siblings: Siblings,
        places: Places,
    ) -> Self {
        TaskRuntime { runner, shared, siblings, places }
    }
}
