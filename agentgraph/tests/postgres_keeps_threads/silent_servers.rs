//! A server that falls silent in the middle of a call: it accepts connections, and nothing comes back.
//!
//! A relay before the real server falls silent after a number of bytes, and then pauses the clock: it jumps
//! to the end of whatever the call waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{
    Catalog, HeldQuery, LeaseTerms, Leases, PendingWrite, Place, PostgresSaver, Put, PutWrites, Rewrite,
    StoreCode, StoreError, TaskId, Upkeep, WaitingQuery,
};
use agentgraph::store::{Filter, Namespace, PostgresStore, SearchQuery, Store, StoreExt};
use agentgraph::{CheckpointId, Checkpointer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{self, Instant};

use super::postgres_server::PostgresServer;
use super::{HOUR, row, terms};

/// The documented bound of a call.
const MINUTE: Duration = Duration::from_secs(60);

/// What a relay passes on before it is silent, if that never happens.
const ALL: i64 = i64::MAX / 2;

/// What it has left once it is silent.
const SILENT: i64 = -ALL;

struct Relay {
    url: String,
    /// The bytes that it will still pass on, in both directions together.
    left: Arc<AtomicI64>,
}

impl Relay {
    async fn start(server: &PostgresServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let behind = server.url();
        let behind = behind.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
        let left = Arc::new(AtomicI64::new(ALL));
        let shared = Arc::clone(&left);
        tokio::spawn(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let to = TcpStream::connect(&behind).await.unwrap();
                let ((up, down), (back, forth)) = (from.into_split(), to.into_split());
                tokio::spawn(pass_on(up, forth, Arc::clone(&shared)));
                tokio::spawn(pass_on(back, down, Arc::clone(&shared)));
            }
        });
        Relay { url: format!("postgres://agent@{own}/postgres"), left }
    }

    /// Runs a call with a relay that falls silent after `bytes`. Returns the time that it took.
    async fn silent_after<T>(&self, bytes: i64, call: impl Future<Output = T>) -> (T, Duration) {
        self.left.store(bytes, Ordering::SeqCst);
        let began = Instant::now();
        if bytes == 0 {
            fall_silent(&self.left);
        }
        let done = call.await;
        let took = began.elapsed();
        if is_silent(self.left.swap(ALL, Ordering::SeqCst)) {
            time::resume();
        }
        (done, took)
    }
}

fn is_silent(left: i64) -> bool {
    left <= SILENT / 2
}

fn fall_silent(left: &AtomicI64) {
    if !is_silent(left.swap(SILENT, Ordering::SeqCst)) {
        time::pause();
    }
}

/// Passes on what it may, until one end closes the connection.
async fn pass_on(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    left: Arc<AtomicI64>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let before = left.fetch_sub(count as i64, Ordering::SeqCst);
        let allowed = before.clamp(0, count as i64);
        if to.write_all(&bytes[..allowed as usize]).await.is_err() {
            return;
        }
        if allowed < count as i64 {
            fall_silent(&left);
        }
    }
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'a>>;

