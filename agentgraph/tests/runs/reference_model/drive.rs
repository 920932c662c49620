//! Runs acts on the real engine and reports their results in the types of the model.

use std::pin::Pin;

use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::run::{InterruptKind, TaskEnd};
use agentgraph::{Budget, Durability, EventKind, Interrupt, RunBuilder, View};
use futures_util::StreamExt;

use super::behaviour::answer;
use super::events::{StreamItem, TaskEvent, add};
use super::model::{Act, Action};
use super::outside::Outside;
use super::shape::{Edit, Shape, known, name};
use super::told::{ActEnd, ActResult, HistoryEntry, Status};
use super::world::{World, given, update_json};

/// The options of a call.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Whether the run is on a thread, as a checkpointer requires.
    pub on_thread: bool,
    pub durability: Durability,
    /// The capacity and the views of the stream, if the run is streamed.
    pub streamed: Option<(usize, Vec<View>)>,
    pub max_concurrency: Option<usize>,
    pub siblings: Siblings,
}

impl Manner {
    pub fn awaited(durability: Durability) -> Self {
        Manner {
            on_thread: true,
            durability,
            streamed: None,
            max_concurrency: None,
            siblings: Siblings::Drain,
        }
    }

    /// Streams every view, with room for all events.
    pub fn watched(durability: Durability) -> Self {
        let views = vec![View::Values, View::Updates, View::Custom, View::Debug];
        Manner { streamed: Some((10_000, views)), ..Manner::awaited(durability) }
    }
}

/// The future of an act: its result and the items of its stream.
pub type Acting = Pin<Box<dyn Future<Output = (ActResult, Vec<StreamItem>)> + Send>>;

/// Prepares an act. [`answer`] gives the answers; a new run abandons an unfinished one.
pub async fn act(
    graph: &CompiledGraph<World>,
    outside: &Outside,
    shape: &Shape,
    manner: &Manner,
    act: &Act,
) -> Acting {
    outside.begin(act.round, act.now);
    let run = match &act.action {
        Action::Edit(edit) => return Box::pin(apply_edit(graph.clone(), edit.clone(), act.at)),
        Action::Invoke(input) => graph.invoke(given(input).into_update()).abandon(),
        Action::Proceed => graph.proceed(),
        Action::Resume(which) => resume(graph, which).await,
    };
    let (supersteps, coins) = act.budget;
    let run = if manner.on_thread { run.thread("t") } else { run };
    let run = run.max_supersteps(shape.limit).durability(manner.durability).siblings(manner.siblings);
    let run = act.at.into_iter().fold(run, RunBuilder::from);
    let run = manner.max_concurrency.into_iter().fold(run, RunBuilder::max_concurrency);
    let budget = supersteps.into_iter().fold(Budget::new(), Budget::supersteps);
    let budget = coins.into_iter().fold(budget, |budget, coins| budget.units("coins", coins));
    let run = if budget == Budget::new() { run } else { run.budget(budget) };
    match &manner.streamed {
        None => Box::pin(async { (result_of(run.await), Vec::new()) }),
        Some((capacity, views)) => {
            let run = run.stream_capacity(*capacity).views(views.clone());
            Box::pin(streamed(run, shape.clone()))
        }
    }
}

/// Answers these requests, with a bare answer if only one is open.
async fn resume(graph: &CompiledGraph<World>, which: &[usize]) -> RunBuilder<World> {
    let open = graph.state("t").await.unwrap().unwrap().interrupts;
    let answers = which.iter().map(|at| (open[*at].id.unwrap(), answer(request_of(&open[*at]).1)));
    let answers: Vec<_> = answers.collect();
    match &answers[..] {
        [(_, bare)] if open.len() == 1 => graph.resume(bare),
        _ => graph.resume_many(answers),
    }
}

async fn apply_edit(
    graph: CompiledGraph<World>,
    edit: Edit,
    at: Option<agentgraph::CheckpointId>,
) -> (ActResult, Vec<StreamItem>) {
    let update = |writes: &[_]| given(writes).into_update();
    let change = graph.update_state("t");
    let change = match &edit {
        Edit::Here(writes) => change.update(update(writes)),
        Edit::As(several) => {
            several.iter().fold(change, |change, (node, writes)| change.as_node(name(*node), update(writes)))
        }
        Edit::Start(writes) => change.as_start(update(writes)),
        Edit::End(writes) => change.as_end(update(writes)),
        Edit::Copy | Edit::Proceed | Edit::Invoke(_) => change,
    };
    let end = match at.into_iter().fold(change, |change, at| change.at(at)).await {
        Ok(id) => ActEnd::Edited(id),
        Err(error) => ActEnd::Failed(error.code().as_str()),
    };
    (ActResult { end, output: None, coins: None }, Vec::new())
}

