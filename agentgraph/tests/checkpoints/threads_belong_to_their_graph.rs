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

async fn asks(ctx: Ctx) -> Result<()> {
    Ok(ctx.interrupt(())?)
}

/// Two programs of one graph, whose states have other fields.
fn letters(eager: bool) -> StateGraph<Letter> {
    let graph = StateGraph::new().node("first", nothing).node("stamp", async || Letter::update().stamps([1]));
    let graph = graph.node("asks", asks).edge(START, "first").edge("first", "stamp").edge("first", "asks");
    if eager { graph.eager() } else { graph }
}

fn mails(eager: bool) -> StateGraph<Mail> {
    let graph = StateGraph::new().node("first", nothing).node("stamp", nothing).node("asks", asks);
    let graph = graph.edge(START, "first").edge("first", "stamp").edge("first", "asks");
    if eager { graph.eager() } else { graph }
}

async fn unknown(graph: StateGraph<Mail>, saver: &Arc<MemorySaver>) -> Vec<String> {
    let graph = graph.compile().unwrap().checkpointer(Arc::clone(saver));
    let state = graph.state("t").await.unwrap().unwrap();
    assert_eq!(state.values.text, "Ada");
    assert!(format!("{state:?}").contains("unknown_fields"));
    state.unknown_fields
}

#[tokio::test]
async fn a_state_names_the_stored_fields_that_the_graph_does_not_have() {
    for eager in [false, true] {
        let saver = Arc::new(MemorySaver::new());
        let graph = letters(eager).compile().unwrap().checkpointer(Arc::clone(&saver));
        graph.invoke(Letter::update().text("Ada")).thread("t").await.unwrap();
        assert!(graph.state("t").await.unwrap().unwrap().unknown_fields.is_empty());
        assert_eq!(unknown(mails(eager), &saver).await, ["extra", "stamps"]);
        assert_eq!(unknown(mails(eager).keeps_unknown_fields(), &saver).await, ["extra", "stamps"]);
        assert_eq!(unknown(mails(eager).drops("extra"), &saver).await, ["stamps"]);
        let mails = mails(eager).compile().unwrap().checkpointer(Arc::clone(&saver));
        assert_eq!(mails.history("t").await.unwrap().last().unwrap().unknown_fields, ["extra", "stamps"]);
        let error = mails.resume(()).thread("t").await.unwrap_err();
        assert_eq!(error.code(), Code::GraphChanged);
    }
}

#[tokio::test]
async fn fields_of_a_finished_task_that_is_not_committed_count() {
    let saver = Arc::new(MemorySaver::new());
    let before = mails(false).compile().unwrap().checkpointer(Arc::clone(&saver));
    before.invoke(Mail::update().text("Ada")).thread("t").max_supersteps(1).await.unwrap();
    let newer = letters(false).compile().unwrap().checkpointer(Arc::clone(&saver));
    newer.proceed().thread("t").await.unwrap();
    assert_eq!(unknown(mails(false), &saver).await, ["stamps"]);
    assert_eq!(before.resume(()).thread("t").await.unwrap_err().code(), Code::GraphChanged);
    assert!(unknown(mails(false).drops("stamps"), &saver).await.is_empty());
}
