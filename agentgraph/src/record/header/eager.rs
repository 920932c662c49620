//! What the header of an eager run's record holds besides: who is open, who merged, and who wrote what.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bytes, StoredLimits};
use crate::failure::Failure;
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
    /// Its place among those that this commit made.
    #[serde(default)]
    pub(crate) index: u32,
    /// The checkpoint whose state it reads; none if that state is among those that are `kept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<(u32, u64)>,
    /// The number of the commit whose state that is, if it did not make the activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_at: Option<u64>,
    /// Of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Bytes>,
    /// A static interrupt after this node holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<StoredLeft>,
    /// So many nodes had its node's name before that one, which is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) age: Option<u32>,
    /// The time limits that were given with the dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<StoredLimits>,
}

/// What an open activation has behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredLeft {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) requests: Vec<(u32, String, Value, Option<Value>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<(u32, Value)>,
    /// Where requests were asked and in whose place, of those where that does not follow from their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spots: Vec<(u32, StoredSpot)>,
    /// The requests whose answers are delivered to nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) voided: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    /// The error of its last call, if no handler has taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// The task whose call of a subgraph it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<TaskId>,
    /// The caller was told of the static interrupt that held it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) told: bool,
}

/// Where a task asked a request, and in whose place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredSpot {
    /// Its place among the questions without a key, if its number is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nth: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<VoidedQuestion>,
}

impl StoredSpot {
    /// Whether it is that of a request without a key, at the place of its number.
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

/// A state that an open activation reads and no checkpoint holds: its channels by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    pub(crate) made: u64,
    pub(crate) version: u32,
    pub(crate) channels: Vec<(String, Bytes)>,
}

/// The keys of eager runs in a header.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EagerHeader {
    /// The commits that this record stands for; several if they were put off.
    pub(crate) log: Vec<StoredMerge>,
    pub(crate) groups: Vec<StoredGroup>,
    pub(crate) written: Vec<StoredWritten>,
    pub(crate) kept: Vec<StoredState>,
}
