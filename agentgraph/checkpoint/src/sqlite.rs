//! [`SqliteSaver`]: checkpoints in an SQLite file.
//!
//! This file knows who may use the connection and when; `rows.rs`, `writes.rs`, `waiting.rs`, `upkeep.rs`,
//! `leases.rs` and `blobs.rs` know the statements, `queue.rs` how the commits of many runs become one
//! transaction, `exclusive.rs` how one waits for the connection, `anchor.rs` whether the file is still where
//! it was opened, `open.rs` how a file becomes a connection, `fault.rs` what to tell the user. None of them
//! knows what a record means.
//!
//! There is one connection and no writer thread: handing a row of 100 bytes to another thread and waiting for
//! its answer costs more than storing it. It is held for one statement or one transaction, never across an
//! await: whoever waits, for it or for another process, may not be polled for long and must not hold up the
//! others.

mod anchor;
mod blobs;
mod exclusive;
mod fault;
mod leases;
mod open;
mod owner;
mod queue;
mod rows;
mod schema;
mod upkeep;
mod waiting;
mod writes;

pub use open::{SqliteSaverBuilder, Synchronous};

use std::fmt;
use std::path::Path;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::lease::{Claim, LeaseTerms};
use crate::leases::Leases;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::services::yield_now;
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
/// # What is durable
///
/// The file is in WAL mode. A checkpoint that was stored is there after the process was killed, whatever the
/// settings. When the *machine* stops (power cut, kernel crash), the default, [`Synchronous::Normal`], may
/// lose the last commits, never corrupt the file and never lose one commit but keep a later one; with
/// [`Synchronous::Full`] nothing stored is lost, and every commit waits for the disk (about 50 us and more,
/// instead of 10).
///
/// # Sharing
///
/// Graphs of one process do best with one saver: commits of runs that store at the same time become one
/// transaction. Several savers and several processes may open one file, as long as it is on a local disk (WAL
/// does not work over network file systems). A saver that finds the file locked tries again, asleep, until
/// [`busy_timeout`](SqliteSaverBuilder::busy_timeout) has passed; so its calls belong inside a tokio runtime
/// with time enabled. The executor's thread is held for as long as a statement takes: about 10 us for a small
/// record, 1 to 10 ms for one of a megabyte, and a few milliseconds each time SQLite moves 1000 pages from
/// the log into the file.
///
/// # Leases
///
/// A saver that runs threads keeps an empty file beside the database, `threads.db-owner-..`, locked for as
/// long as it lives. When a process was killed, others find its file unlocked and take its threads at once; a
/// process that is merely stopped keeps them until its leases end. Wherever such a file cannot be made,
/// leases of killed processes end by time.
///
/// # Space
///
/// Space of deleted threads and pruned checkpoints is overwritten (`secure_delete`) and used again.
/// [`compact`](Upkeep::compact) cuts it off the file. A disk that is full is
/// [`StoreCode::Store`](crate::StoreCode::Store) for whoever stores; what was stored before can be read. A
/// file that may not be written is refused, but for who opens it
/// [`read_only`](SqliteSaverBuilder::read_only). If the file or its log is deleted, moved or replaced while
/// it is open, calls that store fail with the same code.
///
/// # Large values
///
/// A value of 64 KiB or more ([`share_values_from`](SqliteSaverBuilder::share_values_from)) is in the file
/// once, whatever holds it: checkpoints, branches, threads, pending writes. Its hash is compared when it is
/// read; a value that is damaged or gone is
/// [`StoreCode::CorruptCheckpoint`](crate::StoreCode::CorruptCheckpoint) for the checkpoints that hold it,
/// and for no others.
///
/// # Errors
///
/// [`StoreCode::Store`](crate::StoreCode::Store) when SQLite fails; its message names the file and what to
/// do, its source is SQLite's own error. Steps above `i64::MAX` cannot be stored and are refused with the
/// same code.
pub struct SqliteSaver {
    home: Home,
    busy_timeout: Duration,
    share_from: usize,
    /// Held for one statement or transaction.
    connection: Exclusive<Connection>,
    /// Rows that wait for whoever stores next.
    queue: Queue,
    /// Nobody tries before to store what is queued, since another process writes.
    not_before: Mutex<Option<Instant>>,
    owner: Owner,
    anchor: Anchor,
    /// Rings whenever this saver gave a thread back.
    released: Notify,
}

