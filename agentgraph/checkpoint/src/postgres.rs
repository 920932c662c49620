//! [`PostgresSaver`]: checkpoints in a Postgres database, for many processes on many machines.
//!
//! This file decides which call talks to the server, and when. `rows.rs`, `blobs.rs`, `upkeep.rs`,
//! `waiting.rs` and `leases.rs` contain the statements, `apart.rs` runs calls in tasks of their own,
//! `taker.rs` asks for threads, `open.rs` turns a URL into a pool and a schema, `dial.rs` opens the
//! connections and keeps their sign of life, `pooler.rs` finds a pooler in between, `statements.rs` runs
//! statements with it and without, `listen.rs` has the connection that waits for notifications. None of them
//! knows what a record means.
//!
//! Every commit without large values is one statement, which checks the fence and the step, inserts, and
//! removes obsolete writes. It locks the row of the thread's lease meanwhile, so a lease cannot be taken
//! during a commit.

pub(crate) mod apart;
mod blobs;
pub(crate) mod dial;
pub(crate) mod fault;
mod leases;
mod listen;
pub(crate) mod open;
mod pooler;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod statements;
mod tail;
mod taker;
mod upkeep;
mod waiting;

pub use open::PostgresSaverBuilder;

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use deadpool_postgres::Pool;
use tokio::time::Instant;

use super::blob::{PutPieces, of_rewrite, of_writes};
use super::owned::{OwnedPlace, OwnedPut};
use crate::blob::Usage;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::impls::shows;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::Leases;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::stops::StopListeners;
use crate::upkeep::Upkeep;
use dial::Dial;
use fault::{Fault, explain};
use leases::{Absent, Wish};
use listen::Listener;
use statements::{Connection, Style};
use taker::Taker;

/// Keeps checkpoints in a Postgres database (version 12 or later), in tables that it creates on first use.
/// A clone is another handle of the same store.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// use agentgraph_checkpoint::PostgresSaver;
///
/// let saver = PostgresSaver::connect("postgres://agent@localhost/agents").await?;
/// # drop(saver);
/// # Ok(())
/// # }
/// ```
///
/// Connections are pooled, 16 at most if not set. One more connection waits for notifications: a release of
/// a thread reaches the callers that queue for it at once, in every process. Every call has a deadline, a
/// minute if [`answer_timeout`](PostgresSaverBuilder::answer_timeout) is not set.
///
/// A saver with at least one open connection counts as alive, and its threads cannot be taken before their
/// leases end. The threads of a killed process become free when it had no connection for
/// [`grace`](PostgresSaverBuilder::grace), one second by default.
///
/// A pooler such as PgBouncer may be in between, in session or transaction mode. Connecting finds it.
/// Statements are then not prepared, and what needs a session uses the
/// [`session_url`](PostgresSaverBuilder::session_url). Without one a saver gives no sign of life, so its
/// leases end by time alone, and callers that queue for a thread look at it again and again.
///
/// A commit is as durable as the server's `synchronous_commit`: with `on`, the default, it is on the
/// server's disk.
///
/// Connecting creates the tables or updates them, and only that needs the right to do so. Another user
/// needs these rights on the schema `agentgraph`:
///
/// ```sql
/// GRANT USAGE ON SCHEMA agentgraph TO app;
/// GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agentgraph TO app;
/// GRANT USAGE ON ALL SEQUENCES IN SCHEMA agentgraph TO app;
/// ```
///
/// Names of threads and namespaces are stored as bytes, so NUL is allowed in them. A thread's name and a
/// namespace may have 2,500 bytes together.
///
/// A value of 64 KiB or more ([`share_values_from`](PostgresSaverBuilder::share_values_from)) is stored
/// once, however many checkpoints, branches, threads and pending writes use it. Its hash is verified on
/// every read. A damaged or missing value is
/// [`StoreCode::CorruptCheckpoint`](crate::StoreCode::CorruptCheckpoint) for the checkpoints that use it,
/// and for no others.
///
/// # Errors
///
/// [`StoreCode::Store`](crate::StoreCode::Store) if the server fails or cannot be reached; its source is
/// the client's own error.
#[derive(Clone)]
pub struct PostgresSaver {
    calls: Calls,
    listener: Arc<Listener>,
    absent: Arc<Absent>,
    grace: Duration,
    share_from: usize,
    stops: StopListeners,
}

/// The parts needed to call the server.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) pool: Pool,
    pub(crate) style: Style,
    pub(crate) answer_timeout: Duration,
}

