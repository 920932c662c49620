//! The cost of a step does not depend on what it leaves alone: more nodes, more channels, a larger
//! state. The floor is the engine itself on the small graph or state.

use agentgraph::prelude::*;

use crate::bare::node_name;
use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::cases::looped::{Next, looped};
use crate::runtime::{on, one_thread};
use crate::states::{Counter, Wide, WideUpdate};

const STEPS: u64 = 1000;

/// The ratio that counts as flat: the memory layout of a fresh process alone changes a time by a tenth.
const FLAT: f64 = 1.15;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("flat/nodes", "step", STEPS, nodes),
        Case::new("flat/channels", "step", STEPS, channels),
        Case::new("flat/state_bytes", "step", STEPS, bytes),
    ]
}

fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

fn engine(graph: CompiledGraph<Counter>, text: usize) -> impl FnMut(u64) {
    let input = Counter::update().text("x".repeat(text));
    on(&one_thread(), move || {
        let run = graph.invoke(input.clone());
        async move {
            let outcome = run.await.expect("the run ends");
            assert_eq!(outcome.output().count, STEPS);
        }
    })
}

/// Returns a graph of `size` nodes: ten in a ring, and the others behind it.
fn ring(size: usize) -> CompiledGraph<Counter> {
    let leave = |state: &Counter| match state.count {
        count if count < STEPS => "node_0",
        count if count == STEPS => END,
        _ => "node_10",
    };
    let mut graph = StateGraph::new().edge(START, node_name(0));
    for at in 0..size {
        graph = graph.node(node_name(at), add_one);
        if at > 0 && at != 10 {
            graph = graph.edge(node_name(at - 1), node_name(at));
        }
    }
    let targets: &[&'static str] = if size > 10 { &["node_0", "node_10", END] } else { &["node_0", END] };
    graph.branch(node_name(9), leave, targets.iter().copied()).compile().expect("a graph")
}

fn nodes() -> Vec<Entrant> {
    vec![
        Entrant::new("floor: engine, 10 nodes", engine(ring(10), 100)),
        Entrant::new("engine, 10,000 nodes", engine(ring(10_000), 100)).within(FLAT),
    ]
}

fn bytes() -> Vec<Entrant> {
    vec![
        Entrant::new("floor: engine, 100 bytes of state", engine(looped(add_one, next), 100)),
        Entrant::new("engine, 1 MB of state", engine(looped(add_one, next), 1_000_000)).within(FLAT),
    ]
}

async fn add_one_wide(state: Snapshot<Wide>) -> WideUpdate {
    Wide::update().count(state.count + 1)
}

fn next_wide(state: &Wide) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

fn channels() -> Vec<Entrant> {
    let graph = StateGraph::new().node("work", add_one_wide).edge(START, "work").route("work", next_wide);
    let graph = graph.compile().expect("a graph");
    let wide = on(&one_thread(), move || {
        let run = graph.invoke(Wide::update());
        async move {
            let outcome = run.await.expect("the run ends");
            assert_eq!(outcome.output().count, STEPS);
        }
    });
    vec![
        Entrant::new("floor: engine, 3 channels", engine(looped(add_one, next), 100)),
        Entrant::new("engine, 20 channels", wide).within(FLAT),
    ]
}
