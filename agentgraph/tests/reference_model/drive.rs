//! Acts on the real engine, and what they come to in the words of the model.

use std::pin::Pin;

use agentgraph::policy::Siblings;
use agentgraph::prelude::*;
use agentgraph::run::{InterruptKind, TaskEnd};
use agentgraph::{Budget, Durability, EventKind, Interrupt, RunBuilder, View};
use futures_util::StreamExt;

use super::behaviour::answer;
use super::events::{Happening, OfTask, add};
use super::model::{Act, What};
use super::outside::Outside;
use super::shape::{Edit, Shape, known, name};
use super::told::{Came, Seen, Status, Told};
use super::world::{World, given, update_json};

/// How runs are called.
#[derive(Clone, Debug)]
pub struct Manner {
    pub durability: Durability,
    /// Read as a stream of so many events at once, with these views.
    pub streamed: Option<(usize, Vec<View>)>,
    pub max_concurrency: Option<usize>,
    pub siblings: Siblings,
}

impl Manner {
    pub fn awaited(durability: Durability) -> Self {
        Manner { durability, streamed: None, max_concurrency: None, siblings: Siblings::Drain }
    }

    /// With every view, and room for all events.
    pub fn watched(durability: Durability) -> Self {
        let views = vec![View::Values, View::Updates, View::Custom, View::Debug];
        Manner { streamed: Some((10_000, views)), ..Manner::awaited(durability) }
    }
}

/// The future of an act, and of everything that it does.
pub type Acting = Pin<Box<dyn Future<Output = (Told, Vec<Happening>)> + Send>>;

/// Sets an act up. Answers are those of [`answer`]; a run that is not finished is given up by the next one.
pub async fn act(
    graph: &CompiledGraph<World>,
    outside: &Outside,
    shape: &Shape,
    manner: &Manner,
    act: &Act,
) -> Acting {
    outside.begin(act.round, act.now);
    let run = match &act.what {
        What::Edit(edit) => return Box::pin(edited(graph.clone(), edit.clone(), act.at)),
        What::Invoke(input) => graph.invoke(given(input).into_update()).abandon(),
        What::Proceed => graph.proceed(),
        What::Resume(which) => resume(graph, which).await,
    };
    let (supersteps, coins) = act.budget;
    let run =
        run.thread("t").max_supersteps(shape.limit).durability(manner.durability).siblings(manner.siblings);
    let run = act.at.into_iter().fold(run, RunBuilder::from);
    let run = manner.max_concurrency.into_iter().fold(run, RunBuilder::max_concurrency);
    let budget = supersteps.into_iter().fold(Budget::new(), Budget::supersteps);
    let budget = coins.into_iter().fold(budget, |budget, coins| budget.units("coins", coins));
    let run = if budget == Budget::new() { run } else { run.budget(budget) };
    match &manner.streamed {
        None => Box::pin(async { (told(run.await), Vec::new()) }),
        Some((capacity, views)) => {
            let run = run.stream_capacity(*capacity).views(views.clone());
            Box::pin(streamed(run, shape.clone()))
        }
    }
}

/// A bare answer where that will do.
async fn resume(graph: &CompiledGraph<World>, which: &[usize]) -> RunBuilder<World> {
    let open = graph.state("t").await.unwrap().unwrap().interrupts;
    let answers = which.iter().map(|at| (open[*at].id.unwrap(), answer(asked(&open[*at]).1)));
    let answers: Vec<_> = answers.collect();
    match &answers[..] {
        [(_, bare)] if open.len() == 1 => graph.resume(bare),
        _ => graph.resume_many(answers),
    }
}

async fn edited(
    graph: CompiledGraph<World>,
    edit: Edit,
    at: Option<agentgraph::CheckpointId>,
) -> (Told, Vec<Happening>) {
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
    let came = match at.into_iter().fold(change, |change, at| change.at(at)).await {
        Ok(id) => Came::Edited(id),
        Err(error) => Came::Failed(error.code().as_str()),
    };
    (Told { came, output: None, coins: None }, Vec::new())
}