/// Reads the stream to its end and checks what every stream promises.
async fn streamed(run: RunBuilder<World>, shape: Shape) -> (ActResult, Vec<StreamItem>) {
    let mut events = run.stream();
    let mut ended = None;
    let mut seen = 0;
    let mut items = Vec::new();
    while let Some(event) = events.next().await {
        assert_eq!(event.seq, seen, "events are numbered without gaps");
        assert!(ended.is_none(), "an event after the last one");
        seen += 1;
        let task = event.task.map(|task| (task.index, task.attempt));
        let mut of_task = |task_event| {
            let (index, _) = task.expect("the event belongs to a task");
            add(&mut items, event.step, index, task_event);
        };
        match event.kind {
            EventKind::Ended(outcome) => ended = Some(result_of(outcome)),
            EventKind::Values(world) => items.push(StreamItem::Values(event.step, (*world).clone())),
            EventKind::Checkpoint { id, source, next } => {
                items.push(StreamItem::Checkpoint(id, source, names(&next)));
            }
            EventKind::TaskStarted { node, input } => {
                of_task(TaskEvent::Started(known(&node), input.map(|input| input.as_u64().unwrap())));
            }
            EventKind::Custom { node, value } => {
                let attempt = task.unwrap().1;
                assert_eq!(value, attempt, "the event names the attempt that emitted it");
                of_task(TaskEvent::Emitted(known(&node), attempt));
            }
            // The engine does not promise how it merges the updates of a subgraph into one.
            EventKind::Update { node, .. } if is_graph(&shape, &node) => {}
            EventKind::Update { node, update } => {
                let attempt = task.unwrap().1;
                of_task(TaskEvent::Updated(known(&node), attempt, update_json(&update.unwrap())));
            }
            EventKind::AttemptStarted { .. } => of_task(TaskEvent::AttemptStarted(task.unwrap().1)),
            EventKind::AttemptFailed { code, message, next_in, .. } => {
                assert_eq!(code.as_str(), "E_NODE_FAILED");
                let again = next_in.is_some();
                of_task(TaskEvent::AttemptFailed(task.unwrap().1, message, again));
            }
            EventKind::TaskEnded { end, .. } => of_task(match end {
                TaskEnd::Done => TaskEvent::Done,
                TaskEnd::Failed(code, _) => TaskEvent::Failed(code.as_str()),
                _ => TaskEvent::Waits,
            }),
            other => panic!("an event of a view that was not requested: {other:?}"),
        }
    }
    (ended.expect("a stream ends with its outcome"), items)
}

fn is_graph(shape: &Shape, node: &str) -> bool {
    shape.nodes.iter().enumerate().any(|(at, one)| one.child.is_some() && name(at) == node)
}

fn result_of(outcome: Result<Outcome<World>, agentgraph::Error>) -> ActResult {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let end = ActEnd::Failed(error.code().as_str());
            let output = error.state::<World>().cloned().filter(|_| !end.is_hopeless());
            return ActResult { end, output, coins: None };
        }
    };
    let output = Some(outcome.output().clone());
    let coins = Some(outcome.spent("coins"));
    let end = match outcome {
        Outcome::Finished { stuck, .. } => {
            let stuck = stuck.iter().map(|join| {
                (path(&join.namespace), known(&join.to), names(&join.arrived), names(&join.missing))
            });
            ActEnd::Finished { stuck: stuck.collect() }
        }
        Outcome::Interrupted { interrupts, .. } if interrupts[0].id.is_none() => {
            let stops = interrupts.iter().map(|stop| (known(&stop.node), stop.kind == InterruptKind::Before));
            ActEnd::Broke(stops.collect())
        }
        Outcome::Interrupted { interrupts, .. } => ActEnd::Asked(interrupts.iter().map(request_of).collect()),
        Outcome::Stopped { reason, .. } => ActEnd::Stopped(reason),
    };
    ActResult { end, output, coins }
}

fn request_of(interrupt: &Interrupt) -> (&'static str, u64) {
    (known(&interrupt.node), interrupt.value.as_u64().unwrap())
}

/// Returns the path of nodes in a namespace, without the ids of their calls.
fn path(namespace: &str) -> String {
    let parts = namespace.split('|').filter(|part| !part.is_empty());
    parts.map(|part| format!("{}/", part.split(':').next().unwrap())).collect()
}

fn names(names: &[String]) -> Vec<&'static str> {
    names.iter().map(|name| known(name)).collect()
}

/// The checkpoints of the thread, oldest first.
pub async fn history(graph: &CompiledGraph<World>) -> Vec<HistoryEntry> {
    let mut checkpoints = graph.history("t").await.unwrap();
    checkpoints.reverse();
    let seen = checkpoints.into_iter().map(|checkpoint| HistoryEntry {
        id: checkpoint.id,
        parent: checkpoint.parent,
        source: checkpoint.source,
        values: checkpoint.values,
        next: names(&checkpoint.next),
        deferred: names(&checkpoint.deferred),
    });
    seen.collect()
}

pub async fn status(graph: &CompiledGraph<World>) -> Option<Status> {
    let checkpoint = graph.state("t").await.unwrap()?;
    let asks = checkpoint.interrupts.iter().map(request_of).collect();
    Some(Status { values: checkpoint.values, next: names(&checkpoint.next), asks })
}
