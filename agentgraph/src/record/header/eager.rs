//! The further keys in the header of an eager run: open activations, merges, and writes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bytes, StoredLimits};
use crate::failure::Failure;
use crate::record::once::StoredOnce;
use crate::words::VoidedQuestion;
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::header::{StoredMerge, StoredWritten};

/// An activation of an eager run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredEager {
    pub(crate) node: String,
    /// The node that led to it.
    pub(crate) from: String,
    /// The number of the commit that made it.
    pub(crate) made: u64,
    /// Its index among those that this commit made.
    #[serde(default)]
    pub(crate) index: u32,
    /// The checkpoint whose state it reads; `None` if that state is in `kept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<(u32, u64)>,
    /// The number of the commit whose state it reads, if that commit did not make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_at: Option<u64>,
    /// The input of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Bytes>,
    /// The static interrupt after this node holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<StoredLeft>,
    /// The number of earlier nodes with the same name, if its own node was removed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) age: Option<u32>,
    /// The time limits of the dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<StoredLimits>,
}

/// The results so far of an open activation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredLeft {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) requests: Vec<(u32, String, Value, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<(u32, Value)>,
    /// The spots of requests and the questions they replace, where these do not follow from the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spots: Vec<(u32, StoredSpot)>,
    /// The requests whose answers are not delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) voided: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    /// The error of its last call, if no handler has taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// The task whose call of a subgraph it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<TaskId>,
    /// The results of its durable steps, by place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) once: Vec<(u32, StoredOnce)>,
    /// The caller was informed of the static interrupt that held it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) told: bool,
}

/// The spot of a request, and the question it replaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredSpot {
    /// Its index among the questions without a key, if that is not its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nth: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<VoidedQuestion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sleep: Option<StoredSleep>,
}

/// A sleep: its name, its index among the sleeps of that name, and its end in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredSleep {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) nth: u32,
    pub(crate) until: u64,
}

fn is_first(nth: &u32) -> bool {
    *nth == 0
}

impl StoredSpot {
    /// Whether this is the spot of a request without a key whose index is its number.
    pub(crate) fn follows_from_the_number(&self) -> bool {
        *self == StoredSpot::default()
    }
}

/// Dispatches of one command that are not all done, and the nodes of those that are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredGroup {
    pub(crate) made: u64,
    pub(crate) arrived: Vec<String>,
}

/// A state that an open activation reads and no checkpoint contains: its channels by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    pub(crate) made: u64,
    pub(crate) version: u32,
    pub(crate) channels: Vec<(String, Bytes)>,
}

/// The keys of eager runs in a header.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EagerHeader {
    /// The commits that this record contains; several if they were deferred.
    pub(crate) log: Vec<StoredMerge>,
    pub(crate) groups: Vec<StoredGroup>,
    pub(crate) written: Vec<StoredWritten>,
    pub(crate) kept: Vec<StoredState>,
}
