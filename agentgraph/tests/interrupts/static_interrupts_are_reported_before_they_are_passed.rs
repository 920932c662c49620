//! A static interrupt is passed only after it was reported, even if the call that met it first was dropped.
#![cfg(feature = "sqlite")]

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::run::InterruptKind;
use agentgraph::{BoxError, Checkpointer, SqliteSaver};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Steps {
    #[reduce(append)]
    log: Vec<String>,
}

async fn prepare(ctx: Ctx) -> StepsUpdate {
    ctx.emit(1).await;
    Steps::update().log(["prepared"])
}

async fn act() -> StepsUpdate {
    Steps::update().log(["acted"])
}

fn gated(kind: InterruptKind, saver: &Arc<MemorySaver>) -> CompiledGraph<Steps> {
    let graph = StateGraph::new().node("prepare", prepare).node("act", act);
    let graph = graph.edge(START, "prepare").edge("prepare", "act");
    let graph = match kind {
        InterruptKind::Before => graph.interrupt_before(["act"]),
        _ => graph.interrupt_after(["prepare"]),
    };
    graph.compile().unwrap().checkpointer(Arc::clone(saver))
}

#[tokio::test]
async fn a_static_interrupt_that_a_dropped_stream_did_not_report_is_not_passed() {
    for kind in [InterruptKind::Before, InterruptKind::After] {
        let saver = Arc::new(MemorySaver::new());
        let mut events = gated(kind, &saver).invoke(Steps::update()).thread("t").stream_capacity(1).stream();
        for _ in 0..2 {
            events.next().await.unwrap();
        }
        drop(events);
        let outcome = gated(kind, &saver).proceed().thread("t").await.unwrap();
        assert_eq!(outcome.interrupts().len(), 1, "{kind:?}: reported now");
        assert_eq!(outcome.interrupts()[0].kind, kind);
        assert_eq!(outcome.output().log, ["prepared"]);
        let done = gated(kind, &saver).proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(done.log, ["prepared", "acted"], "{kind:?}: passed once reported");
    }
}

#[tokio::test]
async fn a_static_interrupt_stops_the_next_run_again() {
    let saver = Arc::new(MemorySaver::new());
    let graph = gated(InterruptKind::Before, &saver);
    for round in 1..=2 {
        let stopped = graph.invoke(Steps::update()).thread("t").await.unwrap();
        assert_eq!(stopped.interrupts().len(), 1, "round {round}");
        graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    }
}

#[tokio::test]
async fn a_static_interrupt_before_several_tasks_of_a_node_is_reported_once() {
    let fan =
        || async { Command::<Steps>::to(["act", "look", "act"].map(|node| Dispatch::new(node, 0)).to_vec()) };
    let graph = StateGraph::new().node("fan", fan).node("act", act).node("look", act).edge(START, "fan");
    let graph = graph.interrupt_before(["act", "look"]).compile().unwrap().checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Steps::update()).thread("t").await.unwrap();
    let nodes: Vec<&str> = outcome.interrupts().iter().map(|interrupt| &*interrupt.node).collect();
    assert_eq!(nodes, ["act", "look"]);
}

fn savers() -> Vec<Arc<dyn Checkpointer>> {
    vec![Arc::new(MemorySaver::new()), Arc::new(SqliteSaver::in_memory().unwrap())]
}

/// Returns the waiting threads, each with the nodes and the kinds of its interrupts.
async fn waiting(graph: &CompiledGraph<Steps>) -> Vec<(String, Vec<(String, InterruptKind)>)> {
    let waiting = graph.waiting().await.unwrap().into_iter();
    let shown = waiting.map(|one| {
        let stops = one.interrupts.into_iter().map(|stop| (stop.node, stop.kind));
        (one.thread, stops.collect())
    });
    shown.collect()
}

