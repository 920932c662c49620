//! [`Frames`]: the events of a graph as the events of LangGraph's streams, one mode beside the other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use agentgraph::View;
use agentgraph::run::Interrupt;
use serde_json::{Map, Value, json};

use super::drive::wire_interrupts;
use super::reader::{ReadEvent, each_message};
use super::request::texts;
use super::trace::checkpoint_id;
use crate::app::{checkpoint_json, merge, object_of};
use crate::graph::RunEvent;
use crate::ids::{self, WirePlace};
use crate::live::Frame;
use crate::messages::Chunk;
use crate::records::Record;

/// The frames of one run.
pub(super) struct Frames {
    pub(super) modes: Vec<String>,
    pub(super) resumable: bool,
    /// The nodes that ran in the call under way.
    pub(super) ran: Vec<String>,
    with_subgraphs: bool,
    seq: u64,
    run: String,
    thread: String,
    about: Map<String, Value>,
    /// Messages that clients have.
    seen: HashSet<String>,
    step: i64,
}

/// The views that the modes need.
pub(super) fn views(modes: &[String]) -> Vec<View> {
    let has = |wanted: &[&str]| modes.iter().any(|mode| wanted.contains(&&**mode));
    let traces = has(&["tasks", "checkpoints", "debug"]);
    let messages = has(&["messages", "messages-tuple"]);
    // Which nodes ran is always needed, to stop after one; the others, for the trace, which has the tokens of
    // models' messages.
    let mut views = vec![View::Updates, View::Tasks, View::Checkpoints, View::Edits, View::Messages];
    let wanted = [(has(&["values"]) || traces || messages, View::Values), (has(&["custom"]), View::Custom)];
    views.extend(wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, view)| view));
    views
}

/// The views that the log of a thread needs.
pub(super) fn all_views() -> Vec<View> {
    let all = [View::Values, View::Updates, View::Messages, View::Custom, View::Tasks, View::Checkpoints];
    all.into_iter().chain([View::Edits]).collect()
}

impl Frames {
    pub(super) fn new(run: &Record, thread: &Record, seq: u64) -> Self {
        let mut frames = Frames {
            modes: texts(&run.data["kwargs"]["stream_mode"]),
            resumable: run.data["kwargs"]["resumable"] == true,
            ran: Vec::new(),
            with_subgraphs: run.data["kwargs"]["subgraphs"] == true,
            seq,
            run: run.id.clone(),
            thread: thread.id.clone(),
            about: Map::new(),
            seen: HashSet::new(),
            step: 0,
        };
        if frames.has_messages() {
            let about = &mut frames.about;
            *about = crate::app::object(&run.data["metadata"]);
            about.insert("run_id".to_owned(), run.id.clone().into());
            about.insert("thread_id".to_owned(), thread.id.clone().into());
            about.insert("graph_id".to_owned(), run.data["graph_id"].clone());
            about.insert("assistant_id".to_owned(), run.data["assistant_id"].clone());
        }
        frames
    }

    pub(super) fn frame(&mut self, event: &str, data: &Value) -> Frame {
        let seq = self.seq;
        self.seq += 1;
        Frame { seq, event: event.to_owned(), data: line(data) }
    }

    fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|wanted| wanted == mode)
    }

    /// A frame of a mode, if it is wanted, in the namespace of the event.
    fn of_mode(&mut self, mode: &str, namespace: &str, data: &Value) -> Option<Frame> {
        self.has(mode).then(|| self.frame(&named(mode, namespace), data))
    }

    /// The frames of an event. The graph may report more than the modes need, for the log of the thread.
    pub(super) fn take(&mut self, read: &ReadEvent, values: &HashMap<String, Arc<Value>>) -> Vec<Frame> {
        let ReadEvent { namespace, event, content, .. } = read;
        if !namespace.is_empty() && !self.with_subgraphs {
            return Vec::new();
        }
        match &*event.kind {
            "values" => {
                note_messages(content, &mut self.seen);
                self.of_mode("values", namespace, content).into_iter().collect()
            }
            "update" => self.update(read),
            "custom" => self.of_mode("custom", namespace, event.field("value")).into_iter().collect(),
            "message" => match &read.chunk {
                Some(chunk) if self.has_messages() => self.chunk(chunk, read),
                _ => Vec::new(),
            },
            "task_started" => self.of_task("task", read),
            "task_ended" => self.of_task("task_result", read),
            "checkpoint" if self.has("checkpoints") || self.has("debug") => {
                self.checkpoint(namespace, event, values)
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn has_updates(&self) -> bool {
        self.has("updates") || self.has_tasks() || self.has_messages()
    }

    pub(super) fn has_tasks(&self) -> bool {
        self.has("tasks") || self.has("debug")
    }

    pub(super) fn has_messages(&self) -> bool {
        self.has("messages") || self.has("messages-tuple")
    }

    fn update(&mut self, read: &ReadEvent) -> Vec<Frame> {
        let ReadEvent { namespace, event, content, .. } = read;
        if namespace.is_empty() {
            self.ran.push(event.node.clone());
        }
        let mut frames = self.messages_of(read);
        if self.has("updates") {
            let update = object_of([(&event.node, (**content).clone())]);
            frames.extend(self.of_mode("updates", namespace, &update));
        }
        frames.extend(self.of_task("task_result", read));
        frames
    }

    fn of_task(&mut self, kind: &str, read: &ReadEvent) -> Vec<Frame> {
        match &read.about_task {
            Some(task) if self.has_tasks() => self.trace("tasks", kind, &read.namespace, task.clone()),
            _ => Vec::new(),
        }
    }

    /// The messages that a node has returned and no model has sent in pieces.
    fn messages_of(&mut self, read: &ReadEvent) -> Vec<Frame> {
        if !self.has_messages() {
            return Vec::new();
        }
        let mut new = Vec::new();
        each_message(&read.content, &mut |message, id| {
            if self.seen.insert(id.to_owned()) {
                new.push(message.clone());
            }
        });
        let mut frames = Vec::new();
        for message in new {
            let id = message["id"].as_str().unwrap_or_default().to_owned();
            let whole = Chunk { piece: message.clone(), so_far: message, id, is_first: true, finished: None };
            frames.extend(self.message(&whole, true, read));
        }
        frames
    }

    fn chunk(&mut self, chunk: &Chunk, read: &ReadEvent) -> Vec<Frame> {
        self.seen.insert(chunk.id.clone());
        self.message(chunk, chunk.is_first && chunk.finished.is_some(), read)
    }

    fn message(&mut self, chunk: &Chunk, is_whole: bool, read: &ReadEvent) -> Vec<Frame> {
        let ReadEvent { namespace, task, event, .. } = read;
        let node = &event.node;
        let level = format!("{node}:{task}");
        let place = if namespace.is_empty() { level } else { format!("{namespace}|{level}") };
        let mut about = json!({
            "langgraph_node": node, "langgraph_step": event.step, "langgraph_triggers": [],
            "langgraph_path": ["__pregel_pull", node], "langgraph_checkpoint_ns": place, "checkpoint_ns": place,
        });
        merge(&mut about, &self.about);
        if self.has("messages-tuple") {
            return vec![self.frame(&named("messages", namespace), &json!([chunk.piece, about]))];
        }
        let mut frames = Vec::new();
        if chunk.is_first {
            let name = named("messages/metadata", namespace);
            frames.push(self.frame(&name, &json!({ &chunk.id: { "metadata": about } })));
        }
        let name = if is_whole { "messages/complete" } else { "messages/partial" };
        frames.push(self.frame(&named(name, namespace), &json!([chunk.so_far])));
        frames
    }

    /// A checkpoint; two of an input, as LangGraph has one before it.
    fn checkpoint(
        &mut self,
        namespace: &str,
        event: &RunEvent,
        values: &HashMap<String, Arc<Value>>,
    ) -> Vec<Frame> {
        let Some(id) = checkpoint_id(event) else { return Vec::new() };
        self.step = i64::try_from(id.step).unwrap_or(i64::MAX);
        let begins = event.field("source") == "input";
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
        let source = if begins { "loop" } else { event.field("source").as_str().unwrap_or("loop") };
        let values = values.get(namespace).map_or_else(|| json!({}), |values| (**values).clone());
        let next = event.field("next").clone();
        let shown = self.checkpoint_form(WirePlace::at(id), source, self.step, next, values);
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

/// JSON in one line: faster than its `Display`, which formats piece by piece.
fn line(data: &Value) -> String {
    serde_json::to_string(data).unwrap_or_default()
}

fn named(event: &str, namespace: &str) -> String {
    if namespace.is_empty() { event.to_owned() } else { format!("{event}|{namespace}") }
}

fn note_messages(values: &Value, seen: &mut HashSet<String>) {
    each_message(values, &mut |_, id| {
        seen.insert(id.to_owned());
    });
}
