//! What nodes of subgraphs emit and what models say in them is heard in the stream of the run around, as of the subgraph's node.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use agentgraph::prelude::*;
use common::words::{Words, WordsUpdate, says};
use futures_util::StreamExt;

async fn talks(ctx: Ctx) -> WordsUpdate {
    assert!(ctx.has_listener());
    ctx.emit("emitted").await;
    Ctx::of_messages().expect("they are listened to").message("a model says");
    ctx.message("said");
    Words::update().seen(["talks"])
}

/// A node that talks, that many graphs deep.
fn deep(levels: u32) -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("before", says("before"));
    let graph = match levels {
        0 => graph.node("inner", talks),
        _ => graph.node("inner", deep(levels - 1)),
    };
    graph.edge(START, "before").edge("before", "inner").compile().unwrap()
}

#[tokio::test]
async fn from_any_depth_and_whether_it_is_kept_or_not() {
    for levels in 0..=2 {
        let graph = StateGraph::new().node("sub", deep(levels)).edge(START, "sub").compile().unwrap();
        for graph in [graph.clone(), graph.checkpointer(MemorySaver::new())] {
            let run = graph.invoke(Words::update()).thread("t").views([View::Custom, View::Messages]);
            let events: Vec<_> = run.stream().collect().await;
            let heard: Vec<_> = events
                .iter()
                .map(|event| match &event.kind {
                    EventKind::Custom { node, value } => format!("{}:{node}:{value}", event.step),
                    EventKind::Message { node, piece } => format!("{}:{node}:{piece}", event.step),
                    EventKind::Ended(Ok(_)) => "end".into(),
                    other => format!("{other:?}"),
                })
                .collect();
            assert_eq!(
                heard,
                ["1:sub:\"emitted\"", "1:sub:\"a model says\"", "1:sub:\"said\"", "end"],
                "{levels}"
            );
            assert!(events[0].task.is_some() && events[0].task == events[2].task);
        }
    }
}
