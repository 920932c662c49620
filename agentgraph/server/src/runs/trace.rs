//! The trace of a run: what its tasks did and when, in microseconds since 1970, without what they read and
//! wrote. The page draws it.

use std::collections::BTreeMap;

use agentgraph::CheckpointId;
use serde_json::{Map, Value, json};

use crate::ids::{self, WirePlace};

const TYPES: [&str; 11] = [
    "task_started",
    "task_ended",
    "attempt_started",
    "attempt_failed",
    "durable_step",
    "answer_voided",
    "edited",
    "edit_rejected",
    "edit_dropped",
    "replay_diverged",
    "checkpoint",
];
const FIELDS: [&str; 17] = [
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
    "edits",
    "rejection",
    "lost",
    "expected",
    "source",
    "next",
    "checkpoint",
];

/// The mark of an event; `None` for one that the trace leaves out. Of the pieces of a model's message, the
/// last one has a mark.
pub(super) fn mark(event: &Value, thread: &str) -> Option<String> {
    let used = used(event);
    (used.is_some() || TYPES.contains(&event["type"].as_str()?)).then(|| {
        let fields = FIELDS.into_iter().filter_map(|name| Some((name.to_owned(), event.get(name)?.clone())));
        let mut mark: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
        mark.insert("at".to_owned(), ids::now().into());
        if let Some((model, usage)) = used {
            mark.insert("model".to_owned(), model.into());
            mark.insert("usage".to_owned(), usage.clone());
        }
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

/// The model and the tokens of a message whose last piece the event has.
fn used(event: &Value) -> Option<(&str, &Value)> {
    let response = event["piece"].get("finished")?;
    Some((response["model"].as_str().unwrap_or_default(), response.get("usage")?))
}

/// Tokens and stuck joins of a run in this process.
#[derive(Default)]
pub(super) struct Tally {
    /// Tokens in and out, by model.
    tokens: BTreeMap<String, [u64; 2]>,
    /// The joins that never fired.
    pub(super) stuck: Value,
}

impl Tally {
    pub(super) fn add(&mut self, event: &Value) {
        let Some((model, usage)) = used(event) else { return };
        let tokens = self.tokens.entry(model.to_owned()).or_default();
        for (sum, part) in tokens.iter_mut().zip(["input_total", "output_total"]) {
            *sum = sum.saturating_add(usage[part].as_u64().unwrap_or(0));
        }
    }

    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Adds the tokens to those that a record has.
    pub(super) fn add_to(&self, record: &mut Value) {
        for (model, tokens) in &self.tokens {
            let known = |at: usize| record[model][at].as_u64().unwrap_or(0);
            let sum = [0, 1].map(|at| known(at).saturating_add(tokens[at]));
            record[model] = json!(sum);
        }
    }
}
