//! Events of subgraphs in the stream of the parent graph, without the types of the subgraph's state.

use std::sync::Arc;

use super::EventKind;
use crate::context::{ChildEvent, ChildEventKind, ChildListener};
use crate::record::codec::Codec;
use crate::record::json;
use crate::typed::{AnySchema, AnyState};
use crate::words::TaskRef;
use agentgraph_checkpoint::RunId;

impl ChildEventKind {
    pub(super) fn into_kind(self) -> EventKind<AnyState> {
        match self {
            ChildEventKind::Values(values) => EventKind::ValuesInside(values),
            ChildEventKind::Update { node, update } => EventKind::UpdateInside { node, update },
            ChildEventKind::TaskStarted { node, input } => EventKind::TaskStarted { node, input },
            ChildEventKind::TaskEnded { node, end } => EventKind::TaskEnded { node, end },
            ChildEventKind::AttemptStarted { node } => EventKind::AttemptStarted { node },
            ChildEventKind::AttemptFailed { node, code, message, next_in } => {
                EventKind::AttemptFailed { node, code, message, next_in }
            }
            ChildEventKind::Step { node, step, event } => EventKind::Step { node, step, event },
            ChildEventKind::AnswerVoided { node, question, asks } => {
                EventKind::AnswerVoided { node, question, asks }
            }
            ChildEventKind::Checkpoint { id, source, next } => EventKind::Checkpoint { id, source, next },
            ChildEventKind::Message { node, piece } => EventKind::Message { node, piece },
            ChildEventKind::Custom { node, value } => EventKind::Custom { node, value },
            ChildEventKind::Edited { by, edits } => EventKind::Edited { by, edits },
            ChildEventKind::EditRejected { by, why } => EventKind::EditRejected { by, why },
            ChildEventKind::EditDropped(dropped) => EventKind::EditDropped(dropped),
        }
    }
}

/// The receiver of a subgraph's events, and the schema that shows its state.
#[derive(Clone)]
pub(crate) struct ChildEvents {
    pub(super) to: Arc<dyn ChildListener>,
    namespace: Arc<str>,
    pub(super) schema: AnySchema,
    codec: Codec,
}

impl ChildEvents {
    pub(crate) fn new(
        to: Arc<dyn ChildListener>,
        namespace: Arc<str>,
        schema: AnySchema,
        codec: Codec,
    ) -> Self {
        ChildEvents { to, namespace, schema, codec }
    }

    pub(super) fn send(&self, run: RunId, step: u64, task: Option<TaskRef>, kind: EventKind<AnyState>) {
        if let Some(kind) = self.untyped(kind) {
            self.to.push_child_event(ChildEvent {
                run,
                namespace: Arc::clone(&self.namespace),
                step,
                task,
                kind,
            });
        }
    }

    fn untyped(&self, kind: EventKind<AnyState>) -> Option<ChildEventKind> {
        Some(match kind {
            EventKind::Values(state) => {
                ChildEventKind::Values(json::of_state(&self.codec, &self.schema, state.seen()))
            }
            EventKind::Update { node, update } => {
                let update = update.map(|update| json::of_update_as_far(&self.codec, &self.schema, &update));
                ChildEventKind::Update { node, update: update.map(|shown| shown.unwrap_or_default()) }
            }
            EventKind::ValuesInside(values) => ChildEventKind::Values(values),
            EventKind::UpdateInside { node, update } => ChildEventKind::Update { node, update },
            EventKind::TaskStarted { node, input } => ChildEventKind::TaskStarted { node, input },
            EventKind::TaskEnded { node, end } => ChildEventKind::TaskEnded { node, end },
            EventKind::AttemptStarted { node } => ChildEventKind::AttemptStarted { node },
            EventKind::AttemptFailed { node, code, message, next_in } => {
                ChildEventKind::AttemptFailed { node, code, message, next_in }
            }
            EventKind::Step { node, step, event } => ChildEventKind::Step { node, step, event },
            EventKind::AnswerVoided { node, question, asks } => {
                ChildEventKind::AnswerVoided { node, question, asks }
            }
            EventKind::Checkpoint { id, source, next } => ChildEventKind::Checkpoint { id, source, next },
            EventKind::Message { node, piece } => ChildEventKind::Message { node, piece },
            EventKind::Custom { node, value } => ChildEventKind::Custom { node, value },
            EventKind::Edited { by, edits } => ChildEventKind::Edited { by, edits },
            EventKind::EditRejected { by, why } => ChildEventKind::EditRejected { by, why },
            EventKind::EditDropped(dropped) => ChildEventKind::EditDropped(dropped),
            // A subgraph's call starts again when the parent run is replayed.
            EventKind::ReplayDiverged { .. } | EventKind::Ended(_) => return None,
        })
    }
}
