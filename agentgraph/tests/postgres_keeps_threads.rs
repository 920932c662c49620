//! Postgres: the whole contract of stores, and what can only be tested on a server that several
//! processes share.
#![cfg(feature = "postgres")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "postgres_keeps_threads/at_once.rs"]
mod at_once;
#[path = "postgres_keeps_threads/behind_a_pooler.rs"]
mod behind_a_pooler;
#[path = "postgres_keeps_threads/cancelled.rs"]
mod cancelled;
mod cancelling;
mod common;
mod postgres_server;
#[path = "postgres_keeps_threads/silent_servers.rs"]
mod silent_servers;
mod two_processes;

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{
    Catalog, Claim, LeaseTerms, Leases, Place, PostgresSaver, Put, Retention, RowKind, StoreCode, Waiting,
    WaitingQuery,
};
use agentgraph::prelude::*;
use agentgraph::testing::store_clauses;
use agentgraph::{CheckpointId, Checkpointer};
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
async fn the_postgres_saver_holds_every_clause() {
    let server = PostgresServer::get();
    let report = store_clauses::run(|| async { Ok(open(&server, &server.fresh_schema()).await) }).await;
    assert!(report.holds(), "{report}");
}

#[tokio::test]
async fn a_thread_continues_from_another_connection_also_after_pruning() {
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
async fn a_waiter_is_notified_of_a_release_by_another_saver() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let one = open(&server, &schema).await;
    let two = Arc::new(open(&server, &schema).await);
    let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    let waits = Arc::clone(&two);
    let waiting = tokio::spawn(async move { waits.released("t", fence).await });
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Held { .. }));
    one.release("t", fence).await.unwrap();
    waiting.await.unwrap();
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Granted { .. }));
}

#[tokio::test]
async fn leases_of_a_closed_saver_can_be_taken_and_those_of_an_open_one_cannot() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let one = open(&server, &schema).await;
    let two = open(&server, &schema).await;
    assert!(matches!(one.acquire("t", terms(HOUR)).await.unwrap(), Claim::Granted { .. }));
    assert!(matches!(two.acquire("t", terms(HOUR)).await.unwrap(), Claim::Held { .. }));
    drop(one);
    // The server needs a moment to notice that the connection is closed.
    while let Claim::Held { .. } = two.acquire("t", terms(HOUR)).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

fn is_granted(claim: &Claim) -> bool {
    matches!(claim, Claim::Granted { .. })
}

/// Waits until the statement returns `expected`.
async fn wait_until(server: &PostgresServer, sql: &str, expected: &str) {
    while server.sql(sql).await != expected {
        tokio::task::yield_now().await;
    }
}

/// Returns the statement that ends the listening connection of the saver that was opened first.
fn end_listener(database: &str) -> String {
    format!(
        "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = '{database}'
         AND query LIKE '%LISTEN%' ORDER BY backend_start LIMIT 1) AS first"
    )
}

#[tokio::test]
async fn a_saver_that_loses_its_listening_connection_keeps_its_leases() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let open = async || PostgresSaver::connect(&server.url_of(&database)).await.unwrap();
    let one = open().await;
    let two = open().await;
    let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
    server.sql(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS false")).await;
    assert_eq!(server.sql(&end_listener(&database)).await, "1");
    let listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%LISTEN%' AND datname = ";
    wait_until(&server, &format!("{listeners}'{database}'"), "1").await;
    assert!(
        !is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()),
        "the first saver still has another connection"
    );
    let place = Place::root("t");
    let id = CheckpointId::new(0, 0);
    let put = Put { fence, ..Put::new(place, id, RowKind::Full, b"a") };
    one.put(put).await.unwrap();
}

#[tokio::test]
async fn a_saver_that_loses_all_connections_and_reconnects_keeps_its_leases() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let open = || PostgresSaver::builder(server.url_of(&database)).connections(1);
    let one = open().connect().await.unwrap();
    let two = Arc::new(open().grace(HOUR).connect().await.unwrap());
    assert!(is_granted(&one.acquire("t", terms(HOUR)).await.unwrap()));
    assert!(!is_granted(&two.acquire("t", terms(HOUR)).await.unwrap()));
    let allow = async |allowed| {
        server.sql(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS {allowed}")).await;
    };
    allow(false).await;
    let first_two = format!(
        "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid IN (
            SELECT objid FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
                AND datname = '{database}' ORDER BY backend_start LIMIT 1)) AS first"
    );
    assert_eq!(server.sql(&format!("SELECT count(pg_terminate_backend(pid)) FROM {first_two}")).await, "2");
    let of_this = format!("FROM pg_stat_activity WHERE datname = '{database}'");
    wait_until(&server, &format!("SELECT count(*) {of_this}"), "2").await;
    let began = server.sql("SELECT clock_timestamp()").await;
    let asks = Arc::clone(&two);
    let asking = tokio::spawn(async move { asks.acquire("t", terms(HOUR)).await.unwrap() });
    let looked = format!("state = 'idle' AND query LIKE '%FROM pg_locks%' AND query_start > '{began}'");
    let looks = format!("SELECT count(*) {of_this} AND {looked}");
    while !asking.is_finished() && server.sql(&looks).await != "1" {
        tokio::task::yield_now().await;
    }
    allow(true).await;
    assert!(!is_granted(&asking.await.unwrap()));
}

