//! What is open in a task, as data.

use super::interrupt::Interrupt;
use crate::error::Error;
use crate::failure::Failure;
use agentgraph_checkpoint::CheckpointId;

/// A subgraph that has begun and has not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenChild {
    /// The node that it is.
    pub node: String,
    /// Where it is kept: see [`CompiledGraph::namespace`](crate::CompiledGraph::namespace).
    pub namespace: String,
}

/// A request of a node in a subgraph.
pub(crate) struct OpenRequest {
    pub(crate) interrupt: Interrupt,
    /// The checkpoint, in the namespace of the interrupt, that the answer is stored beside.
    pub(crate) at: CheckpointId,
}

/// What is open in one task.
#[derive(Default)]
pub(crate) struct Open {
    /// In task order.
    pub(crate) requests: Vec<OpenRequest>,
    /// The outer ones first.
    pub(crate) children: Vec<OpenChild>,
    /// What tasks failed with, in task order, and then what failed as a whole.
    pub(crate) failures: Vec<Failure>,
    /// Why the call cannot be gone on with, if it would lose what is stored.
    pub(crate) refused: Option<Error>,
}
