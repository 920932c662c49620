//! [`SqliteSaver`]: checkpoints in an SQLite file.
//!
//! This file decides which call uses the connection, and when. `rows.rs`, `writes.rs`, `waiting.rs`,
//! `upkeep.rs`, `leases.rs` and `blobs.rs` contain the statements, `queue.rs` combines the commits of many
//! runs into one transaction, `exclusive.rs` lets calls wait for the connection, `anchor.rs` checks whether
//! the file is still at its path, `open.rs` turns a file into a connection, `fault.rs` explains errors to
//! the user. None of them knows what a record means.
//!
//! There is one connection and no writer thread: handing a row of 100 bytes to another thread and waiting
//! for the answer takes longer than storing it. The connection is held for one statement or one
//! transaction, never across an await: a waiting call may not be polled for long, and must not delay the
//! others.

pub(crate) mod anchor;
mod blobs;
pub(crate) mod exclusive;
pub(crate) mod fault;
mod leases;
pub(crate) mod open;
mod owner;
mod queue;
pub(crate) mod rows;
pub(crate) mod schema;
mod upkeep;
mod waiting;
mod writes;

pub use open::{SqliteSaverBuilder, Synchronous};

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::future::select;
use rusqlite::Connection;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::blob::{PutPieces, of_rewrite, of_writes};
use crate::blob::Usage;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::impls::shows;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::Leases;
use crate::lock::Lock;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::services::yield_now;
use crate::stops::StopListeners;
use crate::upkeep::Upkeep;
use anchor::Anchor;
use exclusive::Exclusive;
use fault::{Fault, Home, Patience};
use owner::Owner;
use queue::{Outcome, Progress, Queue, Ticket};

/// Keeps checkpoints in an SQLite file, which is created on first use.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// # let folder = std::env::temp_dir().join(format!("agentgraph-doc-{}", std::process::id()));
/// use agentgraph_checkpoint::{CheckpointId, Checkpointer, Place, Put, RowKind, SqliteSaver};
///
/// let id = CheckpointId::new(0, 0);
/// let put = Put::new(Place::root("t-1"), id, RowKind::Full, b"the state");
/// let saver = SqliteSaver::open(folder.join("threads.db")).await?;
/// saver.put(put).await?;
/// drop(saver);
///
/// let saver = SqliteSaver::open(folder.join("threads.db")).await?;
/// let row = saver.row(Place::root("t-1"), id).await?;
/// assert_eq!(row.unwrap().record, b"the state");
/// # drop(saver);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok(())
/// # }
/// ```
///
/// # Durability
///
/// The file is in WAL mode. A stored checkpoint survives a kill of the process, whatever the settings. If
/// the *machine* stops (power cut, kernel crash), the default, [`Synchronous::Normal`], may lose the last
/// commits; it never corrupts the file, and never loses a commit while keeping a later one. With
/// [`Synchronous::Full`] nothing stored is lost, and every commit waits for the disk (50 us or more instead
/// of 10).
///
/// # Sharing
///
/// Graphs of one process should share one saver, a clone of which is another handle of it: commits of runs
/// that store at the same time become one transaction. Several savers and several processes may open one
/// file if it is on a local disk (WAL does not work over network file systems). A saver that finds the file
/// locked sleeps and tries again until [`busy_timeout`](SqliteSaverBuilder::busy_timeout) has passed, so
/// its calls need a tokio runtime with time enabled. A statement blocks the thread of the executor: about
/// 10 us for a small record, 1 to 10 ms for one of a megabyte, and a few milliseconds each time SQLite
/// moves 1000 pages from the log into the file.
///
/// # Leases
///
/// A saver that runs threads keeps an empty file beside the database, `threads.db-owner-..`, locked while
/// it lives. After a process was killed, other savers find its file unlocked and take its threads at once;
/// a process that is only paused keeps them until its leases end and are not renewed, see
/// [`Leases::acquire`]. If such a file cannot be created, the leases of killed processes end by time.
///
/// # Space
///
/// The space of deleted threads and pruned checkpoints is overwritten (`secure_delete`) and reused.
/// [`compact`](Upkeep::compact) cuts it off the file. On a full disk, calls that store fail with
/// [`StoreCode::Store`](crate::StoreCode::Store); stored data stays readable. A file without write
/// permission is refused unless it is opened [`read_only`](SqliteSaverBuilder::read_only). If the file or
/// its log is deleted, moved or replaced while it is open, calls that store fail with the same code.
///
/// # Large values
///
/// A value of 64 KiB or more ([`share_values_from`](SqliteSaverBuilder::share_values_from)) is stored once,
/// however many checkpoints, branches, threads and pending writes use it. Its hash is verified on every
/// read. A damaged or missing value is
/// [`StoreCode::CorruptCheckpoint`](crate::StoreCode::CorruptCheckpoint) for the checkpoints that use it,
/// and for no others.
///
/// # Errors
///
/// [`StoreCode::Store`](crate::StoreCode::Store) if SQLite fails; its message names the file and what to
/// do, its source is SQLite's own error. Steps above `i64::MAX` cannot be stored and are refused with the
/// same code.
#[derive(Clone)]
pub struct SqliteSaver {
    home: Home,
    busy_timeout: Duration,
    share_from: usize,
    /// Held for one statement or transaction.
    connection: Arc<Exclusive<Connection>>,
    /// Rows that wait for the next commit.
    queue: Arc<Queue>,
    /// No queued row is stored before this time, since another process writes.
    not_before: Arc<Lock<Option<Instant>>>,
    owner: Arc<Owner>,
    anchor: Arc<Anchor>,
    /// Notified whenever this saver releases a thread.
    released: Arc<Notify>,
    stops: StopListeners,
}

