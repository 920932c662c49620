//! The task of an event, and how a task ended.

use agentgraph_checkpoint::TaskId;

use crate::error::Code;

/// The task of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRef {
    /// Its id; the same in every process, and part of the ids of its interrupts.
    pub id: TaskId,
    /// Its index in the task order of its superstep.
    pub index: u32,
    /// The attempt under the node's retry policy, from 1: the attempt that an event happened in, or the last
    /// one for the task's update and its end. A call that runs the task again counts from 1.
    pub attempt: u32,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// It is done.
    Done,
    /// It failed, with this code and text.
    Failed(Code, String),
    /// It waits for an answer.
    Interrupted,
    /// A run inside it was stopped, and continues together with its parent run.
    Stopped,
    /// It is done: its update came from the node's [cache](crate::IntoNode::cache). A hit in another process
    /// is reported as `Done`.
    Cached,
    /// It was skipped by a temporary edit: the last output of its node is used again.
    Skipped,
}
