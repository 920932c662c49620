//! What a store is given, and what it gives back.

use std::ops::Range;

use crate::error::{StoreError, corrupt};
use crate::id::{CheckpointId, TaskId};

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
    /// The changes of the steps up to its own, since the last segment or full, folded. Stands beside that
    /// step's delta.
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

/// What [`Checkpointer::get`](crate::Checkpointer::get) found.
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
    /// The checkpoint that it follows: the step before, on its branch or on the one that its own goes off
    /// from. `None` for the first of all, and for a writer who does not know; then it is not asked for.
    pub parent: Option<CheckpointId>,
    /// What tasks of the superstep that begins with it have left behind already: an edit hands on what was
    /// pending before it.
    pub writes: &'a [PendingWrite],
}

impl<'a> Put<'a> {
    /// A checkpoint of somebody who has no lease, which follows nothing.
    ///
    /// ```
    /// use agentgraph_checkpoint::{CheckpointId, Checkpointer, MemorySaver, Place, Put, RowKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
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
    pub fn can_be_asked(n: u32) -> bool {
        n < (Self::SPECIAL - 2) / 2
    }

    /// The slot of a task's n-th request, which is below [`SPECIAL`](Self::SPECIAL) if it
    /// [can be asked](Self::can_be_asked).
    pub fn request_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(1)
    }

    /// The slot of the answer to it.
    pub fn answer_slot(n: u32) -> u32 {
        n.saturating_mul(2).saturating_add(2)
    }

    /// Whether it may be a request, by its key.
    pub fn is_request(&self) -> bool {
        self.slot % 2 == 1 && self.slot < Self::SPECIAL && self.task != TaskId::from_u128(0)
    }

    /// Whether it notes that a run stopped for somebody without a question.
    pub fn is_note(&self) -> bool {
        self.slot == 0 && self.task == TaskId::from_u128(0)
    }
}

/// Which requests [`Catalog::waiting`](crate::Catalog::waiting) returns.
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

/// Which rows [`Checkpointer::list`](crate::Checkpointer::list) returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only checkpoints of this branch; the newest branch if `None`.
    pub branch: Option<u32>,
    /// Only steps before this one.
    pub before: Option<u64>,
    /// At most so many rows.
    pub limit: Option<usize>,
}

/// Whether a checkpoint can have that number, and another one can come after it.
pub fn is_possible(id: CheckpointId) -> bool {
    id.step < i64::MAX as u64 && id.branch < u32::MAX
}

/// Refuses a row whose number no run can have given it.
pub fn check_id(place: Place<'_>, id: CheckpointId) -> Result<(), StoreError> {
    if is_possible(id) { Ok(()) } else { Err(corrupt(place, id, IMPOSSIBLE)) }
}

/// What is said of a row with a number that none can have.
pub const IMPOSSIBLE: &str = "no run gives a checkpoint this number, so the store is damaged";
