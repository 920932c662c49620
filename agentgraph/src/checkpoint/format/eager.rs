//! What the header of an eager run's record holds besides: who is open, who merged, and who wrote what.
//!
//! `next` holds all open activations in a full, a segment and the first record of a run. A delta says instead which of them
//! have `ended` and which have `begun`, or have changed, so that a record is no larger than the change.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bytes, FormatError, Header, HeaderWriter, StoredActivation, StoredLimits, damaged, read};
use crate::context::TaskId;
use crate::failure::Failure;
use crate::words::Replaces;

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
    pub(crate) replaces: Option<Replaces>,
}

impl StoredSpot {
    /// Whether it is that of a request without a key, at the place of its number.
    pub(crate) fn follows_from_the_number(&self) -> bool {
        *self == StoredSpot::default()
    }
}

/// One commit of an eager run, as a replay needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredMerge {
    /// Its number.
    pub(crate) at: u64,
    /// The activation that ended: made by which commit, the place there, and its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<(u64, u32, String)>,
    /// The joins that fired because their time had come, by their places among the joins of the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) timed: Vec<u32>,
}

/// Dispatches of one command that are not all done, and the nodes of those that are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredGroup {
    pub(crate) made: u64,
    pub(crate) arrived: Vec<String>,
}

/// The last commit that wrote a channel of which two writers are too many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredWritten {
    pub(crate) channel: String,
    pub(crate) at: u64,
    pub(crate) by: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) overwrote: bool,
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

impl EagerHeader {
    /// A record's log is its own; everything else stands until a later one says otherwise.
    pub(super) fn begin_record(&mut self) {
        self.log.clear();
    }

    /// A new run has written nothing.
    pub(super) fn begin_run(&mut self) {
        *self = EagerHeader::default();
    }

    /// All of it, for a full record.
    pub(super) fn write_to(&self, header: &mut HeaderWriter<'_>) {
        let EagerHeader { log, groups, written, kept } = self;
        if !log.is_empty() {
            header.value("log", log);
        }
        if !written.is_empty() {
            header.value("written", written);
        }
        if !groups.is_empty() {
            header.value("groups", groups);
        }
        if !kept.is_empty() {
            header.value("kept", kept);
        }
    }

    /// The channels that this record wrote, by whoever its last commit merged.
    fn write(&mut self, channels: Vec<(String, bool)>) -> Result<(), FormatError> {
        let last = self.log.last().ok_or_else(|| damaged("it says what was written and not by whom"))?;
        let (at, by) = (last.at, last.ended.as_ref().map(|(_, _, node)| node.clone()).unwrap_or_default());
        for (channel, overwrote) in channels {
            self.written.retain(|written| written.channel != channel);
            self.written.push(StoredWritten { channel, at, by: by.clone(), overwrote });
        }
        Ok(())
    }
}

impl Header {
    /// Takes a key of an eager run over. False if it is none.
    pub(super) fn set_eager(&mut self, key: &str, value: &[u8]) -> Result<bool, FormatError> {
        match key {
            "log" => self.eager.log = read(key, value)?,
            "groups" => self.eager.groups = read(key, value)?,
            "written" => self.eager.written = read(key, value)?,
            "kept" => self.eager.kept = read(key, value)?,
            "writes" => self.eager.write(read(key, value)?)?,
            "ended" => {
                let ended: Vec<(u64, u32)> = read(key, value)?;
                let ended: std::collections::HashSet<_> = ended.into_iter().collect();
                self.next.retain(|activation| activation.key().is_none_or(|key| !ended.contains(&key)));
            }
            "begun" => {
                for begun in read::<Vec<StoredActivation>>(key, value)? {
                    self.begin(begun);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds an activation, in order of creation, or puts it in the place of what it was.
    fn begin(&mut self, begun: StoredActivation) {
        match self.next.binary_search_by_key(&begun.key(), StoredActivation::key) {
            Ok(at) => self.next[at] = begun,
            Err(at) => self.next.insert(at, begun),
        }
    }
}

impl StoredActivation {
    /// What tells it from all others of its run, if it is of an eager one.
    pub(crate) fn key(&self) -> Option<(u64, u32)> {
        self.eager.as_ref().map(|eager| (eager.made, eager.index))
    }
}
