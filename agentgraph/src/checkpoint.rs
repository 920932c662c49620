//! Checkpoints: what a run leaves behind so that it can go on where it stood.
//!
//! A [`Checkpointer`] is a store of rows and knows nothing of states: it keeps bytes under (thread, namespace, branch,
//! step), refuses to overwrite a row, and finds the rows a read needs. How the bytes are divided is in
//! `frame.rs`, and what they mean is the engine's.
//!
//! A row is a *full* (every channel), a *delta* (what one superstep changed) or a *segment* (the deltas of 1,024
//! steps folded into one). To read a checkpoint one takes the newest full at or before it, the segments after that
//! full, and the deltas after the last segment.
//!
//! Large values are stored once. The stores of this crate cut them out of what they are given and keep them by their hash
//! (`blob.rs`), so that whoever reads a row never sees that: checkpoints, branches, threads and pending writes
//! share them, and one that nothing holds any more is gone with the last that did.

pub(crate) mod behind;
pub(crate) mod blob;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cut;
pub mod delta;
#[cfg(feature = "encryption")]
mod encrypted;
pub(crate) mod fold;
mod forward;
pub(crate) mod frame;
pub(crate) mod header;
mod lease;
mod memory;
mod owned;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod prune;
pub(crate) mod refused;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use blob::Usage;
#[cfg(feature = "encryption")]
pub use encrypted::{EncryptedSaver, EncryptionKey, KeyRing};
pub(crate) use lease::Leased;
pub use lease::{Claim, LeaseTerms, lease_lost};
pub use memory::MemorySaver;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresSaver, PostgresSaverBuilder};
pub use prune::{Retention, StoredCheckpoint};
pub use source::Source;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSaver, SqliteSaverBuilder, Synchronous};

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use self::frame::FormatError;
use crate::context::{CheckpointId, TaskId};
use crate::error::{Code, Error};

/// Nobody looks for more than so many branches one by one.
const MOST_BRANCHES: u32 = 1 << 16;

