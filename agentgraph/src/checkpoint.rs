//! Checkpoints: what a run leaves behind so that it can go on where it stood.
//!
//! A [`Checkpointer`] is a store of rows and knows nothing of states: it keeps bytes under (thread, namespace, branch,
//! step), refuses to overwrite a row, and finds the rows a read needs. What the bytes mean is in `format.rs`, and only
//! there.
//!
//! A row is a *full* (every channel), a *delta* (what one superstep changed) or a *segment* (the deltas of 1,024
//! steps folded into one). To read a checkpoint one takes the newest full at or before it, the segments after that
//! full, and the deltas after the last segment.

pub(crate) mod behind;
pub(crate) mod codec;
pub mod delta;
pub(crate) mod fold;
pub(crate) mod format;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use memory::MemorySaver;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSaver, SqliteSaverBuilder, Synchronous};

use std::sync::Arc;

use async_trait::async_trait;

use crate::context::{CheckpointId, TaskId};
use crate::error::{Code, Error};

/// A store for checkpoints. All calls may come from many threads at once.
///
/// A failing store answers with [`Code::Store`]; a lost race with [`Code::Stale`] (see [`stale`]).
#[async_trait]
pub trait Checkpointer: Send + Sync + 'static {
    /// The rows that make up the checkpoint `at`, oldest first, beginning with a full; and the pending writes
    /// on it. Without `at`, the newest checkpoint of the newest branch. `None` if there is none.
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, Error>;

    /// The row of one full or delta, without what it stands on.
    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Error>;

    /// Stores a checkpoint, in one transaction with its segment and with the removal of the pending writes it makes
    /// obsolete (those of the step before it, on its branch).
    ///
    /// Must fail with [`Code::Stale`], and change nothing, if the row is there already.
    async fn put(&self, put: Put<'_>) -> Result<(), Error>;

    /// [`put`](Checkpointer::put) for a store that needs no await for it; `None` means "call `put`".
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), Error>> {
        let _ = put;
        None
    }

    /// Stores pending writes on the checkpoint `at`, all or none. A write with the task and slot of an earlier one
    /// replaces it.
    async fn put_writes(
        &self,
        place: Place<'_>,
        at: CheckpointId,
        writes: &[PendingWrite],
    ) -> Result<(), Error>;

    /// The fulls and deltas of a thread, newest first.
    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Error>;

    /// The names of all threads, in alphabetical order.
    async fn threads(&self) -> Result<Vec<String>, Error>;

    /// Removes everything of a thread. No error if there is none.
    async fn delete_thread(&self, thread: &str) -> Result<(), Error>;
}

#[async_trait]
impl<C: Checkpointer + ?Sized> Checkpointer for Arc<C> {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, Error> {
        (**self).get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Error> {
        (**self).row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), Error> {
        (**self).put(put).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), Error>> {
        (**self).try_put(put)
    }

    async fn put_writes(
        &self,
        place: Place<'_>,
        at: CheckpointId,
        writes: &[PendingWrite],
    ) -> Result<(), Error> {
        (**self).put_writes(place, at, writes).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Error> {
        (**self).list(place, query).await
    }

    async fn threads(&self) -> Result<Vec<String>, Error> {
        (**self).threads().await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        (**self).delete_thread(thread).await
    }
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
    /// The writer's fence; 0 until threads are leased.
    pub fence: u64,
    /// Full or delta.
    pub kind: RowKind,
    /// The record's bytes.
    pub record: &'a [u8],
    /// A segment to be stored beside it.
    pub segment: Option<&'a [u8]>,
    /// Whether pending writes were stored on the step before.
    pub clears_writes: bool,
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
