//! Passes over a million nodes that do next to nothing. The floor calls the same functions in a walk
//! over a petgraph graph: Kahn's algorithm, with a queue. The last case measures temporary edits, in a
//! small graph and in a large one.

use std::collections::VecDeque;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agentgraph::CompiledDependencyGraph;
use agentgraph::prelude::*;
use petgraph::Direction::Incoming;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::bare::node_name;
use crate::case::{Case, Entrant, Figure};
use crate::runtime::{on, one_thread};

/// Builds without optimisation only check that the cases run, on fewer nodes.
const NODES: u64 = if cfg!(debug_assertions) { 10_000 } else { 1_000_000 };
const EDITS: usize = 10_000;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("pass/chain", "node", NODES, || entrants(chain)).with_figures(|| build_figures(chain)),
        Case::new("pass/wide", "node", NODES, || entrants(wide)).with_figures(|| build_figures(wide)),
        Case::new("pass/random", "node", NODES, || entrants(random)).with_figures(|| build_figures(random)),
        Case::new("pass/edits", "edit", EDITS as u64, edited).with_figures(edit_figures),
    ]
}

type Edges = Vec<(u32, u32)>;

fn chain() -> Edges {
    (1..NODES as u32).map(|node| (node - 1, node)).collect()
}

/// One node before all others, and one after them.
fn wide() -> Edges {
    let last = NODES as u32 - 1;
    (1..last).flat_map(|node| [(0, node), (node, last)]).collect()
}

/// Up to four edges into each node, from random earlier ones.
fn random() -> Edges {
    let mut seed = 1_u64;
    let mut below = |bound: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % u64::from(bound)) as u32
    };
    let mut edges = Vec::new();
    for node in 1..NODES as u32 {
        let mut sources: Vec<u32> = (0..4).map(|_| below(node)).collect();
        sources.sort_unstable();
        sources.dedup();
        edges.extend(sources.into_iter().map(|source| (source, node)));
    }
    edges
}

/// The work of every node.
fn sum(inputs: impl Iterator<Item = u64>) -> u64 {
    inputs.fold(1, |sum, input| black_box(sum.wrapping_add(input)))
}

type Now = Box<dyn Fn(&[u64]) -> u64>;
type Later = Box<dyn Fn(Vec<u64>) -> Pin<Box<dyn Future<Output = u64> + Send>>>;

fn petgraph<N>(edges: &Edges, node: impl Fn() -> N) -> DiGraph<N, ()> {
    let mut graph = DiGraph::with_capacity(NODES as usize, edges.len());
    for _ in 0..NODES {
        graph.add_node(node());
    }
    for (from, to) in edges {
        graph.add_edge(NodeIndex::new(*from as usize), NodeIndex::new(*to as usize), ());
    }
    graph
}

/// A walk in the order of Kahn's algorithm, with the outputs so far.
struct Walk<'a, N> {
    graph: &'a DiGraph<N, ()>,
    waits: Vec<u32>,
    queue: VecDeque<NodeIndex>,
    outputs: Vec<u64>,
}

impl<'a, N> Walk<'a, N> {
    fn of(graph: &'a DiGraph<N, ()>) -> Self {
        let count = |node| graph.neighbors_directed(node, Incoming).count() as u32;
        let waits: Vec<u32> = graph.node_indices().map(count).collect();
        let queue = graph.node_indices().filter(|node| waits[node.index()] == 0).collect();
        let outputs = vec![0; graph.node_count()];
        Walk { graph, waits, queue, outputs }
    }

    fn inputs(&self, node: NodeIndex, inputs: &mut Vec<u64>) {
        inputs.clear();
        let sources = self.graph.neighbors_directed(node, Incoming);
        inputs.extend(sources.map(|source| self.outputs[source.index()]));
    }

    fn done(&mut self, node: NodeIndex, output: u64) {
        self.outputs[node.index()] = output;
        for target in self.graph.neighbors(node) {
            let waits = &mut self.waits[target.index()];
            *waits -= 1;
            if *waits == 0 {
                self.queue.push_back(target);
            }
        }
    }
}

fn walk(graph: &DiGraph<Now, ()>) -> u64 {
    let mut walk = Walk::of(graph);
    let mut inputs = Vec::new();
    while let Some(node) = walk.queue.pop_front() {
        walk.inputs(node, &mut inputs);
        let output = (graph[node])(&inputs);
        walk.done(node, output);
    }
    walk.outputs.last().copied().unwrap_or(0)
}