impl SqliteSaver {
    /// Opens a database file; creates it, and the folders above it, if it does not exist.
    ///
    /// # Errors
    /// [`StoreCode::Store`](crate::StoreCode::Store) if the file cannot be opened or written, is no
    /// database, or belongs to another program;
    /// [`StoreCode::UnknownFormat`](crate::StoreCode::UnknownFormat) if a newer release wrote it. Nothing
    /// is changed then.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder(path).open().await
    }

    /// A saver with a database in memory, which is dropped together with it. For tests of your own queries.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        open::in_memory()
    }

    /// Set options, then [`open`](SqliteSaverBuilder::open).
    pub fn builder(path: impl AsRef<Path>) -> SqliteSaverBuilder {
        SqliteSaverBuilder::new(path.as_ref())
    }

    fn new(home: Home, options: &SqliteSaverBuilder, connection: Connection) -> Self {
        let written = home.path().filter(|_| !options.file.read_only);
        let written = written.map(|path| open::opened(&connection, path));
        SqliteSaver {
            owner: Arc::new(Owner::new(written.as_deref())),
            anchor: Arc::new(Anchor::of(written.as_deref())),
            home,
            released: Arc::default(),
            stops: StopListeners::default(),
            busy_timeout: options.file.busy_timeout,
            share_from: options.share_from,
            connection: Arc::new(Exclusive::new(connection)),
            queue: Arc::default(),
            not_before: Arc::default(),
        }
    }

    /// Runs `work` on the connection, and again while another process has the file locked.
    async fn attempt<T>(&self, work: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            match self.once(&work).await {
                Err(fault) if fault.is_busy() && patience.pause().await => {}
                done => return done.map_err(|fault| self.home.explain(fault)),
            }
        }
    }

    /// [`attempt`](Self::attempt), with the thread in the error.
    async fn attempt_on<T>(
        &self,
        thread: &str,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.attempt(work).await.map_err(|error| error.on_thread(thread))
    }

    async fn once<T>(&self, work: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        self.connection.with(work).await
    }

    /// Moves the log into the file and truncates it, since the log still contains deleted data. A reader in
    /// another process blocks this; after a short wait it is left to the next call that empties the log.
    async fn empty_log(&self) {
        let mut patience = Patience::new(self.busy_timeout.min(LONGEST_FOR_THE_LOG));
        while let Ok(false) = self.once(upkeep::empty_log).await {
            if !patience.pause().await {
                return;
            }
        }
    }

    /// Refuses to store into a deleted file, where the data would be lost.
    fn check_files(&self, thread: &str) -> Result<(), StoreError> {
        self.anchor.check(&self.home).map_err(|error| error.on_thread(thread))
    }

    fn put_now(&self, put: &Put<'_>, pieces: &PutPieces) -> Option<Result<(), Fault>> {
        let outcome = self.connection.try_before_others(|connection| rows::put(connection, put, pieces))?;
        match &outcome {
            Err(fault) if fault.is_busy() => return None,
            Ok(_) => self.queue.stored_alone(),
            Err(_) => {}
        }
        Some(outcome.and_then(|stored| stored.map_err(|late| late.explain(put.place, put.id).into())))
    }

    fn try_put_pieces(&self, put: &Put<'_>, pieces: &PutPieces) -> Option<Result<(), StoreError>> {
        if !self.queue.is_alone(put.place.thread) {
            return None;
        }
        if let Err(error) = self.check_files(put.place.thread) {
            return Some(Err(error));
        }
        let outcome = self.put_now(put, pieces)?;
        Some(outcome.map_err(|fault| self.home.explain(fault).on_thread(put.place.thread)))
    }

    /// Waits for a queued row, and commits the whole queue if no other call does.
    ///
    /// May be dropped at each await: the row is then either in the queue or committed, and another call
    /// continues.
    async fn settle(&self, ticket: Ticket<'_>) -> Outcome {
        let_others_store().await;
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            // Registered before the check, so that a call which finishes in between is noticed.
            let mut left = pin!(self.connection.left());
            left.as_mut().enable();
            if let Some(outcome) = ticket.take() {
                return outcome;
            }
            if let Some(until) = self.pause_until() {
                select(left, pin!(sleep_until(until))).await;
                continue;
            }
            let commit =
                |connection: &_| self.queue.commit(connection, &self.owner, &self.home, self.busy_timeout);
            match (self.connection.try_with(commit), ticket.take()) {
                (_, Some(outcome)) => return outcome,
                (None, None) => left.await,
                (Some(Progress::Busy), None) => {
                    *self.not_before.lock() = Some(Instant::now() + patience.next())
                }
                (Some(Progress::Committed), None) => let_others_store().await,
                (Some(Progress::Empty), None) => return Err(self.home.lost()),
            }
        }
    }

    /// `None` if the time has passed.
    fn pause_until(&self) -> Option<Instant> {
        let mut not_before = self.not_before.lock();
        not_before.take_if(|until| *until <= Instant::now());
        *not_before
    }

    fn release_now(&self, thread: &str, fence: u64) -> bool {
        let released = self.connection.try_with(|connection| leases::release(connection, thread, fence));
        matches!(released, Some(Ok(_)))
    }
}

