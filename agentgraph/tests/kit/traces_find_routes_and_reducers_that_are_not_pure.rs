use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, Probe, Report, TestGraph};
use serde::{Deserialize, Serialize};

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

fn problem(report: &Report) -> String {
    report.findings().iter().map(ToString::to_string).collect()
}

#[derive(State, Clone, Debug, Default)]
struct Prices {
    #[reduce(merge)]
    prices: HashMap<String, u32>,
    #[reduce(with = listed)]
    listed: Vec<String>,
    #[reduce(with = sorted)]
    sorted: Vec<String>,
    #[reduce(with = joined)]
    names: HashSet<String>,
}

fn listed(value: &mut Vec<String>, write: Vec<String>) {
    // As a reducer does that goes through a map of its own.
    let names: HashMap<String, ()> = write.into_iter().map(|name| (name, ())).collect();
    value.extend(names.into_keys());
}

fn sorted(value: &mut Vec<String>, write: Vec<String>) {
    let names: HashMap<String, ()> = write.into_iter().map(|name| (name, ())).collect();
    value.extend(names.into_keys());
    value.sort();
}

fn joined(value: &mut HashSet<String>, write: HashSet<String>) {
    value.extend(write);
}

fn names() -> Vec<String> {
    (0..12).map(|n| format!("item {n}")).collect()
}

async fn buy() -> PricesUpdate {
    Prices::update().prices(names().into_iter().zip(0..))
}

async fn nothing() {}

fn shop(route: fn(&Prices) -> Vec<String>) -> StateGraph<Prices> {
    let graph = names().into_iter().fold(StateGraph::new(), |graph, name| graph.node(name, nothing));
    graph.node("buy", buy).edge(START, "buy").branch("buy", route, names())
}

#[tokio::test]
async fn a_route_that_takes_the_first_entry_of_a_hash_map_is_found() {
    let first = |prices: &Prices| prices.prices.keys().take(1).cloned().collect();
    let trace = TestGraph::of(shop(first).compile().unwrap()).trace(Prices::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, "buy", "")]);
    let problem = problem(trace.report());
    assert!(
        problem.contains("as another process reads them: it depends on the order of a hash map"),
        "{problem}"
    );

    let least = |prices: &Prices| prices.prices.keys().min().cloned().into_iter().collect();
    let trace = TestGraph::of(shop(least).compile().unwrap()).trace(Prices::update()).await;
    trace.report().assert_none();
    assert_eq!(trace.ran(), ["buy", "item 0"]);
}

#[tokio::test]
async fn a_route_of_a_subgraph_is_read_anew_too() {
    let first = |prices: &Prices| prices.prices.keys().take(1).cloned().collect();
    let inner = shop(first).compile().unwrap();
    let outer = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let trace = TestGraph::of(outer).trace(Prices::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, "inner/buy", "")]);
}

#[tokio::test]
async fn a_route_that_reads_what_a_node_changes_outside_the_state_is_found_after_the_run() {
    static CLOSED: AtomicBool = AtomicBool::new(false);
    async fn close() {
        CLOSED.store(true, Ordering::Relaxed);
    }
    let graph = |route: fn(&Words) -> Next| {
        let graph = StateGraph::new().node("pick", note).node("left", close).node("right", note);
        TestGraph::of(graph.edge(START, "pick").route("pick", route).compile().unwrap())
    };
    let by_flag = |_: &Words| if CLOSED.load(Ordering::Relaxed) { Next::Right } else { Next::Left };
    let trace = graph(by_flag).trace(Words::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleRoute, "pick", "")]);
    assert!(problem(trace.report()).contains("after the run"), "{}", problem(trace.report()));

    let by_state = |words: &Words| if words.flag { Next::Right } else { Next::Left };
    graph(by_state).trace(Words::update()).await.report().assert_none();
}

#[tokio::test]
async fn a_reducer_that_depends_on_the_order_of_a_hash_map_is_found_and_a_set_is_none() {
    async fn write() -> PricesUpdate {
        Prices::update().listed(names()).sorted(names()).names(names().into_iter().collect())
    }
    let graph = StateGraph::new().node("write", write).edge(START, "write").compile().unwrap();
    let trace = TestGraph::of(graph).trace(Prices::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleReducer, "write", "listed")]);
}

#[derive(State, Clone, Debug, Default)]
struct Joined {
    #[reduce(with = in_order)]
    line: Line,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Line {
    text: String,
    parts: HashMap<u32, String>,
}

/// The parts of the write come in another order in another process.
fn in_order(value: &mut Line, write: Line) {
    write.parts.into_values().for_each(|part| value.text.push_str(&part));
}

#[tokio::test]
async fn a_reducer_that_joins_the_entries_of_its_write_is_found() {
    async fn write() -> JoinedUpdate {
        let parts = (0..12).map(|n| (n, format!("{n} "))).collect();
        Joined::update().line(Line { text: String::new(), parts })
    }
    let graph = StateGraph::new().node("write", write).edge(START, "write").compile().unwrap();
    let trace = TestGraph::of(graph).trace(Joined::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleReducer, "write", "line")]);
    assert!(problem(trace.report()).contains("the order of a hash map"), "{}", problem(trace.report()));
}

#[derive(State, Clone, Debug, Default)]
struct Rates {
    #[reduce(with = at_rate)]
    total: u32,
}

static RATE: AtomicU32 = AtomicU32::new(1);

fn at_rate(value: &mut u32, write: u32) {
    *value += write * RATE.load(Ordering::Relaxed);
}

#[tokio::test]
async fn a_reducer_that_reads_what_a_node_changes_outside_the_state_is_found_after_the_run() {
    async fn sell() -> RatesUpdate {
        Rates::update().total(10)
    }
    async fn raise() {
        // The kit sees an update when the run waits, or ends.
        Probe::new().wait(Duration::from_secs(1)).await;
        RATE.store(2, Ordering::Relaxed);
    }
    let graph = StateGraph::new().node("sell", sell).node("raise", raise);
    let graph = graph.edge(START, "sell").edge("sell", "raise").compile().unwrap();
    let trace = TestGraph::of(graph).trace(Rates::update()).await;
    assert_eq!(found(trace.report()), [(FindingKind::FickleReducer, "sell", "total")]);
    assert!(problem(trace.report()).contains("after the run"), "{}", problem(trace.report()));
}

#[tokio::test]
async fn calls_after_the_run_add_no_effects() {
    let trace = routed(|_| {
        Probe::new().effect("log");
        Next::Left
    });
    let trace = trace.trace(Words::update()).await;
    assert_eq!(trace.effects(), ["pick: log", "pick: log"], "one for each of two calls in a row");
}
