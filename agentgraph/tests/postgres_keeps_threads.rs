//! Postgres: the whole contract, and what only a server that many processes share can show.
#![cfg(feature = "postgres")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod postgres_server;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{Claim, LeaseTerms, Place, PostgresSaver, Put, Retention, RowKind, conformance};
use agentgraph::prelude::*;
use agentgraph::{CheckpointId, Checkpointer, Code, WhenBusy};
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

fn is_granted(claim: &Claim) -> bool {
    matches!(claim, Claim::Granted { .. })
}

/// Until a statement gives that.
async fn until(server: &PostgresServer, sql: &str, expected: &str) {
    while server.sql(sql).await != expected {
        tokio::task::yield_now().await;
    }
}

/// Ends the listening connection of the saver that was opened first.
fn end_listener(database: &str) -> String {
    format!(
        "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = '{database}'
         AND query LIKE '%LISTEN%' ORDER BY backend_start LIMIT 1) AS first"
    )
}

#[tokio::test]
async fn who_lost_the_connection_he_listens_on_keeps_his_threads() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let open = async || PostgresSaver::connect(&server.url_of(&database)).await.unwrap();
    let (one, two) = (open().await, open().await);
    let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
    server.sql(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS false")).await;
    assert_eq!(server.sql(&end_listener(&database)).await, "1");
    let listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%LISTEN%' AND datname = ";
    until(&server, &format!("{listeners}'{database}'"), "1").await;
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()), "another connection of his stands");
    let (place, id) = (Place::root("t"), CheckpointId::new(0, 0));
    let put =
        Put { place, id, fence, kind: RowKind::Full, record: b"a", segment: None, clears_writes: false };
    one.put(put).await.unwrap();
}

#[tokio::test]
async fn who_lost_all_his_connections_and_connects_again_keeps_his_threads() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let open = || PostgresSaver::builder(server.url()).schema(&schema).connections(1);
    let one = open().connect().await.unwrap();
    let two = open().grace(HOUR).connect().await.unwrap();
    assert!(is_granted(&one.acquire("t", terms(HOUR)).await.unwrap()));
    let owner = server.sql(&format!("SELECT owner FROM {schema}.lease")).await;
    let of_owner =
        "FROM pg_locks WHERE locktype = 'advisory' AND ((classid::bigint << 32) | objid::bigint) = ";
    let (count, owner) = (format!("SELECT count(*) {of_owner}"), &owner);
    let end = format!("SELECT count(pg_terminate_backend(pid)) {of_owner}{owner}");
    assert_eq!(server.sql(&end).await, "2");
    // Nobody who looks in between takes the thread.
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
    until(&server, &format!("{count}{owner}"), "1").await;
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
}

#[test]
fn a_saver_shows_that_it_lives_and_listens_in_another_runtime_too() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let one = Arc::new(first.block_on(open(&server, &schema)));
    drop(first);
    runtime().block_on(async {
        let two = open(&server, &schema).await;
        assert!(is_granted(&one.acquire("t", terms(HOUR)).await.unwrap()));
        assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
        let Claim::Granted { fence } = two.acquire("u", terms(HOUR)).await.unwrap() else { panic!() };
        let waits = Arc::clone(&one);
        let waiting = tokio::spawn(async move { waits.released("u", fence).await });
        let listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE ";
        until(&server, &format!("{listeners}'%LISTEN \"agentgraph_{schema}\"'"), "2").await;
        two.release("u", fence).await.unwrap();
        waiting.await.unwrap();
    });
}

/// Somebody stands between the connection that is made anew and its `LISTEN`, until the thread was given back.
#[tokio::test]
async fn a_release_while_the_listener_connects_again_is_heard() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let open = async || PostgresSaver::connect(&server.url_of(&database)).await.unwrap();
    let (one, two) = (Arc::new(open().await), open().await);
    let Claim::Granted { fence } = two.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    assert!(is_granted(&one.acquire("mine", terms(HOUR)).await.unwrap()));
    let waits = Arc::clone(&one);
    let waiting = tokio::spawn(async move { waits.released("t", fence).await });
    let (between, connection) =
        tokio_postgres::connect(&server.url_of(&database), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let owner = "SELECT owner FROM agentgraph.lease WHERE thread = 'mine'";
    let owner: i64 = between.query_one(owner, &[]).await.unwrap().get(0);
    let stands = between.cancel_token();
    let blocked = tokio::spawn(async move {
        let _ = between.execute("SELECT pg_advisory_lock($1)", &[&owner]).await;
        between
    });
    let waiters = |mode: &str| {
        format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND mode = '{mode}'
             AND database = (SELECT oid FROM pg_database WHERE datname = '{database}')"
        )
    };
    until(&server, &waiters("ExclusiveLock"), "1").await;
    assert_eq!(server.sql(&end_listener(&database)).await, "1");
    until(&server, &waiters("ShareLock"), "1").await;
    two.release("t", fence).await.unwrap();
    assert!(!waiting.is_finished(), "nobody could tell him");
    stands.cancel_query(tokio_postgres::NoTls).await.unwrap();
    drop(blocked.await.unwrap());
    waiting.await.unwrap();
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
