//! [`TaskReply`]: the end of an attempt on a host.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TaskCall;
use crate::context::Units;
use crate::record::blob::Blob;
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::services::from_micros;

/// The end of one attempt of a task on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReply {
    pub(crate) task: TaskId,
    pub(crate) attempt: u32,
    pub(crate) reply: Reply,
    /// The time on the far side when the attempt ended, in microseconds since 1970.
    pub(crate) at: u64,
    /// The sessions that the attempt has changed, by name.
    pub(crate) sessions: Vec<(String, Blob)>,
    /// The units that the attempt has spent.
    pub(crate) spent: Units,
    /// Whether the node has asked for a drain of its run.
    pub(crate) drains: bool,
    /// The durable steps of the task, in this attempt and earlier ones.
    pub(crate) durable_steps: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done(Blob),
    /// It leaves its subgraph, with targets and an update of the graph around it.
    Leaves {
        step: Blob,
        /// The type of the update, if it is one of another state.
        foreign: Option<String>,
    },
    /// The questions without an answer, as MessagePack.
    Waits(Blob),
    /// The questions without an answer, and the answers that the node refused, as MessagePack.
    RefusesAnswers(Blob),
    /// The n-th answer could not be decoded, with the schema that the task asks with now.
    Refused {
        n: u32,
        problem: String,
        schema: Option<Value>,
    },
    /// The failure, as MessagePack.
    Failed(Blob),
    /// The attempt failed, and the node's retry policy wants another one after a wait.
    Again {
        failure: Blob,
        wait: Duration,
        attempt: u32,
    },
}

impl TaskReply {
    /// The task that it belongs to.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The attempt that it ends.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether it answers this call. A run refuses any other reply with
    /// [`Code::Host`](crate::Code::Host).
    pub fn answers(&self, call: &TaskCall) -> bool {
        (self.task, self.attempt) == (call.task, call.attempt)
    }

    /// The time on the far side when the attempt ended.
    pub fn at(&self) -> SystemTime {
        from_micros(self.at)
    }

    /// Whether the task is done, so that no further attempt of it follows.
    pub fn is_done(&self) -> bool {
        matches!(self.reply, Reply::Done(_) | Reply::Leaves { .. })
    }

    /// The number of durable steps of the task whose results are in the store of
    /// [`FarSide::once_in`](super::FarSide::once_in). Once the run has stored the end of the task,
    /// [`forget_once`](crate::host::forget_once) deletes them.
    pub fn durable_steps(&self) -> u32 {
        self.durable_steps
    }

    /// The wait before the next attempt, and its number, if this one failed and the node's retry policy wants
    /// another one. The run waits by its own services, and sends the next call itself: a host only passes the
    /// reply on.
    pub fn again(&self) -> Option<(Duration, u32)> {
        match &self.reply {
            Reply::Again { wait, attempt, .. } => Some((*wait, *attempt)),
            _ => None,
        }
    }
}
