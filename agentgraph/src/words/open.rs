//! The open requests, subgraphs and failures of a task, as data.

use serde::{Deserialize, Serialize};

use super::durable_step::DoneStep;
use super::interrupt::{Interrupt, InterruptId};
use crate::error::Error;
use crate::failure::Failure;
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::services::micros;

/// A subgraph that has started and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenChild {
    /// Its node.
    pub node: String,
    /// Its namespace: see [`CompiledGraph::namespace`](crate::CompiledGraph::namespace).
    pub namespace: String,
    /// Its nodes that are still to run, in task order; one that has called a subgraph, too, is among them.
    /// Empty if only its commit is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// A request of a node in a subgraph.
pub(crate) struct OpenRequest {
    pub(crate) interrupt: Interrupt,
    /// The checkpoint beside which the answer is stored, in the namespace of the interrupt.
    pub(crate) at: CheckpointId,
}

/// An open request: a question, or a sleep with its end in microseconds since 1970.
#[derive(Clone, Copy)]
pub(crate) struct OpenId {
    pub(crate) id: InterruptId,
    pub(crate) until: Option<u64>,
}

impl OpenId {
    pub(crate) fn of(request: &OpenRequest) -> Option<Self> {
        let Interrupt { id, until, .. } = &request.interrupt;
        Some(OpenId { id: (*id)?, until: until.map(micros) })
    }

    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
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
    /// The durable steps of tasks, in task order.
    pub(crate) steps: Vec<DoneStep>,
    /// The reason why the call cannot continue, if continuing would lose stored data.
    pub(crate) refused: Option<Error>,
}

impl Open {
    /// Adds the items that come after these.
    pub(crate) fn add(&mut self, more: Open) {
        let Open { requests, children, failures, steps, refused } = more;
        self.requests.extend(requests);
        self.children.extend(children);
        self.failures.extend(failures);
        self.steps.extend(steps);
        self.refused = self.refused.take().or(refused);
    }
}
