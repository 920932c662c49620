//! Concurrent calls on one thread, or on one value. The tests control the order of the calls with locks
//! of their own.

use std::future::IntoFuture;
use std::sync::Arc;

use agentgraph::checkpoint::{Catalog, Claim, Leases, Place, PostgresSaver, Put, StoreError, Upkeep};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::{CheckpointId, Checkpointer, Code};
use tokio::task::JoinHandle;

use super::common::words::{Words, says, text};
use super::postgres_server::PostgresServer;
use super::{HOUR, open, row, terms, two_processes};

/// A database of its own, with a saver and a second client that runs plain SQL.
struct Stage {
    server: Arc<PostgresServer>,
    database: String,
    saver: Arc<PostgresSaver>,
    other: tokio_postgres::Client,
}

impl Stage {
    async fn new() -> Self {
        let server = PostgresServer::get();
        let database = server.fresh_database().await;
        let url = server.url_of(&database);
        let saver = PostgresSaver::builder(&url).share_values_from(1_000).connect().await.unwrap();
        let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        other.batch_execute("SET search_path = agentgraph").await.unwrap();
        Stage { server, database, saver: Arc::new(saver), other }
    }

    async fn other(&self, sql: &str) {
        self.other.batch_execute(sql).await.unwrap();
    }

