//! The trace of a run: what its tasks did and when, in microseconds since 1970, without what they read and
//! wrote. The page draws it.

use std::sync::Arc;

use agentgraph::CheckpointId;
use serde_json::{Map, Value, json};

use crate::graph::RunEvent;
use crate::ids::{self, WirePlace};
use crate::live::Mark;

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
const FIELDS: [&str; 12] = [
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
    "model",
    "usage",
];

/// The mark of an event whose content was taken; `None` for one that the trace leaves out. Most marks are
/// never read, so a mark is written when it is read.
pub(super) fn mark(event: RunEvent, thread: &str) -> Option<Mark> {
    TYPES.contains(&&*event.kind).then(|| {
        let (at, thread) = (ids::now(), thread.to_owned());
        Box::new(move || written(&event, at, &thread)) as Mark
    })
}

/// The mark of a message whose last piece the event has, without the message.
pub(super) fn mark_of_message(event: &RunEvent) -> Option<Mark> {
    let (model, usage) = used(event)?;
    let fields = vec![("model".into(), model.into()), ("usage".into(), usage.clone())];
    let (namespace, step) = (Arc::clone(&event.namespace), event.step);
    let (task, node) = (event.task.clone(), event.node.clone());
    let about = RunEvent { namespace, step, task, node, ..RunEvent::new("message", fields) };
    let at = ids::now();
    Some(Box::new(move || written(&about, at, "")))
}

fn written(event: &RunEvent, at: i64, thread: &str) -> String {
    let shown = event.fields().filter(|(name, field)| !field.is_null() && FIELDS.contains(name));
    let mut mark: Map<_, _> = shown.map(|(name, field)| (name.to_owned(), field.clone())).collect();
    let mut add = |name: &str, value: Value| mark.insert(name.to_owned(), value);
    add("at", at.into());
    add("type", (*event.kind).into());
    add("namespace", (*event.namespace).into());
    add("step", event.step.into());
    if !event.node.is_empty() {
        add("node", (*event.node).into());
    }
    if let Some(task) = &event.task {
        add("task", json!({ "id": task.id, "index": task.index, "attempt": task.attempt }));
    }
    if let Some(id) = checkpoint_id(event) {
        add("checkpoint", WirePlace::at(id).wire(thread).into());
    }
    Value::Object(mark).to_string()
}

/// The checkpoint of an event.
pub(super) fn checkpoint_id(event: &RunEvent) -> Option<CheckpointId> {
    let (branch, step) = event.field("checkpoint").as_str()?.split_once('.')?;
    Some(CheckpointId::new(branch.parse().ok()?, step.parse().ok()?))
}

/// The model and the tokens of a message whose last piece the event has.
fn used(event: &RunEvent) -> Option<(&str, &Value)> {
    let response = event.field("piece").get("finished")?;
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
    pub(super) fn of(event: &RunEvent) -> Option<Self> {
        if event.kind == "replay_diverged" {
            let expected = event.field("expected");
            return Some(Kept::Diverged(json!({ "step": event.step, "expected": expected })));
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
