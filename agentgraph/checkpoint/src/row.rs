//! The arguments and results of a store's calls.

use std::ops::Range;

use crate::error::{StoreError, corrupt};
use crate::frame::NIL_WRITE;
use crate::id::{CheckpointId, TaskId};
pub use crate::place::{Place, RowKind};

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its checkpoint.
    pub id: CheckpointId,
    /// Its content.
    pub kind: RowKind,
    /// Its bytes.
    pub record: Vec<u8>,
}

/// The result of [`Checkpointer::get`](crate::Checkpointer::get).
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
    /// Its place.
    pub place: Place<'a>,
    /// Its id.
    pub id: CheckpointId,
    /// The fence of the writer's lease; 0 for a writer without a lease, which is not checked.
    pub fence: u64,
    /// Full or delta.
    pub kind: RowKind,
    /// The record's bytes.
    pub record: &'a [u8],
    /// A segment to store beside it.
    pub segment: Option<&'a [u8]>,
    /// Whether pending writes were stored on the step before.
    pub clears_writes: bool,
    /// The checkpoint before it: the step before, on its branch or on the branch that its own starts from.
    /// `None` for the first checkpoint, and for a writer that does not know it; then it is not checked.
    pub parent: Option<CheckpointId>,
    /// Pending writes of the superstep that starts with this checkpoint. An edit hands over those of the
    /// checkpoint it edits.
    pub writes: &'a [PendingWrite],
}

impl<'a> Put<'a> {
    /// A checkpoint of a writer without a lease, and without a parent.
    ///
    /// ```
    /// use agentgraph_checkpoint::{CheckpointId, Checkpointer, MemorySaver, Place, Put, RowKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
    /// let saver = MemorySaver::new();
    /// let place = Place::root("t-1");
    /// let first = CheckpointId::new(0, 0);
    /// saver.put(Put::new(place, first, RowKind::Full, b"one")).await?;
    /// let second = Put::new(place, CheckpointId::new(0, 1), RowKind::Full, b"two");
    /// saver.put(Put { parent: Some(first), ..second }).await?;
    /// assert_eq!(saver.row(place, first).await?.unwrap().record, b"one");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn new(place: Place<'a>, id: CheckpointId, kind: RowKind, record: &'a [u8]) -> Self {
        let segment = None;
        let parent = None;
        let writes = &[];
        Put { place, id, fence: 0, kind, record, segment, clears_writes: false, parent, writes }
    }

    /// Its pending writes, as a request of their own.
    pub const fn own_writes(&self) -> PutWrites<'a> {
        PutWrites { place: self.place, at: self.id, fence: self.fence, writes: self.writes }
    }
}

/// Pending writes to be stored.
#[derive(Clone, Copy, Debug)]
pub struct PutWrites<'a> {
    /// The place of their checkpoint.
    pub place: Place<'a>,
    /// Their checkpoint. It need not be stored yet.
    pub at: CheckpointId,
    /// As in [`Put::fence`].
    pub fence: u64,
    /// The writes.
    pub writes: &'a [PendingWrite],
}

impl<'a> PutWrites<'a> {
    /// Pending writes of a writer without a lease.
    pub const fn new(place: Place<'a>, at: CheckpointId, writes: &'a [PendingWrite]) -> Self {
        PutWrites { place, at, fence: 0, writes }
    }
}

/// Changes to the rows of a place.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite<'a> {
    /// The place.
    pub place: Place<'a>,
    /// As in [`Put::fence`].
    pub fence: u64,
    /// Checkpoints whose rows become fulls with these bytes. Segments beside them are removed.
    pub fulls: &'a [(CheckpointId, Vec<u8>)],
    /// Checkpoints whose segments are removed.
    pub unfold: &'a [CheckpointId],
    /// Steps to remove, by branch, with their segments and pending writes.
    pub gone: &'a [(u32, Range<u64>)],
}

/// A task's result, request or answer while its superstep is not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWrite {
    /// The task.
    pub task: TaskId,
    /// Which of the task's writes: 0 is its result, 1 + 2n its n-th request, 2 + 2n the n-th answer; even
    /// slots from [`KEPT`](Self::KEPT) on are what else the task keeps.
    pub slot: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl PendingWrite {
    /// Slots from this one on are neither requests nor answers.
    pub const SPECIAL: u32 = u32::MAX - 15;

    /// The first slot that no request and no answer of a run has. Tasks keep the results of durable steps in
    /// even slots from here to [`SPECIAL`](Self::SPECIAL).
    pub const KEPT: u32 = 1 << 31;

    /// Whether a task can make a request with this number: it and its answer need slots.
    pub fn can_be_asked(n: u32) -> bool {
        n < (Self::KEPT - 2) / 2
    }

    /// The slot of a task's n-th request. It is below [`KEPT`](Self::KEPT) if the request
    /// [can be made](Self::can_be_asked).
    pub fn request_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(1)
    }

    /// The slot of the answer to the n-th request.
    pub fn answer_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(2)
    }

    /// Whether these bytes, as an answer, take back an earlier one, so that the request is open again: nil,
    /// as this format writes it or as format 1 did.
    ///
    /// ```
    /// use agentgraph_checkpoint::PendingWrite;
    ///
    /// assert!(PendingWrite::takes_back(&[0xc0]));
    /// assert!(PendingWrite::takes_back(&[0xd6, 2, 0xdf, 0x17, 0x30, 0xa2, 0xc0]));
    /// assert!(!PendingWrite::takes_back(&[]));
    /// ```
    pub fn takes_back(bytes: &[u8]) -> bool {
        bytes == [0xc0] || bytes == NIL_WRITE
    }

    /// Whether its task and slot are those of a request.
    pub fn is_request(&self) -> bool {
        self.slot % 2 == 1 && self.slot < Self::SPECIAL && self.task != TaskId::from_u128(0)
    }

    /// Whether it is the note of a run that stopped without a question.
    pub fn is_note(&self) -> bool {
        self.slot == 0 && self.task == TaskId::from_u128(0)
    }
}

/// Which requests [`Catalog::waiting`](crate::Catalog::waiting) returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingQuery<'a> {
    /// Only threads after this one, in alphabetical order.
    pub after: Option<&'a str>,
    /// The most threads.
    pub limit: Option<usize>,
}

/// A request that waits for its answer, or a note of a run that stopped without a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its thread.
    pub thread: String,
    /// The namespace of its subgraph; empty for the root graph.
    pub namespace: String,
    /// Its checkpoint.
    pub at: CheckpointId,
    /// The request, or the note.
    pub request: PendingWrite,
}

/// Which rows [`Checkpointer::list`](crate::Checkpointer::list) returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only checkpoints of this branch; the newest branch if `None`.
    pub branch: Option<u32>,
    /// Only steps before this one.
    pub before: Option<u64>,
    /// The most rows.
    pub limit: Option<usize>,
}

/// Whether a checkpoint can have this id and another one can follow it.
pub fn is_possible(id: CheckpointId) -> bool {
    id.step < i64::MAX as u64 && id.branch < u32::MAX
}

/// Refuses a row with an id that no run can create.
pub fn check_id(place: Place<'_>, id: CheckpointId) -> Result<(), StoreError> {
    if is_possible(id) { Ok(()) } else { Err(corrupt(place, id, IMPOSSIBLE)) }
}

/// The error text for a row with an impossible id.
pub const IMPOSSIBLE: &str = "no run gives a checkpoint this number, so the store is damaged";
