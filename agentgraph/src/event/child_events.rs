//! Events of subgraphs in the stream of the parent graph, without the types of the subgraph's state.

use std::sync::Arc;

use super::queue::EventQueue;
use super::{Event, EventKind};
use crate::record::codec::Codec;
use crate::record::json;
use crate::typed::{AnySchema, AnyState};
use crate::words::TaskRef;
use agentgraph_checkpoint::RunId;

/// The receiver of a subgraph's events, and the schema that shows its state.
#[derive(Clone)]
pub(crate) struct ChildEvents {
    pub(super) to: Arc<EventQueue>,
    namespace: Arc<str>,
    pub(super) schema: AnySchema,
    codec: Codec,
}

impl ChildEvents {
    pub(crate) fn new(to: Arc<EventQueue>, namespace: Arc<str>, schema: AnySchema, codec: Codec) -> Self {
        ChildEvents { to, namespace, schema, codec }
    }

    pub(super) fn send(&self, run: RunId, step: u64, task: Option<TaskRef>, kind: EventKind<AnyState>) {
        if let Some(kind) = self.untyped(kind) {
            let (namespace, schema) = (Arc::clone(&self.namespace), self.to.schema.clone());
            self.to.push_from_inside(Event { seq: 0, run, namespace, step, task, kind, schema });
        }
    }

    /// The event as the parent graph's stream shows it.
    fn untyped(&self, kind: EventKind<AnyState>) -> Option<EventKind<AnyState>> {
        Some(match kind {
            EventKind::Values(state) => {
                EventKind::ValuesInside(json::of_state(&self.codec, &self.schema, state.seen()))
            }
            EventKind::Update { node, update } => {
                let update = update.map(|update| json::of_update_as_far(&self.codec, &self.schema, &update));
                EventKind::UpdateInside { node, update: update.map(|shown| shown.unwrap_or_default()) }
            }
            // A subgraph's call starts again when the parent run is replayed.
            EventKind::ReplayDiverged { .. } | EventKind::Ended(_) => return None,
            other => other,
        })
    }
}
