//! The messages between clients, threads, steps and tasks. All are serde values without the types of a state,
//! with their fields in a fixed order.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::host::{RunCall, RunEnd, TaskCall, TaskReply, ThreadState};
use agentgraph::{CheckpointId, Code, Error, View};
use serde::{Deserialize, Serialize};

/// A time in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Micros(u64);

impl Micros {
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    /// The time since an earlier one.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn time(self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_micros(self.0)).unwrap_or(UNIX_EPOCH)
    }
}

/// The headers of a caller's request, by lower-case name.
pub(crate) type SentHeaders = BTreeMap<String, String>;

/// What a client asks of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadRequest {
    pub(crate) call: RunCall,
    pub(crate) at: Micros,
    #[serde(default, skip_serializing_if = "SentHeaders::is_empty")]
    pub(crate) headers: SentHeaders,
    /// Whether an interrupt is waited for in the call.
    #[serde(default)]
    pub(crate) waits: bool,
    /// The name of the call for those who read its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

/// What a thread asks of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DriveRequest {
    pub(crate) call: RunCall,
    pub(crate) at: Micros,
    pub(crate) about: CallInfo,
}

/// What travels with a call to each of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallInfo {
    #[serde(default, skip_serializing_if = "SentHeaders::is_empty")]
    pub(crate) headers: SentHeaders,
    /// The name of the call, if its events are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The events that are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) views: Vec<View>,
}

/// How an invocation of the steps ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Driven {
    /// The call has ended.
    Ended(RunEnd),
    /// The invocation has made its share of supersteps, and the call goes on.
    More { steps: u64, at: Micros },
    /// The call could not be started or continued.
    Refused(SentProblem),
}

/// An error without a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentProblem {
    code: String,
    message: String,
}

impl From<&Error> for SentProblem {
    fn from(error: &Error) -> Self {
        SentProblem { code: error.code().as_str().to_owned(), message: error.message().to_owned() }
    }
}

impl From<SentProblem> for Error {
    fn from(sent: SentProblem) -> Self {
        error_of(&sent.code, sent.message)
    }
}

/// An error with the code of this text. A code that this release does not know is [`Code::Host`].
pub(crate) fn error_of(code: &str, message: String) -> Error {
    match Code::ALL.iter().find(|known| known.as_str() == code) {
        Some(known) => Error::new(*known, message),
        None => Error::new(Code::Host, format!("{code}: {message}")),
    }
}

/// A task for a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskMessage {
    /// Without its state if that is large.
    pub(crate) call: Box<TaskCall>,
    /// The payload of the state, by hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) about: CallInfo,
    /// The bytes that its end may take.
    pub(crate) room: u64,
}

/// The end of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum TaskEnd {
    Reply(TaskReply),
    /// The worker could not run the task.
    Failed(String),
}

/// What is done with a thread beside its calls. It is sealed like a call, so that it takes the keys, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Cancel,
    Drain,
    Delete,
    Settle,
}

/// What is read of a thread, without a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Look {
    State,
    History {
        limit: Option<u64>,
        before: Option<CheckpointId>,
    },
    /// A part of a blob.
    Blob {
        hash: [u8; 32],
        from: u64,
    },
}

/// The answer to a look.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Seen {
    State(Option<Box<ThreadState>>),
    History(Vec<ThreadState>),
    Refused(SentProblem),
}