impl Calls {
    pub(crate) async fn connection(&self) -> Result<Connection, Fault> {
        Ok(Connection::new(self.pool.get().await?, self.style.clone()))
    }

    /// The end of a call that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        let now = Instant::now();
        // A time beyond the clock's range counts as a year.
        now.checked_add(self.answer_timeout).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
    }
}

/// How often a transaction is repeated that the server rolled back because of another one.
pub(crate) const REPEATS: u32 = 16;

/// Awaits `$work` with a connection of the pool, and again while it clashes. All of it has one deadline: what
/// waits inside (for the pool, a new connection, each statement) has none of its own. At the deadline the
/// connection is closed, since an answer may still be on its way.
macro_rules! answered {
    ($calls:expr, $deadline:expr, $connection:ident => $work:expr) => {{
        let mut open = None;
        let call = async {
            let $connection = open.insert($calls.connection().await?);
            let mut repeats = 0;
            loop {
                let work = async { $work };
                match work.await {
                    Err(fault)
                        if $crate::postgres::fault::Fault::is_clash(&fault)
                            && repeats < $crate::postgres::REPEATS =>
                    {
                        repeats += 1;
                    }
                    done => break done,
                }
            }
        };
        match tokio::time::timeout_at($deadline, call).await {
            Ok(done) => done,
            Err(_) => {
                if let Some(connection) = open {
                    connection.close();
                }
                // Idle ones may have lost the server too. Without them the next call connects, and fails
                // sooner.
                $calls.pool.retain(|_, _| false);
                Err($crate::postgres::fault::Fault::Silent($calls.answer_timeout))
            }
        }
    }};
}

/// [`answered`] in a task of its own, with a deadline that begins now.
macro_rules! called {
    ($calls:expr, $connection:ident => $work:expr) => {{
        let calls = $calls.clone();
        $crate::postgres::apart::run_in_task(async move {
            let deadline = calls.deadline();
            $crate::postgres::answered!(calls, deadline, $connection => $work)
        })
    }};
}

/// [`called`], with a failure explained to the user of a thread; the thread is empty where there is none.
/// `items` in its place explains it to the user of a store.
macro_rules! explained {
    ($calls:expr, items, $connection:ident => $work:expr) => {
        $crate::postgres::called!($calls, $connection => $work)
            .await
            .map_err($crate::postgres::fault::explain_for_items)
    };
    ($calls:expr, $thread:expr, $connection:ident => $work:expr) => {
        $crate::postgres::called!($calls, $connection => $work)
            .await
            .map_err(|fault| $crate::postgres::fault::explain(fault, $thread))
    };
}

pub(crate) use {answered, called, explained};

impl PostgresSaver {
    /// Connects to the database of a URL (`postgres://user:password@host:port/database`) or a list of
    /// settings (`host=.. user=..`); creates or updates the tables.
    ///
    /// # Errors
    /// [`StoreCode::Store`](crate::StoreCode::Store) if the URL is invalid, the server cannot be reached,
    /// or it does not allow tables to be created;
    /// [`StoreCode::UnknownFormat`](crate::StoreCode::UnknownFormat) if a newer release created them.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// Set options, then [`connect`](PostgresSaverBuilder::connect).
    pub fn builder(url: impl Into<String>) -> PostgresSaverBuilder {
        PostgresSaverBuilder::new(url.into())
    }

    /// The parts needed to call the server.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The schema of the tables.
    pub(crate) fn schema(&self) -> &str {
        self.calls.style.schema()
    }

    /// The address that keeps sessions, if there is one.
    pub(crate) fn session(&self) -> Option<&Dial> {
        self.listener.dial()
    }

    fn taker(&self, thread: &str) -> Taker {
        Taker {
            calls: self.calls.clone(),
            listener: Arc::clone(&self.listener),
            absent: Arc::clone(&self.absent),
            grace: self.grace,
            thread: thread.to_owned(),
        }
    }
}

#[async_trait]
impl Checkpointer for PostgresSaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        let owned = OwnedPlace::of(place);
        explained!(self.calls, place.thread, connection => tail::tail(connection, owned.borrowed(), at).await)
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        let owned = OwnedPlace::of(place);
        explained!(self.calls, place.thread, connection => rows::row(connection, owned.borrowed(), id).await)
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let thread = put.place.thread.to_owned();
        let owned = OwnedPut::of(&put);
        let pieces = PutPieces::of(&put, self.share_from);
        explained!(self.calls, put.place.thread, connection => {
            let put = owned.borrowed(&thread);
            rows::put(connection, &put, &pieces).await
        })
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let owned = OwnedPlace::of(put.place);
        let writes = put.writes.to_vec();
        let pieces = of_writes(put.writes, self.share_from);
        let PutWrites { at, fence, .. } = put;
        explained!(self.calls, put.place.thread, connection => {
            let put = PutWrites { place: owned.borrowed(), at, fence, writes: &writes };
            rows::put_writes(connection, &put, &pieces).await
        })
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let owned = OwnedPlace::of(place);
        explained!(self.calls, place.thread, connection => rows::list(connection, owned.borrowed(), query).await)
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        explained!(self.calls, "", connection => upkeep::threads(connection).await)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        let owned = thread.to_owned();
        explained!(self.calls, thread, connection => upkeep::delete_thread(connection, &owned).await)
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    delegate!(self has: leases, catalog, upkeep);
}