    /// Waits until `count` connections wait for locks, or until `work` ends.
    async fn wait_for_locks<T>(&self, work: &JoinHandle<T>, count: usize) {
        let waiting = format!("SELECT count(*) {}", self.waiting_clause());
        while !work.is_finished() && self.server.sql(&waiting).await != count.to_string() {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the id of the transaction that waits for a lock.
    async fn waiting_transaction(&self) -> String {
        self.server.sql(&format!("SELECT backend_xid {}", self.waiting_clause())).await
    }

    fn waiting_clause(&self) -> String {
        format!("FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{}'", self.database)
    }

    /// Returns the status of a transaction. A transaction that clashed is begun again under another id.
    async fn status_of(&self, transaction: &str) -> String {
        self.server.sql(&format!("SELECT txid_status({transaction})")).await
    }

    fn copy(&self, from: &'static str, to: &'static str) -> JoinHandle<Result<(), StoreError>> {
        let saver = Arc::clone(&self.saver);
        tokio::spawn(async move { saver.copy_thread(from, to).await })
    }

    fn delete(&self, thread: &'static str) -> JoinHandle<Result<(), StoreError>> {
        let saver = Arc::clone(&self.saver);
        tokio::spawn(async move { saver.delete_thread(thread).await })
    }

    fn put(&self, put: Put<'static>) -> JoinHandle<Result<(), StoreError>> {
        let saver = Arc::clone(&self.saver);
        tokio::spawn(async move { saver.put(put).await })
    }
}

/// The number of savers that connect to one new schema.
const CROWD: usize = 8;

/// Connects `count` savers to one schema at once. Asserts that each can store, and finds what all others
/// stored.
async fn all_connect(url: &str, schema: &str, count: usize) {
    let connecting = (0..count).map(|_| {
        let builder = PostgresSaver::builder(url).schema(schema).connections(1);
        tokio::spawn(async move { builder.connect().await.unwrap() })
    });
    let mut savers = Vec::new();
    for saver in connecting.collect::<Vec<_>>() {
        savers.push(saver.await.unwrap());
    }
    let process = std::process::id();
    let mut threads: Vec<String> = (0..count).map(|saver| format!("{process}.{saver}")).collect();
    for (saver, thread) in savers.iter().zip(&threads) {
        saver.put(row(thread, "", 0)).await.unwrap();
    }
    threads.sort();
    for saver in &savers {
        let found = saver.threads().await.unwrap();
        assert!(threads.iter().all(|thread| found.contains(thread)), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savers_that_connect_at_once_to_a_new_schema_all_succeed() {
    let server = PostgresServer::get();
    for isolation in ["", "?options=-c%20default_transaction_isolation=serializable"] {
        let url = server.url() + isolation;
        for _ in 0..10 {
            all_connect(&url, &server.fresh_schema(), CROWD).await;
        }
        // The schema exists, but its tables do not.
        let given = server.fresh_schema();
        server.sql(&format!("CREATE SCHEMA {given}")).await;
        all_connect(&url, &given, CROWD).await;
    }
}

/// No saver can create the schema until all of them have seen that it does not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savers_that_all_found_no_schema_all_succeed() {
    let stage = Stage::new().await;
    stage.other("BEGIN; LOCK TABLE pg_catalog.pg_namespace IN SHARE MODE").await;
    let url = stage.server.url_of(&stage.database);
    let connecting = tokio::spawn(async move { all_connect(&url, "new", CROWD).await });
    stage.wait_for_locks(&connecting, CROWD).await;
    assert!(!connecting.is_finished());
    stage.other("ROLLBACK").await;
    connecting.await.unwrap();
}

#[tokio::test]
async fn processes_that_connect_at_once_to_a_new_schema_all_succeed() {
    let server = PostgresServer::get();
    for _ in 0..5 {
        let orders = format!("{} {}", server.url(), server.fresh_schema());
        two_processes::run("at_once::a_process_that_connects_beside_another", orders);
    }
}

/// Does nothing unless the test above starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_connects_beside_another() {
    let Some(orders) = two_processes::orders() else { return };
    let (url, schema) = orders.to_str().unwrap().split_once(' ').unwrap();
    all_connect(url, schema, CROWD / 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_not_seized_during_a_commit() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let one = open(&server, &schema).await;
    let two = open(&server, &schema).await;
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let one = graph.clone().checkpointer(one);
    let two = graph.checkpointer(two);
    for _ in 0..40 {
        let call = |graph: &CompiledGraph<Words>| {
            let call = graph.invoke(Words::update().seen(["i"])).thread("t").when_busy(WhenBusy::Replace);
            tokio::spawn(call.into_future())
        };
        let first = call(&one);
        let second = call(&two);
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

/// Copies `t` to `copy` while another transaction creates `copy`. Runs `meanwhile` before that
/// transaction ends with the statement `ends`.
async fn copied_meanwhile(
    (before, ends): (&str, &str),
    meanwhile: impl AsyncFnOnce(&PostgresSaver),
) -> (Result<(), StoreError>, Stage) {
    let stage = Stage::new().await;
    stage.saver.put(row("t", "", 0)).await.unwrap();
    stage.other(before).await;
    let make = "BEGIN; INSERT INTO place (thread, namespace) VALUES ('copy', '') ON CONFLICT DO NOTHING;
        INSERT INTO checkpoint (place, branch, step, part, kind, record)
        SELECT id, 0, 5, 0, 0, 'other' FROM place WHERE thread = 'copy'";
    stage.other(make).await;
    let copying = stage.copy("t", "copy");
    stage.wait_for_locks(&copying, 1).await;
    meanwhile(&stage.saver).await;
    stage.other(ends).await;
    (copying.await.unwrap(), stage)
}

#[tokio::test]
async fn a_copy_is_a_consistent_snapshot() {
    let (copied, Stage { saver, .. }) = copied_meanwhile(("", "ROLLBACK"), async |saver| {
        saver.put(row("t", "sub", 0)).await.unwrap();
        saver.put(row("t", "", 1)).await.unwrap();
    })
    .await;
    copied.unwrap();
    let root = saver.get(Place::root("copy"), None).await.unwrap().unwrap();
    let is_after_both_commits = root.rows.last().unwrap().id.step == 1;
    assert_eq!(saver.namespaces("copy").await.unwrap().contains(&"sub".to_owned()), is_after_both_commits);
}

#[tokio::test]
async fn copy_fails_if_the_target_thread_was_created_meanwhile() {
    // The name is new to the tables, or was in them before.
    for before in ["", "INSERT INTO place (thread, namespace) VALUES ('copy', '')"] {
        let (copied, Stage { saver, .. }) = copied_meanwhile((before, "COMMIT"), async |_| {}).await;
        assert_eq!(copied.unwrap_err().code(), Code::ThreadExists);
        let root = saver.get(Place::root("copy"), None).await.unwrap().unwrap();
        assert_eq!(root.rows.iter().map(|row| row.id.step).collect::<Vec<_>>(), [5]);
    }
}

/// Even if the copies have no namespace in common.
#[tokio::test]
async fn only_one_of_two_copies_to_one_thread_succeeds() {
    let stage = Stage::new().await;
    stage.saver.put(row("one", "", 0)).await.unwrap();
    stage.saver.put(row("two", "sub", 0)).await.unwrap();
    stage.other("BEGIN; LOCK TABLE checkpoint IN EXCLUSIVE MODE").await;
    let first = stage.copy("one", "copy");
    stage.wait_for_locks(&first, 1).await;
    let second = stage.copy("two", "copy");
    stage.wait_for_locks(&second, 2).await;
    stage.other("ROLLBACK").await;
    first.await.unwrap().unwrap();
    assert_eq!(second.await.unwrap().unwrap_err().code(), Code::ThreadExists);
    assert_eq!(stage.saver.namespaces("copy").await.unwrap(), [""]);
}

/// A call that is dropped before the server answers has no fence to release the lease with.
#[tokio::test]
async fn a_lease_granted_to_a_dropped_call_is_released() {
    let stage = Stage::new().await;
    stage.other("BEGIN; LOCK TABLE lease").await;
    let saver = Arc::clone(&stage.saver);
    let taking = tokio::spawn(async move { saver.acquire("t", terms(HOUR)).await });
    stage.wait_for_locks(&taking, 1).await;
    taking.abort();
    assert!(taking.await.unwrap_err().is_cancelled());
    stage.other("ROLLBACK").await;
    let in_schema = |sql: &str| format!("SET search_path = agentgraph; {sql}");
    let server = &stage.server;
    let given = in_schema("SELECT is_called FROM fences");
    while server.sql_in(&stage.database, &given).await != "t" {
        tokio::task::yield_now().await;
    }
    while server.sql_in(&stage.database, &in_schema("SELECT count(*) FROM lease")).await != "0" {
        tokio::task::yield_now().await;
    }
    assert!(matches!(stage.saver.acquire("t", terms(HOUR)).await.unwrap(), Claim::Granted { .. }));
}

/// A record that is not MessagePack, so that it is stored as one large value.
const LARGE: &[u8] = &[0xc1; 5_000];

fn large(thread: &'static str, step: u64) -> Put<'static> {
    Put { record: LARGE, ..row(thread, "", step) }
}

/// Sets up a value that only the thread `last` holds, and a thread `t` without it.
async fn value_held_by_last() -> Stage {
    let stage = Stage::new().await;
    stage.saver.put(large("last", 0)).await.unwrap();
    stage.saver.put(row("t", "", 0)).await.unwrap();
    stage
}

async fn assert_whole_at(stage: &Stage, step: u64) {
    let found = stage.saver.row(Place::root("t"), CheckpointId::new(0, step)).await.unwrap();
    assert_eq!(found.unwrap().record, LARGE);
    assert_eq!(stage.saver.usage().await.unwrap().values, 1);
}

/// A commit that takes over a value locks it first, so a deletion meanwhile does not roll the commit
/// back.
#[tokio::test]
async fn a_value_that_is_being_taken_over_survives_the_deletion_of_its_last_holder() {
    let stage = value_held_by_last().await;
    // Blocks the insert of the piece, which comes after the lock on the value.
    let in_the_way = "BEGIN; INSERT INTO blob VALUES ('another', 'value');
        INSERT INTO piece (place, branch, step, owner, at, blob)
        SELECT id, 0, 1, '\\x00', 0, 'another' FROM place WHERE thread = 't'";
    stage.other(in_the_way).await;
    let taking_over = stage.put(large("t", 1));
    stage.wait_for_locks(&taking_over, 1).await;
    let transaction = stage.waiting_transaction().await;
    let deleting = stage.delete("last");
    stage.wait_for_locks(&deleting, 2).await;
    assert!(!deleting.is_finished(), "it waits for the commit that takes over the value");
    stage.other("ROLLBACK").await;
    taking_over.await.unwrap().unwrap();
    deleting.await.unwrap().unwrap();
    assert_eq!(stage.status_of(&transaction).await, "committed");
    assert_whole_at(&stage, 1).await;
}

/// A deletion waits for transactions that take over the value, and only then checks whether the value is
/// still held, so it needs no second attempt.
#[tokio::test]
async fn a_value_stays_if_a_thread_takes_it_over_while_its_last_holder_is_deleted() {
    let stage = value_held_by_last().await;
    let takes_over = "BEGIN; SELECT 1 FROM blob FOR KEY SHARE;
        INSERT INTO checkpoint (place, branch, step, part, kind, record, pieces)
        SELECT id, 0, 1, 0, 0, '', 1 FROM place WHERE thread = 't';
        INSERT INTO piece (place, branch, step, owner, at, blob)
        SELECT id, 0, 1, '\\x00', 0, hash FROM place, blob WHERE thread = 't'";
    stage.other(takes_over).await;
    let deleting = stage.delete("last");
    stage.wait_for_locks(&deleting, 1).await;
    let transaction = stage.waiting_transaction().await;
    stage.other("COMMIT").await;
    deleting.await.unwrap().unwrap();
    assert_eq!(stage.status_of(&transaction).await, "committed");
    assert_whole_at(&stage, 1).await;
}
