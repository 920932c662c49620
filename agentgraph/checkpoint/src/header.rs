//! Headers of consecutive records, added up without knowing their meaning.
//!
//! A key that a record leaves out has the value it had in the record before; a full repeats all keys.
//! Besides:
//!
//! - `source`, `abandoned`, `halt`, `wrote` and `log` belong to their own record only.
//! - `spent`, `stuck`, `log`, `groups`, `written` and `kept` belong to a run: a record with another `run`
//!   starts without them, so they come after `run` in a record that has both.
//! - Some keys add to another one: `edits` to the list `overlay`, `also_stuck` to the list `stuck`,
//!   `remembered` to the map `memories`, `outputs` to the map `outputs` of the records before.
//! - In an eager run, `ended` removes from the list `next` and `begun` adds to it (`open.rs`), and `writes`
//!   adds to `written`.
//!
//! Keys unknown to this release are kept like all others.

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod laws;
mod open;
mod parts;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::open::Open;
use self::parts::{RawList, RawMap};
use super::delta::{decode, encode};
use super::frame::{FormatError, HeaderWriter, complete, damaged, value_length};
use crate::row::RowKind;

/// The checkpoint (branch and step) that each memory of a thread continues from, by namespace.
pub type StoredMemories = BTreeMap<String, (u32, u64)>;

/// Keys that belong to their own record only.
const OF_A_RECORD: [&str; 5] = ["source", "abandoned", "halt", "wrote", "log"];

/// Keys that a record of another run starts without.
const OF_A_RUN: [&str; 6] = ["spent", "stuck", "log", "groups", "written", "kept"];

/// The header after some records: every key that a full would repeat, with its MessagePack value.
///
/// A clone shares keys and values, since most of them do not change for many steps.
#[derive(Clone, Debug, Default)]
pub struct HeaderMap {
    values: Vec<(Arc<str>, Value)>,
}

/// The value of a key. A value that other keys add to is split into parts only when one does.
#[derive(Clone, Debug)]
enum Value {
    Whole(Arc<[u8]>),
    List(RawList),
    Map(RawMap),
    Open(Open),
}

/// One commit of an eager run, as replay needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMerge {
    /// Its number.
    pub at: u64,
    /// The activation that ended: the commit that made it, its index there, and its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<(u64, u32, String)>,
    /// The joins that fired by timeout, by their indexes among the joins of the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<u32>,
}

/// The last commit that wrote a channel which allows one writer only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWritten {
    /// The name of the channel.
    pub channel: String,
    /// The number of the commit.
    pub at: u64,
    /// The node whose activation the commit merged; empty if it merged none.
    pub by: String,
    /// Whether the node overwrote the value instead of adding to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwrote: bool,
}

impl HeaderMap {
    /// Adds the header of the next record.
    pub fn apply(&mut self, header: &[u8]) -> Result<(), FormatError> {
        let mut rest = header;
        let count = rmp::decode::read_map_len(&mut rest).map_err(|_| damaged("its header is not a map"))?;
        self.forget(&OF_A_RECORD);
        if self.values.is_empty() {
            // The number is not trusted with memory.
            self.values.reserve(count.min(16) as usize);
        }
        for _ in 0..count {
            let (key, after) =
                rmp::decode::read_str_from_slice(rest).map_err(|_| damaged("a header key is not text"))?;
            let length = value_length(after)?;
            let (value, after) =
                after.split_at_checked(length).ok_or_else(|| damaged("its header is cut off"))?;
            self.add(key, value)?;
            rest = after;
        }
        match rest {
            [] => Ok(()),
            _ => Err(damaged("bytes follow its header")),
        }
    }

    fn add(&mut self, key: &str, value: &[u8]) -> Result<(), FormatError> {
        let added = match key {
            "run" => {
                self.begin_run(value);
                Some(())
            }
            "edits" => self.list("overlay").and_then(|list| list.extend(value)),
            "also_stuck" => self.list("stuck").and_then(|list| list.extend(value)),
            "remembered" => self.map("memories").and_then(|map| map.extend(value)),
            "outputs" => self.map("outputs").and_then(|map| map.extend(value)),
            "writes" => return self.add_writes(value),
            "ended" => self.open().and_then(|open| open.end(value)),
            "begun" => self.open().and_then(|open| open.begin(value)),
            _ => {
                self.set(key, value);
                Some(())
            }
        };
        added.ok_or_else(|| unfit(key, "it does not fit the value it must be added to"))
    }

    fn begin_run(&mut self, run: &[u8]) {
        let is_same = matches!(self.value("run"), Some(Value::Whole(known)) if **known == *run);
        if !is_same {
            self.forget(&OF_A_RUN);
            self.set("run", run);
        }
    }

