//! Sequential supersteps: a chain of nodes that do next to nothing.

use std::hint::black_box;
use std::rc::Rc;

use agentgraph::prelude::*;

use crate::bare::{Chain, IndexedChain, node_name};
use crate::case::{Case, Entrant};
use crate::runtime::{on, one_thread};
use crate::states::{Counter, CounterUpdate};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("chain/10", "step", 10, || entrants(10, 1.4, 1.8)),
        Case::new("chain/100", "step", 100, || entrants(100, 1.1, 1.5)),
        Case::new("chain/1000", "step", 1000, || entrants(1000, 1.1, 1.5)),
    ]
}

pub(crate) async fn add_one(state: Snapshot<Counter>) -> CounterUpdate {
    Counter::update().count(black_box(state.count) + 1)
}

#[derive(Debug)]
struct Overflow;

impl std::fmt::Display for Overflow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the count is too large")
    }
}

impl std::error::Error for Overflow {}

/// A typical node: it takes its context, reads the state, and may fail.
pub(crate) async fn add_one_or_fail(ctx: Ctx, state: Snapshot<Counter>) -> Result<CounterUpdate> {
    let step = ctx.step().min(1);
    let count = black_box(state.count).checked_add(step).ok_or(Overflow)?;
    Ok(Counter::update().count(count))
}

pub(crate) fn chain<M, N: IntoNode<Counter, M>>(length: usize, node: fn() -> N) -> CompiledGraph<Counter> {
    let mut graph = StateGraph::new().edge(START, node_name(0));
    for at in 0..length {
        graph = graph.node(node_name(at), node());
        if at > 0 {
            graph = graph.edge(node_name(at - 1), node_name(at));
        }
    }
    graph.compile().expect("a chain is a graph")
}

fn entrants(length: usize, snapshot: f64, context: f64) -> Vec<Entrant> {
    let runtime = one_thread();
    let by_name = Rc::new(Chain::new(length));
    let by_index = Rc::new(IndexedChain::new(length));
    let expected = length as u64;
    let engine = |graph: CompiledGraph<Counter>| {
        on(&runtime, move || {
            let graph = graph.clone();
            async move {
                let outcome = graph.invoke(Counter::input()).await.expect("the run ends");
                assert_eq!(outcome.output().count, expected);
            }
        })
    };
    let bare = on(&runtime, move || {
        let chain = Rc::clone(&by_name);
        async move { assert_eq!(chain.run(Counter::begun()).await.count, expected) }
    });
    let indexed = on(&runtime, move || {
        let chain = Rc::clone(&by_index);
        async move { assert_eq!(chain.run(Counter::begun()).await.count, expected) }
    });
    vec![
        Entrant::new("floor: nodes by name", bare),
        Entrant::new("nodes by index", indexed),
        Entrant::new("engine, `Snapshot`", engine(chain(length, || add_one)))
            .within(snapshot)
            .allocating(2.0),
        Entrant::new("engine, `Ctx`, `Snapshot`, `Result`", engine(chain(length, || add_one_or_fail)))
            .within(context)
            .allocating(2.0),
    ]
}