/// A store for checkpoints. All calls may come from many threads at once.
///
/// A failing store answers with [`Code::Store`]; a lost race with [`Code::Stale`] (see [`stale`]); a writer whose lease is
/// another's by now with [`Code::LeaseLost`] (see [`lease_lost`]). With the feature `conformance`, `checkpoint::conformance`
/// says whether a store does what is asked of it here.
///
/// A call may be dropped at each of its awaits, and it may not be polled for long after one: a run stands still while its stream is
/// not read. So a store keeps nothing over an await that others wait for; a fair lock, which is handed to who waits first, is such a thing.
///
/// The methods with a body are abilities that a store may lack: without leases nothing keeps two processes from running
/// one thread (the slower is stale), and what cannot be copied or rewritten cannot be pruned.
#[async_trait]
pub trait Checkpointer: Send + Sync + 'static {
    /// The rows that make up the checkpoint `at`, oldest first, beginning with a full; and the pending writes
    /// on it. Without `at`, the newest checkpoint of the newest branch. `None` if there is none.
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, Error>;

    /// The row of one full or delta, without what it stands on.
    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Error>;

    /// Stores a checkpoint, in one transaction with its segment, with the pending writes it comes with, and with the removal
    /// of those it makes obsolete (those of the step before it, on its branch).
    ///
    /// Must fail, and change nothing, with [`Code::LeaseLost`] if [`fence`](Put::fence) is neither 0 nor that of the
    /// thread's lease, and with [`Code::Stale`] if the branch has this step already, or a later one, or if the
    /// [`parent`](Put::parent) is not there.
    async fn put(&self, put: Put<'_>) -> Result<(), Error>;

    /// [`put`](Checkpointer::put) for a store that needs no await for it; `None` means "call `put`".
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), Error>> {
        let _ = put;
        None
    }

    /// Stores pending writes on a checkpoint, all or none. A write with the task and slot of an earlier one replaces it.
    ///
    /// Must fail with [`Code::LeaseLost`] as [`put`](Checkpointer::put) does.
    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), Error>;

    /// The fulls and deltas of a thread, newest first.
    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Error>;

    /// The names of all threads, in alphabetical order.
    async fn threads(&self) -> Result<Vec<String>, Error>;

    /// Removes everything of a thread, its lease too. No error if there is none.
    async fn delete_thread(&self, thread: &str) -> Result<(), Error>;

    /// Whether another process can come upon what was stored: `false` of a store that is gone with this one, whose leases
    /// need no renewal.
    fn outlives_its_process(&self) -> bool {
        true
    }

    /// Whether nobody can read what was stored who only has the store: `true` of one that encrypts. A graph whose state has
    /// channels marked `secret` can be kept by no other one that [outlives its process](Checkpointer::outlives_its_process).
    fn keeps_secrets(&self) -> bool {
        false
    }

    /// Takes a thread for one writer, unless another one has it and its time has not passed. Fences are greater than 0,
    /// and greater than every fence this store ever gave for the thread, also when the thread was deleted in between.
    ///
    /// A store without leases grants every wish with the fence 0, which is never checked.
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, Error> {
        let _ = (thread, terms);
        Ok(Claim::Granted { fence: 0 })
    }

    /// Makes a lease last until another time; `false` if the thread is another's by now, or was released or deleted. A
    /// lease whose time has passed and that nobody took is renewed like any other.
    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, Error> {
        let _ = (thread, fence, until);
        Ok(true)
    }

    /// Gives a thread back. No error if it is another's by now.
    async fn release(&self, thread: &str, fence: u64) -> Result<(), Error> {
        let _ = (thread, fence);
        Ok(())
    }

    /// [`release`](Checkpointer::release) for a run that was dropped and cannot await: at once, or with one of the store's next
    /// calls. In a store with leases that does neither the thread stays busy until the lease's time has passed.
    fn let_go(&self, thread: &str, fence: u64) {
        let _ = (thread, fence);
    }

    /// Waits until the lease with that fence is no longer the thread's, as far as the store can know. May return before, though
    /// not again and again: whoever waits asks for the thread each time. He does so now and then by himself, too, so a store
    /// that cannot know need not return.
    async fn released(&self, thread: &str, fence: u64) {
        let _ = (thread, fence);
        std::future::pending().await
    }

    /// The requests that nobody has answered, across threads: pending writes on the newest checkpoint of their place whose
    /// slot is odd, of a task that is not 0, with a slot below [`PendingWrite::SPECIAL`], and with no answer in the next slot
    /// (an answer of the one byte `0xc0` was taken back). Among them are the notes that a run stopped for somebody without a
    /// question: task 0, slot 0, which no answer ends. In order of thread, namespace, task and slot.
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, Error> {
        let _ = query;
        Err(cannot("", "say which threads wait"))
    }

    /// The namespaces that hold rows of a thread, in alphabetical order; the root's is empty.
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, Error> {
        Err(cannot(thread, "say which namespaces a thread has"))
    }

    /// The branches of a place that hold rows, from the least to the greatest.
    ///
    /// A store that does not say is asked for one after the other.
    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, Error> {
        let newest = self.list(place, ListQuery { limit: Some(1), ..ListQuery::default() }).await?;
        let Some(newest) = newest.first().map(|row| row.id) else { return Ok(Vec::new()) };
        check_id(place, newest)?;
        if newest.branch > MOST_BRANCHES {
            return Err(corrupt(place, newest, "the number of its branch is that of no branch"));
        }
        let mut found = Vec::new();
        for branch in 0..newest.branch {
            let query = ListQuery { branch: Some(branch), limit: Some(1), ..ListQuery::default() };
            if !self.list(place, query).await?.is_empty() {
                found.push(branch);
            }
        }
        found.push(newest.branch);
        Ok(found)
    }

    /// Copies everything of a thread but its lease, in one transaction.
    ///
    /// Must fail with [`Code::ThreadExists`] (see [`thread_exists`]), and change nothing, if `to` has anything.
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        let _ = to;
        Err(cannot(from, "copy a thread"))
    }

    /// Removes rows, and puts fulls in the place of others, in one transaction: what pruning comes to.
    ///
    /// Must fail with [`Code::LeaseLost`] as [`put`](Checkpointer::put) does.
    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), Error> {
        Err(cannot(rewrite.place.thread, "be pruned"))
    }

    /// Gives back to the system what removed rows took, as far as that is not done by itself.
    async fn compact(&self) -> Result<(), Error> {
        Ok(())
    }

    /// What the store holds, in numbers. May look at every row.
    async fn usage(&self) -> Result<Usage, Error> {
        Err(cannot("", "say what it holds"))
    }
}

forward::forwards!(($) to_the_one_inside:);

impl<C: Checkpointer + ?Sized> Checkpointer for Arc<C> {
    to_the_one_inside!(self => (**self));
}

/// Whose checkpoints: the thread, and the namespace of a subgraph in it (empty for the root graph).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The namespace.
    pub namespace: &'a str,
}

impl<'a> Place<'a> {
    /// The root graph of a thread.
    pub const fn root(thread: &'a str) -> Self {
        Place { thread, namespace: "" }
    }
}

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RowKind {
    /// Every channel.
    Full,
    /// The changes of one superstep.
    Delta,
    /// The changes of the steps up to its own, since the last segment or full, folded. Stands beside that step's delta.
    Segment,
}

