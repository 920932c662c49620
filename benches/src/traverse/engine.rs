//! The same graphs in the engine.

use std::hint::black_box;

use agentgraph::CompiledDependencyGraph;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use super::graph::Graph;
use crate::bare::node_name;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(super) struct Walked {
    text: String,
    #[reduce(sum)]
    visited: u64,
}

async fn visit(state: Snapshot<Walked>) -> WalkedUpdate {
    black_box(state.text.len());
    Walked::update().visited(1)
}

/// A node with several sources waits for all of them.
pub(super) fn state_graph(graph: &Graph, is_eager: bool) -> CompiledGraph<Walked> {
    let mut built = StateGraph::new();
    if is_eager {
        built = built.eager();
    }
    for (node, sources) in graph.sources.iter().enumerate() {
        built = built.node(node_name(node), visit);
        built = match sources.as_slice() {
            [] => built.edge(START, node_name(node)),
            [source] => built.edge(node_name(*source as usize), node_name(node)),
            several => {
                let sources: Vec<String> = several.iter().map(|source| node_name(*source as usize)).collect();
                built.edge(sources, node_name(node))
            }
        };
    }
    if graph.rounds.is_some() {
        let visits = graph.visits();
        let again = move |state: &Walked| if state.visited < visits { "node_0" } else { END };
        built = built.branch(node_name(graph.nodes() - 1), again, ["node_0", END]);
    }
    built.compile().expect("a graph")
}

pub(super) async fn walk(graph: &CompiledGraph<Walked>, text: &str, thread: Option<&str>) -> u64 {
    let run = graph.invoke(Walked::update().text(text)).max_supersteps(u64::MAX);
    let outcome = match thread {
        Some(thread) => run.thread(thread).await,
        None => run.await,
    };
    outcome.expect("the run ends").output().visited
}

pub(super) type PassGraph = CompiledDependencyGraph<u64, String>;

async fn visit_in_pass(text: Given<String>) -> u64 {
    black_box(text.len());
    1
}

pub(super) fn pass_graph(graph: &Graph) -> PassGraph {
    let mut built = DependencyGraph::<u64, String>::with_input();
    for (node, sources) in graph.sources.iter().enumerate() {
        built = built.node(node_name(node), visit_in_pass);
        for source in sources {
            built = built.edge(node_name(*source as usize), node_name(node));
        }
    }
    built.compile().expect("it has no cycle")
}

pub(super) async fn pass(graph: &PassGraph, text: &str, thread: Option<&str>) -> u64 {
    let run = graph.invoke(text.to_owned());
    let outcome = match thread {
        Some(thread) => run.thread(thread).await,
        None => run.await,
    };
    outcome.expect("the pass ends").output().len() as u64
}
