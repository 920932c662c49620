//! Units that tasks spend on a host, and their requests to stop, reach the run.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Budget, StopReason};

use super::far::Far;
use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, text};

/// Spends 400 tokens in each attempt; the first one of each third task fails.
async fn speak(ctx: Ctx, words: Snapshot<Words>) -> Result<WordsUpdate> {
    ctx.spend("tokens", 400);
    if words.seen.len() == 3 && ctx.attempt() == 1 {
        return Err("hoarse".into());
    }
    Ok(Words::update().seen([format!("{} spent, {:?} left", ctx.spent("tokens"), ctx.remaining("tokens"))]))
}

fn talk() -> CompiledGraph<Words> {
    let node = speak.retry(RetryPolicy::attempts(2).initial(Duration::from_secs(1)));
    let graph = StateGraph::new().node("speak", node).edge(START, "speak").edge("speak", "speak");
    graph.compile().unwrap().services(Clock::default())
}

#[tokio::test]
async fn a_budget_of_units_stops_a_run_on_a_host_where_it_stops_a_local_one() {
    let hosted = talk().host(Far::of(talk()));
    for graph in [talk(), hosted] {
        let graph = graph.checkpointer(MemorySaver::new());
        let budget = |tokens| Budget::new().units("tokens", tokens);
        let first =
            graph.invoke(Words::update().seen(["i"])).thread("t").budget(budget(1_000)).await.unwrap();
        assert!(matches!(first, Outcome::Stopped { reason: StopReason::Budget, .. }), "{first:?}");
        assert_eq!(
            text(first.output()),
            "i 400 spent, Some(600) left 800 spent, Some(200) left 1600 spent, Some(0) left"
        );
        let second = graph.proceed().thread("t").budget(budget(2_000)).await.unwrap();
        assert_eq!((second.spent("tokens"), second.output().seen.len()), (2_000, 5));
    }
}

#[tokio::test]
async fn units_are_counted_without_a_budget_and_inside_of_subgraphs() {
    let build = || {
        let pays = |ctx: Ctx| async move { ctx.spend("cents", 7) };
        let child = StateGraph::<Words>::new().node("pays", pays).edge(START, "pays").compile().unwrap();
        let graph = StateGraph::new().node("a", pays).node("b", pays).node("child", child);
        graph.edge(START, "a").edge(START, "b").edge(["a", "b"], "child").compile().unwrap()
    };
    let outcome = build().host(Far::of(build())).invoke(Words::update()).await.unwrap();
    assert_eq!(outcome.spent("cents"), 21);
}

#[tokio::test]
async fn a_task_on_a_host_stops_its_run_at_the_next_boundary() {
    async fn stops(ctx: Ctx) -> WordsUpdate {
        ctx.drain();
        Words::update().seen([ctx.node()])
    }
    let build = || {
        let graph = StateGraph::new().node("a", stops).node("b", stops).edge(START, "a").edge("a", "b");
        graph.compile().unwrap()
    };
    let graph = build().host(Far::of(build())).checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(matches!(first, Outcome::Stopped { reason: StopReason::Drained, .. }), "{first:?}");
    assert_eq!(text(first.output()), "a");
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "a b");
}