    /// Records which channels the record wrote, under the node that its last commit merged.
    fn add_writes(&mut self, value: &[u8]) -> Result<(), FormatError> {
        let channels: Vec<(String, bool)> = read("writes", value)?;
        let log: Vec<StoredMerge> = self.get("log")?.unwrap_or_default();
        let last = log
            .last()
            .ok_or_else(|| damaged("it lists written channels and not the commit that wrote them"))?;
        let at = last.at;
        let by = last.ended.as_ref().map(|(_, _, node)| node.clone()).unwrap_or_default();
        let mut written: Vec<StoredWritten> = self.get("written")?.unwrap_or_default();
        for (channel, overwrote) in channels {
            written.retain(|written| written.channel != channel);
            written.push(StoredWritten { channel, at, by: by.clone(), overwrote });
        }
        let mut bytes = Vec::new();
        encode(&mut bytes, &written).map_err(|error| unfit("writes", error))?;
        self.set("written", &bytes);
        Ok(())
    }

    fn forget(&mut self, keys: &[&str]) {
        self.values.retain(|(key, _)| !keys.contains(&&**key));
    }

    fn set(&mut self, key: &str, bytes: &[u8]) {
        match self.value_mut(key) {
            Some(value) => value.set(bytes),
            None => self.values.push((key.into(), Value::Whole(bytes.into()))),
        }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| **known == *key).map(|(_, value)| value)
    }

    fn value_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.values.iter_mut().find(|(known, _)| **known == *key).map(|(_, value)| value)
    }

    /// Splits the value of a key by `part` and returns it; the value is empty if the key is new.
    fn split_value(&mut self, key: &str, part: impl FnOnce(&[u8]) -> Option<Value>) -> Option<&mut Value> {
        let at = self.values.iter().position(|(known, _)| **known == *key);
        let at = at.unwrap_or(self.values.len());
        if at == self.values.len() {
            // No bytes are read as an empty list or map.
            self.values.push((key.into(), Value::Whole(Arc::default())));
        }
        let (_, value) = self.values.get_mut(at)?;
        if let Value::Whole(bytes) = value {
            *value = part(bytes)?;
        }
        Some(value)
    }

    fn list(&mut self, key: &str) -> Option<&mut RawList> {
        match self.split_value(key, |bytes| RawList::of(bytes).map(Value::List))? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    fn map(&mut self, key: &str) -> Option<&mut RawMap> {
        match self.split_value(key, |bytes| RawMap::of(bytes).map(Value::Map))? {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    fn open(&mut self) -> Option<&mut Open> {
        match self.split_value("next", |bytes| Open::of(bytes).map(Value::Open))? {
            Value::Open(open) => Some(open),
            _ => None,
        }
    }

    /// The value of a key; `None` if no record contained it.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, FormatError> {
        self.value(key).map(|value| read(key, &value.bytes())).transpose()
    }

    /// Whether no header was added.
    #[cfg(feature = "encryption")]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The keys that a full would have, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cow<'_, [u8]>)> {
        self.values.iter().map(|(key, value)| (&**key, value.bytes()))
    }

    /// A full record with all of these keys.
    pub fn to_record(&self, operations: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        let mut header = HeaderWriter::begin(&mut record);
        // A reader drops the keys of the earlier run at `run`, so it comes first.
        let run = self.iter().filter(|(key, _)| *key == "run");
        for (key, value) in run.chain(self.iter().filter(|(key, _)| *key != "run")) {
            header.raw(key, |bytes| bytes.extend_from_slice(&value));
        }
        header.finish();
        complete(&mut record, RowKind::Full, operations);
        record
    }
}

impl Value {
    fn set(&mut self, bytes: &[u8]) {
        if let Value::Whole(value) = self
            && let Some(value) = Arc::get_mut(value).filter(|value| value.len() == bytes.len())
        {
            value.copy_from_slice(bytes);
        } else {
            *self = Value::Whole(bytes.into());
        }
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Whole(bytes) => Cow::Borrowed(bytes),
            Value::List(list) => Cow::Owned(list.to_bytes()),
            Value::Map(map) => Cow::Owned(map.to_bytes()),
            Value::Open(open) => Cow::Owned(open.to_bytes()),
        }
    }
}

/// The value of a header key.
pub fn read<'de, T: Deserialize<'de>>(key: &str, value: &'de [u8]) -> Result<T, FormatError> {
    decode(value).map_err(|error| unfit(key, error))
}

fn unfit(key: &str, problem: impl std::fmt::Display) -> FormatError {
    damaged(format!("its header key `{key}`: {problem}"))
}