impl SqliteSaver {
    /// Opens a database file; creates it, and the folders above it, if it is not there.
    ///
    /// # Errors
    /// [`StoreCode::Store`](crate::StoreCode::Store) when the file cannot be opened or written, is no
    /// database, or is another program's; [`StoreCode::UnknownFormat`](crate::StoreCode::UnknownFormat) when
    /// a newer release wrote it. Nothing is changed then.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder(path).open().await
    }

    /// A saver whose database lives in memory and is gone with it; what a test of one's own queries needs.
    ///
    /// # Errors
    /// When SQLite gets no memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        open::in_memory()
    }

    /// Options first, then [`open`](SqliteSaverBuilder::open).
    pub fn builder(path: impl AsRef<Path>) -> SqliteSaverBuilder {
        SqliteSaverBuilder::new(path.as_ref())
    }

    fn new(home: Home, options: &SqliteSaverBuilder, connection: Connection) -> Self {
        let written = match &home {
            Home::File(path) if !options.read_only => Some(open::opened(&connection, path)),
            Home::File(_) | Home::Memory => None,
        };
        SqliteSaver {
            owner: Owner::new(written.as_deref()),
            anchor: Anchor::of(written.as_deref()),
            home,
            released: Notify::new(),
            busy_timeout: options.busy_timeout,
            share_from: options.share_from,
            connection: Exclusive::new(connection),
            queue: Queue::default(),
            not_before: Mutex::default(),
        }
    }

    /// Runs `work` on the connection, again and again while another process has the file locked.
    async fn attempt<T>(&self, work: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            match self.once(&work).await {
                Err(fault) if fault.is_busy() && patience.pause().await => {}
                done => return done.map_err(|fault| self.home.explain(fault)),
            }
        }
    }

    async fn once<T>(&self, work: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        self.connection.with(work).await
    }

    /// Moves the log into the file and cuts it off, since it repeats what was stored before it was deleted.
    /// Whoever reads in another process stands in the way of that; he is waited for a little, and then it is
    /// left to whoever empties the log next.
    async fn empty_log(&self) {
        let mut patience = Patience::new(self.busy_timeout.min(LONGEST_FOR_THE_LOG));
        while let Ok(false) = self.once(upkeep::empty_log).await {
            if !patience.pause().await {
                return;
            }
        }
    }

    /// Refuses to store what would be gone with the file.
    fn check_files(&self) -> Result<(), StoreError> {
        match self.anchor.lost() {
            None => Ok(()),
            Some(file) => Err(self.home.error(format!(
                "is not where it was opened: `{}` was deleted, moved or replaced, and what is stored now would be lost with it. \
                 Put the database and its `-wal` file back, or open it again; what was stored last is in the files that were open",
                file.display()
            ))),
        }
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
        if let Err(error) = self.check_files() {
            return Some(Err(error.on_thread(put.place.thread)));
        }
        let outcome = self.put_now(put, pieces)?;
        Some(outcome.map_err(|fault| self.home.explain(fault).on_thread(put.place.thread)))
    }

    /// Waits for what was queued, and commits all that is if nobody else does.
    ///
    /// May be dropped at each await: rows are either in the queue or committed then, and somebody else goes
    /// on.
    async fn settle(&self, ticket: Ticket<'_>) -> Outcome {
        let_others_store().await;
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            // Before the look: who is done after it is heard.
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
                (Some(Progress::Busy), None) => *self.not_before() = Some(Instant::now() + patience.next()),
                (Some(Progress::Committed), None) => let_others_store().await,
                (Some(Progress::Empty), None) => return Err(self.home.lost()),
            }
        }
    }

    fn not_before(&self) -> MutexGuard<'_, Option<Instant>> {
        self.not_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If that is still to come.
    fn pause_until(&self) -> Option<Instant> {
        let mut not_before = self.not_before();
        not_before.take_if(|until| *until <= Instant::now());
        *not_before
    }

    fn release_now(&self, thread: &str, fence: u64) -> bool {
        let released = self.connection.try_with(|connection| leases::release(connection, thread, fence));
        matches!(released, Some(Ok(_)))
    }
}

