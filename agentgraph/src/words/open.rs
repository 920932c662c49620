//! The open requests, subgraphs and failures of a task, as data.

use super::interrupt::Interrupt;
use crate::error::Error;
use crate::failure::Failure;
use agentgraph_checkpoint::CheckpointId;

/// A subgraph that has started and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenChild {
    /// Its node.
    pub node: String,
    /// Its namespace: see [`CompiledGraph::namespace`](crate::CompiledGraph::namespace).
    pub namespace: String,
}

/// A request of a node in a subgraph.
pub(crate) struct OpenRequest {
    pub(crate) interrupt: Interrupt,
    /// The checkpoint beside which the answer is stored, in the namespace of the interrupt.
    pub(crate) at: CheckpointId,
}

/// The open items of one task.
#[derive(Default)]
pub(crate) struct Open {
    /// In task order.
    pub(crate) requests: Vec<OpenRequest>,
    /// Outer subgraphs first.
    pub(crate) children: Vec<OpenChild>,
    /// The failures of tasks, in task order, then the failure of the whole.
    pub(crate) failures: Vec<Failure>,
    /// The reason why the call cannot continue, if continuing would lose stored data.
    pub(crate) refused: Option<Error>,
}