#[async_trait]
impl Leases for PostgresSaver {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.listener.restart();
        let mut deadline = self.calls.deadline();
        loop {
            match self.taker(thread).ask(terms, deadline).await.map_err(|fault| explain(fault, thread))? {
                Wish::Done(claim) => return Ok(claim),
                Wish::AskAgain(after) => {
                    // The server has answered: this time is not part of its own.
                    deadline += after;
                    tokio::time::sleep(after).await;
                }
            }
        }
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        let owned = thread.to_owned();
        explained!(self.calls, thread, connection => leases::renew(connection, &owned, fence, until).await)
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        let owned = thread.to_owned();
        let channel = self.listener.channel().to_owned();
        explained!(self.calls, thread, connection => leases::release(connection, &channel, &owned, fence).await)
    }

    /// In a spawned task, if there is a runtime.
    fn let_go(&self, thread: &str, fence: u64) {
        self.taker(thread).let_go(fence);
    }

    async fn released(&self, thread: &str, fence: u64) {
        loop {
            let rings = self.listener.next_release();
            let owned = thread.to_owned();
            let held = called!(self.calls, connection => leases::holds(connection, &owned, fence).await);
            if !matches!(held.await, Ok(true)) {
                return;
            }
            let _ = rings.await;
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        let taker = self.taker(thread);
        let asked = explained!(self.calls, thread, connection => {
            let absent = (&*taker.absent, taker.grace);
            leases::ask_to_stop(connection, taker.listener.owner(), absent, &taker.thread, now).await
        })?;
        if let Some(fence) = asked {
            self.stops.tell(thread, fence);
        }
        Ok(asked)
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        let taker = self.taker(query.thread.unwrap_or_default());
        let HeldQuery { now, thread, asked_to_stop, after, limit } = query;
        let after = after.map(str::to_owned);
        let is_one = thread.is_some();
        explained!(self.calls, query.thread.unwrap_or_default(), connection => {
            let thread = is_one.then_some(&*taker.thread);
            let query = HeldQuery { now, thread, asked_to_stop, after: after.as_deref(), limit };
            let absent = (&*taker.absent, taker.grace);
            leases::held(connection, taker.listener.owner(), absent, query).await
        })
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        self.stops.add(listener);
    }
}

#[async_trait]
impl Catalog for PostgresSaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let after = query.after.map(str::to_owned);
        let limit = query.limit;
        explained!(self.calls, "", connection => {
            let query = WaitingQuery { after: after.as_deref(), limit };
            waiting::waiting(connection, query).await
        })
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let owned = thread.to_owned();
        explained!(self.calls, thread, connection => upkeep::namespaces(connection, &owned).await)
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        let owned = OwnedPlace::of(place);
        explained!(self.calls, place.thread, connection => upkeep::branches(connection, owned.borrowed()).await)
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        explained!(self.calls, "", connection => upkeep::usage(connection).await)
    }
}

#[async_trait]
impl Upkeep for PostgresSaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let source = from.to_owned();
        let target = to.to_owned();
        explained!(self.calls, from, connection => upkeep::copy_thread(connection, &source, &target).await)
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        let owned = OwnedPlace::of(rewrite.place);
        let fence = rewrite.fence;
        let pieces = of_rewrite(&rewrite, self.share_from);
        let fulls = rewrite.fulls.to_vec();
        let unfold = rewrite.unfold.to_vec();
        let gone = rewrite.gone.to_vec();
        explained!(self.calls, rewrite.place.thread, connection => {
            let place = owned.borrowed();
            let rewrite = Rewrite { place, fence, fulls: &fulls, unfold: &unfold, gone: &gone };
            upkeep::rewrite(connection, &rewrite, &pieces).await
        })
    }

    /// The server's autovacuum frees the space.
    async fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

shows!(PostgresSaver: |it| { pool: it.calls.pool.status() });