async fn walk_later(graph: &DiGraph<Later, ()>) -> u64 {
    let mut walk = Walk::of(graph);
    let mut inputs = Vec::new();
    while let Some(node) = walk.queue.pop_front() {
        walk.inputs(node, &mut inputs);
        let output = (graph[node])(inputs.clone()).await;
        walk.done(node, output);
    }
    walk.outputs.last().copied().unwrap_or(0)
}

fn build<M, N>(edges: &Edges, node: fn() -> N) -> CompiledDependencyGraph<u64>
where
    N: agentgraph::dependency::IntoDependencyNode<u64, (), M>,
{
    let mut graph = DependencyGraph::<u64>::new();
    for at in 0..NODES as usize {
        graph = graph.node(node_name(at), node());
    }
    let mut names = (String::new(), String::new());
    for (from, to) in edges {
        names.0.clear();
        names.1.clear();
        use std::fmt::Write;
        let _ = write!(names.0, "node_{from}");
        let _ = write!(names.1, "node_{to}");
        graph = graph.edge(&names.0, &names.1);
    }
    graph.compile().expect("it has no cycle")
}

fn now(deps: Deps<'_, u64>) -> u64 {
    sum(deps.outputs().copied())
}

async fn later(deps: Deps<'_, u64>) -> u64 {
    sum(deps.outputs().copied())
}

fn entrants(shape: fn() -> Edges) -> Vec<Entrant> {
    let runtime = one_thread();
    let edges = shape();
    let bare = Rc::new(petgraph::<Now>(&edges, || Box::new(|inputs| sum(inputs.iter().copied()))));
    let bare_later = Rc::new(petgraph::<Later>(&edges, || {
        Box::new(|inputs| Box::pin(async move { sum(inputs.into_iter()) }))
    }));
    let expected = walk(&bare);
    let last = node_name(NODES as usize - 1);
    let engine = |graph: CompiledDependencyGraph<u64>| {
        let last = last.clone();
        on(&runtime, move || {
            let graph = graph.clone();
            let last = last.clone();
            async move {
                let outputs = graph.invoke(()).await.expect("the pass ends");
                assert_eq!(outputs.output()[&*last], expected);
            }
        })
    };
    let floor = on(&runtime, move || {
        let bare = Rc::clone(&bare);
        async move { assert_eq!(walk(&bare), expected) }
    });
    let floor_later = on(&runtime, move || {
        let bare = Rc::clone(&bare_later);
        async move { assert_eq!(walk_later(&bare).await, expected) }
    });
    vec![
        Entrant::new("floor: petgraph, sync functions", floor),
        Entrant::new("petgraph, boxed futures", floor_later),
        Entrant::new("pass, sync nodes", engine(build(&edges, || now))).within(0.8),
        Entrant::new("pass, async nodes", engine(build(&edges, || later))),
    ]
}

/// Returns the resident memory of this process in MiB; 0 where it cannot be read.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0 / (1024.0 * 1024.0)
}

fn build_figures(shape: fn() -> Edges) -> Vec<Figure> {
    let edges = shape();
    let before = resident();
    let bare = petgraph::<Now>(&edges, || Box::new(|inputs| sum(inputs.iter().copied())));
    let of_petgraph = resident() - before;
    drop(bare);
    let before = resident();
    let begun = Instant::now();
    let graph = build(&edges, || now);
    let seconds = begun.elapsed().as_secs_f64();
    let of_graph = resident() - before;
    drop(graph);
    vec![
        Figure::new("built from names, a million edges", seconds * 1e6 / edges.len() as f64, "s").within(1.0),
        Figure::new("memory of the petgraph graph", of_petgraph, "MiB"),
        Figure::new("memory of the compiled graph, names too", of_graph, "MiB"),
    ]
}

/// In the pass of the entrant, the first node puts temporary nodes between itself and the last one. Each
/// takes three edits: the node and its two edges.
fn edited() -> Vec<Entrant> {
    let runtime = one_thread();
    let pass = |edits: usize| {
        let graph = edited_graph(edits, Arc::default());
        on(&runtime, move || {
            let graph = graph.clone();
            async move {
                let outputs = graph.invoke(()).await.expect("the pass ends");
                assert_eq!(outputs.output().len(), 2 + edits / 3);
            }
        })
    };
    vec![
        Entrant::new("floor: as many nodes that were there before", compiled_nodes(&runtime)),
        Entrant::new("10,000 edits and the nodes they add", pass(EDITS)),
    ]
}

