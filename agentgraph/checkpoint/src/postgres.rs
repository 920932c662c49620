//! [`PostgresSaver`]: checkpoints in a Postgres database, for many processes on many machines.
//!
//! This file decides which call talks to the server, and when. `rows.rs`, `blobs.rs`, `upkeep.rs`,
//! `waiting.rs` and `leases.rs` contain the statements, `apart.rs` runs calls in tasks of their own,
//! `taker.rs` asks for threads, `open.rs` turns a URL into a pool and a schema, `dial.rs` opens the
//! connections and keeps their sign of life, `listen.rs` has the connection that waits for notifications.
//! None of them knows what a record means.
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
pub(crate) mod rows;
pub(crate) mod schema;
mod taker;
mod upkeep;
mod waiting;

pub use open::PostgresSaverBuilder;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};

use super::blob::{PutPieces, of_rewrite, of_writes};
use super::owned::{OwnedPlace, OwnedPut};
use crate::blob::Usage;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::Leases;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::services::micros;
use crate::stops::StopListeners;
use crate::upkeep::Upkeep;
use apart::run_in_task;
use fault::{Fault, explain};
use leases::{Absent, Wish};
use listen::Listener;
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
/// a thread reaches the callers that queue for it at once, in every process.
///
/// A saver with at least one open connection counts as alive, and its threads cannot be taken before their
/// leases end. The threads of a killed process become free when it had no connection for
/// [`grace`](PostgresSaverBuilder::grace), one second by default.
///
/// A pooler in between must be in session mode: each connection holds a lock as a sign of life, has
/// prepared statements, and sets the schema when it starts.
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
    pub(crate) answer_timeout: Duration,
}

impl Calls {
    pub(crate) async fn connection(&self) -> Result<Object, Fault> {
        Ok(self.pool.get().await?)
    }
}

/// How often a transaction is repeated that the server rolled back because of another one.
pub(crate) const REPEATS: u32 = 16;

/// Awaits `$work`, and again while it clashes.
macro_rules! repeated {
    ($work:expr) => {{
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
    }};
}

/// Awaits `$work` with a connection of the pool. The connection is not reused if no answer arrives in time.
macro_rules! answered {
    ($calls:expr, $connection:ident => $work:expr) => {{
        let work = async {
            #[allow(unused_mut)]
            let mut $connection = $calls.connection().await?;
            let answer = tokio::time::timeout($calls.answer_timeout, async { $work }).await;
            answer.unwrap_or_else(|_| {
                drop(deadpool_postgres::Object::take($connection));
                Err($crate::postgres::fault::Fault::Silent($calls.answer_timeout))
            })
        };
        work.await
    }};
}

pub(crate) use {answered, repeated};

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
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(place);
        let found = run_in_task(async move {
            answered!(calls, connection => rows::tail(&mut connection, owned.borrowed(), at).await)
        });
        found.await.map_err(|fault| explain(fault, place.thread))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(place);
        let done = run_in_task(async move {
            answered!(calls, connection => rows::row(&connection, owned.borrowed(), id).await)
        });
        done.await.map_err(|fault| explain(fault, place.thread))
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let thread = put.place.thread.to_owned();
        let owned = OwnedPut::of(&put);
        let pieces = PutPieces::of(&put, self.share_from);
        let done = run_in_task(async move {
            let put = owned.borrowed(&thread);
            repeated!(answered!(calls, connection => rows::put(&mut connection, &put, &pieces).await))
        });
        done.await.map_err(|fault| explain(fault, put.place.thread))
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(put.place);
        let writes = put.writes.to_vec();
        let pieces = of_writes(put.writes, self.share_from);
        let PutWrites { at, fence, .. } = put;
        let done = run_in_task(async move {
            let put = PutWrites { place: owned.borrowed(), at, fence, writes: &writes };
            repeated!(answered!(calls, connection => rows::put_writes(&mut connection, &put, &pieces).await))
        });
        done.await.map_err(|fault| explain(fault, put.place.thread))
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(place);
        let done = run_in_task(async move {
            answered!(calls, connection => rows::list(&connection, owned.borrowed(), query).await)
        });
        done.await.map_err(|fault| explain(fault, place.thread))
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        let calls = self.calls.clone();
        let done =
            run_in_task(async move { answered!(calls, connection => upkeep::threads(&connection).await) });
        done.await.map_err(|fault| explain(fault, ""))
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let owned = thread.to_owned();
        let done = run_in_task(async move {
            repeated!({
                let mut connection = calls.connection().await?;
                upkeep::delete_thread(&mut connection, &owned).await
            })
        });
        done.await.map_err(|fault| explain(fault, thread))
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }
}

