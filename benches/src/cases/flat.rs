//! The cost of a step does not depend on what it leaves alone: more nodes, more channels, a larger
//! state, more joins that wait. The floor is the engine itself on the small graph or state.

use agentgraph::prelude::*;

use crate::bare::node_name;
use crate::case::{Case, Entrant};
use crate::cases::chain::add_one;
use crate::cases::looped::{Next, looped};
use crate::runtime::{on, one_thread};
use crate::states::{Counter, CounterUpdate, Wide, WideUpdate};

const STEPS: u64 = 1000;
/// So many that the nodes behind the joins, which run once at the end, do not show.
const ROUNDS: u64 = 10_000;

/// The ratio that counts as flat: the memory layout of a fresh process alone changes a time by a tenth.
const FLAT: f64 = 1.15;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("flat/nodes", "step", STEPS, nodes),
        Case::new("flat/channels", "step", STEPS, channels),
        Case::new("flat/state_bytes", "step", STEPS, bytes),
        Case::new("flat/open_joins", "round", ROUNDS, open_joins),
    ]
}

fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

fn engine(graph: CompiledGraph<Counter>, text: usize, count: u64) -> impl FnMut(u64) {
    let input = Counter::update().text("x".repeat(text));
    on(&one_thread(), move || {
        let run = graph.invoke(input.clone()).max_supersteps(u64::MAX);
        async move {
            let outcome = run.await.expect("the run ends");
            assert_eq!(outcome.output().count, count);
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
        Entrant::new("floor: engine, 10 nodes", engine(ring(10), 100, STEPS)),
        Entrant::new("engine, 10,000 nodes", engine(ring(10_000), 100, STEPS)).within(FLAT),
    ]
}

fn bytes() -> Vec<Entrant> {
    vec![
        Entrant::new("floor: engine, 100 bytes of state", engine(looped(add_one, next), 100, STEPS)),
        Entrant::new("engine, 1 MB of state", engine(looped(add_one, next), 1_000_000, STEPS)).within(FLAT),
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
        Entrant::new("floor: engine, 3 channels", engine(looped(add_one, next), 100, STEPS)),
        Entrant::new("engine, 20 channels", wide).within(FLAT),
    ]
}

/// Returns a loop whose rounds each end at a join, while `waiting` other joins wait for the end of the loop.
fn forking(waiting: usize) -> CompiledGraph<Counter> {
    async fn nothing() -> CounterUpdate {
        Counter::update()
    }
    let again = |state: &Counter| if state.count < ROUNDS { "fork" } else { "last" };
    let mut graph = StateGraph::new()
        .node("first", nothing)
        .node("work", add_one)
        .node("fork", nothing)
        .node("left", nothing)
        .node("right", nothing)
        .node("last", nothing)
        .edge(START, "first")
        .edge("first", "work")
        .branch("work", again, ["fork", "last"])
        .edge("fork", "left")
        .edge("fork", "right")
        .edge(["left", "right"], "work");
    for at in 0..waiting {
        graph = graph.node(node_name(at), nothing).edge(["first", "last"], node_name(at));
    }
    graph.compile().expect("a graph")
}

fn open_joins() -> Vec<Entrant> {
    vec![
        Entrant::new("floor: engine, 10 joins wait", engine(forking(10), 100, ROUNDS)),
        Entrant::new("engine, 1000 joins wait", engine(forking(1000), 100, ROUNDS)).within(FLAT),
    ]
}