const LONGEST_FOR_THE_LOG: Duration = Duration::from_millis(200);

/// Goes to the end of the executor's queue, once, so that other runs reach their own `put` before this one
/// commits. tokio's `yield_now` also waits for the I/O driver, which on two worker threads made a commit of
/// ten runs a third dearer.
async fn let_others_store() {
    yield_now().await;
}

#[async_trait]
impl Checkpointer for SqliteSaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        let found = self.attempt(|connection| rows::tail(connection, place, at)).await;
        found.map_err(|error| error.on_thread(place.thread))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        let found = self.attempt(|connection| rows::row(connection, place, id)).await;
        found.map_err(|error| error.on_thread(place.thread))
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let pieces = PutPieces::of(&put, self.share_from);
        if let Some(outcome) = self.try_put_pieces(&put, &pieces) {
            return outcome;
        }
        self.check_files().map_err(|error| error.on_thread(put.place.thread))?;
        self.settle(self.queue.push(&put, pieces)).await.map(drop)
    }

    /// Answers while one run is alone: the connection is free, nobody waits, and the last row was of the same
    /// thread.
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        if !self.queue.is_alone(put.place.thread) {
            return None;
        }
        self.try_put_pieces(put, &PutPieces::of(put, self.share_from))
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.check_files().map_err(|error| error.on_thread(put.place.thread))?;
        let pieces = of_writes(put.writes, self.share_from);
        let stored = self.attempt(|connection| writes::put(connection, put, &pieces)).await;
        stored.map_err(|error| error.on_thread(put.place.thread))
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let found = self.attempt(|connection| rows::list(connection, place, query)).await;
        found.map_err(|error| error.on_thread(place.thread))
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.attempt(rows::threads).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.check_files().map_err(|error| error.on_thread(thread))?;
        let deleted = self.attempt(|connection| upkeep::delete_thread(connection, thread)).await;
        self.released.notify_waiters();
        if deleted.is_ok() {
            self.empty_log().await;
        }
        deleted.map_err(|error| error.on_thread(thread))
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
impl Leases for SqliteSaver {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.check_files().map_err(|error| error.on_thread(thread))?;
        match self.settle(self.queue.push_take(thread, terms)).await? {
            Some(claim) => Ok(claim),
            None => Err(self.home.lost().on_thread(thread)),
        }
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        let renewed = self.attempt(|connection| leases::renew(connection, thread, fence, until)).await;
        renewed.map_err(|error| error.on_thread(thread))
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

    /// Leases that other processes give back are seen by looking now and then.
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
}

#[async_trait]
impl Catalog for SqliteSaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        self.attempt(|connection| waiting::waiting(connection, query)).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let found = self.attempt(|connection| upkeep::namespaces(connection, thread)).await;
        found.map_err(|error| error.on_thread(thread))
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        let found = self.attempt(|connection| upkeep::branches(connection, place)).await;
        found.map_err(|error| error.on_thread(place.thread))
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.attempt(upkeep::usage).await
    }
}

#[async_trait]
impl Upkeep for SqliteSaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.check_files().map_err(|error| error.on_thread(from))?;
        let copied = self.attempt(|connection| upkeep::copy_thread(connection, from, to)).await;
        copied.map_err(|error| error.on_thread(from))
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        self.check_files().map_err(|error| error.on_thread(rewrite.place.thread))?;
        let pieces = of_rewrite(&rewrite, self.share_from);
        let rewritten = self.attempt(|connection| upkeep::rewrite(connection, &rewrite, &pieces)).await;
        rewritten.map_err(|error| error.on_thread(rewrite.place.thread))
    }

    /// The file of a release before leases shrinks by being written anew, which needs as much room again
    /// meanwhile.
    async fn compact(&self) -> Result<(), StoreError> {
        while self.attempt(upkeep::give_pages_back).await? {
            let_others_store().await;
        }
        self.attempt(|connection| upkeep::empty_log(connection).map(drop)).await
    }
}

impl fmt::Debug for SqliteSaver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteSaver")
            .field("home", &self.home)
            .field("busy_timeout", &self.busy_timeout)
            .finish_non_exhaustive()
    }
}
