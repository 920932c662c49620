//! The ids of tasks, derived from the place of a task, so that every process computes the same ids.

use crate::context::{RunShared, TaskOrigin};
use crate::engine::frontier::Frontier;
use agentgraph_checkpoint::engine::TaskPlace;
use agentgraph_checkpoint::{RunId, TaskId};

/// The place of a superstep, for the ids of its tasks.
#[derive(Clone, Copy)]
pub(crate) struct StepPlace<'a> {
    pub(crate) thread: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) run: RunId,
    pub(crate) branch: u32,
    pub(crate) parent: u64,
}

impl StepPlace<'_> {
    /// The id of a task of this step.
    pub(super) fn task(self, node: &str, dispatch: Option<(&str, u32)>) -> TaskId {
        let StepPlace { thread, namespace, run, branch, parent } = self;
        TaskId::derive(&TaskPlace { thread, run, namespace, branch, parent, node, dispatch })
    }

    /// The origin of the tasks of a stored run that edges led to here.
    #[inline]
    pub(super) fn origin(self) -> TaskOrigin {
        TaskOrigin::stored(self.branch, self.parent)
    }
}

/// The place of a superstep in a run without a journal.
pub(super) fn nowhere(shared: &RunShared, step: u64) -> StepPlace<'_> {
    let thread = shared.unstored_thread();
    StepPlace { thread, namespace: shared.namespace(), run: shared.run, branch: 0, parent: step }
}

/// The id of the task at `index` of a frontier.
pub(crate) fn task_id<'n>(
    place: StepPlace<'_>,
    frontier: &Frontier,
    index: usize,
    name: &dyn Fn(u32) -> &'n str,
) -> TaskId {
    let dispatch = index.checked_sub(frontier.pulled.len()).map(|at| &frontier.dispatched[at]);
    let from = dispatch.map(|dispatch| (name(dispatch.from), dispatch.index));
    place.task(name(frontier.task(index).0), from)
}

/// The id of an activation of an eager run. `place` is the place of the commit that made it.
pub(super) fn activation_id(place: StepPlace<'_>, node: &str, from: &str, index: u32) -> TaskId {
    place.task(node, Some((from, index)))
}

/// The id of the handler of the failure at `index`. Its origin has a prefix that no node name may have.
pub(crate) fn handler_id(place: StepPlace<'_>, failed: &str, index: usize, handler: &str) -> TaskId {
    place.task(handler, Some((&format!("__error__{failed}"), index as u32)))
}