#[test]
fn a_saver_stays_alive_and_listens_in_another_runtime() {
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
        wait_until(&server, &format!("{listeners}'%LISTEN \"agentgraph_{schema}\"'"), "2").await;
        two.release("u", fence).await.unwrap();
        waiting.await.unwrap();
    });
}

/// A queued exclusive lock holds up the new connection before its `LISTEN` until the lease was released.
#[tokio::test]
async fn a_release_while_the_listener_reconnects_is_noticed() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let open = async || PostgresSaver::connect(&server.url_of(&database)).await.unwrap();
    let one = Arc::new(open().await);
    let two = open().await;
    let Claim::Granted { fence } = two.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    assert!(is_granted(&one.acquire("mine", terms(HOUR)).await.unwrap()));
    let waits = Arc::clone(&one);
    let waiting = tokio::spawn(async move { waits.released("t", fence).await });
    let (between, connection) =
        tokio_postgres::connect(&server.url_of(&database), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let owner = "SELECT owner FROM agentgraph.lease WHERE thread = 'mine'";
    let owner: i64 = between.query_one(owner, &[]).await.unwrap().get(0);
    let cancel = between.cancel_token();
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
    wait_until(&server, &waiters("ExclusiveLock"), "1").await;
    assert_eq!(server.sql(&end_listener(&database)).await, "1");
    wait_until(&server, &waiters("ShareLock"), "1").await;
    two.release("t", fence).await.unwrap();
    assert!(!waiting.is_finished(), "the listener is not connected yet");
    cancel.cancel_query(tokio_postgres::NoTls).await.unwrap();
    drop(blocked.await.unwrap());
    waiting.await.unwrap();
}

#[tokio::test]
async fn leases_expire_by_the_clock_of_the_server() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let one = open(&server, &schema).await;
    let two = open(&server, &schema).await;
    let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
    let ahead = SystemTime::now() + 5 * HOUR;
    let wish = LeaseTerms { now: ahead, until: ahead + HOUR, seize: false };
    for _ in 0..2 {
        let Claim::Held { until, .. } = two.acquire("t", wish).await.unwrap() else { panic!() };
        assert!(until > ahead + HOUR / 2 && until <= ahead + HOUR, "`until` is in the time of the caller");
        // A renewal lasts as long as the lease was granted for, whatever time it names.
        assert!(one.renew("t", fence, SystemTime::UNIX_EPOCH).await.unwrap());
    }
    // A lease of length zero has expired, also if its owner has a clock that is ahead.
    let over = LeaseTerms { now: ahead, until: ahead, seize: false };
    assert!(is_granted(&one.acquire("u", over).await.unwrap()));
    assert!(is_granted(&two.acquire("u", terms(HOUR)).await.unwrap()));
    let endless = LeaseTerms { now: SystemTime::UNIX_EPOCH, until: ahead + 1_000_000 * HOUR, seize: false };
    assert!(is_granted(&one.acquire("v", endless).await.unwrap()));
    assert!(!is_granted(&two.acquire("v", wish).await.unwrap()));
}

fn row<'a>(thread: &'a str, namespace: &'a str, step: u64) -> Put<'a> {
    let place = Place { thread, namespace };
    let id = CheckpointId::new(0, step);
    let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
    Put::new(place, id, kind, b"r")
}

#[tokio::test]
async fn a_role_that_may_not_create_tables_uses_existing_ones() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    drop(PostgresSaver::connect(&server.url_of(&database)).await.unwrap());
    let url = server.url_of(&database);
    let role = format!("app_{database}");
    server.sql(&format!("CREATE ROLE {role} LOGIN")).await;
    let app = url.replace("agent@", &format!("{role}@"));
    let refused = PostgresSaver::connect(&app).await.unwrap_err();
    assert!(refused.to_string().contains("grant it the right to create the tables"), "{refused}");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let grants = format!(
        "GRANT USAGE ON SCHEMA agentgraph TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agentgraph TO {role};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA agentgraph TO {role}"
    );
    client.batch_execute(&grants).await.unwrap();
    let saver = Arc::new(PostgresSaver::builder(&app).share_values_from(10).connect().await.unwrap());
    let graph = StateGraph::new().node("a", says("a")).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(Arc::clone(&saver));
    graph.invoke(Words::update().seen(["a word of some length"])).thread("t").await.unwrap();
    graph.copy_thread("t", "u").await.unwrap();
    graph.prune(Retention::keep_latest_per_thread()).await.unwrap();
    assert!(graph.waiting().await.unwrap().is_empty() && saver.usage().await.unwrap().values > 0);
    graph.delete_thread("t").await.unwrap();
    // The role may create tables in this schema, but may not create schemas.
    client.batch_execute(&format!("CREATE SCHEMA given; GRANT ALL ON SCHEMA given TO {role}")).await.unwrap();
    PostgresSaver::builder(&app).schema("given").connect().await.unwrap();
}

