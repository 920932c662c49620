//! The task that an event is about, and how it ended.

use agentgraph_checkpoint::TaskId;

use crate::error::Code;

/// The task that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRef {
    /// Its id; the same in every process, and part of the ids of its interrupts.
    pub id: TaskId,
    /// Its place in the task order of its superstep.
    pub index: u32,
    /// The attempt under the node's retry policy, counted from 1; 1 for what is said of the task as a whole.
    pub attempt: u32,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// It is done.
    Done,
    /// It failed, with that code and text.
    Failed(Code, String),
    /// It waits for an answer.
    Interrupted,
    /// A run inside it was stopped, and goes on from there with the run around it.
    Stopped,
    /// It was not run: a temporary edit skipped it, and what its node gave before is used again.
    Skipped,
}
