//! [`Frames`]: the events of a graph as the events of LangGraph's streams, one mode beside the other.

use std::collections::{HashMap, HashSet};

use agentgraph::View;
use agentgraph::run::Interrupt;
use serde_json::{Map, Value, json};

use super::drive::wire_interrupts;
use super::request::texts;
use crate::app::{checkpoint_json, merge, rename};
use crate::ids::{self, WirePlace};
use crate::live::Frame;
use crate::messages::{Chunk, Chunks};
use crate::records::Record;

/// The frames of one run.
pub(super) struct Frames {
    pub(super) modes: Vec<String>,
    pub(super) resumable: bool,
    /// The nodes that ran in the call under way.
    pub(super) ran: Vec<String>,
    /// The ids of models' messages that clients have seen in pieces.
    pub(super) message_ids: Map<String, Value>,
    known_ids: usize,
    seq: u64,
    run: String,
    thread: String,
    about: Map<String, Value>,
    chunks: Chunks,
    /// Messages that clients have.
    seen: HashSet<String>,
    values: HashMap<String, Value>,
    /// The updates of tasks that have not been reported as ended, and the other way round.
    updates: HashMap<String, Value>,
    ended: HashMap<String, Value>,
    step: i64,
}

/// The views that the modes need.
pub(super) fn views(modes: &[String]) -> Vec<View> {
    let has = |wanted: &[&str]| modes.iter().any(|mode| wanted.contains(&&**mode));
    let traces = has(&["tasks", "checkpoints", "debug"]);
    let messages = has(&["messages", "messages-tuple"]);
    // Which nodes ran is always needed, to stop after one.
    let mut views = vec![View::Updates];
    let wanted = [
        (has(&["values"]) || traces || messages, View::Values),
        (has(&["custom"]), View::Custom),
        (messages, View::Messages),
        (has(&["tasks", "debug"]), View::Tasks),
        (has(&["checkpoints", "debug"]), View::Checkpoints),
    ];
    views.extend(wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, view)| view));
    views
}

impl Frames {
    pub(super) fn new(run: &Record, thread: &Record, seq: u64) -> Self {
        let mut about = crate::app::object(&run.data["metadata"]);
        about.insert("run_id".to_owned(), run.id.clone().into());
        about.insert("thread_id".to_owned(), thread.id.clone().into());
        about.insert("graph_id".to_owned(), run.data["graph_id"].clone());
        about.insert("assistant_id".to_owned(), run.data["assistant_id"].clone());
        let message_ids = crate::app::object(&thread.data["message_ids"]);
        Frames {
            modes: texts(&run.data["kwargs"]["stream_mode"]),
            resumable: run.data["kwargs"]["resumable"] == true,
            ran: Vec::new(),
            known_ids: message_ids.len(),
            message_ids,
            seq,
            run: run.id.clone(),
            thread: thread.id.clone(),
            about,
            chunks: Chunks::default(),
            seen: HashSet::new(),
            values: HashMap::new(),
            updates: HashMap::new(),
            ended: HashMap::new(),
            step: 0,
        }
    }

    /// The ids that this run has added.
    pub(super) fn new_message_ids(&self) -> Map<String, Value> {
        if self.message_ids.len() == self.known_ids { Map::new() } else { self.message_ids.clone() }
    }

    pub(super) fn frame(&mut self, event: &str, data: &Value) -> Frame {
        let seq = self.seq;
        self.seq += 1;
        Frame { seq, event: event.to_owned(), data: data.to_string() }
    }

    fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|wanted| wanted == mode)
    }

    /// A frame of a mode, if it is wanted, in the namespace of the event.
    fn of_mode(&mut self, mode: &str, namespace: &str, data: &Value) -> Option<Frame> {
        self.has(mode).then(|| self.frame(&named(mode, namespace), data))
    }

    /// The frames of an event.
    pub(super) fn take(&mut self, event: Value) -> Vec<Frame> {
        let namespace = ids::wire_namespace(event["namespace"].as_str().unwrap_or_default());
        let task = ids::dashed(event["task"]["id"].as_str().unwrap_or_default());
        let node = event["node"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "values" => {
                let values = rename(event["values"].clone(), &self.message_ids);
                note_messages(&values, &mut self.seen);
                self.values.insert(namespace.clone(), values.clone());
                self.of_mode("values", &namespace, &values).into_iter().collect()
            }
            "update" => self.update(&namespace, &task, &node, &event),
            "custom" => self.of_mode("custom", &namespace, &event["value"]).into_iter().collect(),
            "message" => match self.chunks.take(&task, &event["piece"]) {
                Some(chunk) => self.chunk(chunk, &event, &namespace, &node, &task),
                None => Vec::new(),
            },
            "task_started" => self.task_started(&namespace, &task, &node),
            "task_ended" => self.task_ended(&namespace, &task, &node, &event),
            "checkpoint" => self.checkpoint(&namespace, &event),
            _ => Vec::new(),
        }
    }

    fn update(&mut self, namespace: &str, task: &str, node: &str, event: &Value) -> Vec<Frame> {
        let update = rename(event["update"].clone(), &self.message_ids);
        if namespace.is_empty() {
            self.ran.push(node.to_owned());
        }
        let mut frames = self.messages_of(&update, event, namespace, node, task);
        frames.extend(self.of_mode("updates", namespace, &json!({ node: update })));
        if self.has("tasks") || self.has("debug") {
            self.updates.insert(task.to_owned(), update);
            frames.extend(self.task_result(namespace, task));
        }
        frames
    }

    /// The messages that a node has returned and no model has sent in pieces.
    fn messages_of(
        &mut self,
        update: &Value,
        event: &Value,
        namespace: &str,
        node: &str,
        task: &str,
    ) -> Vec<Frame> {
        if !(self.has("messages") || self.has("messages-tuple")) {
            return Vec::new();
        }
        let mut new = Vec::new();
        each_message(update, &mut |message, id| {
            if self.seen.insert(id.to_owned()) {
                new.push(message.clone());
            }
        });
        let mut frames = Vec::new();
        for message in new {
            let id = message["id"].as_str().unwrap_or_default().to_owned();
            let whole = Chunk { piece: message.clone(), so_far: message, id, is_first: true, finished: None };
            frames.extend(self.message(whole, true, event, (namespace, node, task)));
        }
        frames
    }

    fn chunk(&mut self, chunk: Chunk, event: &Value, namespace: &str, node: &str, task: &str) -> Vec<Frame> {
        self.seen.insert(chunk.id.clone());
        let is_whole = chunk.is_first && chunk.finished.is_some();
        if let Some(id) = &chunk.finished {
            self.message_ids.insert(id.clone(), chunk.id.clone().into());
        }
        self.message(chunk, is_whole, event, (namespace, node, task))
    }

    fn message(
        &mut self,
        chunk: Chunk,
        is_whole: bool,
        event: &Value,
        (namespace, node, task): (&str, &str, &str),
    ) -> Vec<Frame> {
        let level = format!("{node}:{task}");
        let place = if namespace.is_empty() { level } else { format!("{namespace}|{level}") };
        let mut about = json!({
            "langgraph_node": node, "langgraph_step": event["step"], "langgraph_triggers": [],
            "langgraph_path": ["__pregel_pull", node], "langgraph_checkpoint_ns": place, "checkpoint_ns": place,
        });
        merge(&mut about, &self.about);
        if self.has("messages-tuple") {
            return vec![self.frame(&named("messages", namespace), &json!([chunk.piece, about]))];
        }
        let mut frames = Vec::new();
        if chunk.is_first {
            let name = named("messages/metadata", namespace);
            frames.push(self.frame(&name, &json!({ chunk.id: { "metadata": about } })));
        }
        let name = if is_whole { "messages/complete" } else { "messages/partial" };
        frames.push(self.frame(&named(name, namespace), &json!([chunk.so_far])));
        frames
    }

    fn task_started(&mut self, namespace: &str, task: &str, node: &str) -> Vec<Frame> {
        let input = self.values.get(namespace).cloned().unwrap_or_default();
        let started = json!({ "id": task, "name": node, "input": input, "triggers": [] });
        self.trace("tasks", "task", namespace, started)
    }

    fn task_ended(&mut self, namespace: &str, task: &str, node: &str, event: &Value) -> Vec<Frame> {
        let ended = json!({
            "id": task, "name": node, "error": event["error"]["message"], "result": {}, "interrupts": [],
        });
        self.ended.insert(task.to_owned(), ended);
        if event["status"] != "done" {
            // Such a task has no update that comes later.
            self.updates.insert(task.to_owned(), Value::Null);
        }
        self.task_result(namespace, task)
    }

    /// The result of a task of which both the end and the update are known.
    fn task_result(&mut self, namespace: &str, task: &str) -> Vec<Frame> {
        if !(self.updates.contains_key(task) && self.ended.contains_key(task)) {
            return Vec::new();
        }
        let Some(mut ended) = self.ended.remove(task) else { return Vec::new() };
        if let Some(update) = self.updates.remove(task).filter(|update| !update.is_null()) {
            ended["result"] = update;
        }
        self.trace("tasks", "task_result", namespace, ended)
    }

    /// A checkpoint; two of an input, as LangGraph has one before it.
    fn checkpoint(&mut self, namespace: &str, event: &Value) -> Vec<Frame> {
        let id = event["checkpoint"].as_str().and_then(|id| id.split_once('.'));
        let id = id.and_then(|(branch, step)| Some((branch.parse().ok()?, step.parse().ok()?)));
        let Some((branch, step)) = id else { return Vec::new() };
        let id = agentgraph::CheckpointId::new(branch, step);
        self.step = i64::try_from(step).unwrap_or(i64::MAX);
        let begins = event["source"] == "input";
        let mut frames = Vec::new();
        if begins {
            let shown = self.checkpoint_form(
                WirePlace::before(id),
                "input",
                self.step - 1,
                json!(["__start__"]),
                json!({}),
            );
            frames = self.trace("checkpoints", "checkpoint", namespace, shown);
        }
        let source = if begins { "loop" } else { event["source"].as_str().unwrap_or("loop") };
        let values = self.values.get(namespace).cloned().unwrap_or_else(|| json!({}));
        let shown = self.checkpoint_form(WirePlace::at(id), source, self.step, event["next"].clone(), values);
        frames.extend(self.trace("checkpoints", "checkpoint", namespace, shown));
        frames
    }

    fn checkpoint_form(
        &self,
        place: WirePlace,
        source: &str,
        step: i64,
        next: Value,
        values: Value,
    ) -> Value {
        let checkpoint = checkpoint_json(&self.thread, place);
        let tasks = next.as_array().into_iter().flatten().map(|node| {
            let id = ids::derived(&format!("{}:{}:{node}", self.thread, place.id));
            json!({ "id": id, "name": node, "interrupts": [], "state": null })
        });
        json!({
            "config": { "configurable": checkpoint }, "parent_config": null, "values": values, "next": next,
            "tasks": tasks.collect::<Value>(), "checkpoint": checkpoint, "parent_checkpoint": null,
            "metadata": { "source": source, "step": step, "parents": {}, "run_id": self.run },
        })
    }

    /// A frame of a mode and, wrapped, one of `debug`.
    fn trace(&mut self, mode: &str, kind: &str, namespace: &str, payload: Value) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.of_mode(mode, namespace, &payload).into_iter().collect();
        if self.has("debug") {
            let step = payload["metadata"]["step"].as_i64().unwrap_or(self.step + 1);
            let wrapped = json!({
                "step": step, "timestamp": ids::time(ids::now()), "type": kind, "payload": payload,
            });
            frames.extend(self.of_mode("debug", namespace, &wrapped));
        }
        frames
    }

    /// The frames of a run that stops with questions, or at a node.
    pub(super) fn interrupted(&mut self, interrupts: &[Interrupt], values: &Value) -> Vec<Frame> {
        let shown = Map::from_iter([("__interrupt__".to_owned(), wire_interrupts(interrupts))]);
        let mut frames: Vec<Frame> =
            self.of_mode("updates", "", &Value::Object(shown.clone())).into_iter().collect();
        if !interrupts.is_empty() {
            let mut values = values.clone();
            merge(&mut values, &shown);
            frames.extend(self.of_mode("values", "", &values));
        }
        frames
    }
}

fn named(event: &str, namespace: &str) -> String {
    if namespace.is_empty() { event.to_owned() } else { format!("{event}|{namespace}") }
}

fn note_messages(values: &Value, seen: &mut HashSet<String>) {
    each_message(values, &mut |_, id| {
        seen.insert(id.to_owned());
    });
}

/// The messages in the channels of a state or an update.
fn each_message(channels: &Value, visit: &mut impl FnMut(&Value, &str)) {
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
