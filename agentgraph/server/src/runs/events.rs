//! [`Events`]: the events of a graph as those of the log of its thread, which LangGraph's second protocol
//! reads: one order for all channels, ids that are the same each time.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::parts::MessageParts;
use super::reader::{ReadEvent, each_message};
use super::trace::checkpoint_id;
use crate::app::{NewEvent, object_of};
use crate::graph::{End, Moment, RunEvent};
use crate::ids::{self, WirePlace};
use crate::records::Record;

/// The events of one run.
pub(super) struct Events {
    run: String,
    graph: String,
    thread: String,
    /// What the log does not have yet.
    new: Vec<NewEvent>,
    /// The ids of events that are told once, by this process or one before it.
    told: HashSet<String>,
    /// The namespaces of subgraphs under way, the outer ones first.
    open: Vec<String>,
    /// Values that wait for their checkpoint, which clients want to have before them.
    held: Option<Value>,
    /// The newest checkpoint and its parent.
    place: Option<(String, Option<String>)>,
    /// Messages that are being sent, by task.
    messages: HashMap<String, (String, String, MessageParts)>,
    /// Messages, tool calls and results of tools that clients have.
    seen: HashSet<String>,
}

impl Events {
    pub(super) fn new(run: &Record, told: Vec<String>, head: Option<&Moment>) -> Self {
        let wire = |place: WirePlace| place.wire(&run.parent);
        let place = head.map(|head| {
            let parent = match head.parent {
                _ if head.source == "input" => Some(WirePlace::before(head.id)),
                parent => parent.map(WirePlace::at),
            };
            (wire(WirePlace::at(head.id)), parent.map(wire))
        });
        Events {
            run: run.id.clone(),
            graph: run.data["graph_id"].as_str().unwrap_or_default().to_owned(),
            thread: run.parent.clone(),
            new: Vec::new(),
            told: told.into_iter().collect(),
            open: Vec::new(),
            held: None,
            place,
            messages: HashMap::new(),
            seen: HashSet::new(),
        }
    }

    pub(super) fn take_new(&mut self) -> Vec<NewEvent> {
        std::mem::take(&mut self.new)
    }

    /// The run has begun, and answers these questions.
    pub(super) fn begin(&mut self, answered: &[String]) {
        self.lifecycle("", "running", &Value::Null);
        if !answered.is_empty() {
            self.once("input.answered", "", "answered", json!({ "interrupt_ids": answered }));
        }
    }

    pub(super) fn take(&mut self, read: &ReadEvent) {
        let ReadEvent { namespace, event, content, .. } = read;
        self.enter(namespace);
        match &*event.kind {
            "values" => {
                self.note(content);
                let values = (**content).clone();
                if namespace.is_empty() {
                    self.release();
                    self.held = Some(values);
                } else {
                    self.tell("values", namespace, values);
                }
            }
            "checkpoint" if namespace.is_empty() => self.checkpoint(event),
            "update" => {
                self.messages_of(read);
                self.tools_of(namespace, content);
                let values = if content.is_object() { (**content).clone() } else { json!({}) };
                let update = object_of([("node", (*event.node).into()), ("values", values)]);
                self.tell("updates", namespace, update);
                self.task(read);
            }
            "custom" => self.tell("custom", namespace, custom(event.field("value"))),
            "message" => self.message(read),
            "task_started" => self.task(read),
            "task_ended" => {
                let child = self.inside(namespace, &event.node, &read.task);
                match event.field("status").as_str() {
                    Some("interrupted") => {}
                    Some("failed") => self.leave(&child, "failed", &event.field("error")["message"]),
                    Some("stopped") => self.leave(&child, "interrupted", &Value::Null),
                    _ => self.leave(&child, "completed", &Value::Null),
                }
                self.task(read);
            }
            _ => {}
        }
    }

    /// Tells the results of tasks that asked.
    pub(super) fn tell_asked(&mut self, asked: Vec<(String, Value)>) {
        for (namespace, task) in asked {
            self.tell("tasks", &namespace, task);
        }
    }

