//! The trace of a run: what its tasks did and when, in microseconds since 1970, without what they read and
//! wrote. The page draws it.

use agentgraph::CheckpointId;
use serde_json::{Map, Value, json};

use crate::ids::{self, WirePlace};

const TYPES: [&str; 9] = [
    "task_started",
    "task_ended",
    "attempt_started",
    "attempt_failed",
    "durable_step",
    "answer_voided",
    "edit_rejected",
    "edit_dropped",
    "checkpoint",
];
const FIELDS: [&str; 14] = [
    "type",
    "namespace",
    "step",
    "task",
    "node",
    "status",
    "error",
    "next_in_ms",
    "durable_step",
    "question",
    "rejection",
    "source",
    "next",
    "checkpoint",
];

/// The mark of an event; `None` for one that the trace leaves out.
pub(super) fn mark(event: &Value, thread: &str) -> Option<String> {
    TYPES.contains(&event["type"].as_str()?).then(|| {
        let fields = FIELDS.into_iter().filter_map(|name| Some((name.to_owned(), event.get(name)?.clone())));
        let mut mark: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
        mark.insert("at".to_owned(), ids::now().into());
        if let Some(id) = checkpoint_id(event) {
            mark.insert("checkpoint".to_owned(), json!(WirePlace::at(id).wire(thread)));
        }
        Value::Object(mark).to_string()
    })
}

/// The checkpoint of an event.
pub(super) fn checkpoint_id(event: &Value) -> Option<CheckpointId> {
    let (branch, step) = event["checkpoint"].as_str()?.split_once('.')?;
    Some(CheckpointId::new(branch.parse().ok()?, step.parse().ok()?))
}
