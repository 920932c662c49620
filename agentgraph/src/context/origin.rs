//! [`TaskOrigin`]: what led to a task, from which its id is derived.

use super::{CallMethod, RunShared, TaskRequest};
use crate::graph::topology::END_ID;
use crate::words::{END, START};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::engine::TaskPlace;

/// What led to a task. Plain numbers, so that a task that never asks for its id pays nothing for it: the
/// names and the hash follow when it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskOrigin {
    /// The number of the commit that led to the task; in a run that stores nothing, of the superstep.
    parent: u64,
    branch: u32,
    /// The node that dispatched or activated it, or the node whose failure it handles.
    from: u32,
    /// Its index among the tasks that came from there.
    nth: u32,
    /// Whether the run has a thread with checkpoints.
    stored: bool,
}

/// The `from` of a task that was reached by edges alone.
const NO_NODE: u32 = u32::MAX - 1;

impl TaskOrigin {
    /// A task of a run that stores nothing, reached by edges.
    #[inline]
    pub(crate) const fn unstored(parent: u64) -> Self {
        TaskOrigin { parent, branch: 0, from: NO_NODE, nth: 0, stored: false }
    }

    /// A task of a stored run, reached by edges.
    #[inline]
    pub(crate) fn stored(branch: u32, parent: u64) -> Self {
        TaskOrigin { parent, branch, from: NO_NODE, nth: 0, stored: true }
    }

    /// The same place, from a node.
    #[inline]
    pub(crate) fn led_by(self, from: u32, nth: u32) -> Self {
        TaskOrigin { from, nth, ..self }
    }

    /// The same source, at another commit.
    pub(crate) fn at(self, parent: u64) -> Self {
        TaskOrigin { parent, ..self }
    }
}

impl RunShared {
    /// The id of a task of this run.
    #[cold]
    pub(crate) fn task_id(&self, task: TaskRequest) -> TaskId {
        if let CallMethod::RunTask(only) = self.call.method {
            return only;
        }
        let TaskOrigin { parent, branch, from, nth, stored } = task.origin;
        let thread = self.thread.as_deref().filter(|_| stored).unwrap_or_else(|| self.unstored_thread());
        let from = (from != NO_NODE).then(|| self.origin_name(from, task.handles));
        TaskId::derive(&TaskPlace {
            thread,
            run: self.run,
            namespace: self.namespace(),
            branch,
            parent,
            node: &self.name_of(task.node),
            dispatch: from.as_ref().map(|from| (&**from, nth)),
        })
    }

    fn origin_name(&self, node: u32, failed: bool) -> String {
        let name = match node {
            END_ID => END.to_owned(),
            node if node as usize == self.graph.names.len() => START.to_owned(),
            node => self.name_of(node).to_string(),
        };
        // No node name may have this prefix.
        if failed { format!("__error__{name}") } else { name }
    }
}
