//! Join policies: any, n of m, all, and timeouts. Also deferred nodes, which wait until nothing else can
//! run.

use std::time::Duration;

use agentgraph::graph::IntoSources;
use agentgraph::prelude::*;
use agentgraph::{all, any, n_of};

use crate::common::clock::TokioClock;
use crate::common::words::{Words, WordsUpdate, text};

const SECOND: Duration = Duration::from_secs(1);

async fn name(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

/// Returns a graph with branches of one, two and three nodes that lead into `join`. No edge leaves
/// `join`.
fn three_branches(into_join: impl IntoSources) -> StateGraph<Words> {
    let mut graph = StateGraph::new();
    for node in ["a", "b1", "b2", "c1", "c2", "c3", "join"] {
        graph = graph.node(node, name);
    }
    for (from, to) in [(START, "a"), (START, "b1"), (START, "c1"), ("b1", "b2"), ("c1", "c2"), ("c2", "c3")] {
        graph = graph.edge(from, to);
    }
    graph.edge(into_join, "join")
}

async fn seen(graph: StateGraph<Words>) -> String {
    let graph = graph.compile().unwrap();
    let outcome = graph.invoke(Words::update()).max_supersteps(50).await.unwrap();
    assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
    text(outcome.output())
}

#[tokio::test]
async fn a_join_fires_once_per_round_when_enough_sources_arrived() {
    let sources = ["a", "b2", "c3"];
    assert_eq!(seen(three_branches(any(sources))).await, "a b1 c1 b2 c2 join c3");
    assert_eq!(seen(three_branches(n_of(2, sources))).await, "a b1 c1 b2 c2 c3 join");
    assert_eq!(seen(three_branches(n_of(3, sources))).await, "a b1 c1 b2 c2 c3 join");
    assert_eq!(seen(three_branches(all(sources))).await, "a b1 c1 b2 c2 c3 join");
    assert_eq!(seen(three_branches(sources)).await, "a b1 c1 b2 c2 c3 join");
}

/// Returns a graph in which `left` runs `lefts` times and `right` runs `rights` times. Both lead into
/// `join`.
fn rounds(lefts: usize, rights: usize, into_join: impl IntoSources) -> StateGraph<Words> {
    let again = |node: &'static str, times: usize| {
        move |words: &Words| {
            if words.seen.iter().filter(|seen| *seen == node).count() < times { vec![node] } else { vec![] }
        }
    };
    StateGraph::new()
        .node("left", name)
        .node("right", name)
        .node("join", name)
        .edge(START, "left")
        .edge(START, "right")
        .branch("left", again("left", lefts), ["left"])
        .branch("right", again("right", rights), ["right"])
        .edge(into_join, "join")
}

#[tokio::test]
async fn a_source_that_arrives_again_begins_the_next_round() {
    // Round 1: `left` fires the join, and `right` completes the round in the same superstep. Rounds 2 and
    // 3: `left` alone fires the join.
    assert_eq!(seen(rounds(3, 1, any(["left", "right"]))).await, "left right left join left join join");
    // `all`: repeated arrivals of a source before the join fires are absorbed.
    assert_eq!(seen(rounds(3, 1, ["left", "right"])).await, "left right left join left");
}

#[tokio::test]
async fn only_a_join_that_has_not_fired_is_stuck() {
    async fn stuck(into_join: impl IntoSources) -> Vec<Vec<String>> {
        let graph = three_branches(into_join).node("never", name).compile().unwrap();
        match graph.invoke(Words::update()).await.unwrap() {
            Outcome::Finished { stuck, .. } => stuck.into_iter().map(|join| join.missing).collect(),
            other => panic!("{other:?}"),
        }
    }
    assert!(stuck(any(["a", "never"])).await.is_empty());
    assert_eq!(stuck(n_of(2, ["a", "never"])).await, [["never"]]);
    assert!(stuck(n_of(2, ["a", "b2", "never"])).await.is_empty());
}

#[test]
fn unreachable_counts_zero_timeouts_and_joins_without_sources_are_problems() {
    let problem =
        |sources: agentgraph::graph::Sources| three_branches(sources).compile().unwrap_err().to_string();
    assert!(problem(n_of(0, ["a", "b2"])).contains("from 1 to the number of its sources"));
    assert!(problem(n_of(3, ["a", "b2"])).contains("from 1 to the number of its sources"));
    assert!(problem(all(["a", "b2"]).timeout(Duration::ZERO)).contains("timeout of zero"));
    assert!(problem(any(Vec::<String>::new())).contains("has no sources"));
}

/// Returns a graph whose join waits for `quick`, which ends at once, and for `s3`, which ends after three
/// seconds.
fn waiting(limit: Duration) -> CompiledGraph<Words> {
    async fn slow(ctx: Ctx) -> WordsUpdate {
        tokio::time::sleep(SECOND).await;
        Words::update().seen([ctx.node()])
    }
    let graph = StateGraph::new().node("quick", name).node("s1", slow).node("s2", slow).node("s3", slow);
    let graph =
        graph.node("join", name).edge(START, "quick").edge(START, "s1").edge("s1", "s2").edge("s2", "s3");
    let graph = graph.edge(all(["quick", "s3"]).timeout(limit), "join").compile().unwrap();
    graph.services(TokioClock::default()).checkpointer(MemorySaver::new())
}