const LONGEST_FOR_THE_LOG: Duration = Duration::from_millis(200);

/// Yields once, so that other runs reach their own `put` before this one commits. tokio's `yield_now` also
/// waits for the I/O driver, which on two worker threads made a commit of ten runs a third slower.
async fn let_others_store() {
    yield_now().await;
}

#[async_trait]
impl Checkpointer for SqliteSaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.attempt_on(place.thread, |connection| rows::tail(connection, place, at)).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.attempt_on(place.thread, |connection| rows::row(connection, place, id)).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let pieces = PutPieces::of(&put, self.share_from);
        if let Some(outcome) = self.try_put_pieces(&put, &pieces) {
            return outcome;
        }
        self.check_files(put.place.thread)?;
        self.settle(self.queue.push(&put, pieces)).await.map(drop)
    }

    /// Stores at once while only one run stores: the connection is free, no call waits, and the last row
    /// had the same thread.
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        if !self.queue.is_alone(put.place.thread) {
            return None;
        }
        self.try_put_pieces(put, &PutPieces::of(put, self.share_from))
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.check_files(put.place.thread)?;
        let pieces = of_writes(put.writes, self.share_from);
        self.attempt_on(put.place.thread, |connection| writes::put(connection, put, &pieces)).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.attempt_on(place.thread, |connection| rows::list(connection, place, query)).await
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.attempt(rows::threads).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.check_files(thread)?;
        let deleted = self.attempt_on(thread, |connection| upkeep::delete_thread(connection, thread)).await;
        self.released.notify_waiters();
        if deleted.is_ok() {
            self.empty_log().await;
        }
        deleted
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
impl Leases for SqliteSaver {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.check_files(thread)?;
        match self.settle(self.queue.push_take(thread, terms)).await? {
            Some(claim) => Ok(claim),
            None => Err(self.home.lost().on_thread(thread)),
        }
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        self.attempt_on(thread, |connection| leases::renew(connection, thread, fence, until)).await
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        let released = self.settle(self.queue.push_release(thread, fence)).await;
        self.released.notify_waiters();
        released.map(drop)
    }

    fn let_go(&self, thread: &str, fence: u64) {
        if !self.release_now(thread, fence) {
            self.queue.release_later(thread, fence);
        }
        self.released.notify_waiters();
    }

    /// Leases that other processes release are found by polling.
    async fn released(&self, thread: &str, fence: u64) {
        let mut patience = Patience::new(Duration::MAX);
        loop {
            let rings = self.released.notified();
            if !matches!(self.once(|connection| leases::holds(connection, thread, fence)).await, Ok(true)) {
                return;
            }
            select(pin!(rings), pin!(patience.sleep())).await;
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        self.check_files(thread)?;
        let ask = |connection: &_| leases::ask_to_stop(connection, &self.owner, thread, now);
        let asked = self.attempt_on(thread, ask).await?;
        if let Some(fence) = asked {
            self.stops.tell(thread, fence);
        }
        Ok(asked)
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        self.attempt(|connection| leases::held(connection, &self.owner, query)).await
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        self.stops.add(listener);
    }
}

#[async_trait]
impl Catalog for SqliteSaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        self.attempt(|connection| waiting::waiting(connection, query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        self.attempt_on(thread, |connection| upkeep::namespaces(connection, thread)).await
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        self.attempt_on(place.thread, |connection| upkeep::branches(connection, place)).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.attempt(upkeep::usage).await
    }
}

#[async_trait]
impl Upkeep for SqliteSaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.check_files(from)?;
        self.attempt_on(from, |connection| upkeep::copy_thread(connection, from, to)).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        self.check_files(rewrite.place.thread)?;
        let pieces = of_rewrite(&rewrite, self.share_from);
        self.attempt_on(rewrite.place.thread, |connection| upkeep::rewrite(connection, &rewrite, &pieces))
            .await
    }

    /// A file from a release before leases shrinks by a complete rewrite, which needs the same space again
    /// meanwhile.
    async fn compact(&self) -> Result<(), StoreError> {
        while self.attempt(upkeep::give_pages_back).await? {
            let_others_store().await;
        }
        self.attempt(|connection| upkeep::empty_log(connection).map(drop)).await
    }
}

shows!(SqliteSaver: |it| { home: it.home, busy_timeout: it.busy_timeout });
