//! `petgraph`: a walk over a graph whose nodes are boxed async calls. It is a data structure, so that the
//! rest is up to its user.

use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use harness::{Case, Prepared, SHORT, TEXT, at_once, repeat};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Topo;

#[derive(Clone, Default)]
struct Counter {
    count: u64,
    #[expect(dead_code, reason = "the state of every entrant has it")]
    text: String,
    items: Vec<u64>,
}

type Boxed = Pin<Box<dyn Future<Output = Change> + Send>>;
type Node = Box<dyn Fn(&Counter) -> Boxed + Send + Sync>;
type Graph = Arc<DiGraph<Node, ()>>;

enum Change {
    Count(u64),
    Item(u64),
}

fn begun() -> Counter {
    Counter { text: TEXT.to_owned(), ..Counter::default() }
}

fn add_one(state: &Counter) -> Boxed {
    let count = state.count;
    Box::pin(async move { Change::Count(black_box(count) + 1) })
}

fn join(state: &Counter) -> Boxed {
    let count = state.count + state.items.len() as u64;
    Box::pin(async move { Change::Count(count) })
}

async fn step(graph: &Graph, at: NodeIndex, state: &mut Counter) {
    match graph[at](state).await {
        Change::Count(count) => state.count = count,
        Change::Item(item) => state.items.push(item),
    }
}

fn chain(size: u64) -> Graph {
    let mut graph = DiGraph::<Node, ()>::default();
    let nodes: Vec<_> = (0..size).map(|_| graph.add_node(Box::new(add_one))).collect();
    for pair in nodes.windows(2) {
        graph.add_edge(pair[0], pair[1], ());
    }
    Arc::new(graph)
}

fn looped() -> Graph {
    let mut graph = DiGraph::<Node, ()>::default();
    let node = graph.add_node(Box::new(add_one));
    graph.add_edge(node, node, ());
    Arc::new(graph)
}

fn fan_out(size: u64) -> Graph {
    let mut graph = DiGraph::<Node, ()>::default();
    let join = graph.add_node(Box::new(join));
    for at in 0..size {
        let branch = move |_: &Counter| -> Boxed { Box::pin(async move { Change::Item(black_box(at)) }) };
        let branch = graph.add_node(Box::new(branch));
        graph.add_edge(branch, join, ());
    }
    Arc::new(graph)
}

/// Follows the edges from the first node, until the count is `until` or a node leads nowhere.
async fn follow(graph: Graph, until: u64) -> u64 {
    let mut state = begun();
    let mut at = Some(NodeIndex::new(0));
    while let Some(node) = at.filter(|_| state.count < until) {
        step(&graph, node, &mut state).await;
        at = graph.neighbors(node).next();
    }
    state.count
}

/// Each node after all that lead to it.
async fn in_order(graph: Graph) -> u64 {
    let mut state = begun();
    let mut walk = Topo::new(&*graph);
    while let Some(node) = walk.next(&*graph) {
        step(&graph, node, &mut state).await;
    }
    state.count
}

async fn prepare(case: Case, _: &Path) -> Prepared {
    match case {
        Case::Chain(size) => repeat(chain(size), |graph| follow(graph, u64::MAX)),
        Case::Loop(steps) => repeat(looped(), move |graph| follow(graph, steps)),
        Case::FanOut(size) => {
            Ok(repeat(fan_out(size), in_order)?.noted("the branches run one after the other"))
        }
        Case::Runs(size) => {
            repeat(chain(SHORT), move |graph| at_once(size, move || follow(graph.clone(), u64::MAX)))
        }
        _ => Err("a data structure"),
    }
}

fn main() {
    harness::main(prepare);
}
