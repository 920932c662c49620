//! The trace of a run: what its tasks did and when, in microseconds since 1970, without what they read and
//! wrote. The page draws it.

use std::collections::BTreeMap;

use agentgraph::CheckpointId;
use serde_json::{Value, json};

use crate::ids::{self, WirePlace};

const TYPES: [&str; 10] = [
    "task_started",
    "task_ended",
    "attempt_started",
    "attempt_failed",
    "durable_step",
    "answer_voided",
    "edited",
    "edit_rejected",
    "edit_dropped",
    "checkpoint",
];
const FIELDS: [&str; 16] = [
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
    "source",
    "next",
    "checkpoint",
];

/// The mark of an event; `None` for one that the trace leaves out. Of the pieces of a model's message, the
/// last one has a mark.
pub(super) fn mark(event: &Value, thread: &str) -> Option<String> {
    let used = used(event);
    (used.is_some() || TYPES.contains(&event["type"].as_str()?)).then(|| {
        let at = Value::from(ids::now());
        let place = checkpoint_id(event).map(|id| Value::from(WirePlace::at(id).wire(thread)));
        let model = used.map(|(model, _)| Value::from(model));
        let fields = event.as_object().into_iter().flatten().map(|(name, value)| (&**name, value));
        let is_shown = |(name, value): &(&str, &Value)| !value.is_null() && FIELDS.contains(name);
        let mut mark: BTreeMap<&str, &Value> = fields.filter(is_shown).collect();
        mark.insert("at", &at);
        mark.extend(place.as_ref().map(|place| ("checkpoint", place)));
        mark.extend(model.as_ref().map(|model| ("model", model)));
        mark.extend(used.map(|(_, usage)| ("usage", usage)));
        serde_json::to_string(&mark).unwrap_or_default()
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

/// What the records of a run keep of an event.
pub(super) enum Kept {
    /// A model has used tokens, in and out.
    Tokens(String, [u64; 2]),
    /// A replay has left the order that it followed, at this step.
    Diverged(Value),
}

impl Kept {
    pub(super) fn of(event: &Value) -> Option<Self> {
        if event["type"] == "replay_diverged" {
            return Some(Kept::Diverged(json!({ "step": event["step"], "expected": event["expected"] })));
        }
        let (model, usage) = used(event)?;
        let tokens = ["input_total", "output_total"].map(|part| usage[part].as_u64().unwrap_or(0));
        (tokens != [0, 0]).then(|| Kept::Tokens(model.to_owned(), tokens))
    }

    pub(super) fn add_to_run(&self, run: &mut Value) {
        match (self, run["diverged"].as_array_mut()) {
            (Kept::Tokens(..), _) => self.add_to_thread(run),
            (Kept::Diverged(at), Some(all)) => all.push(at.clone()),
            (Kept::Diverged(at), None) => run["diverged"] = json!([at]),
        }
    }

    /// Adds tokens to those of all runs.
    pub(super) fn add_to_thread(&self, thread: &mut Value) {
        let Kept::Tokens(model, tokens) = self else { return };
        let sum = &mut thread["tokens"][model];
        *sum =
            [0, 1].map(|at| sum[at].as_u64().unwrap_or(0).saturating_add(tokens[at])).into_iter().collect();
    }
}
