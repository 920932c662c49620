//! PgBouncer between the savers and the server, in both modes.

use std::future::{IntoFuture, pending};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use agentgraph::checkpoint::conformance::Report;
use agentgraph::checkpoint::store::conformance as items;
use agentgraph::checkpoint::{Claim, HeldQuery, Leases, PostgresSaver, PostgresSaverBuilder, StoreCode};
use agentgraph::prelude::*;
use agentgraph::run::WhenBusy;
use agentgraph::store::PostgresStore;
use agentgraph::testing::store_clauses;
use agentgraph::{Checkpointer, Code};

use super::common::words::{Words, WordsUpdate, says, text};
use super::postgres_server::PostgresServer;
use super::postgres_server::pooler::Pooler;
use super::{HOUR, is_granted, open, terms, two_processes};

fn assert_holds(report: &Report) {
    assert!(report.holds(), "{report}");
}

/// Connects with two connections.
async fn connect(url: &str, schema: &str) -> PostgresSaver {
    PostgresSaver::builder(url).schema(schema).connections(2).connect().await.unwrap()
}

/// In session mode each connection of a saver has one to the server for itself.
const MODES: [(&str, usize); 2] = [("transaction", 3), ("session", 60)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savers_behind_a_pooler_in_session_mode_hold_every_clause() {
    let server = PostgresServer::get();
    let pooler = Pooler::start(&server, "session", 60);
    let connect = || async { Ok(connect(&pooler.url(), &server.fresh_schema()).await) };
    assert_holds(&store_clauses::run(connect).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_items_behind_a_pooler_hold_every_clause() {
    let [transaction, session] = MODES;
    for (server, (mode, size)) in
        [(PostgresServer::get(), session), (PostgresServer::with_vectors(), transaction)]
    {
        let pooler = Pooler::start(&server, mode, size);
        let connect = |setup: items::Setup| {
            let store = PostgresStore::builder(pooler.url()).schema(server.fresh_schema()).connections(2);
            store.services(setup.clock).index(setup.index).connect()
        };
        assert_holds(&items::run(connect).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savers_behind_a_pooler_in_transaction_mode_hold_every_clause_and_leave_nothing_on_its_connections() {
    const CONNECTIONS: usize = 3;
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let pooler = Pooler::start(&server, "transaction", CONNECTIONS);
    let url = pooler.url_of(&database);
    assert_holds(&store_clauses::run(|| async { Ok(connect(&url, &server.fresh_schema()).await) }).await);
    let left = "BEGIN; SELECT (SELECT count(*) FROM pg_prepared_statements)
        || ' ' || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
        || ' ' || (SELECT count(*) FROM pg_listening_channels())
        || ' ' || current_setting('search_path')";
    // Each transaction has one of the connections until its end.
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let left = client.simple_query(left).await.unwrap();
        let left = left.iter().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        assert_eq!(left.as_deref(), Some("0 0 0 \"$user\", public"));
        open.push(client);
    }
}

async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
    Ok(Words::update().seen([ctx.interrupt::<String>("which?")?]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_at_once_over_two_savers_ask_and_continue() {
    let server = PostgresServer::get();
    for (mode, size) in MODES {
        let pooler = Pooler::start(&server, mode, size);
        let schema = server.fresh_schema();
        let graph = StateGraph::new().node("a", says("a")).node("asks", asks).node("b", says("b"));
        let graph = graph.edge(START, "a").edge("a", "asks").edge("asks", "b").compile().unwrap();
        let one = &graph.clone().checkpointer(connect(&pooler.url(), &schema).await);
        let two = &graph.checkpointer(connect(&pooler.url(), &schema).await);
        let runs = (0..40).map(|number| async move {
            let (first, second) = if number % 2 == 0 { (one, two) } else { (two, one) };
            let thread = format!("t{number}");
            let asked = first.invoke(Words::update().seen(["i"])).thread(&thread).await.unwrap();
            assert_eq!(asked.interrupts().len(), 1);
            let done = second.resume("this").thread(&thread).await.unwrap();
            assert_eq!(text(done.output()), "i a this b");
        });
        futures_util::future::join_all(runs).await;
        assert_eq!(one.waiting().await.unwrap().len(), 0);
    }
}

#[tokio::test]
async fn a_pooler_is_found_by_connecting() {
    let server = PostgresServer::get();
    let schema = &server.fresh_schema();
    let gives_sign = async |saver: PostgresSaver| {
        assert!(is_granted(&saver.acquire("t", terms(HOUR)).await.unwrap()));
        let owner = server.sql(&format!("SELECT owner > 0 FROM {schema}.lease WHERE thread = 't'")).await;
        saver.delete_thread("t").await.unwrap();
        owner == "t"
    };
    assert!(gives_sign(open(&server, schema).await).await);
    let set = PostgresSaver::builder(server.url()).schema(schema).pooled();
    assert!(!gives_sign(set.connect().await.unwrap()).await);
    for (mode, size) in MODES {
        let pooler = Pooler::start(&server, mode, size);
        assert!(!gives_sign(connect(&pooler.url(), schema).await).await, "{mode}");
        let with_session = PostgresSaver::builder(pooler.url()).schema(schema).session_url(server.url());
        assert!(gives_sign(with_session.connect().await.unwrap()).await, "{mode}");
    }
    let session = Pooler::start(&server, "session", 20);
    let both = PostgresSaver::builder(session.url()).schema(schema).session_url(session.url());
    assert!(gives_sign(both.connect().await.unwrap()).await);
}

#[tokio::test]
async fn an_owner_without_a_sign_keeps_its_lease_until_it_ends() {
    let server = PostgresServer::get();
    let schema = server.fresh_schema();
    let pooler = Pooler::start(&server, "transaction", 3);
    let pooled = async || {
        let builder = PostgresSaver::builder(pooler.url()).schema(&schema).grace(Duration::ZERO);
        builder.connect().await.unwrap()
    };
    let direct = PostgresSaver::builder(server.url()).schema(&schema).grace(Duration::ZERO);
    let direct = direct.connect().await.unwrap();
    let (owner, other) = (pooled().await, pooled().await);
    for thread in ["t", "u"] {
        let Claim::Granted { fence } = owner.acquire(thread, terms(HOUR)).await.unwrap() else { panic!() };
        for saver in [&direct, &other] {
            assert!(!is_granted(&saver.acquire(thread, terms(HOUR)).await.unwrap()));
            let held = saver.held(HeldQuery { thread: Some(thread), ..HeldQuery::at(terms(HOUR).now) });
            assert_eq!(held.await.unwrap().len(), 1);
        }
        // A lease of length zero has ended.
        assert!(owner.acquire("over", terms(Duration::ZERO)).await.is_ok());
        assert!(is_granted(&direct.acquire("over", terms(Duration::ZERO)).await.unwrap()));
        owner.release(thread, fence).await.unwrap();
        assert!(is_granted(&other.acquire(thread, terms(HOUR)).await.unwrap()));
    }
    // The sign of an owner with a session is seen through the pooler.
    assert!(is_granted(&direct.acquire("v", terms(HOUR)).await.unwrap()));
    assert!(!is_granted(&other.acquire("v", terms(HOUR)).await.unwrap()));
    drop(direct);
    // The server needs a moment to notice that the connections are closed.
    while !is_granted(&other.acquire("v", terms(HOUR)).await.unwrap()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_waiter_learns_of_a_release_with_a_session_and_without() {
    let server = PostgresServer::get();
    let pooler = Pooler::start(&server, "transaction", 3);
    for session in [None, Some(server.url())] {
        let schema = server.fresh_schema();
        let one = connect(&pooler.url(), &schema).await;
        let two = PostgresSaver::builder(pooler.url()).schema(&schema);
        let two = session.into_iter().fold(two, PostgresSaverBuilder::session_url).connect().await.unwrap();
        let Claim::Granted { fence } = one.acquire("t", terms(HOUR)).await.unwrap() else { panic!() };
        let waiting = tokio::spawn(async move { two.released("t", fence).await });
        one.release("t", fence).await.unwrap();
        waiting.await.unwrap();
    }
}

#[tokio::test]
async fn an_address_that_is_no_session_of_the_same_database_is_refused() {
    let server = PostgresServer::get();
    let pooler = Pooler::start(&server, "transaction", 3);
    let elsewhere = server.url_of(&server.fresh_database().await);
    for url in [elsewhere, pooler.url()] {
        let builder = PostgresSaver::builder(pooler.url()).schema(server.fresh_schema());
        let refused = builder.session_url(&url).connect().await.unwrap_err();
        assert_eq!(refused.code(), StoreCode::Store);
        assert!(refused.to_string().contains("`PostgresSaverBuilder::session_url`"), "{refused}");
    }
}

/// What the nodes of the test below share.
static RESTARTED: OnceLock<Pooler> = OnceLock::new();

#[tokio::test]
async fn a_run_survives_a_restart_of_the_pooler() {
    /// The connections of the saver are gone when the superstep is committed.
    async fn restarts() -> Result<WordsUpdate> {
        tokio::task::spawn_blocking(|| RESTARTED.get().unwrap().restart()).await?;
        Ok(Words::update().seen(["restarted"]))
    }
    let server = PostgresServer::get();
    let pooler = RESTARTED.get_or_init(|| Pooler::start(&server, "transaction", 3));
    let saver = connect(&pooler.url(), &server.fresh_schema()).await;
    let graph = StateGraph::new().node("a", says("a")).node("restarts", restarts).node("b", says("b"));
    let graph = graph.edge(START, "a").edge("a", "restarts").edge("restarts", "b");
    let graph = graph.compile().unwrap().checkpointer(saver);
    let mut done = graph.invoke(Words::update()).thread("t").await;
    for _ in 0..3 {
        match done {
            Ok(done) => {
                assert_eq!(text(done.output()), "a restarted b");
                return;
            }
            Err(error) => assert_eq!(error.code(), Code::Store, "{error}"),
        }
        done = graph.proceed().thread("t").when_busy(WhenBusy::Queue).await;
    }
    panic!("{done:?}");
}

#[tokio::test]
async fn one_process_cancels_the_run_of_another_through_a_pooler() {
    let server = PostgresServer::get();
    let pooler = Pooler::start(&server, "transaction", 3);
    let orders = format!("{} {}", pooler.url(), server.fresh_schema());
    two_processes::run("cancelled::a_process_that_cancels_or_is_cancelled", orders);
}

const ORDERS: &str = "AGENTGRAPH_TEST_KILLED_BEHIND_A_POOLER";

fn waiting_graph(waits: bool) -> CompiledGraph<Words> {
    let b = move || async move {
        if waits {
            println!("waiting");
            pending::<()>().await;
        }
        Words::update().seen(["b"])
    };
    let graph = StateGraph::new().node("a", says("a")).node("b", b).edge(START, "a").edge("a", "b");
    graph.compile().unwrap()
}

#[tokio::test]
async fn the_thread_of_a_killed_process_is_free_when_its_lease_ends() {
    let server = PostgresServer::get();
    for (mode, size) in MODES {
        let pooler = Pooler::start(&server, mode, size);
        let schema = server.fresh_schema();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "behind_a_pooler::a_process_that_is_killed", "--nocapture"])
            .env(ORDERS, format!("{} {schema}", pooler.url()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = process.stdout.take().unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"waiting") {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            said.extend(byte);
        }
        let graph = waiting_graph(false).checkpointer(open(&server, &schema).await);
        process.kill().unwrap();
        process.wait().unwrap();
        let busy = graph.proceed().thread("t").await.unwrap_err();
        assert_eq!(busy.code(), Code::ThreadBusy, "only time shows that it is dead");
        let pooled = waiting_graph(false).checkpointer(connect(&pooler.url(), &schema).await);
        let done = pooled.proceed().thread("t").when_busy(WhenBusy::Queue).into_future().await.unwrap();
        assert_eq!(text(done.output()), "a b");
    }
}

/// Does nothing unless the test above starts it.
#[tokio::test]
async fn a_process_that_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let (url, schema) = orders.split_once(' ').unwrap();
    let graph = waiting_graph(true).checkpointer(connect(url, schema).await).lease(Duration::from_secs(2));
    let _ = graph.invoke(Words::update()).thread("t").await;
}
