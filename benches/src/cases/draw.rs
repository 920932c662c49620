//! Drawings of a thousand nodes: a chain whose every node may end it, and a graph of random edges. The floor
//! is Mermaid, which places nothing.

use std::hint::black_box;

use agentgraph::prelude::*;

use crate::bare::node_name;
use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::states::Counter;

const NODES: usize = 1000;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("draw/chain", "drawing", 1, || entrants(chain())),
        Case::new("draw/random", "drawing", 1, || entrants(random())),
    ]
}

fn nodes() -> StateGraph<Counter> {
    let graph = StateGraph::new().edge(START, node_name(0));
    (0..NODES).fold(graph, |graph, at| graph.node(node_name(at), add_one))
}

fn chain() -> CompiledGraph<Counter> {
    let graph = (0..NODES).fold(nodes(), |graph, at| {
        let next = if at + 1 < NODES { node_name(at + 1) } else { node_name(0) };
        graph.branch(node_name(at), |_: &Counter| END, [next, END.to_owned()])
    });
    graph.compile().expect("a graph")
}

/// Two edges into each node, from random earlier ones.
fn random() -> CompiledGraph<Counter> {
    let mut seed = 1_u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    let graph = (1..NODES).fold(nodes(), |graph, at| {
        let (one, other) = (below(at), below(at));
        let graph = graph.edge(node_name(one), node_name(at));
        if one == other { graph } else { graph.edge(node_name(other), node_name(at)) }
    });
    graph.compile().expect("a graph")
}

fn entrants(graph: CompiledGraph<Counter>) -> Vec<Entrant> {
    let drawing = |draw: fn(&CompiledGraph<Counter>) -> String| {
        let graph = graph.clone();
        move |times| (0..times).for_each(|_| drop(black_box(draw(&graph))))
    };
    vec![
        Entrant::new("floor: Mermaid", drawing(CompiledGraph::mermaid)),
        Entrant::new("SVG", drawing(CompiledGraph::svg)),
        Entrant::new("text", drawing(CompiledGraph::text)),
    ]
}
