//! A temporary edit costs the same in a graph of ten nodes and of a million.

use std::hint::black_box;

use agentgraph::prelude::*;

use crate::case::{Case, Entrant};
use crate::cases::looped::Next;
use crate::runtime::{on, one_thread};
use crate::states::{Counter, CounterUpdate};

/// The steps of a run; [`edit`] makes one edit in each.
const STEPS: u64 = 1_000;
/// Builds without optimisation only check that the cases run, on fewer nodes.
const MANY: usize = if cfg!(debug_assertions) { 10_000 } else { 1_000_000 };

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("edits/10", "edit", STEPS, || entrants(10)),
        Case::new("edits/1000000", "edit", STEPS, || entrants(MANY)),
    ]
}

fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

async fn count(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(black_box(state.count) + 1)
}

/// Adds an edge between two nodes that never run, and removes it in the next step.
async fn edit(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    if state.count.is_multiple_of(2) {
        ctx.edits().add_edge("n1", "n3")?
    } else {
        ctx.edits().remove_edge("n1", "n3")?
    }
    Ok(Counter::update().count(black_box(state.count) + 1))
}

fn graph<M>(node: impl IntoNode<Counter, M>, nodes: usize) -> CompiledGraph<Counter> {
    let mut graph = StateGraph::new().node("work", node).edge(START, "work").route("work", next);
    for node in 1..nodes {
        graph = graph.node(format!("n{node}"), count);
    }
    for node in 2..nodes {
        graph = graph.edge(format!("n{}", node - 1), format!("n{node}"));
    }
    graph.compile().expect("a graph")
}

fn entrants(nodes: usize) -> Vec<Entrant> {
    let runtime = one_thread();
    let engine = |graph: CompiledGraph<Counter>| {
        on(&runtime, move || {
            let graph = graph.clone();
            async move {
                let outcome =
                    graph.invoke(Counter::input()).max_supersteps(STEPS).await.expect("the run ends");
                assert_eq!(outcome.output().count, STEPS);
            }
        })
    };
    vec![
        Entrant::new("a step without an edit", engine(graph(count, nodes))),
        Entrant::new("a step with an edit", engine(graph(edit, nodes))),
    ]
}