#[tokio::test]
async fn threads_at_a_static_interrupt_are_listed_as_waiting() {
    for kind in [InterruptKind::Before, InterruptKind::After] {
        for saver in savers() {
            let asks = async |ctx: Ctx| Ok::<_, BoxError>(ctx.interrupt::<()>("sure?")?);
            let graph = StateGraph::new().node("prepare", prepare).node("act", act).node("asks", asks);
            let graph = graph.edge(START, "prepare").edge("prepare", "act").edge("act", "asks");
            let graph = match kind {
                InterruptKind::Before => graph.interrupt_before(["act"]),
                _ => graph.interrupt_after(["prepare"]),
            };
            let graph = graph.compile().unwrap().checkpointer(saver);
            for thread in ["c", "b", "a"] {
                graph.invoke(Steps::update()).thread(thread).await.unwrap();
            }
            let node = if kind == InterruptKind::Before { "act" } else { "prepare" };
            let at = |thread: &str| (thread.to_owned(), vec![(node.to_owned(), kind)]);
            assert_eq!(waiting(&graph).await, [at("a"), at("b"), at("c")]);
            graph.proceed().thread("b").await.unwrap();
            let asks = ("b".to_owned(), vec![("asks".to_owned(), InterruptKind::Asked)]);
            assert_eq!(waiting(&graph).await, [at("a"), asks, at("c")]);
            graph.resume(()).thread("b").await.unwrap().into_finished().unwrap();
            let page = graph.waiting().after("a").limit(1).await.unwrap();
            assert_eq!((page.len(), &*page[0].thread), (1, "c"));
            assert_eq!(
                page[0].interrupts,
                graph.invoke(Steps::update()).thread("d").await.unwrap().interrupts()
            );
            graph.update_state("c").update(Steps::update().log(["edited"])).await.unwrap();
            assert_eq!(waiting(&graph).await, [at("a"), at("c"), at("d")], "an edit keeps the interrupt");
            graph.invoke(Steps::update()).thread("c").abandon().max_supersteps(0).await.unwrap();
            assert_eq!(waiting(&graph).await, [at("a"), at("d")]);
        }
    }
}

#[tokio::test]
async fn a_static_interrupt_in_a_subgraph_has_its_namespace_while_its_call_is_open() {
    for (saver, eager) in savers().into_iter().chain(savers()).zip([false, false, true, true]) {
        let plain = || if eager { StateGraph::new().eager() } else { StateGraph::new() };
        let child = plain().node("prepare", prepare).node("act", act).edge(START, "prepare");
        let child = child.edge("prepare", "act").interrupt_before(["act"]).compile().unwrap();
        let graph = plain().node("child", child).node("last", act).edge(START, "child").edge("child", "last");
        let graph = graph.interrupt_before(["last"]).compile().unwrap().checkpointer(saver);
        let outcome = graph.invoke(Steps::update()).thread("t").await.unwrap();
        let inside = graph.waiting().await.unwrap();
        assert_eq!(inside[0].interrupts, outcome.interrupts(), "eager {eager}");
        assert_eq!((outcome.interrupts().len(), outcome.interrupts()[0].namespace.is_empty()), (1, false));
        let outcome = graph.proceed().thread("t").await.unwrap();
        assert_eq!(
            waiting(&graph).await,
            [("t".to_owned(), vec![("last".to_owned(), InterruptKind::Before)])]
        );
        assert_eq!(graph.waiting().await.unwrap()[0].interrupts, outcome.interrupts());
        // The new run stops in its own call of the subgraph. The abandoned run does not wait any more.
        graph.invoke(Steps::update()).thread("t").abandon().await.unwrap();
        assert_eq!(
            waiting(&graph).await,
            [("t".to_owned(), vec![("act".to_owned(), InterruptKind::Before)])]
        );
        graph.proceed().thread("t").await.unwrap();
        graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(waiting(&graph).await, []);
    }
}

/// The question of a branch is in the record of the task that was merged after it.
#[tokio::test]
async fn an_eager_branch_that_asked_before_other_tasks_were_merged_is_listed_as_waiting() {
    for saver in savers() {
        let asks = async |ctx: Ctx| Ok::<_, BoxError>(ctx.interrupt::<()>("sure?")?);
        let slow = async || {
            tokio::task::yield_now().await;
            Steps::update().log(["slow"])
        };
        let graph = StateGraph::new().eager().node("asks", asks).node("more", asks).node("slow", slow);
        let graph = graph.edge(START, "asks").edge(START, "slow").edge("slow", "more").compile().unwrap();
        let graph = graph.checkpointer(saver);
        let outcome = graph.invoke(Steps::update()).thread("t").await.unwrap();
        assert_eq!(outcome.interrupts().len(), 2);
        let found = graph.waiting().await.unwrap();
        let mut found = found[0].interrupts.clone();
        found.sort_by_key(|one| std::cmp::Reverse(one.node == "asks"));
        assert_eq!(found, outcome.interrupts());
        let rest = graph.resume_many([(outcome.interrupts()[1].id.unwrap(), ())]).thread("t").await.unwrap();
        assert_eq!(graph.waiting().await.unwrap()[0].interrupts, rest.interrupts());
        graph.resume(()).thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(waiting(&graph).await, []);
    }
}
