//! States of threads as clients see them: checkpoints, open tasks, questions.

use std::collections::BTreeMap;

use agentgraph::run::{Interrupt, InterruptKind};
use serde_json::{Map, Value, json};

use super::App;
use super::threads::renamed;
use crate::error::ApiError;
use crate::graph::{Moment, ServedGraph};
use crate::ids::{self, WirePlace};
use crate::records::{Kind, Query, Record};

/// What is needed to show the states of a thread.
pub(crate) struct StateForm<'a> {
    pub(crate) thread: &'a Record,
    pub(crate) graph: &'a dyn ServedGraph,
    /// The runs of clients, by those of the engine.
    runs: BTreeMap<String, String>,
    active: Option<String>,
    pub(crate) with_subgraphs: bool,
}

impl App {
    pub(crate) async fn state_form<'a>(
        &self,
        thread: &'a Record,
        graph: &'a dyn ServedGraph,
        with_subgraphs: bool,
    ) -> Result<StateForm<'a>, ApiError> {
        let query = Query { parent: Some(thread.id.clone()), ..Query::all(Kind::Run) };
        let runs = self.records.page(&query).await?;
        let by_engine = |run: Record| Some((run.data["engine_run"].as_str()?.to_owned(), run.id));
        Ok(StateForm {
            thread,
            graph,
            runs: runs.into_iter().filter_map(by_engine).collect(),
            active: self.live.active(&thread.id).map(|run| run.id.clone()),
            with_subgraphs,
        })
    }
}

/// The place of a checkpoint as clients know it.
pub(crate) fn checkpoint_json(thread: &str, place: WirePlace) -> Value {
    json!({ "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": place.wire(thread) })
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
        if let (Some(task), Some(shown)) = (task_of(interrupt), interrupt_json(interrupt))
            && let Value::Array(list) = by_task.entry(task).or_insert_with(|| json!([]))
        {
            list.push(shown);
        }
    }
    by_task
}

/// The task of the thread's own graph that a question belongs to.
fn task_of(interrupt: &Interrupt) -> Option<String> {
    match interrupt.namespace.split('|').next().and_then(|level| level.split_once(':')) {
        Some((_, task)) => Some(ids::dashed(task)),
        None => interrupt.id.map(ids::task_of),
    }
}

/// The node of the thread's own graph that a question belongs to.
fn root_node(interrupt: &Interrupt) -> &str {
    match interrupt.namespace.split(['|', ':']).next() {
        Some(node) if !node.is_empty() => node,
        _ => &interrupt.node,
    }
}

impl StateForm<'_> {
    /// The state at a checkpoint.
    pub(crate) fn state(&self, moment: &Moment) -> Value {
        let begins = moment.source == "input";
        let parent = match (begins, moment.parent) {
            (true, _) => Some(WirePlace::before(moment.id)),
            (false, parent) => parent.map(WirePlace::at),
        };
        let source = if begins { "loop".into() } else { moment.source.clone() };
        let step = i64::try_from(moment.id.step).unwrap_or(i64::MAX);
        let shown = Shown { place: WirePlace::at(moment.id), parent, source, step };
        self.shown(moment, shown, &moment.values, json!(moment.next), self.tasks(moment))
    }

    /// The state just before the input that a checkpoint holds, with the values of the one before.
    pub(crate) fn state_before(&self, moment: &Moment, before: Option<&Moment>) -> Value {
        let initial = match before {
            Some(_) => Value::Null,
            None => self.graph.initial(),
        };
        let values = before.map_or(&initial, |before| &before.values);
        let step = i64::try_from(moment.id.step).unwrap_or(i64::MAX) - 1;
        let parent = moment.parent.map(WirePlace::at);
        let shown = Shown { place: WirePlace::before(moment.id), parent, source: "input".into(), step };
        let id = ids::derived(&format!("{}:{}:__start__", self.thread.id, moment.id));
        let task = json!([{
            "id": id, "name": "__start__", "path": ["__pregel_pull", "__start__"], "error": null,
            "interrupts": [], "checkpoint": null, "state": null, "result": null,
        }]);
        self.shown(moment, shown, values, json!(["__start__"]), task)
    }

    fn shown(&self, moment: &Moment, shown: Shown, values: &Value, next: Value, tasks: Value) -> Value {
        let thread = &*self.thread.id;
        let checkpoint = checkpoint_json(thread, shown.place);
        let parent = shown.parent.map(|parent| checkpoint_json(thread, parent));
        let run = self.runs.get(&moment.run.to_string()).or(self.active.as_ref());
        let interrupts = tasks.as_array().into_iter().flatten();
        let interrupts =
            interrupts.flat_map(|task| task["interrupts"].as_array().cloned().unwrap_or_default());
        json!({
            "values": renamed(values.clone(), self.thread),
            "next": next,
            "interrupts": interrupts.collect::<Value>(),
            "tasks": tasks,
            "metadata": {
                "source": shown.source, "step": shown.step, "run_id": run, "parents": {},
                "thread_id": thread, "graph_id": self.thread.data["metadata"]["graph_id"],
                "assistant_id": self.thread.data["metadata"]["assistant_id"],
            },
            "created_at": moment.created,
            "checkpoint_id": checkpoint["checkpoint_id"],
            "parent_checkpoint_id": parent.as_ref().map(|parent| parent["checkpoint_id"].clone()),
            "checkpoint": checkpoint,
            "parent_checkpoint": parent,
        })
    }

    fn tasks(&self, moment: &Moment) -> Value {
        let mut left: Vec<&Interrupt> =
            moment.interrupts.iter().filter(|one| one.kind == InterruptKind::Asked).collect();
        let mut tasks = Vec::new();
        for (at, node) in moment.next.iter().enumerate() {
            // Several tasks of a node ask one after the other: those of one task have one id.
            let of_node = left.iter().position(|one| root_node(one) == node);
            let asked = of_node.and_then(|first| task_of(left[first]));
            let (own, others): (Vec<_>, Vec<_>) = left
                .into_iter()
                .partition(|one| asked.is_some() && root_node(one) == node && task_of(one) == asked);
            left = others;
            let child =
                moment.children.iter().find(|child| !child.namespace.contains('|') && child.node == *node);
            let called = child.and_then(|child| child.namespace.split_once(':'));
            let id = asked.or_else(|| called.map(|(_, task)| ids::dashed(task)));
            let id =
                id.unwrap_or_else(|| ids::derived(&format!("{}:{}:{node}:{at}", self.thread.id, moment.id)));
            let failure = moment.failures.iter().find(|(failed, _)| failed == node);
            let inside = child.map(|child| {
                json!({ "thread_id": self.thread.id, "checkpoint_ns": ids::wire_namespace(&child.namespace) })
            });
            let state = child.filter(|_| self.with_subgraphs).map(|child| {
                json!({
                    "values": {}, "next": child.next, "tasks": [], "interrupts": [], "metadata": {},
                    "checkpoint": inside, "parent_checkpoint": null, "created_at": moment.created,
                })
            });
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

struct Shown {
    place: WirePlace,
    parent: Option<WirePlace>,
    source: Value,
    step: i64,
}

/// A thread that has no checkpoint.
pub(crate) fn empty_state() -> Value {
    json!({
        "values": {}, "next": [], "tasks": [], "interrupts": [], "metadata": {}, "created_at": null,
        "checkpoint": null, "parent_checkpoint": null, "checkpoint_id": null, "parent_checkpoint_id": null,
    })
}
