//! The tasks of `swiftide-agents`: one node after the other; each gets a reference to what the node before it
//! returned.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use harness::{ANSWER, Case, INNER, Prepared, SHORT, TEXT, at_once, repeat, work};
use swiftide_agents::tasks::closures::SyncFn;
use swiftide_agents::tasks::errors::{NodeError, TaskError};
use swiftide_agents::tasks::node::{DynNodeId, TaskNode};
use swiftide_agents::tasks::task::Task;
use swiftide_agents::tasks::transition::{MarkedTransitionPayload, TransitionPayload};
use tokio::sync::Mutex;

#[derive(Clone, Debug, Default)]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    items: Vec<u64>,
    /// A task has no way in for an answer, so the caller and the node share a cell.
    answer: Arc<OnceLock<u64>>,
}

type Output = Result<Counter, NodeError>;
type Node = SyncFn<fn(&Counter) -> Output, Counter, Counter>;
type Graph = Task<Counter, Counter>;

fn begun(until: u64) -> Counter {
    Counter { until, text: TEXT.to_owned(), ..Counter::default() }
}

fn add_one(state: &Counter) -> Output {
    Ok(Counter { count: black_box(state.count) + 1, ..state.clone() })
}

fn ask(state: &Counter) -> Output {
    Ok(Counter { count: state.count + state.answer.get().unwrap_or(&0), ..state.clone() })
}

fn node(run: fn(&Counter) -> Output) -> Node {
    SyncFn::new(run)
}

fn chain(size: u64) -> Graph {
    let mut graph = Graph::new();
    let nodes: Vec<_> = (0..size).map(|_| graph.register_node(node(add_one))).collect();
    for pair in nodes.windows(2) {
        graph.register_transition(pair[0], pair[1].as_transition()).expect("two nodes");
    }
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    graph.register_transition(last, graph.transitions_to_done()).expect("a node");
    graph.starts_with(first);
    graph
}

fn looped<N: TaskNode<Input = Counter, Output = Counter> + Clone + 'static>(work: N) -> Graph {
    let mut graph = Graph::new();
    let work = graph.register_node(work);
    let done = graph.done();
    let next = move |state: Counter| {
        let again = state.count < state.until;
        let payload = if again {
            TransitionPayload::next_node(&work, state)
        } else {
            TransitionPayload::next_node(&done, state)
        };
        MarkedTransitionPayload::<N>::new(payload)
    };
    graph.register_transition(work, next).expect("a node");
    graph.starts_with(work);
    graph
}

fn asking() -> Graph {
    let mut graph = Graph::new();
    let before = graph.register_node(node(add_one));
    let asks = graph.register_node(node(ask));
    let after = graph.register_node(node(add_one));
    let go_on = move |state: Counter| match state.answer.get() {
        Some(_) => after.transitions_with(state),
        None => MarkedTransitionPayload::<Node>::new(TransitionPayload::pause()),
    };
    graph.register_transition(before, asks.as_transition()).expect("two nodes");
    graph.register_transition(asks, go_on).expect("a node");
    graph.register_transition(after, graph.transitions_to_done()).expect("a node");
    graph.starts_with(before);
    graph
}

/// A node that runs a task of its own.
#[derive(Clone)]
struct Nested(Graph);

#[async_trait]
impl TaskNode for Nested {
    type Input = Counter;
    type Output = Counter;
    type Error = TaskError;

    async fn evaluate(&self, _: &DynNodeId<Self>, input: &Counter) -> Result<Counter, TaskError> {
        let mut graph = self.0.clone();
        graph.reset();
        Ok(graph.run(input.clone()).await?.expect("it does not pause"))
    }
}

/// A task is also where it is, so that a run changes it.
async fn run(graph: &mut Graph, until: u64) -> u64 {
    graph.reset();
    let ended = graph.run(begun(until)).await.expect("the run ends").expect("it does not pause");
    assert!(ended.items.is_empty() && ended.text.len() == TEXT.len());
    ended.count
}

fn again(graph: Graph, until: u64) -> Prepared {
    repeat(
        Arc::new(Mutex::new(graph)),
        move |graph| async move { run(&mut *graph.lock().await, until).await },
    )
}

async fn run_clone(mut graph: Graph) -> u64 {
    run(&mut graph, 0).await
}

async fn wait(mut graph: Graph, state: Counter) -> Graph {
    graph.reset();
    assert!(graph.run(state).await.expect("it asks").is_none());
    graph
}

async fn asked_and_answered(graph: Graph) -> u64 {
    let state = begun(0);
    let answer = state.answer.clone();
    let mut graph = wait(graph, state).await;
    answer.set(ANSWER).expect("it has no answer");
    graph.resume().await.expect("the run ends").expect("it does not pause").count
}

async fn all_wait(graph: Graph, waiting: Arc<Mutex<Vec<Graph>>>, runs: u64) -> u64 {
    let mut waiting = waiting.lock().await;
    for _ in 0..runs {
        waiting.push(wait(graph.clone(), begun(0)).await);
    }
    waiting.len() as u64
}

async fn prepare(case: Case, _: &Path) -> Prepared {
    match case {
        Case::Chain(size) => again(chain(size), 0),
        Case::Loop(steps) => again(looped(node(add_one)), steps),
        Case::Runs(size) => {
            repeat(chain(SHORT), move |graph| at_once(size, move || run_clone(graph.clone())))
        }
        Case::Subgraph(calls) => {
            Ok(again(looped(Nested(chain(INNER))), calls * INNER)?
                .noted("a node of ours runs the inner task"))
        }
        Case::Interrupt => Ok(repeat(asking(), asked_and_answered)?.noted(
            "the answer comes through a cell that the caller shares with the node; nothing is stored",
        )),
        Case::Waiting(size) => {
            let waiting = Arc::new(Mutex::new(Vec::new()));
            let runs = work(move || all_wait(asking(), waiting.clone(), size))?;
            Ok(runs.noted("the tasks themselves are kept; nothing is stored"))
        }
        Case::FanOut(_) | Case::Dispatch(_) => Err("one node at a time"),
        Case::Memory(_) | Case::Sqlite(_) | Case::Growing(_) => Err("stores nothing"),
        Case::Stream(_) => Err("no streams"),
    }
}

fn main() {
    harness::main(prepare);
}
