//! Events of subgraphs, told to whoever streams the graph around: without the types of the subgraph's state.

use std::sync::Arc;

use super::EventKind;
use crate::context::{Heard, HeardKind, Hears};
use crate::record::codec::Codec;
use crate::record::json;
use crate::state::State;
use crate::words::TaskRef;
use agentgraph_checkpoint::RunId;

impl HeardKind {
    pub(super) fn into_kind<S: State>(self) -> EventKind<S> {
        match self {
            HeardKind::Values(values) => EventKind::ValuesInside(values),
            HeardKind::Update { node, update } => EventKind::UpdateInside { node, update },
            HeardKind::TaskStarted { node, input } => EventKind::TaskStarted { node, input },
            HeardKind::TaskEnded { node, end } => EventKind::TaskEnded { node, end },
            HeardKind::AnswerVoided { node, question, asks } => {
                EventKind::AnswerVoided { node, question, asks }
            }
            HeardKind::Checkpoint { id, source, next } => EventKind::Checkpoint { id, source, next },
            HeardKind::Message { node, piece } => EventKind::Message { node, piece },
            HeardKind::Custom { node, value } => EventKind::Custom { node, value },
            HeardKind::Edited { by, edits } => EventKind::Edited { by, edits },
            HeardKind::EditRejected { by, why } => EventKind::EditRejected { by, why },
            HeardKind::EditDropped(dropped) => EventKind::EditDropped(dropped),
        }
    }
}

/// Where the events of a subgraph go, and how its state is shown there.
pub(crate) struct Inside<C: State> {
    pub(crate) to: Arc<dyn Hears>,
    pub(crate) namespace: Arc<str>,
    pub(crate) schema: C::Schema,
    pub(crate) codec: Codec<C>,
}

impl<C: State> Clone for Inside<C> {
    fn clone(&self) -> Self {
        Inside {
            to: Arc::clone(&self.to),
            namespace: Arc::clone(&self.namespace),
            schema: self.schema.clone(),
            codec: self.codec,
        }
    }
}

impl<C: State> Inside<C> {
    pub(super) fn tell(&self, run: RunId, step: u64, task: Option<TaskRef>, kind: EventKind<C>) {
        if let Some(kind) = self.untyped(kind) {
            self.to.hear(Heard { run, namespace: Arc::clone(&self.namespace), step, task, kind });
        }
    }

    fn untyped(&self, kind: EventKind<C>) -> Option<HeardKind> {
        Some(match kind {
            EventKind::Values(state) => HeardKind::Values(json::of_state(&self.codec, &self.schema, &state)),
            EventKind::Update { node, update } => {
                let update = update.map(|update| json::of_update(&self.codec, &self.schema, &update));
                HeardKind::Update { node, update: update.map(|shown| shown.unwrap_or_default()) }
            }
            EventKind::ValuesInside(values) => HeardKind::Values(values),
            EventKind::UpdateInside { node, update } => HeardKind::Update { node, update },
            EventKind::TaskStarted { node, input } => HeardKind::TaskStarted { node, input },
            EventKind::TaskEnded { node, end } => HeardKind::TaskEnded { node, end },
            EventKind::AnswerVoided { node, question, asks } => {
                HeardKind::AnswerVoided { node, question, asks }
            }
            EventKind::Checkpoint { id, source, next } => HeardKind::Checkpoint { id, source, next },
            EventKind::Message { node, piece } => HeardKind::Message { node, piece },
            EventKind::Custom { node, value } => HeardKind::Custom { node, value },
            EventKind::Edited { by, edits } => HeardKind::Edited { by, edits },
            EventKind::EditRejected { by, why } => HeardKind::EditRejected { by, why },
            EventKind::EditDropped(dropped) => HeardKind::EditDropped(dropped),
            // A subgraph's call begins anew where the run around it is replayed.
            EventKind::ReplayDiverged { .. } | EventKind::Ended(_) => return None,
        })
    }
}
