//! [`Records`]: the records of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::Memories;
use crate::engine::journal::Journal;
use crate::engine::kept_outputs::KeptOutputs;
use crate::engine::position::Position;
use crate::engine::recorder::Trace;
use crate::record::bytes::Bytes;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::CheckpointId;

/// The records of a run.
pub(crate) struct Records {
    /// Its checkpoints, if it has a store.
    pub(in crate::engine) journal: Option<Box<Journal>>,
    /// The sum of its updates, if that is the result of a task in the parent graph.
    pub(in crate::engine) trace: Option<Box<Trace>>,
    /// The last outputs of the nodes that keep them.
    pub(in crate::engine) outputs: KeptOutputs,
}

impl Records {
    /// The records of a call at `position`. `outputs` are the last outputs of nodes in its checkpoint;
    /// `traced` is the sum of the updates of earlier calls, if the sum is kept.
    pub(crate) fn new(
        journal: Option<Box<Journal>>,
        position: &Position,
        outputs: BTreeMap<String, Bytes>,
        traced: Option<AnyUpdate>,
    ) -> Self {
        let trace = traced.map(|total| Box::new(Trace::after(total, journal.is_some())));
        Records { journal, trace, outputs: KeptOutputs::of(&position.graph, outputs) }
    }

    /// The current checkpoint.
    pub(super) fn checkpoint(&self) -> Option<CheckpointId> {
        self.journal.as_deref().and_then(Journal::checkpoint)
    }

    /// The memories that the run names, if it is stored.
    pub(super) fn memories(&self) -> Option<&Arc<Memories>> {
        self.journal.as_deref().and_then(Journal::memories)
    }
}