impl RowKind {
    /// The number a store keeps for it.
    pub const fn to_number(self) -> u8 {
        match self {
            RowKind::Full => 0,
            RowKind::Delta => 1,
            RowKind::Segment => 2,
        }
    }

    /// The kind with that number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(RowKind::Full),
            1 => Some(RowKind::Delta),
            2 => Some(RowKind::Segment),
            _ => None,
        }
    }
}

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which checkpoint.
    pub id: CheckpointId,
    /// What it holds.
    pub kind: RowKind,
    /// Its bytes.
    pub record: Vec<u8>,
}

/// What [`Checkpointer::get`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// A full, then segments, then deltas, each in order of their steps.
    pub rows: Vec<Row>,
    /// The pending writes on the last row's checkpoint, ordered by task and slot.
    pub writes: Vec<PendingWrite>,
}

/// A checkpoint to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Whose.
    pub place: Place<'a>,
    /// Which.
    pub id: CheckpointId,
    /// The fence of the writer's lease; 0 for one that has none, which is not checked.
    pub fence: u64,
    /// Full or delta.
    pub kind: RowKind,
    /// The record's bytes.
    pub record: &'a [u8],
    /// A segment to be stored beside it.
    pub segment: Option<&'a [u8]>,
    /// Whether pending writes were stored on the step before.
    pub clears_writes: bool,
    /// The checkpoint that it follows: the step before, on its branch or on the one that its own goes off from. `None` for the
    /// first of all, and for a writer who does not know; then it is not asked for.
    pub parent: Option<CheckpointId>,
    /// What tasks of the superstep that begins with it have left behind already: an edit hands on what was pending before it.
    pub writes: &'a [PendingWrite],
}

impl<'a> Put<'a> {
    /// A checkpoint of somebody who has no lease, which follows nothing.
    ///
    /// ```
    /// use agentgraph::checkpoint::{Checkpointer, MemorySaver, Place, Put, RowKind};
    /// use agentgraph::CheckpointId;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> agentgraph::Result<()> {
    /// let saver = MemorySaver::new();
    /// let (place, first) = (Place::root("t-1"), CheckpointId::new(0, 0));
    /// saver.put(Put::new(place, first, RowKind::Full, b"one")).await?;
    /// let second = Put::new(place, CheckpointId::new(0, 1), RowKind::Full, b"two");
    /// saver.put(Put { parent: Some(first), ..second }).await?;
    /// assert_eq!(saver.row(place, first).await?.unwrap().record, b"one");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn new(place: Place<'a>, id: CheckpointId, kind: RowKind, record: &'a [u8]) -> Self {
        let (segment, parent, writes) = (None, None, &[]);
        Put { place, id, fence: 0, kind, record, segment, clears_writes: false, parent, writes }
    }

    /// Its pending writes, as they are stored on their own.
    pub const fn own_writes(&self) -> PutWrites<'a> {
        PutWrites { place: self.place, at: self.id, fence: self.fence, writes: self.writes }
    }
}

/// Pending writes to be stored.
#[derive(Clone, Copy, Debug)]
pub struct PutWrites<'a> {
    /// Whose.
    pub place: Place<'a>,
    /// The checkpoint that they stand on. It need not be there yet.
    pub at: CheckpointId,
    /// As that of a [`Put`].
    pub fence: u64,
    /// The writes.
    pub writes: &'a [PendingWrite],
}

impl<'a> PutWrites<'a> {
    /// Writes of somebody who has no lease.
    pub const fn new(place: Place<'a>, at: CheckpointId, writes: &'a [PendingWrite]) -> Self {
        PutWrites { place, at, fence: 0, writes }
    }
}

/// What is to become of the rows of a place.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite<'a> {
    /// Whose.
    pub place: Place<'a>,
    /// As that of a [`Put`].
    pub fence: u64,
    /// Checkpoints whose rows become fulls of these bytes. Segments beside them go.
    pub fulls: &'a [(CheckpointId, Vec<u8>)],
    /// Checkpoints whose segments go.
    pub unfold: &'a [CheckpointId],
    /// Checkpoints that go: of each branch these steps, with segments and pending writes.
    pub gone: &'a [(u32, Range<u64>)],
}