#[tokio::test(start_paused = true)]
async fn a_join_whose_timeout_has_passed_fires_at_the_next_merge() {
    // `quick` arrives with the merge at one second. The timeout of half a second passes before the merge
    // at two seconds.
    let calls = waiting(SECOND / 2);
    let outcome = calls.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert_eq!(text(outcome.output()), "quick s1 s2");
    assert_eq!(calls.state("t").await.unwrap().unwrap().next, ["s3", "join"]);
    let calls = waiting(SECOND * 10);
    calls.invoke(Words::update()).thread("t").max_supersteps(2).await.unwrap();
    assert_eq!(calls.state("t").await.unwrap().unwrap().next, ["s3"]);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_join_elapses_while_the_run_is_stopped() {
    let graph = waiting(SECOND * 5);
    graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    tokio::time::sleep(SECOND * 5).await;
    let outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(text(outcome.output()), "quick s1 s2");
    assert_eq!(graph.state("t").await.unwrap().unwrap().next, ["s3", "join"]);
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "quick s1 s2 s3 join");
}

#[tokio::test(start_paused = true)]
async fn when_nothing_else_can_run_a_join_with_a_timeout_fires_at_once() {
    let graph = StateGraph::new().node("a", name).node("never", name).node("join", name).edge(START, "a");
    let graph = graph.edge(all(["a", "never"]).timeout(SECOND * 3600), "join").compile().unwrap();
    let before = tokio::time::Instant::now();
    let outcome = graph.services(TokioClock::default()).invoke(Words::update()).await.unwrap();
    assert_eq!(text(outcome.output()), "a join");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

/// Returns a graph with three branches and a plain edge from the end of each to `report`.
fn three_edges(last: impl IntoNode<Words, agentgraph::node::IsNode>) -> StateGraph<Words> {
    let mut graph = StateGraph::new().node("report", last);
    for node in ["a", "b1", "b2", "c1", "c2", "c3"] {
        graph = graph.node(node, name);
    }
    for (from, to) in [(START, "a"), (START, "b1"), (START, "c1"), ("b1", "b2"), ("c1", "c2"), ("c2", "c3")] {
        graph = graph.edge(from, to);
    }
    graph.edge("a", "report").edge("b2", "report").edge("c3", "report")
}

#[tokio::test]
async fn a_deferred_node_runs_once_when_nothing_else_can() {
    assert_eq!(seen(three_edges(name.defer())).await, "a b1 c1 b2 c2 c3 report");
    let plain = seen(three_edges(name.into_node())).await;
    assert_eq!(plain, "a b1 c1 report b2 c2 report c3 report");
}

#[tokio::test]
async fn a_deferred_node_waits_for_dispatches() {
    async fn send() -> Command<Words> {
        Command::new().also_goto(vec![Dispatch::new("work", 1), Dispatch::new("work", 2)])
    }
    async fn work(Input(n): Input<u32>) -> Command<Words> {
        let said = Command::update(Words::update().seen([format!("w{n}")]));
        if n < 10 { said.goto(Dispatch::new("work", n * 10)) } else { said }
    }
    let graph = StateGraph::new().node("send", send).node("work", work).node("report", name.defer());
    assert_eq!(seen(graph.edge(START, "send").edge("send", "report")).await, "w1 w2 w10 w20 report");
}

#[tokio::test]
async fn deferred_nodes_are_released_together_and_may_run_again() {
    let more = |words: &Words| if words.seen.len() < 5 { "b" } else { END };
    let graph = StateGraph::new()
        .node("one", name.defer())
        .node("two", name.defer())
        .node("a", name)
        .node("b", name)
        .edge(START, "one")
        .edge(START, "a")
        .edge("a", "two")
        .branch("one", more, ["b", END])
        .branch("two", more, ["b", END])
        .edge("b", "one")
        .edge("b", "two");
    assert_eq!(seen(graph).await, "a one two b one two");
}

#[tokio::test]
async fn a_join_into_a_deferred_node_ends_its_round_when_the_node_is_released() {
    // `x` runs three times before the deferred node is released. All arrivals belong to one round of the
    // join.
    let graph = StateGraph::new()
        .node("x", name)
        .node("y1", name)
        .node("y2", name)
        .node("report", name.defer())
        .edge(START, "x")
        .edge(START, "y1")
        .edge("y1", "y2")
        .branch(
            "x",
            |words: &Words| if words.seen.iter().filter(|s| *s == "x").count() < 3 { "x" } else { END },
            ["x", END],
        )
        .edge(any(["x", "y2"]), "report");
    assert_eq!(seen(graph).await, "x y1 x y2 x report");
}

#[tokio::test]
async fn a_checkpoint_lists_deferred_nodes() {
    let graph = three_edges(name.defer()).compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").max_supersteps(1).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.deferred), (vec!["b2".into(), "c2".into()], vec!["report".to_owned()]));
    graph.proceed().thread("t").max_supersteps(2).await.unwrap();
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!((state.next, state.deferred.len()), (vec!["report".to_owned()], 0));
    let outcome = graph.proceed().thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "a b1 c1 b2 c2 c3 report");
}

#[tokio::test]
async fn a_round_continues_after_the_run_was_stopped() {
    for limit in 1..=4 {
        let graph =
            three_branches(n_of(2, ["a", "b2", "c3"])).compile().unwrap().checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").max_supersteps(limit).await.unwrap();
        while matches!(outcome, Outcome::Stopped { .. }) {
            outcome = graph.proceed().thread("t").max_supersteps(limit).await.unwrap();
        }
        assert_eq!(text(outcome.output()), "a b1 c1 b2 c2 c3 join", "{limit} supersteps per call");
    }
}
