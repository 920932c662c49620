//! States of threads as clients see them: checkpoints, open tasks, questions.

use std::collections::BTreeMap;

use agentgraph::CheckpointId;
use agentgraph::run::{Interrupt, InterruptKind, OpenChild};
use serde_json::{Map, Value, json};

use super::threads::{renamed, seen_as};
use super::{App, about_run};
use crate::error::ApiError;
use crate::graph::{Moment, ServedGraph};
use crate::ids::{self, WirePlace};
use crate::records::{Kind, Query, Record};

/// What is needed to show the states of a thread.
pub(crate) struct StateForm<'a> {
    pub(crate) thread: &'a Record,
    pub(crate) graph: &'a dyn ServedGraph,
    /// The runs of the thread that have begun, the newest first.
    runs: Vec<PastRun>,
    /// The newest checkpoint, if its open subgraphs are looked at.
    head: Option<CheckpointId>,
    /// The newest checkpoints of open subgraphs by their namespaces, if they are wanted.
    inside: BTreeMap<String, Moment>,
}

/// A run that has begun, and its checkpoints.
struct PastRun {
    after: Option<CheckpointId>,
    /// `None` while it is under way.
    up_to: Option<CheckpointId>,
    since: i64,
    /// The run of the engine, once it is known. After a question it is that of the run before.
    engine_run: Option<String>,
    about: Map<String, Value>,
    /// Whether it has a checkpoint for each superstep.
    keeps_steps: bool,
}

impl PastRun {
    fn of(run: &Record) -> Option<Self> {
        let text = |name: &str| run.data[name].as_str();
        let place = |name: &str| Some(WirePlace::parse(text(name)?).ok()?.id);
        Some(PastRun {
            after: place("began_at"),
            up_to: place("ended_at"),
            since: ids::micros(text("since")?)?,
            engine_run: text("engine_run").map(str::to_owned),
            about: about_run(run),
            keeps_steps: run.data["kwargs"]["durability"] != "exit",
        })
    }

    fn has(&self, id: CheckpointId) -> bool {
        self.after < Some(id) && self.up_to.is_none_or(|last| id <= last)
    }
}

impl App {
    /// The newest checkpoint of a thread as clients see it. After a rollback this is the checkpoint
    /// before the run, with the open work of the newest checkpoint, which has its state again.
    pub(crate) async fn as_seen(
        &self,
        thread: &Record,
        graph: &dyn ServedGraph,
        head: Option<Moment>,
    ) -> Result<Option<Moment>, agentgraph::Error> {
        let Some(head) = head else { return Ok(None) };
        let seen = seen_as(thread, head.id);
        if seen == head.id {
            return Ok(Some(head));
        }
        let before = graph.state(&thread.id, Some(seen)).await?;
        let Moment { interrupts, failures, children, .. } = head;
        Ok(before.map(|before| Moment { interrupts, failures, children, ..before }))
    }

    pub(crate) async fn state_form<'a>(
        &self,
        thread: &'a Record,
        graph: &'a dyn ServedGraph,
        with_subgraphs_of: Option<&Moment>,
    ) -> Result<StateForm<'a>, ApiError> {
        let mut inside = BTreeMap::new();
        for child in with_subgraphs_of.into_iter().flat_map(|head| &head.children) {
            let found = graph.state_inside(&thread.id, &child.namespace).await?;
            inside.extend(found.map(|found| (child.namespace.clone(), found)));
        }
        let query = Query { parent: Some(thread.id.clone()), descending: true, ..Query::all(Kind::Run) };
        let runs = self.records.page(&query).await?;
        let (runs, head) =
            (runs.iter().filter_map(PastRun::of).collect(), with_subgraphs_of.map(|head| head.id));
        Ok(StateForm { thread, graph, runs, head, inside })
    }
}

/// The place of a checkpoint as clients know it.
pub(crate) fn checkpoint_json(thread: &str, place: WirePlace) -> Value {
    checkpoint_inside(thread, "", place)
}

pub(crate) fn checkpoint_inside(thread: &str, namespace: &str, place: WirePlace) -> Value {
    let namespace = ids::wire_namespace(namespace);
    json!({ "thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": place.wire(thread) })
}

/// A question as clients know it: without the fields that only the answer's form needs.
fn interrupt_json(interrupt: &Interrupt) -> Option<Value> {
    let id = interrupt.id?;
    Some(json!({ "id": ids::interrupt_id(id), "value": interrupt.value }))
}

/// The open questions of a thread, by task.
pub(crate) fn interrupts_json(head: &Moment) -> Map<String, Value> {
    let mut by_task = Map::new();
    for interrupt in &head.interrupts {
        if let (Some(task), Some(shown)) = (task_of(interrupt, ""), interrupt_json(interrupt))
            && let Value::Array(list) = by_task.entry(task).or_insert_with(|| json!([]))
        {
            list.push(shown);
        }
    }
    by_task
}