    /// The run has ended. `refusal` says which answers a strict run has refused.
    pub(super) fn end(&mut self, end: &End, error: Option<&str>, refusal: Value) {
        self.release();
        let why = "the answer did not come to its end";
        let mut unfinished: Vec<_> = self.messages.drain().map(|(_, message)| message).collect();
        unfinished.sort_by(|(_, _, one), (_, _, other)| one.id.cmp(&other.id));
        for (namespace, node, mut parts) in unfinished {
            parts.fail(why);
            self.tell_parts(&namespace, &node, &mut parts);
        }
        let interrupts = match end {
            End::Interrupted(interrupts) => interrupts.as_slice(),
            _ => &[],
        };
        for interrupt in interrupts {
            let Some(id) = interrupt.id.map(ids::interrupt_id) else { continue };
            let namespace = ids::wire_namespace(&interrupt.namespace);
            // Python's client reads `value`, the protocol has `payload`.
            let data = json!({ "interrupt_id": id, "payload": interrupt.value, "value": interrupt.value });
            self.once("input.requested", &namespace, &format!("input|{namespace}|{id}"), data);
        }
        let status = match (end, error) {
            (_, Some(_)) => "failed",
            (End::Finished, None) => "completed",
            _ => "interrupted",
        };
        while let Some(namespace) = self.open.pop() {
            self.lifecycle(&namespace, status, &Value::Null);
        }
        let mut more = refusal;
        if let Some(error) = error {
            crate::app::merge(&mut more, &serde_json::Map::from_iter([("error".to_owned(), error.into())]));
        }
        self.lifecycle("", status, &more);
    }

    fn tell(&mut self, method: &'static str, namespace: &str, data: Value) {
        self.release();
        self.push(method, namespace, None, data, None);
    }

    /// An event that a run tells once, even if another process goes on with it.
    fn once(&mut self, method: &'static str, namespace: &str, what: &str, data: Value) {
        let id = format!("synth:{}:{what}", self.run);
        if self.told.insert(id.clone()) {
            self.release();
            self.push(method, namespace, None, data, Some(id));
        }
    }

    fn push(
        &mut self,
        method: &'static str,
        namespace: &str,
        node: Option<String>,
        data: Value,
        id: Option<String>,
    ) {
        let levels = namespace.split('|').filter(|level| !level.is_empty()).map(str::to_owned);
        self.new.push(NewEvent { method, namespace: levels.collect(), node, data, id });
    }

    /// Tells the values that have no checkpoint.
    fn release(&mut self) {
        if let Some(values) = self.held.take() {
            self.push("values", "", None, values, None);
        }
    }

    fn lifecycle(&mut self, namespace: &str, event: &str, more: &Value) {
        let last = namespace.rsplit('|').next().unwrap_or_default();
        let mut data = json!({ "event": event, "graph_name": self.graph });
        if !namespace.is_empty() {
            // A subgraph with a memory of its own has a place without a task.
            let (node, task) = last.split_once(':').map_or((last, None), |(node, task)| (node, Some(task)));
            data["graph_name"] = node.into();
            data["namespace"] = namespace.split('|').collect();
            data["trigger_call_id"] = json!(task);
        }
        if let Value::Object(more) = more {
            crate::app::merge(&mut data, more);
        }
        self.once("lifecycle", namespace, &format!("lc|{namespace}|{event}"), data);
    }

    /// Tells of subgraphs that were not there before.
    fn enter(&mut self, namespace: &str) {
        for level in ids::levels(namespace) {
            if !self.open.iter().any(|open| open == level) {
                self.open.push(level.to_owned());
                self.lifecycle(level, "started", &Value::Null);
            }
        }
    }

    /// The namespace of the subgraph that a task is.
    fn inside(&self, namespace: &str, node: &str, task: &str) -> String {
        let outer = if namespace.is_empty() { String::new() } else { format!("{namespace}|") };
        let called = format!("{outer}{node}:{task}");
        if self.open.contains(&called) { called } else { format!("{outer}{node}") }
    }

