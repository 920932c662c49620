//! `synaptic-graph`: one node after the other, each of which gets a clone of the state and returns the whole
//! state.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use harness::{ANSWER, Case, INNER, Prepared, SHORT, TEXT, at_once, repeat, thread_name};
use serde::{Deserialize, Serialize};
use synaptic_core::SynapticError;
use synaptic_graph::{
    CheckpointConfig, Checkpointer, CompiledGraph, END, FnNode, Node, NodeOutput, State, StateGraph,
    StoreCheckpointer, StreamMode, interrupt,
};
use synaptic_sqlite::SqliteCheckpointer;
use synaptic_store::InMemoryStore;

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Counter {
    count: u64,
    until: u64,
    text: String,
    items: Vec<u64>,
}

impl State for Counter {
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.items.extend(other.items);
    }
}

type Graph = Arc<CompiledGraph<Counter>>;
type Output = Result<NodeOutput<Counter>, SynapticError>;

fn begun() -> Counter {
    Counter { text: TEXT.to_owned(), ..Counter::default() }
}

fn add_one() -> impl Node<Counter> {
    FnNode::new(|mut state: Counter| async move {
        state.count = black_box(state.count) + 1;
        Output::Ok(state.into())
    })
}

fn chain(size: u64) -> Graph {
    let name = |at| format!("node_{at}");
    let nodes = (0..size).fold(StateGraph::new(), |graph, at| graph.add_node(name(at), add_one()));
    let graph = (1..size).fold(nodes, |graph, at| graph.add_edge(name(at - 1), name(at)));
    Arc::new(graph.add_edge(name(size - 1), END).set_entry_point(name(0)).compile().expect("a graph"))
}

fn asking() -> Graph {
    let ask = FnNode::new(|_: Counter| async { Output::Ok(interrupt("how many more?".into())) });
    let graph =
        StateGraph::new().add_node("before", add_one()).add_node("ask", ask).add_node("after", add_one());
    let graph = graph
        .add_edge("before", "ask")
        .add_edge("ask", "after")
        .add_edge("after", END)
        .set_entry_point("before");
    let saver = StoreCheckpointer::new(Arc::new(InMemoryStore::new()));
    Arc::new(graph.compile().expect("a graph").with_checkpointer(Arc::new(saver)))
}

async fn run(graph: Graph, until: u64) -> u64 {
    let ended = graph.invoke(Counter { until, ..begun() }).await.expect("the run ends");
    assert!(ended.is_complete());
    ended.into_state().count
}

async fn ask(graph: &Graph, thread: &CheckpointConfig) {
    let asked = graph.invoke_with_config(begun(), Some(thread.clone())).await.expect("it asks");
    assert!(asked.is_interrupted());
}

fn looped(work: impl Node<Counter> + 'static) -> CompiledGraph<Counter> {
    let next = |state: &Counter| (if state.count < state.until { "work" } else { END }).to_owned();
    let graph = StateGraph::new().add_node("work", work).add_conditional_edges("work", next);
    graph.set_entry_point("work").compile().expect("a graph")
}

/// A node that runs a graph of its own.
fn nested() -> Graph {
    let inner = chain(INNER);
    Arc::new(looped(FnNode::new(move |state: Counter| {
        let inner = inner.clone();
        async move { Output::Ok(inner.invoke(state).await?.into_state().into()) }
    })))
}

async fn stored(graph: Graph, steps: u64, thread: String) -> u64 {
    let begun = Counter { until: steps, ..begun() };
    let ended = graph.invoke_with_config(begun, Some(CheckpointConfig::new(thread))).await;
    ended.expect("the run ends").into_state().count
}

async fn asked_and_answered(graph: Graph) -> u64 {
    let thread = CheckpointConfig::new(thread_name());
    ask(&graph, &thread).await;
    graph.update_state(&thread, Counter { count: ANSWER, ..Counter::default() }).await.expect("a store");
    graph.invoke_with_config(begun(), Some(thread)).await.expect("the run ends").into_state().count
}

async fn streamed(graph: Graph) -> u64 {
    let events = graph.stream(begun(), StreamMode::Values);
    events.filter(|event| std::future::ready(event.is_ok())).count().await as u64
}

async fn all_wait(graph: Graph, runs: u64) -> u64 {
    for _ in 0..runs {
        ask(&graph, &CheckpointConfig::new(thread_name())).await;
    }
    runs
}

async fn prepare(case: Case, folder: &Path) -> Prepared {
    match case {
        Case::Chain(size @ ..=100) => repeat(chain(size), |graph| run(graph, 0)),
        Case::Runs(size) => repeat(chain(SHORT), move |graph| at_once(size, move || run(graph.clone(), 0))),
        Case::Sqlite(steps) => {
            let saver = Arc::new(SqliteCheckpointer::new(folder.join("synaptic.db")).expect("a saver"));
            let graph = Arc::new(looped(add_one()).with_checkpointer(saver.clone()));
            stored(graph.clone(), steps, "first".to_owned()).await;
            assert_eq!(
                saver.list(&CheckpointConfig::new("first")).await.expect("a list").len() as u64,
                steps
            );
            repeat(graph, move |graph| stored(graph, steps, thread_name()))
        }
        Case::Interrupt => Ok(repeat(asking(), asked_and_answered)?
            .noted("the node does not get the answer, which is an edit of the state")),
        Case::Stream(size) => repeat(chain(size), streamed),
        Case::Waiting(size) => repeat(asking(), move |graph| all_wait(graph, size)),
        Case::Chain(_) | Case::Loop(_) | Case::Memory(_) | Case::Growing(_) => Err("at most 100 steps a run"),
        Case::Subgraph(calls) => Ok(repeat(nested(), move |graph| run(graph, calls * INNER))?
            .noted("a node of ours runs the inner graph")),
        Case::FanOut(_) | Case::Dispatch(_) => Err("one node at a time: `Send` is a placeholder"),
    }
}

fn main() {
    harness::main(prepare);
}
