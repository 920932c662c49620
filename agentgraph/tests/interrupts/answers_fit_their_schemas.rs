//! With the feature `validate`, an answer that does not fit the schema of its interrupt is refused before
//! anything is stored or run.

#![cfg(feature = "validate")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph::checkpoint::{Checkpointer, Place};
use agentgraph::{Code, CompiledGraph, InterruptId, prelude::*};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Payment {
    #[reduce(append)]
    paid: Vec<u32>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Approval {
    #[schemars(range(max = 100))]
    amount: u32,
    #[schemars(length(min = 2))]
    by: String,
}

#[derive(Clone, Default)]
struct StartedCalls(Arc<AtomicU32>);

async fn approve(ctx: Ctx, started: Dep<StartedCalls>) -> Result<PaymentUpdate> {
    started.0.fetch_add(1, Ordering::Relaxed);
    let Approval { amount, .. } = ctx.interrupt_with_schema("how much?")?;
    Ok(Payment::update().paid([amount]))
}

fn graph(saver: &Arc<MemorySaver>, started: &StartedCalls) -> CompiledGraph<Payment> {
    let graph = StateGraph::new().node("first", approve).node("second", approve).dep(started.clone());
    let graph = graph.edge(START, "first").edge(START, "second").compile().unwrap();
    graph.checkpointer(Arc::clone(saver))
}

fn good(amount: u32) -> Value {
    json!({ "amount": amount, "by": "Ada" })
}

/// Invokes the graph and returns the ids of its two interrupts.
async fn invoke_to_interrupts(graph: &CompiledGraph<Payment>) -> [InterruptId; 2] {
    let waits = graph.invoke(Payment::update()).thread("t").await.unwrap();
    [0, 1].map(|at| waits.interrupts()[at].id.unwrap())
}

#[tokio::test]
async fn a_bad_answer_is_refused_before_anything_is_stored_or_run() {
    let saver = Arc::new(MemorySaver::new());
    let started = StartedCalls::default();
    let graph = graph(&saver, &started);
    let [first, second] = invoke_to_interrupts(&graph).await;
    let stored = saver.get(Place::root("t"), None).await.unwrap();
    let runs = started.0.load(Ordering::Relaxed);
    for (bad, at) in [
        (json!({ "amount": 101, "by": "Ada" }), "/amount"),
        (json!({ "amount": 7, "by": "A" }), "/by"),
        (json!({ "amount": 7 }), "\"by\""),
        (json!("a lot"), "object"),
    ] {
        // The good answer beside the bad one is not taken either.
        let error = graph.resume_many([(first, good(1)), (second, bad)]).thread("t").await.unwrap_err();
        assert_eq!(
            (error.code(), error.node(), error.thread()),
            (Code::BadAnswer, Some("second"), Some("t"))
        );
        assert!(error.to_string().contains(at) && error.to_string().contains(&second.to_string()), "{error}");
    }
    assert_eq!(saver.get(Place::root("t"), None).await.unwrap(), stored);
    assert_eq!(started.0.load(Ordering::Relaxed), runs);
    let paid = graph.resume_many([(first, good(1)), (second, good(2))]).thread("t").await.unwrap();
    assert_eq!(paid.into_finished().unwrap().paid, [1, 2]);
}

#[tokio::test]
async fn the_answer_is_not_repeated_in_the_error() {
    let graph = graph(&Arc::default(), &StartedCalls::default());
    let [first, _] = invoke_to_interrupts(&graph).await;
    let secret = json!({ "amount": "s3cret", "by": "" });
    let error = graph.resume_many([(first, secret)]).thread("t").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert!(error.to_string().contains("/amount") && error.to_string().contains("/by"), "{error}");
}

#[tokio::test]
async fn a_bad_answer_to_a_subgraph_is_refused_too() {
    let started = StartedCalls::default();
    let child = StateGraph::new().node("approve", approve).dep(started.clone());
    let child = child.edge(START, "approve").compile().unwrap();
    let graph = StateGraph::<Payment>::new().node("child", child).edge(START, "child").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Payment::update()).thread("t").await.unwrap();
    let error = graph.resume(json!({ "amount": 101, "by": "Ada" })).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadAnswer, Some("approve")));
    assert_eq!(started.0.load(Ordering::Relaxed), 1);
    let paid = graph.resume(good(3)).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(paid.paid, [3]);
}