/// The rest of a namespace below another one; empty if they are the same.
fn below<'a>(namespace: &'a str, outer: &str) -> &'a str {
    let rest = if outer.is_empty() { Some(namespace) } else { namespace.strip_prefix(outer) };
    rest.map(|rest| rest.trim_start_matches('|')).unwrap_or_default()
}

/// The task of a graph that a question in it, or below it, belongs to.
fn task_of(interrupt: &Interrupt, outer: &str) -> Option<String> {
    match below(&interrupt.namespace, outer).split('|').next().and_then(|level| level.split_once(':')) {
        Some((_, task)) => Some(ids::dashed(task)),
        None => interrupt.id.map(ids::task_of),
    }
}

/// The node of a graph that a question in it, or below it, belongs to.
fn node_of<'a>(interrupt: &'a Interrupt, outer: &str) -> &'a str {
    match below(&interrupt.namespace, outer).split(['|', ':']).next() {
        Some(node) if !node.is_empty() => node,
        _ => &interrupt.node,
    }
}

impl StateForm<'_> {
    /// The state at a checkpoint.
    pub(crate) fn state(&self, moment: &Moment) -> Value {
        self.state_inside(moment, "")
    }

    /// The state at a checkpoint of a subgraph.
    pub(crate) fn state_inside(&self, moment: &Moment, namespace: &str) -> Value {
        let begins = moment.source == "input";
        let parent = match (begins, moment.parent) {
            (true, _) => Some(WirePlace::before(moment.id)),
            (false, parent) => self.seen_parent(parent),
        };
        let source = if begins { "loop".into() } else { moment.source.clone() };
        let step = i64::try_from(moment.id.step).unwrap_or(i64::MAX);
        let shown = Shown { namespace, place: WirePlace::at(moment.id), parent, source, step };
        self.shown(moment, shown, &moment.values, json!(moment.next), self.tasks(moment, namespace))
    }

    /// The state just before the input that a checkpoint holds, with the values of the one before.
    pub(crate) fn state_before(&self, moment: &Moment, before: Option<&Moment>) -> Value {
        self.state_before_inside(moment, before, "")
    }

    /// The same of a subgraph, whose values before its input are not known.
    pub(crate) fn state_before_inside(
        &self,
        moment: &Moment,
        before: Option<&Moment>,
        namespace: &str,
    ) -> Value {
        let initial = match before {
            None if namespace.is_empty() => self.graph.initial(),
            _ => json!({}),
        };
        let values = before.map_or(&initial, |before| &before.values);
        let step = i64::try_from(moment.id.step).unwrap_or(i64::MAX) - 1;
        let parent = self.seen_parent(moment.parent);
        let place = WirePlace::before(moment.id);
        let shown = Shown { namespace, place, parent, source: "input".into(), step };
        let id = ids::derived(&format!("{}:{}:__start__", self.thread.id, moment.id));
        let task = json!([{
            "id": id, "name": "__start__", "path": ["__pregel_pull", "__start__"], "error": null,
            "interrupts": [], "checkpoint": null, "state": null, "result": null,
        }]);
        self.shown(moment, shown, values, json!(["__start__"]), task)
    }

    fn seen_parent(&self, parent: Option<CheckpointId>) -> Option<WirePlace> {
        parent.map(|parent| WirePlace::at(seen_as(self.thread, parent)))
    }

    fn shown(&self, moment: &Moment, shown: Shown<'_>, values: &Value, next: Value, tasks: Value) -> Value {
        let thread = &*self.thread.id;
        let checkpoint = checkpoint_inside(thread, shown.namespace, shown.place);
        let parent = shown.parent.map(|parent| checkpoint_inside(thread, shown.namespace, parent));
        let interrupts = tasks.as_array().into_iter().flatten();
        let interrupts =
            interrupts.flat_map(|task| task["interrupts"].as_array().cloned().unwrap_or_default());
        json!({
            "values": renamed(values.clone(), self.thread),
            "next": next,
            "interrupts": interrupts.collect::<Value>(),
            "tasks": tasks,
            "metadata": self.metadata(moment, shown),
            "created_at": ids::time(moment.created),
            "checkpoint_id": checkpoint["checkpoint_id"],
            "parent_checkpoint_id": parent.as_ref().map(|parent| parent["checkpoint_id"].clone()),
            "checkpoint": checkpoint,
            "parent_checkpoint": parent,
        })
    }

    fn metadata(&self, moment: &Moment, shown: Shown<'_>) -> Value {
        let run = self.run_of(moment, shown.namespace);
        let mut metadata = run.map(|run| run.about.clone()).unwrap_or_default();
        let mut add = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
        if run.is_none() {
            add("graph_id", self.thread.data["metadata"]["graph_id"].clone());
            add("thread_id", (*self.thread.id).into());
        }
        if !shown.namespace.is_empty() {
            let namespace = ids::wire_namespace(shown.namespace);
            let level = namespace.rsplit('|').next().and_then(|level| level.split(':').next());
            add("langgraph_node", level.into());
            add("langgraph_checkpoint_ns", (*namespace).into());
            add("checkpoint_ns", namespace.into());
        }
        // The update of a command is a part of its run.
        let is_command = run.is_some() && shown.source == "update";
        add("source", if is_command { "loop".into() } else { shown.source });
        add("step", shown.step.into());
        add("parents", self.parents(shown.namespace));
        metadata.into()
    }

    /// The run that has made a checkpoint; none for a change of the state from outside.
    fn run_of(&self, moment: &Moment, namespace: &str) -> Option<&PastRun> {
        if namespace.is_empty() {
            return self.runs.iter().find(|run| run.has(moment.id));
        }
        // Checkpoints of subgraphs have an order of their own.
        let engine_run = moment.run.to_string();
        let may_be = |run: &&PastRun| run.engine_run.as_ref().is_none_or(|known| *known == engine_run);
        let mut runs = self.runs.iter().filter(may_be);
        runs.find(|run| run.since <= moment.created)
    }

    /// Whether only the nodes that its parent names ran before a checkpoint.
    pub(crate) fn is_one_step(&self, moment: &Moment) -> bool {
        self.run_of(moment, "").is_some_and(|run| run.keeps_steps)
    }

    /// The checkpoints around that of an open subgraph, by namespace.
    fn parents(&self, namespace: &str) -> Value {
        let mut parents = Map::new();
        let ends = namespace.match_indices('|').map(|(at, _)| at);
        for end in ends.chain((!namespace.is_empty()).then_some(0)) {
            let outer = &namespace[..end];
            let place = match outer {
                "" => self.head,
                _ => self.inside.get(outer).map(|outer| outer.id),
            };
            let place = place.filter(|_| self.inside.contains_key(namespace));
            parents.extend(
                place.map(|id| (ids::wire_namespace(outer), WirePlace::at(id).wire(&self.thread.id).into())),
            );
        }
        parents.into()
    }

    fn tasks(&self, moment: &Moment, outer: &str) -> Value {
        let mut left: Vec<&Interrupt> =
            moment.interrupts.iter().filter(|one| one.kind == InterruptKind::Asked).collect();
        let mut tasks = Vec::new();
        for (at, node) in moment.next.iter().enumerate() {
            // Several tasks of a node ask one after the other: those of one task have one id.
            let of_node = left.iter().position(|one| node_of(one, outer) == node);
            let asked = of_node.and_then(|first| task_of(left[first], outer));
            let is_own = |one: &&Interrupt| {
                asked.is_some() && node_of(one, outer) == node && task_of(one, outer) == asked
            };
            let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_own);
            left = others;
            let is_called =
                |child: &&OpenChild| !below(&child.namespace, outer).contains('|') && child.node == *node;
            let child = moment.children.iter().find(is_called);
            let called = child.and_then(|child| below(&child.namespace, outer).split_once(':'));
            let id = asked.or_else(|| called.map(|(_, task)| ids::dashed(task)));
            let id =
                id.unwrap_or_else(|| ids::derived(&format!("{}:{}:{node}:{at}", self.thread.id, moment.id)));
            let failure = moment.failures.iter().find(|(failed, _)| failed == node);
            let inside = child.map(|child| {
                json!({ "thread_id": self.thread.id, "checkpoint_ns": ids::wire_namespace(&child.namespace) })
            });
            let found = child.and_then(|child| self.inside.get_key_value(&child.namespace));
            let state = found.map(|(namespace, found)| self.state_inside(found, namespace));
            tasks.push(json!({
                "id": id, "name": node, "path": ["__pregel_pull", node],
                "error": failure.map(|(_, message)| message),
                "interrupts": own.into_iter().filter_map(interrupt_json).collect::<Value>(),
                "checkpoint": inside, "state": state, "result": null,
            }));
        }
        tasks.into()
    }
}

struct Shown<'a> {
    namespace: &'a str,
    place: WirePlace,
    parent: Option<WirePlace>,
    source: Value,
    step: i64,
}

/// A thread that has no checkpoint.
pub(crate) fn empty_state() -> Value {
    json!({
        "values": {}, "next": [], "tasks": [], "interrupts": [], "metadata": null, "created_at": null,
        "checkpoint": null, "parent_checkpoint": null, "checkpoint_id": null, "parent_checkpoint_id": null,
    })
}