/// Runs a call until the relay has fallen silent at several points of it.
async fn check<'a>(relay: &Relay, name: &str, mut call: impl FnMut() -> Done<'a>) {
    // Opens a connection, prepares the statements, and shows how many bytes a call has.
    for _ in 0..2 {
        relay.left.store(ALL, Ordering::SeqCst);
        call().await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let bytes = ALL - relay.left.load(Ordering::SeqCst);
    assert!(bytes > 50, "{name}");
    for at in [0, 1, bytes / 4, bytes / 2, bytes * 3 / 4, bytes - 1] {
        let (done, took) = relay.silent_after(at, call()).await;
        assert!(took < MINUTE + Duration::from_secs(1), "{name}: {took:?} at byte {at} of {bytes}");
        if at < 2 {
            let error = done.expect_err(name);
            assert!(error.to_string().contains("did not answer within 60s"), "{name}: {error}");
        }
        // The connection that fell silent is not used again.
        call().await.unwrap_or_else(|error| panic!("{name}, again: {error}"));
    }
}

const LARGE: &[u8] = &[0xc1; 5_000];

#[tokio::test]
async fn a_call_of_a_saver_has_one_bound() {
    let server = PostgresServer::get();
    let relay = &Relay::start(&server).await;
    let builder = PostgresSaver::builder(&relay.url).schema(server.fresh_schema()).connections(1);
    let saver = &builder.share_values_from(1_000).connect().await.unwrap();
    let place = Place::root("t");
    let first = CheckpointId::new(0, 0);
    saver.put(row("t", "", 0)).await.unwrap();
    let writes = &[PendingWrite { task: TaskId::from_u128(1), slot: 2, bytes: LARGE.to_vec() }];

    macro_rules! check {
        ($name:literal, $($call:tt)*) => {
            check(relay, $name, || Box::pin(async { $($call)*.await.map(drop) })).await
        };
    }
    check!("get", saver.get(place, None));
    check!("row", saver.row(place, first));
    check!("list", saver.list(place, Default::default()));
    check!("threads", saver.threads());
    check!("waiting", saver.waiting(WaitingQuery { after: None, limit: Some(1) }));
    check!("namespaces", saver.namespaces("t"));
    check!("branches", saver.branches(place));
    check!("usage", saver.usage());
    check!("put_writes", saver.put_writes(PutWrites { place, at: first, fence: 0, writes }));
    check!("ask_to_stop", saver.ask_to_stop("t", SystemTime::now()));
    check!("held", saver.held(HeldQuery::at(SystemTime::now())));
    check!("acquire", saver.acquire("t", LeaseTerms { seize: true, ..terms(HOUR) }));
    check!("renew", saver.renew("t", 1, SystemTime::now()));
    check!("release", saver.release("t", 1));
    let (fulls, gone) = (&[(first, LARGE.to_vec())], &[(0, 5..6)]);
    check!("rewrite", saver.rewrite(Rewrite { place, fence: 0, fulls, unfold: &[], gone }));
    // A call may have stored something before its end was lost, so each of these has a step or a thread of
    // its own.
    let count = &AtomicI64::new(0);
    let next = || count.fetch_add(1, Ordering::SeqCst);
    check(relay, "put", || {
        let id = CheckpointId::new(0, 1 + next().unsigned_abs());
        Box::pin(async move { saver.put(Put { id, record: LARGE, writes, ..row("t", "", 1) }).await })
    })
    .await;
    check(relay, "copy_thread", || {
        let target = format!("copy{}", next());
        Box::pin(async move { saver.copy_thread("t", &target).await })
    })
    .await;
    check(relay, "delete_thread", || Box::pin(saver.delete_thread("t"))).await;
}

#[tokio::test]
async fn a_call_of_a_store_of_items_has_one_bound() {
    let server = PostgresServer::get();
    let relay = &Relay::start(&server).await;
    let builder = PostgresStore::builder(&relay.url).schema(server.fresh_schema()).connections(1);
    let store = &builder.connect().await.unwrap();
    let space = &Namespace::new(["users", "ada"]).unwrap();
    store.put(space, "city", "Rome").await.unwrap();
    let mut query = SearchQuery::within(space);
    query.filter = Some(Filter::eq("a", 1));
    let query = &query;
    check(relay, "put", || Box::pin(async { store.put(space, "city", "Rome").await.map(drop) })).await;
    check(relay, "get", || Box::pin(async { store.read(space, "city", None).await.map(drop) })).await;
    check(relay, "search", || Box::pin(async { store.find(query).await.map(drop) })).await;
    check(relay, "list", || Box::pin(async { store.list(&Default::default()).await.map(drop) })).await;
    check(relay, "sweep", || Box::pin(async { store.sweep().await.map(drop) })).await;
}

/// The pool's queue and the opening of a connection are part of the bound.
#[tokio::test]
async fn calls_that_wait_for_a_connection_have_one_bound() {
    let server = PostgresServer::get();
    let relay = &Relay::start(&server).await;
    let builder = PostgresSaver::builder(&relay.url).schema(server.fresh_schema()).connections(1);
    let long = 10 * MINUTE;
    let saver = builder.wait_timeout(long).connect_timeout(long).connect().await.unwrap();
    let calls = (0..5).map(|_| saver.threads());
    let (done, took) = relay.silent_after(0, futures_util::future::join_all(calls)).await;
    assert!(done.iter().all(|done| done.as_ref().is_err_and(|error| error.code() == StoreCode::Store)));
    assert!(took < MINUTE + Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_waiter_ends_by_itself() {
    let server = PostgresServer::get();
    let relay = &Relay::start(&server).await;
    let saver = PostgresSaver::builder(&relay.url).schema(server.fresh_schema()).connect().await.unwrap();
    let agentgraph::checkpoint::Claim::Granted { fence } = saver.acquire("t", terms(HOUR)).await.unwrap()
    else {
        panic!()
    };
    let (_, took) = relay.silent_after(0, saver.released("t", fence)).await;
    assert!(took < MINUTE + Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn connecting_has_one_bound() {
    let server = PostgresServer::get();
    let relay = &Relay::start(&server).await;
    let schema = server.fresh_schema();
    // Creates the tables, then finds them.
    for _ in 0..2 {
        let mut at = 0;
        loop {
            let connect = PostgresSaver::builder(&relay.url).schema(&schema);
            let connect = connect.connect_timeout(10 * MINUTE).connect();
            let (done, took) = relay.silent_after(at, connect).await;
            assert!(took < MINUTE + Duration::from_secs(1), "{took:?} at byte {at}");
            match done {
                Ok(_) => break,
                Err(error) => assert_eq!(error.code(), StoreCode::Store, "{error}"),
            }
            at += 1_000;
        }
    }
}
