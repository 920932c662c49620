//! [`Frames`]: the events of a graph as the events of LangGraph's streams, one mode beside the other.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use agentgraph::View;
use agentgraph::run::Interrupt;
use serde_json::{Map, Value, json};

use super::drive::wire_interrupts;
use super::reader::{ReadEvent, each_message};
use super::request::texts;
use super::trace::checkpoint_id;
use crate::app::{about_run, checkpoint_inside, merge, object_of};
use crate::graph::{Moment, RunEvent};
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
    /// Values that wait for the checkpoint with them: that of an input has one before them.
    held: Option<(String, Arc<Value>)>,
    /// The newest checkpoint of each namespace, and its parent.
    places: HashMap<String, (WirePlace, Option<WirePlace>)>,
    /// The values before the input of the run.
    pub(super) before: Value,
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
            held: None,
            places: HashMap::new(),
            before: json!({}),
        };
        if frames.has_messages() {
            frames.about = about_run(run);
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

    /// The run goes on from this checkpoint.
    pub(super) fn begin_at(&mut self, head: &Moment, values: Value) {
        let before = (head.source == "input").then(|| WirePlace::before(head.id));
        let parent = before.or_else(|| head.parent.map(WirePlace::at));
        self.places.insert(String::new(), (WirePlace::at(head.id), parent));
        self.before = values;
    }

    /// The values that have no checkpoint.
    pub(super) fn release(&mut self) -> Option<Frame> {
        let (namespace, values) = self.held.take()?;
        self.of_mode("values", &namespace, &values)
    }

    /// The frames of an event. The graph may report more than the modes need, for the log of the thread.
    pub(super) fn take(&mut self, read: &ReadEvent, values: &HashMap<String, Arc<Value>>) -> Vec<Frame> {
        let ReadEvent { namespace, event, .. } = read;
        if !namespace.is_empty() && !self.with_subgraphs {
            return Vec::new();
        }
        if event.kind == "checkpoint" && self.has_checkpoints() {
            return self.checkpoint(namespace, event, values);
        }
        if let Some(id) = checkpoint_id(event).filter(|_| event.kind == "checkpoint") {
            self.places.insert(namespace.clone(), (WirePlace::at(id), None));
        }
        let mut frames: Vec<Frame> = self.release().into_iter().collect();
        frames.extend(self.of_event(read));
        frames
    }

    fn of_event(&mut self, read: &ReadEvent) -> Vec<Frame> {
        let ReadEvent { namespace, event, content, .. } = read;
        match &*event.kind {
            "values" => {
                note_messages(content, &mut self.seen);
                self.held = Some((namespace.clone(), Arc::clone(content)));
                if self.has_checkpoints() { Vec::new() } else { self.release().into_iter().collect() }
            }
            "update" => self.update(read),
            "custom" => self.of_mode("custom", namespace, event.field("value")).into_iter().collect(),
            "message" => match &read.chunk {
                Some(chunk) if self.has_messages() => self.chunk(chunk, read),
                _ => Vec::new(),
            },
            "task_started" => self.of_task("task", read),
            "task_ended" => self.of_task("task_result", read),
            _ => Vec::new(),
        }
    }

    pub(super) fn has_checkpoints(&self) -> bool {
        self.has("checkpoints") || self.has("debug")
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

    /// The result of a task that asked.
    pub(super) fn asked(&mut self, namespace: &str, task: &Value) -> Vec<Frame> {
        let is_told = self.has_tasks() && (namespace.is_empty() || self.with_subgraphs);
        if is_told { self.trace("tasks", "task_result", namespace, task.clone()) } else { Vec::new() }
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
            "langgraph_node": node, "langgraph_step": self.next_step(namespace), "langgraph_triggers": [],
            "langgraph_path": ["__pregel_pull", node], "langgraph_checkpoint_ns": place, "checkpoint_ns": place,
        });
        merge(&mut about, &self.about);
        if self.has("messages-tuple") {
            return vec![self.frame(&named("messages", namespace), &json!([chunk.piece, about]))];
        }
        let mut frames = Vec::new();
        // Only the metadata name the subgraph here.
        if chunk.is_first {
            frames.push(self.frame("messages/metadata", &json!({ &chunk.id: { "metadata": about } })));
        }
        let name = if is_whole { "messages/complete" } else { "messages/partial" };
        frames.push(self.frame(name, &json!([chunk.so_far])));
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
        let step = signed(id.step);
        let begins = event.field("source") == "input";
        let mut frames = Vec::new();
        if begins {
            let before = if namespace.is_empty() { self.before.take() } else { json!({}) };
            let source = ("input", step - 1);
            frames =
                self.of_checkpoint(namespace, WirePlace::before(id), source, json!(["__start__"]), before);
        }
        frames.extend(self.release());
        let source = if begins { "loop" } else { event.field("source").as_str().unwrap_or("loop") };
        let values = values.get(namespace).map_or_else(|| json!({}), |values| (**values).clone());
        let next = event.field("next").clone();
        frames.extend(self.of_checkpoint(namespace, WirePlace::at(id), (source, step), next, values));
        frames
    }

    /// The step of the tasks under way.
    fn next_step(&self, namespace: &str) -> i64 {
        self.places.get(namespace).map_or(0, |(place, _)| signed(place.id.step)) + 1
    }

    fn of_checkpoint(
        &mut self,
        namespace: &str,
        place: WirePlace,
        (source, step): (&str, i64),
        next: Value,
        values: Value,
    ) -> Vec<Frame> {
        let parent = match self.places.remove(namespace) {
            // A run that goes on begins with the checkpoint that it goes on from.
            Some((known, parent)) if known == place => parent,
            before => before.map(|(known, _)| known),
        };
        self.places.insert(namespace.to_owned(), (place, parent));
        let checkpoint = checkpoint_inside(&self.thread, namespace, place);
        let parent = parent.map(|parent| checkpoint_inside(&self.thread, namespace, parent));
        let tasks = next.as_array().into_iter().flatten().map(|node| {
            let id = ids::derived(&format!("{}:{}:{node}", self.thread, place.id));
            json!({ "id": id, "name": node, "interrupts": [], "state": null })
        });
        let around =
            ids::levels(namespace).map(|level| level.rsplit_once('|').map_or("", |(outer, _)| outer));
        let around = around.filter_map(|outer| Some((outer, self.places.get(outer)?.0.wire(&self.thread))));
        let parents: Map<_, _> = around.map(|(outer, id)| (outer.to_owned(), id.into())).collect();
        let shown = json!({
            "config": { "configurable": checkpoint },
            "parent_config": parent.as_ref().map(|parent| json!({ "configurable": parent })),
            "values": values, "next": next, "tasks": tasks.collect::<Value>(),
            "checkpoint": checkpoint, "parent_checkpoint": parent,
            "metadata": { "source": source, "step": step, "parents": parents, "run_id": self.run },
        });
        self.trace("checkpoints", "checkpoint", namespace, shown)
    }

    /// A frame of a mode and, wrapped, one of `debug`.
    fn trace(&mut self, mode: &str, kind: &str, namespace: &str, payload: Value) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.of_mode(mode, namespace, &payload).into_iter().collect();
        if self.has("debug") {
            let step = payload["metadata"]["step"].as_i64().unwrap_or_else(|| self.next_step(namespace));
            let wrapped = json!({
                "step": step, "timestamp": ids::time(ids::now()), "type": kind, "payload": payload,
            });
            frames.extend(self.of_mode("debug", namespace, &wrapped));
        }
        frames
    }

    /// The frames of a run that stops with questions, or at a node: those of inner graphs first.
    pub(super) fn interrupted(
        &mut self,
        interrupts: &[Interrupt],
        asked: &[(String, Value)],
        result: &Value,
        values: &HashMap<String, Arc<Value>>,
    ) -> Vec<Frame> {
        let place = |one: &Interrupt| ids::wire_namespace(&one.namespace);
        let places: Vec<String> = interrupts.iter().filter(|_| self.with_subgraphs).map(place).collect();
        let mut levels: Vec<&str> = places.iter().flat_map(|place| ids::levels(place)).collect();
        levels.sort_by_key(|level| (Reverse(level.matches('|').count()), *level));
        levels.dedup();
        let mut frames = Vec::new();
        for level in levels.into_iter().chain([""]) {
            let is_inside =
                |one: &&Interrupt| level.is_empty() || ids::levels(&place(one)).any(|it| it == level);
            let own: Vec<Interrupt> = interrupts.iter().filter(is_inside).cloned().collect();
            let shown = Map::from_iter([("__interrupt__".to_owned(), wire_interrupts(&own))]);
            frames.extend(self.of_mode("updates", level, &Value::Object(shown.clone())));
            if !own.is_empty() {
                let known =
                    if level.is_empty() { Some(result) } else { values.get(level).map(|known| &**known) };
                let mut values = known.cloned().unwrap_or_default();
                merge(&mut values, &shown);
                frames.extend(self.of_mode("values", level, &values));
            }
            for (_, task) in asked.iter().filter(|(namespace, _)| namespace == level) {
                frames.extend(self.asked(level, task));
            }
        }
        frames
    }
}

fn signed(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(i64::MAX - 1)
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