/// What a task left behind while its superstep was not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWrite {
    /// The task.
    pub task: TaskId,
    /// Which of the task's writes: 0 is its result, 1 + 2n its n-th request, 2 + 2n the n-th answer.
    pub slot: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl PendingWrite {
    /// Slots from here on are neither requests nor answers.
    pub const SPECIAL: u32 = u32::MAX - 15;

    /// Whether a task can ask a request with that number: it and its answer need slots.
    pub(crate) fn can_be_asked(n: u32) -> bool {
        n < (Self::SPECIAL - 2) / 2
    }

    /// The slot of a task's n-th request, which is below [`SPECIAL`](Self::SPECIAL) if it [can be asked](Self::can_be_asked).
    pub(crate) fn request_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(1)
    }

    /// The slot of the answer to it.
    pub(crate) fn answer_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(2)
    }

    /// Whether it may be a request, by its key.
    pub(crate) fn is_request(&self) -> bool {
        self.slot % 2 == 1 && self.slot < Self::SPECIAL && self.task != TaskId::from_u128(0)
    }

    /// Whether it notes that a run stopped for somebody without a question.
    pub(crate) fn is_note(&self) -> bool {
        self.slot == 0 && self.task == TaskId::from_u128(0)
    }
}

/// Which requests [`Checkpointer::waiting`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingQuery<'a> {
    /// Only threads after this one, in alphabetical order.
    pub after: Option<&'a str>,
    /// Of at most so many threads.
    pub limit: Option<usize>,
}

/// A request that waits for its answer, or a note that somebody has to let the run go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose.
    pub thread: String,
    /// The namespace of the subgraph it is in; empty for the root graph.
    pub namespace: String,
    /// The checkpoint that it stands on.
    pub at: CheckpointId,
    /// The request itself.
    pub request: PendingWrite,
}

/// Which rows [`Checkpointer::list`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListQuery {
    /// Only checkpoints of this branch; the newest branch if `None`.
    pub branch: Option<u32>,
    /// Only steps before this one.
    pub before: Option<u64>,
    /// At most so many rows.
    pub limit: Option<usize>,
}

/// The error of a lost race, for authors of checkpointers.
pub fn stale(place: Place<'_>, id: CheckpointId) -> Error {
    Error::new(
        Code::Stale,
        format!("checkpoint {id} was committed by another run; read the thread again before you go on"),
    )
    .on_thread(Some(place.thread))
}

/// The error of a copy onto a thread that exists, for authors of checkpointers.
pub fn thread_exists(thread: &str) -> Error {
    Error::new(Code::ThreadExists, "there is a thread of that name: choose another, or delete it first")
        .on_thread(Some(thread))
}

/// [`Checkpointer::list`], for those who go back page by page: with a store that does not go back they would never end.
pub(crate) async fn page(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    query: ListQuery,
) -> Result<Vec<Row>, Error> {
    let rows = saver.list(place, query).await?;
    rows.iter().try_for_each(|row| check_id(place, row.id))?;
    let goes_back = rows.windows(2).all(|pair| pair[0].id.step > pair[1].id.step);
    let begins_before = query.before.is_none_or(|before| rows.first().is_none_or(|row| row.id.step < before));
    if goes_back && begins_before {
        return Ok(rows);
    }
    let problem = "the checkpointer of this graph lists checkpoints in another order than it must";
    Err(Error::new(Code::Store, problem).on_thread(Some(place.thread)))
}

/// Whether a checkpoint can have that number, and another one can come after it.
pub(crate) fn is_possible(id: CheckpointId) -> bool {
    id.step < i64::MAX as u64 && id.branch < u32::MAX
}

/// Refuses a row whose number no run can have given it.
pub(crate) fn check_id(place: Place<'_>, id: CheckpointId) -> Result<(), Error> {
    if is_possible(id) { Ok(()) } else { Err(corrupt(place, id, IMPOSSIBLE)) }
}

pub(crate) const IMPOSSIBLE: &str = "no run gives a checkpoint this number, so the store is damaged";

fn cannot(thread: &str, ability: &str) -> Error {
    let problem = format!("the checkpointer of this graph cannot {ability}");
    Error::new(Code::Store, problem).on_thread(Some(thread))
}

/// The error for stored bytes that cannot be read.
pub(crate) fn corrupt(place: Place<'_>, id: CheckpointId, problem: impl std::fmt::Display) -> Error {
    Error::new(
        Code::CorruptCheckpoint,
        format!(
            "checkpoint {id} cannot be read: {problem}; earlier checkpoints of the thread are not affected"
        ),
    )
    .on_thread(Some(place.thread))
}

/// The error for a record that is none of this release's, or none that it can read.
pub(crate) fn unreadable(place: Place<'_>, id: CheckpointId, error: FormatError) -> Error {
    let code = match error {
        FormatError::Newer(_) => Code::UnknownFormat,
        FormatError::Sealed => Code::UnknownKey,
        FormatError::Damaged(_) => return corrupt(place, id, error),
    };
    Error::new(code, format!("checkpoint {id} cannot be read: {error}")).on_thread(Some(place.thread))
}
