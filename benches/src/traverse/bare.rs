//! The walks beside the engine's, which call a boxed async function for each node: by hand with a queue of
//! the nodes whose sources are done (Kahn's algorithm), and over a graph of petgraph with its own `Topo`.

use std::collections::VecDeque;
use std::hint::black_box;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Topo;

use super::graph::Graph;
use crate::bare::Boxed;

type Node = Box<dyn Fn(&str) -> Boxed<u64> + Send + Sync>;

fn node() -> Node {
    Box::new(|text| {
        let length = text.len();
        Box::pin(async move {
            black_box(length);
            1
        })
    })
}

/// Nodes by index, with their targets one after the other in one list.
pub(super) struct ByHand {
    nodes: Vec<Node>,
    targets: Vec<u32>,
    /// Where the targets of each node begin.
    begins: Vec<u32>,
    waits: Vec<u32>,
    rounds: Option<u32>,
}

impl ByHand {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut begins = vec![0; graph.nodes() + 1];
        for source in graph.sources.iter().flatten() {
            begins[*source as usize + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut next = begins.clone();
        let mut targets = vec![0; begins[graph.nodes()] as usize];
        for (node, sources) in (0..).zip(&graph.sources) {
            for source in sources {
                let at = &mut next[*source as usize];
                targets[*at as usize] = node;
                *at += 1;
            }
        }
        let waits = graph.sources.iter().map(|sources| sources.len() as u32).collect();
        let nodes = (0..graph.nodes()).map(|_| node()).collect();
        ByHand { nodes, targets, begins, waits, rounds: graph.rounds }
    }

    pub(super) async fn walk(&self, text: &str) -> u64 {
        let mut visited = 0;
        if let Some(rounds) = self.rounds {
            for _ in 0..rounds {
                for node in &self.nodes {
                    visited += node(text).await;
                }
            }
            return visited;
        }
        let mut waits = self.waits.clone();
        let roots = (0..).zip(&waits).filter(|(_, waits)| **waits == 0);
        let mut queue: VecDeque<u32> = roots.map(|(node, _)| node).collect();
        while let Some(node) = queue.pop_front() {
            let node = node as usize;
            visited += self.nodes[node](text).await;
            for target in &self.targets[self.begins[node] as usize..self.begins[node + 1] as usize] {
                let waits = &mut waits[*target as usize];
                *waits -= 1;
                if *waits == 0 {
                    queue.push_back(*target);
                }
            }
        }
        visited
    }
}

/// A graph of petgraph whose nodes are the functions.
pub(super) struct Petgraph {
    graph: DiGraph<Node, ()>,
    rounds: Option<u32>,
}

impl Petgraph {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut built = DiGraph::with_capacity(graph.nodes(), graph.edges as usize);
        for _ in 0..graph.nodes() {
            built.add_node(node());
        }
        let index = |node: u32| NodeIndex::new(node as usize);
        for (node, sources) in (0..).zip(&graph.sources) {
            for source in sources {
                built.add_edge(index(*source), index(node), ());
            }
        }
        if graph.rounds.is_some() {
            built.add_edge(index(graph.nodes() as u32 - 1), index(0), ());
        }
        Petgraph { graph: built, rounds: graph.rounds }
    }

    pub(super) async fn walk(&self, text: &str) -> u64 {
        let mut visited = 0;
        if let Some(rounds) = self.rounds {
            let mut at = Some(NodeIndex::new(0));
            let last = self.graph.node_count() as u64 * u64::from(rounds);
            while let (Some(node), true) = (at, visited < last) {
                visited += (self.graph[node])(text).await;
                at = self.graph.neighbors(node).next();
            }
            return visited;
        }
        let mut order = Topo::new(&self.graph);
        while let Some(node) = order.next(&self.graph) {
            visited += (self.graph[node])(text).await;
        }
        visited
    }
}