/// Reads the stream to its end and checks what every stream promises.
async fn streamed(run: RunBuilder<World>, shape: Shape) -> (Told, Vec<Happening>) {
    let mut events = run.stream();
    let mut ended = None;
    let mut seen = 0;
    let mut happened = Vec::new();
    while let Some(event) = events.next().await {
        assert_eq!(event.seq, seen, "events are numbered without gaps");
        assert!(ended.is_none(), "an event after the last one");
        seen += 1;
        let task = event.task.map(|task| (task.index, task.attempt));
        let mut of_task = |told| {
            let (index, _) = task.expect("it belongs to a task");
            add(&mut happened, event.step, index, told);
        };
        match event.kind {
            EventKind::Ended(outcome) => ended = Some(told(outcome)),
            EventKind::Values(world) => happened.push(Happening::Values(event.step, (*world).clone())),
            EventKind::Checkpoint { id, source, next } => {
                happened.push(Happening::Checkpoint(id, source, names(&next)));
            }
            EventKind::TaskStarted { node, input } => {
                of_task(OfTask::Started(known(&node), input.map(|input| input.as_u64().unwrap())));
            }
            EventKind::Custom { node, value } => {
                let attempt = task.unwrap().1;
                assert_eq!(value, attempt, "the attempt that emits is the one that is told");
                of_task(OfTask::Emitted(known(&node), attempt));
            }
            // How the updates of a graph are written as one is not promised.
            EventKind::Update { node, .. } if is_graph(&shape, &node) => {}
            EventKind::Update { node, update } => {
                of_task(OfTask::Updated(known(&node), update_json(&update.unwrap())));
            }
            EventKind::TaskEnded { end, .. } => of_task(match end {
                TaskEnd::Done => OfTask::Done,
                TaskEnd::Failed(code, _) => OfTask::Failed(code.as_str()),
                _ => OfTask::Waits,
            }),
            other => panic!("nobody asked for {other:?}"),
        }
    }
    (ended.expect("a stream ends with its outcome"), happened)
}

fn is_graph(shape: &Shape, node: &str) -> bool {
    shape.nodes.iter().enumerate().any(|(at, one)| one.child.is_some() && name(at) == node)
}

fn told(outcome: Result<Outcome<World>, agentgraph::Error>) -> Told {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let came = Came::Failed(error.code().as_str());
            let output = error.state::<World>().cloned().filter(|_| !came.is_hopeless());
            return Told { came, output, coins: None };
        }
    };
    let (output, coins) = (Some(outcome.output().clone()), Some(outcome.spent("coins")));
    let came = match outcome {
        Outcome::Finished { stuck, .. } => {
            let stuck = stuck.iter().map(|join| {
                (path(&join.namespace), known(&join.to), names(&join.arrived), names(&join.missing))
            });
            Came::Finished { stuck: stuck.collect() }
        }
        Outcome::Interrupted { interrupts, .. } if interrupts[0].id.is_none() => {
            let stops = interrupts.iter().map(|stop| (known(&stop.node), stop.kind == InterruptKind::Before));
            Came::Broke(stops.collect())
        }
        Outcome::Interrupted { interrupts, .. } => Came::Asked(interrupts.iter().map(asked).collect()),
        Outcome::Stopped { reason, .. } => Came::Stopped(reason),
    };
    Told { came, output, coins }
}

fn asked(interrupt: &Interrupt) -> (&'static str, u64) {
    (known(&interrupt.node), interrupt.value.as_u64().unwrap())
}

/// The nodes that a namespace leads through, without the calls.
fn path(namespace: &str) -> String {
    let parts = namespace.split('|').filter(|part| !part.is_empty());
    parts.map(|part| format!("{}/", part.split(':').next().unwrap())).collect()
}

fn names(names: &[String]) -> Vec<&'static str> {
    names.iter().map(|name| known(name)).collect()
}

/// The checkpoints of the thread, oldest first.
pub async fn history(graph: &CompiledGraph<World>) -> Vec<Seen> {
    let mut checkpoints = graph.history("t").await.unwrap();
    checkpoints.reverse();
    let seen = checkpoints.into_iter().map(|checkpoint| Seen {
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
    let asks = checkpoint.interrupts.iter().map(asked).collect();
    Some(Status { values: checkpoint.values, next: names(&checkpoint.next), asks })
}
