//! [`Need`]: one thing that a driven run waits for, and its [`Reply`].

use std::fmt;
use std::time::Duration;

use super::commit::Commit;
use crate::context::host::{TaskCall, TaskReply};
use agentgraph_checkpoint::StoreError;

/// The number of a need in its run, counted from 1 in the order in which the run asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NeedId(pub(super) u64);

impl NeedId {
    /// The number.
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NeedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// Something that a driven run asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Need {
    /// Its id, for the reply.
    pub id: NeedId,
    /// What is asked for.
    pub kind: NeedKind,
}

/// What a driven run asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NeedKind {
    /// One attempt of a task. Reply with [`Reply::Task`] or [`Reply::HostFailed`].
    Task(Box<TaskCall>),
    /// A change of the thread's rows. Reply with [`Reply::Stored`].
    Store(StoreChange),
    /// A wait. Reply with [`Reply::Fired`] when it is over.
    Timer(Duration),
    /// The need with this id is not wanted any more: a task whose superstep was cut off, or a timer. A reply
    /// to it is ignored, and this needs no reply.
    Withdrawn,
}

/// The answer to a need.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reply {
    /// How the task ended.
    Task(TaskReply),
    /// The host could not run the task: the run fails with [`Code::Host`](crate::Code::Host).
    HostFailed(String),
    /// Whether the rows are stored.
    Stored(Result<(), StoreError>),
    /// The time has passed.
    Fired,
}

/// A change of the rows of a driven thread. The rows that a thread has after its last change are the ground
/// of its next run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreChange {
    /// Rows to write, in the order of their keys. Keys are opaque ASCII text; their order is that of the
    /// rows.
    pub set: Vec<(String, Vec<u8>)>,
    /// The keys of rows to remove, in order. None of them is in `set`.
    pub clear: Vec<String>,
    /// The same change for a store that keeps the history of the thread.
    pub commit: Option<Commit>,
}
