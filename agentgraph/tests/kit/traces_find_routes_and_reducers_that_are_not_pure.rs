use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, Probe, Report, TestGraph};

use crate::{Words, WordsUpdate, note};

fn found(report: &Report) -> Vec<(FindingKind, &str, &str)> {
    report.findings().iter().map(|found| (found.kind(), found.node(), found.subject())).collect()
}

#[derive(Route)]
enum Next {
    Left,
    Right,
}

fn routed(route: fn(&Words) -> Next) -> TestGraph<CompiledGraph<Words>> {
    let graph = StateGraph::new().node("pick", note).node("left", note).node("right", note);
    TestGraph::of(graph.edge(START, "pick").route("pick", route).compile().unwrap())
}

#[tokio::test]
async fn a_route_that_decides_by_chance_is_found() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let by_chance = |_: &Words| match CALLS.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => Next::Left,
        _ => Next::Right,
    };
    let trace = routed(by_chance).trace(Words::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, "pick", "")]);
    assert_eq!(trace.ran(), ["pick", "left"], "the first decision counts");

    let by_state = |words: &Words| if words.said.len() > 1 { Next::Right } else { Next::Left };
    let trace = routed(by_state).trace(Words::update()).await;
    trace.report().assert_none();
    assert_eq!(trace.ran(), ["pick", "left"]);
}

#[tokio::test]
async fn a_branch_by_names_that_decides_by_chance_is_found() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let graph = StateGraph::new().node("left", note).node("right", note);
    let by_chance =
        |_: &Words| if CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { "left" } else { "right" };
    let graph = graph.branch(START, by_chance, ["left", "right"]).compile().unwrap();
    let trace = TestGraph::of(graph).trace(Words::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, START, "")]);
    assert_eq!(trace.ran(), ["left"]);
}

#[tokio::test]
async fn a_route_that_dispatches_is_compared_with_its_inputs() {
    #[derive(Route)]
    enum Pages {
        Count(u32),
    }
    static CALLS: AtomicU32 = AtomicU32::new(0);
    async fn count(Input(page): Input<u32>) -> WordsUpdate {
        crate::say(page.to_string())
    }
    let graph = |route: fn(&Words) -> Vec<Pages>| {
        TestGraph::of(StateGraph::new().node("count", count).route(START, route).compile().unwrap())
    };
    let trace =
        graph(|_| vec![Pages::Count(CALLS.fetch_add(1, Ordering::Relaxed))]).trace(Words::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, START, "")]);
    let trace = graph(|_| vec![Pages::Count(1), Pages::Count(2)]).trace(Words::update()).await;
    trace.report().assert_none();
    assert_eq!(trace.ran(), ["count", "count"]);
}

#[tokio::test]
async fn an_effect_in_a_route_is_found() {
    let trace = routed(|_| {
        Probe::new().effect("log");
        Next::Left
    });
    let trace = trace.trace(Words::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::EffectInRoute, "pick", "log")]);
}

#[derive(State, Clone, Debug, Default)]
struct Scores {
    #[reduce(with = stamped)]
    stamped: u32,
    #[reduce(with = highest)]
    highest: u32,
}

static STAMP: AtomicU32 = AtomicU32::new(0);

fn stamped(value: &mut u32, written: u32) {
    Probe::new().effect("stamp");
    *value = written + STAMP.fetch_add(1, Ordering::Relaxed);
}

fn highest(value: &mut u32, other: u32) {
    *value = (*value).max(other);
}

#[tokio::test]
async fn a_reducer_that_uses_more_than_its_arguments_is_found() {
    async fn fickle() -> ScoresUpdate {
        Scores::update().stamped(1).highest(3)
    }
    let graph = StateGraph::new().node("score", fickle).edge(START, "score").compile().unwrap();
    let trace = TestGraph::of(graph.clone()).trace(Scores::update()).await;
    let mut kinds = found(trace.report());
    kinds.sort_by_key(|(kind, ..)| format!("{kind:?}"));
    assert_eq!(
        kinds,
        [(FindingKind::EffectInReducer, "score", "stamp"), (FindingKind::FickleReducer, "score", "stamped")]
    );

    async fn pure() -> ScoresUpdate {
        Scores::update().highest(3)
    }
    let trace = TestGraph::of(graph).replace("score", pure).trace(Scores::update()).await;
    trace.report().assert_none();
    assert_eq!(trace.state().highest, 3);
}
