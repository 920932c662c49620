use std::sync::Mutex;

use agentgraph::prelude::*;
use agentgraph::testing::{FindingKind, Probe, TestGraph};

use crate::{Words, WordsUpdate, note, say};

async fn reads_then_writes(ctx: Ctx, shared: Dep<Mutex<u32>>) -> WordsUpdate {
    let seen = *shared.lock().unwrap();
    Probe::new().pause().await;
    *shared.lock().unwrap() = seen + 1;
    say(format!("{} saw {seen}", ctx.node()))
}

fn racing(eager: bool) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("ada", reads_then_writes).node("bob", reads_then_writes);
    let graph = graph.edge(START, "ada").edge(START, "bob").dep(Mutex::new(0_u32));
    if eager { graph.eager().compile().unwrap() } else { graph.compile().unwrap() }
}

#[tokio::test]
async fn a_race_over_a_shared_value_is_found_with_a_seed_that_replays_it() {
    let test = TestGraph::by(|| racing(false));
    let report = test.every_order(Words::update()).await;
    // Each of them sees the other's value in some orders, and neither does in others.
    let nodes: Vec<&str> = report.findings().iter().map(|found| found.node()).collect();
    assert_eq!((nodes, report.runs()), (vec!["ada", "bob"], 2 + 64));
    let race = &report.findings()[0];
    assert_eq!((race.kind(), race.subject()), (FindingKind::OrderMatters, "said"));
    assert!(report.findings().iter().map(|found| found.times()).sum::<usize>() < 64, "{report}");

    let seed = race.seed().unwrap();
    let again = test.every_order(Words::update()).seed(seed).await;
    assert_eq!(
        again.findings()[0].to_string().lines().next(),
        race.to_string().lines().next().map(|line| { line.split(" (and in").next().unwrap() })
    );
}

#[tokio::test]
async fn nodes_that_share_only_the_state_end_the_same_in_every_order() {
    async fn slow(ctx: Ctx, words: Snapshot<Words>) -> WordsUpdate {
        for _ in 0..3 {
            Probe::new().pause().await;
        }
        say(format!("{} saw {}", ctx.node(), words.said.len()))
    }
    let graph = StateGraph::new().node("ada", slow).node("bob", slow).node("eve", note).node("end", note);
    let graph =
        graph.edge(START, "ada").edge(START, "bob").edge(START, "eve").edge(["ada", "bob", "eve"], "end");
    let report = TestGraph::of(graph.compile().unwrap()).every_order(Words::update()).seeds(32).await;
    report.assert_none();
    assert_eq!(report.runs(), 2 + 32);
}

/// Eager graphs merge in the order of ends, which is no mistake by itself: the report shows that it matters.
#[tokio::test]
async fn an_eager_graph_whose_order_matters_is_reported() {
    async fn slow(ctx: Ctx) -> WordsUpdate {
        Probe::new().pause().await;
        say(ctx.node())
    }
    let listed =
        StateGraph::new().eager().node("ada", slow).node("bob", slow).edge(START, "ada").edge(START, "bob");
    let report = TestGraph::of(listed.compile().unwrap()).every_order(Words::update()).await;
    let [order] = report.findings() else { panic!("{report}") };
    assert_eq!((order.kind(), order.node()), (FindingKind::OrderMatters, ""), "no node does anything else");
    assert!(order.to_string().contains("in the order"), "{order}");

    #[derive(State, Clone, Debug, Default)]
    struct Highest {
        #[reduce(with = highest)]
        value: u32,
    }
    fn highest(value: &mut u32, other: u32) {
        *value = (*value).max(other);
    }
    async fn three() -> HighestUpdate {
        Probe::new().pause().await;
        Highest::update().value(3)
    }
    async fn four() -> HighestUpdate {
        Highest::update().value(4)
    }
    let highest = StateGraph::new().eager().node("three", three).node("four", four);
    let highest = highest.edge(START, "three").edge(START, "four").compile().unwrap();
    let test = TestGraph::of(highest);
    assert_eq!(test.trace(Highest::update()).await.state().value, 4);
    test.every_order(Highest::update()).seeds(16).await.assert_none();
}

#[tokio::test]
async fn races_in_eager_graphs_and_subgraphs_name_the_node() {
    let report = TestGraph::by(|| racing(true)).every_order(Words::update()).await;
    assert!(report.findings().iter().any(|found| ["ada", "bob"].contains(&found.node())), "{report}");

    let outer =
        || StateGraph::<Words>::new().node("inner", racing(false)).edge(START, "inner").compile().unwrap();
    let report = TestGraph::by(outer).every_order(Words::update()).await;
    let nodes: Vec<&str> = report.findings().iter().map(|found| found.node()).collect();
    assert_eq!(nodes, ["inner/ada", "inner/bob"]);
}

#[tokio::test]
async fn a_seed_gives_the_same_order_again() {
    let test = TestGraph::by(|| racing(false));
    let mut first = Vec::new();
    for _ in 0..3 {
        let mut lines = Vec::new();
        for seed in 0..8 {
            lines.push(test.every_order(Words::update()).seed(seed).await.to_string());
        }
        first.push(lines);
    }
    assert!(first.windows(2).all(|pair| pair[0] == pair[1]));
}