fn compiled_nodes(runtime: &Rc<tokio::runtime::Runtime>) -> impl FnMut(u64) + use<> {
    let middle = EDITS / 3;
    let mut graph = DependencyGraph::<u64>::new().node("first", |_: Deps<u64>, _: Ctx| 1).node("last", now);
    for at in 0..middle {
        graph = graph.node(node_name(at), now).edge("first", node_name(at)).edge(node_name(at), "last");
    }
    let graph = graph.compile().expect("it has no cycle");
    on(runtime, move || {
        let graph = graph.clone();
        async move {
            let outputs = graph.invoke(()).await.expect("the pass ends");
            assert_eq!(outputs.output().len(), 2 + middle);
        }
    })
}

fn edited_graph(edits: usize, took: Arc<Mutex<f64>>) -> CompiledDependencyGraph<u64> {
    let graph = DependencyGraph::<u64>::new().node("first", editing(edits, took)).node("last", now);
    graph.edge("first", "last").compile().expect("it has no cycle")
}

fn editing(edits: usize, took: Arc<Mutex<f64>>) -> impl Fn(Deps<'_, u64>, PassEdits<u64>) -> u64 + use<> {
    move |_, handle| {
        let begun = Instant::now();
        for at in 0..edits / 3 {
            let name = format!("temporary_{at}");
            let made = handle
                .add_fn(&*name, now)
                .and_then(|()| handle.add_edge("first", &*name))
                .and_then(|()| handle.add_edge(&*name, "last"));
            made.expect("it fits");
        }
        *took.lock().expect("nobody panics") = begun.elapsed().as_secs_f64() * 1e9 / edits as f64;
        1
    }
}

/// Measures the call of an edit in a graph of ten nodes and in one of a million.
fn edit_figures() -> Vec<Figure> {
    let runtime = one_thread();
    let mut figures = Vec::new();
    for (what, nodes) in [("an edit among 10 nodes", 10), ("an edit among 1,000,000 nodes", NODES as usize)] {
        let took = Arc::new(Mutex::new(0.0));
        let mut graph = DependencyGraph::<u64>::new().node("first", editing(EDITS, Arc::clone(&took)));
        for at in 1..nodes - 1 {
            let before = if at == 1 { "first".to_owned() } else { node_name(at - 1) };
            graph = graph.node(node_name(at), now).edge(before, node_name(at));
        }
        let graph = graph.node("last", now).edge(node_name(nodes - 2), "last").compile().expect("no cycle");
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let graph = graph.clone();
            on(&runtime, move || {
                let graph = graph.clone();
                async move { drop(graph.invoke(()).max_supersteps(1).await) }
            })(1);
            best = best.min(*took.lock().expect("nobody panics"));
        }
        figures.push(Figure::new(what, best, "ns"));
    }
    figures.push(Figure::new(
        "an edge among 1,000,000 nodes, after 400 nodes at one place",
        after_nested(),
        "ns",
    ));
    figures
}

/// Measures adding an edge after many nodes were put between the same two others, each before the previous.
fn after_nested() -> f64 {
    const NESTED: usize = 400;
    let took = Arc::new(Mutex::new(0.0));
    let told = Arc::clone(&took);
    let edit = move |_: Deps<'_, u64>, edits: PassEdits<u64>| {
        let mut behind = node_name(2);
        for at in 0..NESTED {
            let name = format!("temporary_{at}");
            let made = edits
                .add_fn(&*name, now)
                .and_then(|()| edits.add_edge(node_name(1), &*name))
                .and_then(|()| edits.add_edge(&*name, &*behind));
            made.expect("it fits");
            behind = name;
        }
        let begun = Instant::now();
        let many = EDITS.min(NODES as usize / 4);
        for at in 0..many {
            let at = 3 + 3 * at;
            edits.add_edge(node_name(at), node_name(at + 2)).expect("it fits");
        }
        *told.lock().expect("nobody panics") = begun.elapsed().as_secs_f64() * 1e9 / many as f64;
        1
    };
    let mut graph = DependencyGraph::<u64>::new().node("first", edit);
    for at in 1..NODES as usize {
        let before = if at == 1 { "first".to_owned() } else { node_name(at - 1) };
        graph = graph.node(node_name(at), now).edge(before, node_name(at));
    }
    let graph = graph.compile().expect("no cycle");
    on(&one_thread(), move || {
        let graph = graph.clone();
        async move { drop(graph.invoke(()).max_supersteps(1).await) }
    })(1);
    *took.lock().expect("nobody panics")
}
