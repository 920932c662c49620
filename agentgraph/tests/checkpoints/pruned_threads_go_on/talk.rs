//! A state of words, a node that asks, and a graph with subgraphs.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Memory};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(super) struct Talk {
    #[reduce(append)]
    pub(super) said: Vec<String>,
}

pub(super) fn said(word: impl Into<String>) -> TalkUpdate {
    Talk::update().said([word.into()])
}

pub(super) async fn asks(ctx: Ctx) -> Result<TalkUpdate> {
    Ok(said(ctx.interrupt::<String>("?")?))
}

/// Builds a graph of two subgraphs: one asks and has a memory per call, the other has a memory per
/// thread.
pub(super) fn family(saver: Arc<dyn Checkpointer>) -> CompiledGraph<Talk> {
    let hello = StateGraph::new().node("hello", || async { said("hello") }).node("asks", asks);
    let hello = hello.edge(START, "hello").edge("hello", "asks").compile().unwrap();
    let remembers = StateGraph::new().node("again", || async { said("again") }).edge(START, "again");
    let remembers = remembers.compile().unwrap().memory(Memory::PerThread);
    let graph = StateGraph::new().node("child", hello).node("memory", remembers);
    graph.edge(START, "child").edge("child", "memory").compile().unwrap().checkpointer(saver)
}
