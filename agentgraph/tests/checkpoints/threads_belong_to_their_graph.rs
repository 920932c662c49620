//! A thread of another graph is refused, not overwritten.

use std::sync::Arc;

use agentgraph::{Code, Dispatch, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Mail {
    text: String,
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Count {
    n: u64,
}

async fn nothing() {}

#[tokio::test]
async fn a_graph_refuses_a_thread_with_which_it_shares_no_channel() {
    let saver = Arc::new(MemorySaver::new());
    let mails = StateGraph::<Mail>::new().node("nothing", nothing).edge(START, "nothing").compile().unwrap();
    let counts =
        StateGraph::<Count>::new().node("nothing", nothing).edge(START, "nothing").compile().unwrap();
    let mails = mails.checkpointer(Arc::clone(&saver));
    let counts = counts.checkpointer(Arc::clone(&saver));
    mails.invoke(Mail::update().text("Ada")).thread("t").await.unwrap();
    let error = counts.invoke(Count::update().n(1)).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
    assert!(error.to_string().contains("text"), "{error}");
    assert_eq!(mails.state("t").await.unwrap().unwrap().values.text, "Ada");
}

#[tokio::test]
async fn missing_names_are_listed_once() {
    async fn send() -> Command<Mail> {
        Command::to((0..3).map(|n| Dispatch::new("work", n)).collect::<Vec<_>>())
    }
    let saver = Arc::new(MemorySaver::new());
    let graph = StateGraph::new().node("send", send.targets(["work"])).node("work", nothing);
    let graph = graph.edge(START, "send").compile().unwrap().checkpointer(Arc::clone(&saver));
    graph.invoke(Mail::update()).thread("t").max_supersteps(1).await.unwrap();
    let other = StateGraph::<Mail>::new().node("other", nothing).edge(START, "other").compile().unwrap();
    let error = other.checkpointer(saver).proceed().thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::GraphChanged);
    assert!(error.to_string().contains("waits at node `work`, node `send`, which"), "{error}");
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Letter {
    text: String,
    extra: String,
    #[reduce(append)]
    stamps: Vec<u32>,
}

#[tokio::test]
async fn a_state_names_the_stored_fields_that_the_graph_does_not_have() {
    async fn asks(ctx: Ctx) -> Result<()> {
        Ok(ctx.interrupt(())?)
    }
    for eager in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let graph = StateGraph::new().node("stamp", async || Letter::update().stamps([1]));
        let graph = graph.node("asks", asks).edge(START, "stamp").edge(START, "asks");
        let graph = if eager { graph.eager() } else { graph };
        let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(Letter::update().text("Ada").extra("!")).thread("t").await.unwrap();
        assert!(graph.state("t").await.unwrap().unwrap().unknown_fields.is_empty());
        let now = || {
            let now = StateGraph::<Mail>::new().node("stamp", nothing).node("asks", nothing);
            let now = now.edge(START, "stamp").edge(START, "asks");
            if eager { now.eager() } else { now }
        };
        let unknown = async |graph: StateGraph<Mail>| {
            let state = graph.compile().unwrap().checkpointer(Arc::clone(&saver)).state("t").await;
            let state = state.unwrap().unwrap();
            assert_eq!(state.values.text, "Ada");
            assert!(format!("{state:?}").contains("unknown_fields"));
            state.unknown_fields
        };
        assert_eq!(unknown(now()).await, ["extra", "stamps"], "those of a finished task, too");
        assert_eq!(unknown(now().keeps_unknown_fields()).await, ["extra", "stamps"]);
        assert_eq!(unknown(now().drops("extra")).await, ["stamps"]);
        let now = now().compile().unwrap().checkpointer(Arc::clone(&saver));
        assert_eq!(now.history("t").await.unwrap().last().unwrap().unknown_fields, ["extra"]);
    }
}