#[tokio::test]
async fn a_schema_has_exactly_the_given_name() {
    let server = PostgresServer::get();
    let url = server.url_of(&server.fresh_database().await);
    let url = format!("{url}?options=-c%20work_mem=1MB%20-c%20search_path=elsewhere");
    for schema in ["1agents", "user", "Agents", "agents"] {
        let saver = PostgresSaver::builder(&url).schema(schema).connect().await.unwrap();
        assert!(saver.threads().await.unwrap().is_empty(), "{schema}");
        saver.put(row(schema, "", 0)).await.unwrap();
        assert_eq!(saver.threads().await.unwrap(), [schema]);
    }
}

#[tokio::test]
async fn session_options_of_the_url_are_kept() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let url = server.url_of(&database) + "?options=-c%20default_transaction_read_only=on";
    let error = PostgresSaver::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("it is read-only"), "{error}");
}

/// Locks the table `place` of the schema until the returned client is dropped.
async fn lock(server: &PostgresServer, schema: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN; LOCK TABLE {schema}.place")).await.unwrap();
    client
}

#[tokio::test]
async fn a_call_waits_for_a_busy_connection_until_the_timeout() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let saver = PostgresSaver::builder(server.url()).schema(&schema).connections(1);
    let saver = Arc::new(saver.wait_timeout(Duration::from_millis(50)).connect().await.unwrap());
    let locked = lock(&server, &schema).await;
    let works = Arc::clone(&saver);
    let working = tokio::spawn(async move { works.put(row("t", "", 0)).await });
    let waits =
        format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{schema}.place'::regclass");
    wait_until(&server, &waits, "1").await;
    let error = saver.put(row("u", "", 0)).await.unwrap_err();
    assert_eq!((error.code(), error.thread()), (StoreCode::Store, Some("u")));
    assert!(error.to_string().contains("raise `PostgresSaverBuilder::connections`"), "{error}");
    drop(locked);
    working.await.unwrap().unwrap();
    saver.put(row("u", "", 0)).await.unwrap();
}

/// A run whose stream is not read is not polled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_not_polled_blocks_no_other_run() {
    async fn slow() -> WordsUpdate {
        common::poll::pending_for(4).await;
        Words::update().seen(["slow"])
    }
    let server = PostgresServer::get();
    let saver = PostgresSaver::builder(server.url()).schema(server.fresh_schema()).connections(1);
    let saver = saver.connect().await.unwrap();
    let graph =
        StateGraph::new().node("a", says("a")).node("slow", slow).edge(START, "a").edge(START, "slow");
    let graph = graph.edge("slow", "b").node("b", says("b"));
    let graph = graph.compile().unwrap().checkpointer(saver);
    // The run is polled this many times and then left alone: once, then once more each time, until that
    // is enough to end it.
    for polls in 1.. {
        let thread = format!("t{polls}");
        let mut run = Box::pin(graph.invoke(Words::update()).thread(&thread).into_future());
        let mut polled = Poll::Pending;
        for _ in 0..polls {
            polled = futures_util::poll!(run.as_mut());
            if polled.is_ready() {
                break;
            }
            // Gives the server time to answer.
            server.sql("SELECT 1").await;
        }
        let other = graph.invoke(Words::update()).thread("other").await.unwrap();
        assert_eq!(other.output().seen.len(), 3 * polls);
        if polled.is_ready() {
            assert!(polls > 5, "the run was left alone at {polls} points only");
            return;
        }
        assert_eq!(text(run.await.unwrap().output()), "a slow b");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_error_after_the_timeout() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let saver = PostgresSaver::builder(server.url()).schema(&schema).connections(1);
    let saver = saver.answer_timeout(Duration::from_secs(2)).connect().await.unwrap();
    let locked = lock(&server, &schema).await;
    let errors = [
        saver.get(Place::root("t"), None).await.unwrap_err(),
        saver.put(row("t", "", 0)).await.unwrap_err(),
        saver.threads().await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("did not answer within 2s"), "{error}");
    }
    drop(locked);
    let waits = format!("SELECT count(*) FROM pg_locks WHERE relation = '{schema}.place'::regclass");
    wait_until(&server, &waits, "0").await;
    saver.put(row("u", "", 0)).await.unwrap();
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://agent@{}/postgres", mute.local_addr().unwrap());
    let saver = PostgresSaver::builder(url).connect_timeout(Duration::from_millis(50));
    let error = saver.connect().await.unwrap_err();
    assert!(error.to_string().contains("`PostgresSaverBuilder::connect_timeout`"), "{error}");
}

