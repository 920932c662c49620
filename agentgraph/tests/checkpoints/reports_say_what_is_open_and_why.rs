//! `graph.report(thread)` names every piece of open work once, with its reason.

use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use agentgraph::prelude::*;
use agentgraph::run::{OpenReason, ThreadReport};
use agentgraph::{DependencyGraph, Dispatch};
use futures_util::FutureExt;

use crate::common::clock::Clock;
use crate::common::words::{Words, WordsUpdate, says};

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

async fn report(graph: &CompiledGraph<Words>) -> ThreadReport {
    graph.report("t").await.unwrap().unwrap()
}

/// The lines of a report without its first, and without ids.
fn lines(report: &ThreadReport) -> Vec<String> {
    let hide = |line: &str| match (line.find("(interrupt "), line.find(':')) {
        (Some(id), _) => line[..id].trim().to_owned(),
        _ => line.to_owned(),
    };
    report.to_string().lines().skip(1).map(hide).collect()
}

#[tokio::test]
async fn questions_failures_joins_and_next_nodes_are_listed_in_that_order() {
    async fn asks(ctx: Ctx) -> Result<()> {
        let first = ctx.interrupt_as::<bool>("one", "first?");
        ctx.interrupt_as::<bool>("two", "second?")?;
        first?;
        Ok(())
    }
    async fn fails() -> Result<()> {
        Err("no seat".into())
    }
    let graph = StateGraph::new().node("asks", asks).node("fails", fails).node("done", says("done"));
    let graph = graph.node("end", says("end")).node("late", says("late")).edge(START, "asks");
    let graph = graph.edge(START, "fails").edge(START, "done").edge(["asks", "fails", "done"], "end");
    let graph = graph.edge("done", "late").compile().unwrap().checkpointer(MemorySaver::new());
    assert!(graph.report("t").await.unwrap().is_none());
    graph.invoke(said("i")).thread("t").await.unwrap_err();
    let open = report(&graph).await;
    assert_eq!(
        lines(&open),
        [
            "- node `asks` waits for the answer to \"first?\"",
            "- node `asks` waits for the answer to \"second?\"",
            "- node `fails` failed (E_NODE_FAILED, attempt 1): no seat",
        ],
        "`done` is done, and the open superstep comes before what follows it"
    );
    assert!(open.to_string().starts_with("thread `t` at checkpoint 0.0: not running\n"));
}

#[tokio::test]
async fn a_join_says_who_has_arrived_and_until_when_it_waits() {
    let clock = Clock::default();
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).node("c", says("c"));
    let graph = graph.node("j", says("j")).edge(START, "a").edge("a", "b").edge("b", "c");
    let graph = graph.edge(agentgraph::all(["a", "c"]).timeout(Duration::from_secs(60)), "j");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new()).services(clock);
    graph.invoke(said("i")).thread("t").max_supersteps(1).await.unwrap();
    let open = report(&graph).await;
    let texts = lines(&open);
    assert_eq!(texts[0], "- node `b` is next");
    assert_eq!(
        texts[1],
        "- node `j` waits for `c` (arrived: `a`), until Thu, 01 Jan 1970 00:01:00 GMT at most"
    );
    let OpenReason::Joins { arrived, missing, until } = &open.open[1].why else { panic!("{open}") };
    assert_eq!((&**arrived, &**missing), (&["a".to_owned()][..], &["c".to_owned()][..]));
    assert_eq!(*until, Some(UNIX_EPOCH + Duration::from_secs(60)));
    graph.proceed().thread("t").await.unwrap();
    let open = report(&graph).await;
    assert!(open.is_finished());
    assert!(open.to_string().ends_with(": finished"));
}

#[tokio::test]
async fn sleeps_stops_deferred_nodes_and_dispatches_have_their_own_reasons() {
    async fn sleeps(ctx: Ctx) -> Result<()> {
        ctx.sleep("nap", Duration::from_secs(90)).await
    }
    async fn worker(agentgraph::Input(n): agentgraph::Input<u32>) -> WordsUpdate {
        said(&n.to_string())
    }
    let many = |_: &Words| (0..3_u32).map(|n| Dispatch::new("worker", n)).collect::<Vec<_>>();
    let graph =
        StateGraph::new().node("sleeps", sleeps).node("worker", worker).node("last", says("last").defer());
    let graph = graph.edge(START, "sleeps").edge(START, "last");
    let graph = graph.branch(START, many, ["worker"]).interrupt_before(["worker"]).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new()).services(Clock::default());
    graph.invoke(said("i")).thread("t").await.unwrap();
    let open = report(&graph).await;
    assert!(
        open.open.iter().any(|work| matches!(&work.why, OpenReason::Stops(stop) if stop.node == "worker"))
    );
    graph.proceed().thread("t").await.unwrap();
    let texts = lines(&report(&graph).await);
    assert_eq!(
        texts,
        [
            "- node `sleeps` sleeps until Thu, 01 Jan 1970 00:01:30 GMT",
            "- node `last` is deferred until nothing else can run"
        ]
    );
}

#[tokio::test]
async fn work_inside_subgraphs_is_listed_under_their_namespace() {
    async fn asks(ctx: Ctx) -> Result<()> {
        ctx.interrupt::<bool>("sure?")?;
        Ok(())
    }
    let child = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let graph = StateGraph::new().node("child", child).node("beside", says("beside"));
    let graph = graph.edge(START, "child").edge(START, "beside").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(said("i")).thread("t").await.unwrap();
    let open = report(&graph).await;
    let [asks, inside] = &open.open[..] else { panic!("{open}") };
    assert!(matches!(asks.why, OpenReason::Asks(_)) && asks.node == "asks");
    let OpenReason::Inside(namespace) = &inside.why else { panic!("{open}") };
    assert_eq!((&inside.node, namespace, &*inside.namespace), (&"child".to_owned(), &asks.namespace, ""));
}

#[tokio::test]
async fn a_thread_that_runs_says_so() {
    async fn waits() -> WordsUpdate {
        pending().await
    }
    let graph = StateGraph::new().node("waits", waits).edge(START, "waits").compile().unwrap();
    let graph = graph.checkpointer(Arc::new(MemorySaver::new()));
    let mut run = graph.invoke(said("i")).thread("t").into_future();
    assert!((&mut run).now_or_never().is_none());
    let open = report(&graph).await;
    assert!(open.running.as_ref().is_some_and(|run| run.is_here));
    assert_eq!(lines(&open), ["- node `waits` is next"]);
    assert!(open.to_string().starts_with("thread `t` at checkpoint 0.0: running\n"));
    graph.cancel("t").await.unwrap();
    assert!(report(&graph).await.to_string().contains(": running, and asked to stop\n"));
    drop(run);
    assert!(report(&graph).await.running.is_none(), "a dropped or killed run leaves its work open");
    assert_eq!(lines(&report(&graph).await), ["- node `waits` is next"]);
}

#[tokio::test]
async fn a_pass_of_a_dependency_graph_has_a_report_too() {
    let graph = DependencyGraph::<u64>::new().node("a", || 1);
    let graph = graph.node("b", |_: Deps<u64>| Err::<u64, _>(std::fmt::Error)).node("c", || 3);
    let graph = graph.edge("a", "b").edge("b", "c").compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(()).thread("t").await.unwrap_err();
    let open = graph.report("t").await.unwrap().unwrap();
    let failed = open.open.iter().find(|work| work.node == "b").unwrap();
    assert!(matches!(failed.why, OpenReason::Failed(_)), "{open}");
    assert_eq!(graph.branches("t").await.unwrap().len(), 1);
}
