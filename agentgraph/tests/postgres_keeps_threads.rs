//! Postgres: the whole contract, and what only a server that many processes share can show.
#![cfg(feature = "postgres")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod postgres_server;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{Claim, LeaseTerms, PostgresSaver, Retention, conformance};
use agentgraph::prelude::*;
use agentgraph::{Checkpointer, Code, WhenBusy};
use common::words::{Words, WordsUpdate, says, text};
use postgres_server::PostgresServer;

async fn open(server: &PostgresServer, schema: &str) -> PostgresSaver {
    PostgresSaver::builder(server.url()).schema(schema).connections(8).connect().await.unwrap()
}

fn terms(length: Duration) -> LeaseTerms {
    let now = SystemTime::now();
    LeaseTerms { now, until: now + length, seize: false }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_holds_every_clause() {
    let server = PostgresServer::get();
    let report = conformance::run(|| async { Ok(open(&server, &server.fresh_schema()).await) }).await;
    assert!(report.holds(), "{report}");
}

#[tokio::test]
async fn a_thread_goes_on_from_another_connection_and_a_pruned_one_too() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        Ok(Words::update().seen([ctx.interrupt::<String>("which?")?]))
    }
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let graph =
        || StateGraph::new().node("a", says("a")).node("asks", asks).edge(START, "a").edge("a", "asks");
    let first = graph().compile().unwrap().checkpointer(open(&server, &schema).await);
    let outcome = first.invoke(Words::update().seen(["i"])).thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
    let second = graph().compile().unwrap().checkpointer(open(&server, &schema).await);
    let pruned = second.prune(Retention::keep_latest_per_thread()).await.unwrap();
    assert_eq!(pruned.checkpoints, 1);
    let outcome = second.resume("this").thread("t").await.unwrap();
    assert_eq!(text(outcome.output()), "i a this");
    first.delete_thread("t").await.unwrap();
    assert!(second.state("t").await.unwrap().is_none());
}

#[tokio::test]
async fn who_queues_hears_of_a_release_from_another_process() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let (one, two) = (open(&server, &schema).await, Arc::new(open(&server, &schema).await));
    let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    let waits = Arc::clone(&two);
    let waiting = tokio::spawn(async move { waits.released("t", fence).await });
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Held { .. }));
    one.release("t", fence).await.unwrap();
    waiting.await.unwrap();
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Granted { .. }));
}

#[tokio::test]
async fn the_threads_of_a_dead_process_are_free_and_those_of_a_living_one_are_not() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let (one, two) = (open(&server, &schema).await, open(&server, &schema).await);
    assert!(matches!(one.acquire("t", terms(HOUR)).await.unwrap(), Claim::Granted { .. }));
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Held { .. }));
    drop(one);
    // The server takes a moment to see that the connection is gone.
    while let Claim::Held { .. } = two.acquire("t", terms(HOUR)).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_not_taken_from_under_a_commit() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let (one, two) = (open(&server, &schema).await, open(&server, &schema).await);
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let (one, two) = (graph.clone().checkpointer(one), graph.checkpointer(two));
    for _ in 0..40 {
        let call = |graph: &CompiledGraph<Words>| {
            let call = graph.invoke(Words::update().seen(["i"])).thread("t").when_busy(WhenBusy::Replace);
            tokio::spawn(call.into_future())
        };
        let (first, second) = (call(&one), call(&two));
        for ended in [first.await.unwrap(), second.await.unwrap()] {
            if let Err(error) = ended {
                assert!(matches!(error.code(), Code::LeaseLost | Code::ThreadBusy), "{error}");
            }
        }
        let state = one.state("t").await.unwrap().unwrap();
        let begun = state.values.seen.iter().filter(|word| *word == "i").count();
        let answered = state.values.seen.iter().filter(|word| *word == "a").count();
        assert!(answered <= begun, "{}", text(&state.values));
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_do() {
    let server = PostgresServer::get();
    let nobody = PostgresSaver::connect("postgres://agent@127.0.0.1:1/postgres").await.unwrap_err();
    assert_eq!(nobody.code(), Code::Store);
    assert!(nobody.to_string().contains("check that it is up"), "{nobody}");
    let nonsense = PostgresSaver::connect("mysql://secret@x").await.unwrap_err();
    assert!(nonsense.to_string().contains("postgres://user"), "{nonsense}");
    assert!(!nonsense.to_string().contains("secret"), "{nonsense}");
    let schema =
        PostgresSaver::builder(server.url()).schema("a\"; DROP TABLE x").connect().await.unwrap_err();
    assert!(schema.to_string().contains("no name for a schema"), "{schema}");
    let missing = server.url().replace("/postgres", "/nowhere");
    let missing = PostgresSaver::connect(&missing).await.unwrap_err();
    assert!(missing.to_string().contains("create it first"), "{missing}");
    let long = "x".repeat(3_000);
    let saver = open(&server, &server.fresh_schema()).await;
    let graph =
        StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap().checkpointer(saver);
    let long = graph.invoke(Words::update()).thread(long).await.unwrap_err();
    assert!(long.to_string().contains("2500 in an index"), "{long}");
}