/// Five of eight places wait. Some of their requests hold a large value.
const CROWD: &str = "
    INSERT INTO place (thread, namespace) SELECT convert_to('t' || n / 2, 'UTF8'), CASE n % 2 WHEN 0 THEN ''::bytea ELSE 'sub' END
        FROM generate_series(1, 30000) AS n;
    INSERT INTO checkpoint (place, branch, step, part, kind, record) SELECT id, 0, 0, 0, 0, 'a' FROM place;
    INSERT INTO blob VALUES (sha256(decode(repeat('61', 100000), 'hex')), decode(repeat('61', 100000), 'hex'));
    INSERT INTO pending (place, branch, step, task, slot, bytes, pieces)
        SELECT id, 0, 0, decode(repeat('07', 16), 'hex'), 1, 'b', CASE WHEN id % 100 = 1 THEN 1 ELSE 0 END FROM place WHERE id % 8 <> 0;
    INSERT INTO piece (place, branch, step, owner, at, blob)
        SELECT place, branch, step, '\\x02'::bytea || task || decode('00000001', 'hex'), 1, (SELECT hash FROM blob)
        FROM pending WHERE pieces = 1;
    INSERT INTO pending (place, branch, step, task, slot, bytes)
        SELECT id, 0, 0, decode(repeat('07', 16), 'hex'), 2, 'c' FROM place WHERE id % 8 IN (1, 2);";

#[tokio::test]
async fn pages_of_many_waiting_threads_list_each_request_once() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let saver = open(&server, &schema).await;
    server.sql(&format!("SET search_path = {schema}; {CROWD}")).await;
    let after =
        async |after: Option<&str>, limit| saver.waiting(WaitingQuery { after, limit }).await.unwrap();
    let everything = after(None, None).await;
    assert!(everything.len() > 15_000, "{}", everything.len());
    let large = everything.iter().filter(|waiting| waiting.request.bytes.len() == 100_001);
    assert!(large.count() > 100);
    let mut paged: Vec<Waiting> = Vec::new();
    loop {
        let page = after(paged.last().map(|last| &*last.thread), Some(4_000)).await;
        let threads = page.chunk_by(|one, next| one.thread == next.thread).count();
        paged.extend(page);
        // A page that is not full is the last.
        if threads < 4_000 {
            break;
        }
    }
    assert!(paged == everything, "{} of {}", paged.len(), everything.len());
    assert!(after(None, Some(0)).await.is_empty());
}

#[tokio::test]
async fn a_saver_reconnects_after_the_server_ended_all_connections() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let saver = PostgresSaver::connect(&server.url_of(&database)).await.unwrap();
    saver.put(row("t", "", 0)).await.unwrap();
    let of_this = format!("FROM pg_stat_activity WHERE datname = '{database}'");
    let latest = server.sql(&format!("SELECT max(backend_start) {of_this}")).await;
    assert_eq!(server.sql(&format!("SELECT count(pg_terminate_backend(pid)) {of_this}")).await, "2");
    let again = format!("SELECT count(*) {of_this} AND backend_start > '{latest}' AND query LIKE '%LISTEN%'");
    wait_until(&server, &again, "1").await;
    // The server forgets a connection only after it has told the client of the end.
    wait_until(&server, &format!("SELECT count(*) {of_this} AND backend_start <= '{latest}'"), "0").await;
    saver.put(row("t", "", 1)).await.unwrap();
    assert_eq!(saver.get(Place::root("t"), None).await.unwrap().unwrap().rows.len(), 2);
}

#[tokio::test]
async fn errors_name_the_cause_and_the_remedy() {
    let server = PostgresServer::get();
    let unreachable = PostgresSaver::connect("postgres://agent@127.0.0.1:1/postgres").await.unwrap_err();
    assert_eq!(unreachable.code(), StoreCode::Store);
    assert!(unreachable.to_string().contains("check that it is up"), "{unreachable}");
    let nonsense = PostgresSaver::connect("mysql://secret@x").await.unwrap_err();
    assert!(nonsense.to_string().contains("postgres://user"), "{nonsense}");
    assert!(!nonsense.to_string().contains("secret"), "{nonsense}");
    let schema =
        PostgresSaver::builder(server.url()).schema("a\"; DROP TABLE x").connect().await.unwrap_err();
    assert!(schema.to_string().contains("not a valid schema name"), "{schema}");
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
