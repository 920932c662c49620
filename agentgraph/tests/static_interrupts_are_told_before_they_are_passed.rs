//! A gate is passed only by someone who was told of it, whatever became of the call that met it first.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use agentgraph::{InterruptKind, prelude::*};
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
async fn a_reader_that_goes_away_before_it_was_told_does_not_open_the_gate() {
    for kind in [InterruptKind::Before, InterruptKind::After] {
        let saver = Arc::new(MemorySaver::new());
        let mut events = gated(kind, &saver).invoke(Steps::update()).thread("t").stream_capacity(1).stream();
        for _ in 0..2 {
            events.next().await.unwrap();
        }
        drop(events);
        let told = gated(kind, &saver).proceed().thread("t").await.unwrap();
        assert_eq!(told.interrupts().len(), 1, "{kind:?}: asked now");
        assert_eq!(told.interrupts()[0].kind, kind);
        assert_eq!(told.output().log, ["prepared"]);
        let done = gated(kind, &saver).proceed().thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(done.log, ["prepared", "acted"], "{kind:?}: and passed once told");
    }
}

#[tokio::test]
async fn the_gate_is_closed_again_for_the_next_run() {
    let saver = Arc::new(MemorySaver::new());
    let graph = gated(InterruptKind::Before, &saver);
    for round in 1..=2 {
        let stopped = graph.invoke(Steps::update()).thread("t").await.unwrap();
        assert_eq!(stopped.interrupts().len(), 1, "round {round}");
        graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    }
}

#[tokio::test]
async fn a_gate_before_several_tasks_of_a_node_is_told_once() {
    let fan =
        || async { Command::<Steps>::to(["act", "look", "act"].map(|node| Dispatch::new(node, 0)).to_vec()) };
    let graph = StateGraph::new().node("fan", fan).node("act", act).node("look", act).edge(START, "fan");
    let graph = graph.interrupt_before(["act", "look"]).compile().unwrap().checkpointer(MemorySaver::new());
    let told = graph.invoke(Steps::update()).thread("t").await.unwrap();
    let nodes: Vec<&str> = told.interrupts().iter().map(|interrupt| &*interrupt.node).collect();
    assert_eq!(nodes, ["act", "look"]);
}
