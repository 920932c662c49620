//! Threads as clients see them. Values and questions are read from the checkpoints when they are asked for.

use std::ops::Bound;

use agentgraph::CheckpointId;
use serde_json::{Map, Value, json};

use super::{App, interrupts_json};
use crate::error::{ApiError, RecordError};
use crate::graph::ServedGraph;
use crate::ids::{self, WirePlace};
use crate::records::{Kind, Record};

impl App {
    /// A thread as clients see it. `select` names the fields that are wanted; all if it is empty.
    pub(crate) async fn thread_json(&self, thread: &Record, select: &[String]) -> Result<Value, ApiError> {
        let wants = |field: &str| select.is_empty() || select.iter().any(|name| name == field);
        let mut values = Value::Null;
        let mut interrupts = json!({});
        if (wants("values") || wants("interrupts"))
            && let Some(graph) = self.graph_of(thread)
            && let Some(head) = graph.state(&thread.id, None).await?
        {
            interrupts = Value::Object(interrupts_json(&head));
            values = renamed(head.values, thread);
        }
        let mut shown = json!({
            "thread_id": thread.id,
            "created_at": ids::time(thread.created),
            "updated_at": ids::time(thread.updated),
            "state_updated_at": ids::time(thread.data["state_updated"].as_i64().unwrap_or(thread.created)),
            "metadata": thread.data["metadata"],
            "status": thread.status,
            "config": thread.data.get("config").cloned().unwrap_or_else(|| json!({})),
            "error": thread.data["error"],
            "values": values,
            "interrupts": interrupts,
        });
        if select.iter().any(|name| name == "tokens") {
            shown["tokens"] = thread.data["tokens"].clone();
        }
        let Value::Object(fields) = shown else { return Ok(shown) };
        Ok(fields.into_iter().filter(|(field, _)| wants(field)).collect::<Map<_, _>>().into())
    }

    /// Creates a thread, or returns the existing one if `may_exist`.
    pub(crate) async fn create_thread(
        &self,
        id: Option<&str>,
        metadata: Map<String, Value>,
        may_exist: bool,
    ) -> Result<Record, ApiError> {
        let id = match id {
            Some(id) => ids::parse_uuid("thread_id", id)?,
            None => ids::new_id(),
        };
        let data = json!({ "metadata": self.owned(metadata), "error": null });
        match self.insert((Kind::Thread, &id, ""), "idle", data).await? {
            Some(made) => Ok(made),
            None if may_exist => self.thread(&id).await,
            None => Err(ApiError::conflict(format!("Thread {id} already exists"))),
        }
    }

    /// Records that the checkpoints behind `after` were rolled back, up to `up_to`, which has the state of
    /// `after`.
    pub(crate) async fn has_undone(
        &self,
        id: &str,
        after: CheckpointId,
        up_to: CheckpointId,
    ) -> Result<(), RecordError> {
        let range = json!([WirePlace::at(after).wire(id), WirePlace::at(up_to).wire(id)]);
        let changed = |thread: &mut Record| match &mut thread.data["undone"] {
            Value::Array(ranges) => ranges.push(range.clone()),
            none => *none = json!([range]),
        };
        self.change(Kind::Thread, id, changed).await.map(drop)
    }

    /// Notes that a client has changed the state of a thread.
    pub(crate) async fn thread_was_edited(&self, id: &str, graph: &dyn ServedGraph) -> Result<(), ApiError> {
        let head = graph.head(id).await?;
        let status = if head.is_some_and(|head| !head.finished) { "interrupted" } else { "idle" };
        Ok(self.thread_has_changed(id, status, None).await?)
    }

    /// Notes that the state of a thread is another one.
    pub(crate) async fn thread_has_changed(
        &self,
        id: &str,
        status: &str,
        error: Option<&Value>,
    ) -> Result<(), RecordError> {
        let changed = |thread: &mut Record| left_by_run(thread, status, error, &Map::new());
        self.change(Kind::Thread, id, changed).await.map(drop)
    }
}

/// Notes what a run has left of its thread, with the ids of messages that its readers have seen.
pub(crate) fn left_by_run(
    thread: &mut Record,
    status: &str,
    error: Option<&Value>,
    renamed: &Map<String, Value>,
) {
    status.clone_into(&mut thread.status);
    thread.data["error"] = error.cloned().unwrap_or_default();
    thread.data["state_updated"] = ids::now().into();
    if !renamed.is_empty() {
        super::merge(&mut thread.data["message_ids"], renamed);
    }
}

/// The checkpoints of runs that were rolled back. The store still has them, histories do not.
pub(crate) fn undone(thread: &Record) -> Vec<(Bound<CheckpointId>, Bound<CheckpointId>)> {
    let id = |range: &Value, at: usize| Some(WirePlace::parse(range[at].as_str()?).ok()?.id);
    let ranges = thread.data["undone"].as_array().into_iter().flatten();
    ranges
        .filter_map(|range| Some((Bound::Excluded(id(range, 0)?), Bound::Included(id(range, 1)?))))
        .collect()
}

/// The checkpoint as which clients see one. A rollback stores the state before the run once more, in a
/// checkpoint that is the one before the run to clients.
pub(crate) fn seen_as(thread: &Record, id: CheckpointId) -> CheckpointId {
    undone(thread).into_iter().rev().fold(id, |id, range| match range {
        (Bound::Excluded(before), Bound::Included(again)) if id == again => before,
        _ => id,
    })
}

/// The values with the ids that clients have seen in the pieces of messages.
pub(crate) fn renamed(values: Value, thread: &Record) -> Value {
    match thread.data["message_ids"].as_object() {
        Some(names) => rename(values, names),
        None => values,
    }
}

/// Replaces the ids of models' messages, at any depth.
pub(crate) fn rename(mut value: Value, names: &Map<String, Value>) -> Value {
    if !names.is_empty() {
        rename_in(&mut value, names);
    }
    value
}

fn rename_in(value: &mut Value, names: &Map<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in(item, names)),
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind == "ai")
                && let Some(id) = fields.get_mut("id")
                && let Some(name) = id.as_str().and_then(|id| names.get(id))
            {
                *id = name.clone();
                return;
            }
            fields.values_mut().for_each(|field| rename_in(field, names));
        }
        _ => {}
    }
}

/// The ids of the state in the place of those that clients have seen.
pub(crate) fn named_back(value: Value, thread: &Record) -> Value {
    let Some(names) = thread.data["message_ids"].as_object().filter(|names| !names.is_empty()) else {
        return value;
    };
    let back = names.iter().filter_map(|(id, name)| Some((name.as_str()?.to_owned(), id.clone().into())));
    rename(value, &back.collect())
}
