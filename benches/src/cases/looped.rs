//! A node that loops through a route: the ten-thousandth step costs as much as the first.

use std::hint::black_box;
use std::rc::Rc;

use agentgraph::prelude::*;

use crate::bare::Routed;
use crate::case::{Case, Entrant};
use crate::cases::chain::{add_one, add_one_or_fail};
use crate::runtime::{on, one_thread};
use crate::states::Counter;

const STEPS: u64 = 10_000;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("loop/10000", "step", STEPS, entrants)]
}

#[derive(Route)]
pub(crate) enum Next {
    Work,
    #[route(end)]
    Done,
}

fn next(state: &Counter) -> Next {
    if state.count < STEPS { Next::Work } else { Next::Done }
}

fn bare_next(state: &Counter) -> Option<&'static str> {
    (state.count < STEPS).then_some("work")
}

async fn command(state: Snapshot<Counter>) -> Command<Counter> {
    let count = black_box(state.count) + 1;
    let command = Command::update(Counter::update().count(count));
    if count < STEPS { command.goto("work") } else { command.goto(END) }
}

pub(crate) fn looped<M>(
    node: impl IntoNode<Counter, M>,
    next: fn(&Counter) -> Next,
) -> CompiledGraph<Counter> {
    let graph = StateGraph::new().node("work", node).edge(START, "work").route("work", next);
    graph.compile().expect("a loop is a graph")
}

fn entrants() -> Vec<Entrant> {
    let runtime = one_thread();
    let bare = Rc::new(Routed::new("work", bare_next));
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
    let floor = on(&runtime, move || {
        let bare = Rc::clone(&bare);
        async move { assert_eq!(bare.run(Counter::begun()).await.count, STEPS) }
    });
    let commands = StateGraph::new().node("work", command.targets(["work", END])).edge(START, "work");
    vec![
        Entrant::new("floor: nodes by name", floor),
        Entrant::new("engine, `Snapshot`", engine(looped(add_one, next))).within(1.1).allocating(2.0),
        Entrant::new("engine, `Ctx`, `Snapshot`, `Result`", engine(looped(add_one_or_fail, next)))
            .within(1.5)
            .allocating(2.0),
        Entrant::new(
            "engine, a `Command` instead of the route",
            engine(commands.compile().expect("a graph")),
        ),
    ]
}