#[async_trait]
impl Leases for PostgresSaver {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.listener.restart();
        loop {
            match self.taker(thread).ask(terms).await.map_err(|fault| explain(fault, thread))? {
                Wish::Done(claim) => return Ok(claim),
                Wish::AskAgain(after) => tokio::time::sleep(after).await,
            }
        }
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        let calls = self.calls.clone();
        let owned = thread.to_owned();
        let done = run_in_task(async move {
            answered!(calls, connection => leases::renew(&connection, &owned, fence, until).await)
        });
        done.await.map_err(|fault| explain(fault, thread))
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let owned = thread.to_owned();
        let channel = self.listener.channel().to_owned();
        let done = run_in_task(async move {
            answered!(calls, connection => leases::release(&connection, &channel, &owned, fence).await)
        });
        done.await.map_err(|fault| explain(fault, thread))
    }

    /// In a spawned task, if there is a runtime.
    fn let_go(&self, thread: &str, fence: u64) {
        self.taker(thread).let_go(fence);
    }

    async fn released(&self, thread: &str, fence: u64) {
        loop {
            let rings = self.listener.next_release();
            let calls = self.calls.clone();
            let owned = thread.to_owned();
            let held = run_in_task(async move {
                answered!(calls, connection => leases::holds(&connection, &owned, fence).await)
            });
            if !matches!(held.await, Ok(true)) {
                return;
            }
            rings.await;
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        let taker = self.taker(thread);
        let done = run_in_task(async move {
            answered!(taker.calls, connection => {
                let absent = (&*taker.absent, taker.grace);
                leases::ask_to_stop(&connection, taker.listener.owner(), absent, &taker.thread, now).await
            })
        });
        let asked = done.await.map_err(|fault| explain(fault, thread))?;
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
        let done = run_in_task(async move {
            let thread = is_one.then_some(&*taker.thread);
            let query = HeldQuery { now, thread, asked_to_stop, after: after.as_deref(), limit };
            answered!(taker.calls, connection => {
                let absent = (&*taker.absent, taker.grace);
                leases::held(&connection, taker.listener.owner(), absent, query).await
            })
        });
        done.await.map_err(|fault| explain(fault, query.thread.unwrap_or_default()))
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        self.stops.add(listener);
    }
}

#[async_trait]
impl Catalog for PostgresSaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let calls = self.calls.clone();
        let after = query.after.map(str::to_owned);
        let limit = query.limit;
        let done = run_in_task(async move {
            let query = WaitingQuery { after: after.as_deref(), limit };
            answered!(calls, connection => waiting::waiting(&connection, query).await)
        });
        done.await.map_err(|fault| explain(fault, ""))
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let calls = self.calls.clone();
        let owned = thread.to_owned();
        let done = run_in_task(async move {
            answered!(calls, connection => upkeep::namespaces(&connection, &owned).await)
        });
        done.await.map_err(|fault| explain(fault, thread))
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(place);
        let done = run_in_task(async move {
            answered!(calls, connection => upkeep::branches(&connection, owned.borrowed()).await)
        });
        done.await.map_err(|fault| explain(fault, place.thread))
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        let calls = self.calls.clone();
        let done = run_in_task(async move { upkeep::usage(&calls.connection().await?).await });
        done.await.map_err(|fault| explain(fault, ""))
    }
}

#[async_trait]
impl Upkeep for PostgresSaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let source = from.to_owned();
        let target = to.to_owned();
        let done = run_in_task(async move {
            repeated!({
                let mut connection = calls.connection().await?;
                upkeep::copy_thread(&mut connection, &source, &target).await
            })
        });
        done.await.map_err(|fault| explain(fault, from))
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        let calls = self.calls.clone();
        let owned = OwnedPlace::of(rewrite.place);
        let fence = rewrite.fence;
        let pieces = of_rewrite(&rewrite, self.share_from);
        let fulls = rewrite.fulls.to_vec();
        let unfold = rewrite.unfold.to_vec();
        let gone = rewrite.gone.to_vec();
        let done = run_in_task(async move {
            let place = owned.borrowed();
            let rewrite = Rewrite { place, fence, fulls: &fulls, unfold: &unfold, gone: &gone };
            repeated!({
                let mut connection = calls.connection().await?;
                upkeep::rewrite(&mut connection, &rewrite, &pieces).await
            })
        });
        done.await.map_err(|fault| explain(fault, rewrite.place.thread))
    }

    /// The server's autovacuum frees the space.
    async fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl fmt::Debug for PostgresSaver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PostgresSaver").field("pool", &self.calls.pool.status()).finish_non_exhaustive()
    }
}

fn as_time(time: SystemTime) -> i64 {
    i64::try_from(micros(time)).unwrap_or(i64::MAX)
}

fn from_time(micros: i64) -> SystemTime {
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}
