//! [`Inheritance`]: the remains of earlier calls of a run.

use crate::engine::left_over::Leftovers;
use agentgraph_checkpoint::{CheckpointId, Source, TaskId};

/// The remains of earlier calls of a run.
#[derive(Default)]
pub(crate) struct Inheritance {
    /// Results, questions, answers and failures of the tasks of the first superstep.
    pub(in crate::engine) left_over: Leftovers,
    /// The ids of these tasks in task order, if they were asked for.
    pub(in crate::engine) ids: Vec<TaskId>,
    /// Whether the static interrupts before the first superstep were reported to the caller: then it runs.
    pub(in crate::engine) past_breaks: bool,
    /// The nodes after which a static interrupt stopped an earlier call that did not report it.
    pub(in crate::engine) halted: Vec<String>,
    /// The checkpoint with a stored failure of the superstep that belongs to no task.
    pub(in crate::engine) had_failure: Option<CheckpointId>,
    /// The source of the checkpoint that the call continues from, until the stream has shown it.
    pub(in crate::engine) unshown: Option<Source>,
}

impl Inheritance {
    /// `halted`: the nodes after which a static interrupt stopped the run; `told`: that it was reported;
    /// `found`: the source of the checkpoint that the call continues from.
    pub(crate) fn of(left_over: Leftovers, told: bool, halted: Vec<String>, found: Source) -> Self {
        let halted = if told { Vec::new() } else { halted };
        Inheritance { left_over, past_breaks: told, halted, unshown: Some(found), ..Inheritance::default() }
    }
}
