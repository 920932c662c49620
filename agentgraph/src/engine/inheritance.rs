//! [`Inheritance`]: what earlier calls of a run have left to this one.

use crate::engine::left_over::Leftovers;
use agentgraph_checkpoint::CheckpointId;

/// What earlier calls of a run have left to this one.
#[derive(Default)]
pub(crate) struct Inheritance {
    /// Results, questions, answers and failures of the tasks of the first superstep.
    pub(in crate::engine) left_over: Leftovers,
    /// The caller knows of the static interrupts before the first superstep, which goes past them.
    pub(in crate::engine) past_breaks: bool,
    /// A static interrupt after these nodes stopped an earlier call whose caller was not told.
    pub(in crate::engine) halted: Vec<String>,
    /// The checkpoint beside which a store says that the superstep has failed, and no task of it.
    pub(in crate::engine) had_failure: Option<CheckpointId>,
}

impl Inheritance {
    /// `halted`: the nodes after which a static interrupt stopped the run; `told`: its caller knows.
    pub(crate) fn of(left_over: Leftovers, told: bool, halted: Vec<String>) -> Self {
        let halted = if told { Vec::new() } else { halted };
        Inheritance { left_over, past_breaks: told, halted, had_failure: None }
    }
}