    /// Tells of the end of a subgraph, and of those inside it.
    fn leave(&mut self, namespace: &str, event: &str, error: &Value) {
        let below = format!("{namespace}|");
        let (ended, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<Vec<_>, _>(|open| open.as_str() == namespace || open.starts_with(&below));
        self.open = open;
        let more = if error.is_null() { Value::Null } else { json!({ "error": error }) };
        for namespace in ended.iter().rev() {
            self.lifecycle(namespace, event, &more);
        }
    }

    fn checkpoint(&mut self, event: &RunEvent) {
        let Some(id) = checkpoint_id(event) else { return };
        let source = event.field("source");
        let begins = source == "input";
        let place = WirePlace::at(id).wire(&self.thread);
        let parent = match self.place.take() {
            _ if begins => Some(WirePlace::before(id).wire(&self.thread)),
            // A run that goes on begins with the checkpoint that it goes on from.
            Some((known, parent)) if known == place => parent,
            before => before.map(|(known, _)| known),
        };
        let mut data = json!({ "id": place, "step": id.step, "source": source });
        if let Some(parent) = &parent {
            data["parent_id"] = parent.clone().into();
        }
        self.place = Some((place, parent));
        self.push("checkpoints", "", None, data, None);
        self.release();
    }

    fn task(&mut self, read: &ReadEvent) {
        if let Some(task) = read.about_task.clone() {
            self.tell("tasks", &read.namespace, task);
        }
    }

    fn message(&mut self, read: &ReadEvent) {
        let ReadEvent { namespace, task, event, .. } = read;
        let node = &event.node;
        let Some(chunk) = &read.chunk else { return };
        self.seen.insert(chunk.id.clone());
        let open = self.messages.remove(task);
        let mut parts = match open {
            Some((_, _, parts)) if parts.id == chunk.id => parts,
            other => {
                if let Some((namespace, node, mut parts)) = other {
                    parts.fail("the answer begins again");
                    self.tell_parts(&namespace, &node, &mut parts);
                }
                MessageParts::begin(&chunk.id, node)
            }
        };
        parts.add(chunk);
        self.tell_parts(namespace, node, &mut parts);
        if chunk.finished.is_none() {
            self.messages.insert(task.clone(), (namespace.clone(), node.clone(), parts));
        }
    }

    fn tell_parts(&mut self, namespace: &str, node: &str, parts: &mut MessageParts) {
        self.release();
        for part in parts.take_told() {
            self.push("messages", namespace, Some(node.to_owned()), part, None);
        }
    }

    /// The answers that a node has returned and no model has sent in pieces.
    fn messages_of(&mut self, read: &ReadEvent) {
        let mut new = Vec::new();
        each_message(&read.content, &mut |message, id| {
            if self.seen.insert(id.to_owned()) && message["type"] == "ai" {
                new.push(message.clone());
            }
        });
        for message in new {
            let mut parts = MessageParts::begin(message["id"].as_str().unwrap_or_default(), &read.event.node);
            parts.add_whole(&message);
            parts.finish(&message["usage_metadata"]);
            self.tell_parts(&read.namespace, &read.event.node, &mut parts);
        }
    }

    /// The tool calls and results in an update.
    fn tools_of(&mut self, namespace: &str, update: &Value) {
        let mut new = Vec::new();
        each_message(update, &mut |message, _| {
            for (key, event) in tools_in(message) {
                if self.seen.insert(key) {
                    new.push(event);
                }
            }
        });
        for event in new {
            self.tell("tools", namespace, event);
        }
    }

    /// What a thread had before is not told again.
    fn note(&mut self, values: &Value) {
        each_message(values, &mut |message, id| {
            self.seen.insert(id.to_owned());
            self.seen.extend(tools_in(message).into_iter().map(|(key, _)| key));
        });
    }
}

/// The events of tools that a message is the sign of, with keys that no other event has.
fn tools_in(message: &Value) -> Vec<(String, Value)> {
    if message["type"] == "tool" {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let event = match message["status"].as_str() {
            Some("error") => {
                let text = match &message["content"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                json!({ "event": "tool-error", "tool_call_id": id, "message": text })
            }
            _ => json!({ "event": "tool-finished", "tool_call_id": id, "output": message }),
        };
        return vec![(format!("result of {id}"), event)];
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let event = |call: &Value| {
        let id = call["id"].as_str()?;
        let event = json!({
            "event": "tool-started", "tool_call_id": id, "tool_name": call["name"], "input": call["args"],
        });
        Some((format!("call of {id}"), event))
    };
    calls.filter_map(event).collect()
}

/// An emitted value; one with a `name` and a `payload` alone is for the readers of that name.
fn custom(value: &Value) -> Value {
    match value.as_object() {
        Some(fields) if fields.len() == 2 && value["name"].is_string() && fields.contains_key("payload") => {
            value.clone()
        }
        _ => json!({ "payload": value }),
    }
}
