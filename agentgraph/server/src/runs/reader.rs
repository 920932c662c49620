//! [`EventReader`]: the events of a graph in the form in which both protocols need them: names of the wire,
//! messages by the ids that clients see, tasks with their results.

use std::collections::HashMap;
use std::sync::Arc;

use agentgraph::run::Interrupt;
use serde_json::{Map, Value, json};

use super::drive::wire_interrupts;
use crate::app::{about_run, object_of, rename};
use crate::graph::RunEvent;
use crate::ids;
use crate::messages::{Chunk, Chunks};
use crate::records::Record;

/// Reads the events of one run.
pub(super) struct EventReader {
    /// The ids of models' messages that clients have seen in pieces.
    pub(super) message_ids: Map<String, Value>,
    /// The newest values, by namespace.
    pub(super) values: HashMap<String, Arc<Value>>,
    /// Whether updates, and the events of tasks, go to a stream or a log.
    pub(super) tells_updates: bool,
    pub(super) tells_tasks: bool,
    known_ids: usize,
    chunks: Chunks,
    /// The updates of tasks that have not been reported as ended, and the other way round: nodes and errors.
    updates: HashMap<String, Arc<Value>>,
    ended: HashMap<String, (String, Value)>,
    /// The results of tasks that asked, by namespace. Their questions are known at the end of the call.
    asked: Vec<(String, Value)>,
    /// The metadata of tasks.
    about: Value,
}

/// An event that was read.
pub(super) struct ReadEvent {
    /// As the wire has it, and so is the task.
    pub(super) namespace: String,
    pub(super) task: String,
    /// The event of the graph, without its content.
    pub(super) event: RunEvent,
    /// Its values or its update, with messages by the ids that clients see.
    pub(super) content: Arc<Value>,
    /// The piece of a message.
    pub(super) chunk: Option<Chunk>,
    /// A task that has begun, or one of which the end and the update are both known.
    pub(super) about_task: Option<Value>,
}

impl EventReader {
    pub(super) fn new(run: &Record, thread: &Record) -> Self {
        let message_ids = crate::app::object(&thread.data["message_ids"]);
        EventReader {
            known_ids: message_ids.len(),
            message_ids,
            values: HashMap::new(),
            tells_updates: false,
            tells_tasks: false,
            chunks: Chunks::default(),
            updates: HashMap::new(),
            ended: HashMap::new(),
            asked: Vec::new(),
            about: about_run(run).into(),
        }
    }

    /// The ids that this run has added.
    pub(super) fn new_message_ids(&self) -> Map<String, Value> {
        if self.message_ids.len() == self.known_ids { Map::new() } else { self.message_ids.clone() }
    }

    pub(super) fn read(&mut self, mut event: RunEvent) -> ReadEvent {
        let namespace = ids::wire_namespace(&event.namespace);
        let task = event.task.as_ref().map(|task| ids::dashed(&task.id)).unwrap_or_default();
        let (mut chunk, mut about_task) = (None, None);
        let made = event.content.take().filter(|_| event.kind == "values" || self.tells_updates);
        let content = Arc::new(made.map(|make| rename(make(), &self.message_ids)).unwrap_or_default());
        match &*event.kind {
            "values" => {
                self.values.insert(namespace.clone(), Arc::clone(&content));
            }
            "update" if self.tells_tasks => {
                self.updates.insert(task.clone(), Arc::clone(&content));
                about_task = self.result(&task);
            }
            "message" => {
                chunk = self.chunks.take(&task, event.field("piece"));
                if let Some(Chunk { id, finished: Some(finished), .. }) = &chunk {
                    self.message_ids.insert(finished.clone(), id.clone().into());
                }
            }
            "task_started" if self.tells_tasks => {
                let input = match event.field("input") {
                    Value::Null => self.values.get(&namespace).map(|values| (**values).clone()),
                    own => Some(own.clone()),
                };
                about_task = Some(object_of([
                    ("id", task.clone().into()),
                    ("name", (*event.node).into()),
                    ("input", input.unwrap_or_default()),
                    ("triggers", json!([])),
                    ("metadata", self.about.clone()),
                ]));
            }
            "task_ended" if self.tells_tasks => {
                let error = event.field("error")["message"].clone();
                self.ended.insert(task.clone(), (event.node.clone(), error));
                if event.field("status") != "done" {
                    // Such a task has no update that comes later.
                    self.updates.insert(task.clone(), Arc::default());
                }
                about_task = self.result(&task);
                if event.field("status") == "interrupted" {
                    self.asked.extend(about_task.take().map(|task| (namespace.clone(), task)));
                }
            }
            _ => {}
        }
        ReadEvent { namespace, task, event, content, chunk, about_task }
    }

    /// The results of tasks that asked, by namespace, with these questions.
    pub(super) fn take_asked(&mut self, interrupts: &[Interrupt]) -> Vec<(String, Value)> {
        let mut asked = std::mem::take(&mut self.asked);
        for (namespace, task) in &mut asked {
            let id = task["id"].as_str().unwrap_or_default();
            let own: Vec<_> = interrupts.iter().filter(|one| asks(one, namespace, id)).cloned().collect();
            task["interrupts"] = wire_interrupts(&own);
        }
        asked
    }

    /// The result of a task of which both the end and the update are known.
    fn result(&mut self, task: &str) -> Option<Value> {
        if !(self.updates.contains_key(task) && self.ended.contains_key(task)) {
            return None;
        }
        let (update, (node, error)) = (self.updates.remove(task)?, self.ended.remove(task)?);
        let result = if update.is_null() { json!({}) } else { (*update).clone() };
        Some(object_of([
            ("id", task.into()),
            ("name", node.into()),
            ("error", error),
            ("result", result),
            ("interrupts", json!([])),
        ]))
    }
}

/// Whether a question is of a task, or of a subgraph in it.
fn asks(interrupt: &Interrupt, namespace: &str, task: &str) -> bool {
    let place = ids::wire_namespace(&interrupt.namespace);
    let is_own = place == namespace && interrupt.id.is_some_and(|id| ids::task_of(id) == task);
    let below =
        if namespace.is_empty() { Some(&*place) } else { place.strip_prefix(&format!("{namespace}|")) };
    let child = below.and_then(|below| below.split('|').next()).and_then(|level| level.split_once(':'));
    is_own || child.is_some_and(|(_, child)| child == task)
}

/// The messages in the channels of a state or an update.
pub(super) fn each_message(channels: &Value, visit: &mut impl FnMut(&Value, &str)) {
    let is_message = |value: &Value| {
        matches!(value["type"].as_str(), Some("human" | "ai" | "system" | "tool"))
            && value.get("content").is_some()
    };
    for channel in channels.as_object().into_iter().flat_map(Map::values) {
        let items = match channel {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items.iter().filter(|item| is_message(item)) {
            if let Some(id) = item["id"].as_str() {
                visit(item, id);
            }
        }
    }
}
