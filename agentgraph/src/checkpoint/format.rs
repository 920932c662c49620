//! The record format: the only place that knows how stored bytes are laid out.
//!
//! ```text
//! record  = format:u8  length:u32be  header  operations
//! header  = msgpack map of text keys, `length` bytes
//! ```
//!
//! A header key that a delta leaves out has the value it had in the record before; a full repeats them all. Keys that
//! this release does not know are kept and written again with the next full. The operations are those of `delta.rs`,
//! on fields numbered by the table of the newest full.
//!
//! Keys of format 1: `run`, `source`, `time` (microseconds since 1970), `next` (the frontier), `joins` (those whose round has begun), `deferred` (nodes that wait),
//! `abandoned`, `halt` (a static interrupt after these nodes), `session` (name to value of each), `spent` (what the run has used up; after `run`, which sets it back), and in fulls `fields`, `fingerprint`, `discipline`, `schema` (version), `fence`, `codec`, `parent`.
//! `memories` is a map of the memories of subgraphs to the checkpoints that they go on from, `remembered` adds to it.
//! Records of a subgraph's namespace also have `call` (whose call its newest run is), and `wrote` (the sum of the record's updates, if its node gives them on).
//! `ahead` is by how much the number that task ids are made of is ahead of the record's own.
//! `overlay` is the list of temporary edits that hold, `edits` adds to it, `skips` names the nodes that are skipped next. `outputs` is a map of what nodes gave last, which adds to that of the records before.
//! `stuck` is the list of joins that still waited when subgraphs of the run ended, `also_stuck` adds to it; both come after `run`, which empties it.
//! Records of an eager run also have `log`, `groups`, `written`, `writes`, `kept`, `ended` and `begun`: see `format/eager.rs`.
//! Reserved for later: `key`. An encrypted record is none of this: it begins with `0xc1`, which is no format, and is laid out in
//! `encrypted/seal.rs`.

mod eager;
mod limits;

pub(crate) use eager::{
    EagerHeader, StoredEager, StoredGroup, StoredLeft, StoredMerge, StoredSpot, StoredState, StoredWritten,
};
pub(crate) use limits::StoredLimits;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::delta::{encode, text, uint};
use crate::context::{RunId, TaskId};
use crate::words::{GraphEdit, Spent};

/// The format this release writes, and the newest it reads.
pub(crate) const FORMAT: u8 = 1;

/// The first byte of what is encrypted, records and pending writes: neither a format nor a marker of MessagePack.
pub(crate) const SEALED: u8 = 0xc1;

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("it has format {0}, and this release reads up to {FORMAT}: update agentgraph")]
    Newer(u8),
    #[error("{NEEDS_KEY}")]
    Sealed,
    #[error("{0}")]
    Damaged(String),
}

/// What is to be done about encrypted bytes where nobody has a key.
pub(crate) const NEEDS_KEY: &str = "it is encrypted: give the graph an `EncryptedSaver` before its store, with the key it was encrypted with";

pub(crate) fn damaged(problem: impl Into<String>) -> FormatError {
    FormatError::Damaged(problem.into())
}

/// Why a checkpoint was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A run began: this is its input.
    Input,
    /// A superstep.
    #[default]
    Loop,
    /// Somebody edited the state.
    Update,
    /// A copy, where a branch begins.
    Fork,
}

/// One task to come, by the names that survive a change of the graph. A node that was reached by an edge is stored as
/// its name alone, a dispatch as a map, an activation of an eager run as a map of other keys. Both maps have `limits` if time
/// limits were given with the dispatch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredActivation {
    pub(crate) node: String,
    pub(crate) dispatch: Option<StoredDispatch>,
    pub(crate) eager: Option<Box<StoredEager>>,
}

/// The map of an activation, as it is read.
#[derive(Deserialize)]
struct StoredMap {
    node: String,
    /// Of an eager run; it then has the keys of a [`StoredEager`].
    #[serde(default)]
    made: Option<u64>,
    from: String,
    #[serde(default)]
    index: u32,
    #[serde(default)]
    input: Option<Bytes>,
    #[serde(default)]
    read: Option<(u32, u64)>,
    #[serde(default)]
    read_at: Option<u64>,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    left: Option<StoredLeft>,
    #[serde(default)]
    age: Option<u32>,
    #[serde(default)]
    limits: Option<StoredLimits>,
}

impl StoredMap {
    fn into_activation(self) -> Option<StoredActivation> {
        let StoredMap { node, made, from, index, input, read, read_at, after, left, age, limits } = self;
        let (dispatch, eager) = match made {
            Some(made) => {
                let node = node.clone();
                (
                    None,
                    Some(Box::new(StoredEager {
                        node,
                        from,
                        made,
                        index,
                        read,
                        read_at,
                        input,
                        after,
                        left,
                        age,
                        limits,
                    })),
                )
            }
            None => (Some(StoredDispatch { node: node.clone(), from, index, input: input?, limits }), None),
        };
        Some(StoredActivation { node, dispatch, eager })
    }
}

/// What a stored dispatch has besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredDispatch {
    pub(crate) node: String,
    /// The dispatching node.
    pub(crate) from: String,
    /// Its place among the dispatches of the frontier.
    pub(crate) index: u32,
    pub(crate) input: Bytes,
    /// The time limits that were given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<StoredLimits>,
}

impl Serialize for StoredActivation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.dispatch, &self.eager) {
            (_, Some(eager)) => eager.serialize(serializer),
            (Some(dispatch), None) => dispatch.serialize(serializer),
            (None, None) => serializer.serialize_str(&self.node),
        }
    }
}

impl<'de> Deserialize<'de> for StoredActivation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;
        impl<'de> Visitor<'de> for NameOrMap {
            type Value = StoredActivation;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a node's name or a dispatch")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<StoredActivation, E> {
                Ok(StoredActivation { node: name.to_owned(), dispatch: None, eager: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StoredActivation, A::Error> {
                let map = StoredMap::deserialize(MapAccessDeserializer::new(map))?;
                map.into_activation().ok_or_else(|| serde::de::Error::missing_field("input"))
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

/// Whose call the newest run of a subgraph's namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    /// The task of the graph around it.
    pub(crate) task: TaskId,
    /// Its result is the sum of its updates, so that each record holds those it merged.
    #[serde(default)]
    pub(crate) updates: bool,
    /// The run around it names the checkpoint that the memory goes on from. Earlier releases went on from the newest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_named: bool,
    /// The newest checkpoint that such a release left in the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unnamed: Option<(u32, u64)>,
}

/// The checkpoint that each memory of a thread goes on from, branch and step, by namespace.
pub(crate) type StoredMemories = BTreeMap<String, (u32, u64)>;

/// A join whose round has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredJoin {
    pub(crate) sources: Vec<String>,
    pub(crate) to: String,
    pub(crate) arrived: Vec<String>,
    /// It has fired in this round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fired: bool,
    /// When it fires with what is there, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<u64>,
}

/// A join that was still waiting when its subgraph ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredStuck {
    pub(crate) namespace: String,
    pub(crate) to: String,
    pub(crate) arrived: Vec<String>,
    pub(crate) missing: Vec<String>,
}

/// Bytes that serde writes as MessagePack `bin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// [`Bytes`] that somebody else has.
pub(crate) struct BytesOf<'a>(pub(crate) &'a [u8]);

impl Serialize for BytesOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyBytes;
        impl Visitor<'_> for AnyBytes {
            type Value = Bytes;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(AnyBytes)
    }
}

/// A header as it stands after some records: every key that a full would repeat.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) run: RunId,
    pub(crate) source: Source,
    pub(crate) time: u64,
    pub(crate) next: Vec<StoredActivation>,
    pub(crate) joins: Vec<StoredJoin>,
    /// Deferred nodes that were reached and wait.
    pub(crate) deferred: Vec<String>,
    pub(crate) abandoned: Option<RunId>,
    pub(crate) fields: Vec<String>,
    pub(crate) fingerprint: String,
    pub(crate) discipline: String,
    pub(crate) schema: u32,
    pub(crate) fence: u64,
    /// Flags of the codec: compression and encryption, none yet.
    pub(crate) codec: u32,
    pub(crate) parent: Option<(u32, u64)>,
    /// The nodes after which a static interrupt stops the run here.
    pub(crate) halt: Vec<String>,
    /// The run's sessions: name and MessagePack of each.
    pub(crate) session: Vec<(String, Bytes)>,
    /// What the run has used up.
    pub(crate) spent: Spent,
    pub(crate) call: Option<StoredCall>,
    /// The sum of the updates that this record merged.
    pub(crate) wrote: Option<Bytes>,
    /// By how much the number that task ids are made of is ahead of the record's own.
    pub(crate) ahead: u64,
    /// What only eager runs have.
    pub(crate) eager: EagerHeader,
    /// The temporary edits that hold, in order.
    pub(crate) overlay: Vec<GraphEdit>,
    /// Nodes that are skipped when they are reached next.
    pub(crate) skips: Vec<String>,
    /// What nodes gave last, of those that keep it.
    pub(crate) outputs: BTreeMap<String, Bytes>,
    /// The checkpoints that memories go on from.
    pub(crate) memories: StoredMemories,
    /// Joins of subgraphs that the run has called, which were still waiting when these ended.
    pub(crate) stuck: Vec<StoredStuck>,
    /// What this release does not know: key and MessagePack value.
    pub(crate) unknown: Vec<(String, Vec<u8>)>,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            run: RunId::from_u128(0),
            source: Source::Loop,
            time: 0,
            next: Vec::new(),
            joins: Vec::new(),
            deferred: Vec::new(),
            abandoned: None,
            fields: Vec::new(),
            fingerprint: String::new(),
            discipline: "superstep".into(),
            schema: 0,
            fence: 0,
            codec: 0,
            parent: None,
            halt: Vec::new(),
            session: Vec::new(),
            spent: Spent::default(),
            call: None,
            wrote: None,
            ahead: 0,
            eager: EagerHeader::default(),
            overlay: Vec::new(),
            skips: Vec::new(),
            outputs: BTreeMap::new(),
            memories: StoredMemories::new(),
            stuck: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl Header {
    /// Takes over what a later record's header says.
    pub(crate) fn update(&mut self, header: &[u8]) -> Result<(), FormatError> {
        let mut rest = header;
        let count = rmp::decode::read_map_len(&mut rest).map_err(|_| damaged("its header is not a map"))?;
        self.source = Source::Loop;
        self.abandoned = None;
        self.halt.clear();
        self.wrote = None;
        self.eager.begin_record();
        for _ in 0..count {
            let (key, after) =
                rmp::decode::read_str_from_slice(rest).map_err(|_| damaged("a header key is not text"))?;
            let length = value_length(after)?;
            let (value, after) =
                after.split_at_checked(length).ok_or_else(|| damaged("its header is cut off"))?;
            self.set(key, value)?;
            rest = after;
        }
        match rest {
            [] => Ok(()),
            _ => Err(damaged("bytes follow its header")),
        }
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), FormatError> {
        match key {
            "run" => {
                let run = read(key, value)?;
                if self.run != run {
                    self.spent = Spent::default();
                    self.eager.begin_run();
                    self.stuck.clear();
                }
                self.run = run;
            }
            "source" => self.source = read(key, value)?,
            "time" => self.time = read(key, value)?,
            "next" => self.next = read(key, value)?,
            "joins" => self.joins = read(key, value)?,
            "deferred" => self.deferred = read(key, value)?,
            "abandoned" => self.abandoned = Some(read(key, value)?),
            "fields" => self.fields = read(key, value)?,
            "fingerprint" => self.fingerprint = read(key, value)?,
            "discipline" => self.discipline = read(key, value)?,
            "schema" => self.schema = read(key, value)?,
            "fence" => self.fence = read(key, value)?,
            "codec" => self.codec = read(key, value)?,
            "parent" => self.parent = read(key, value)?,
            "halt" => self.halt = read(key, value)?,
            "session" => self.session = read(key, value)?,
            "spent" => self.spent = read(key, value)?,
            "call" => self.call = read(key, value)?,
            "wrote" => self.wrote = Some(read(key, value)?),
            "ahead" => self.ahead = read(key, value)?,
            "overlay" => self.overlay = read(key, value)?,
            "edits" => self.overlay.extend(read::<Vec<GraphEdit>>(key, value)?),
            "skips" => self.skips = read(key, value)?,
            "outputs" => self.outputs.extend(read::<BTreeMap<String, Bytes>>(key, value)?),
            "memories" => self.memories = read(key, value)?,
            "remembered" => self.memories.extend(read::<StoredMemories>(key, value)?),
            "stuck" => self.stuck = read(key, value)?,
            "also_stuck" => self.stuck.extend(read::<Vec<StoredStuck>>(key, value)?),
            _ if self.set_eager(key, value)? => {}
            _ => {
                self.unknown.retain(|(known, _)| known != key);
                self.unknown.push((key.to_owned(), value.to_vec()));
            }
        }
        Ok(())
    }

    /// A full record that says all of this.
    pub(crate) fn to_record(&self, operations: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        let mut header = HeaderWriter::begin(&mut record);
        header.number("time", self.time);
        header.value("next", &self.next);
        header.value("run", &self.run);
        header.value("joins", &self.joins);
        header.value("fields", &self.fields);
        header.value("fingerprint", &self.fingerprint);
        header.value("discipline", &self.discipline);
        header.value("schema", &self.schema);
        header.value("fence", &self.fence);
        header.value("codec", &self.codec);
        header.value("spent", &self.spent);
        if self.source != Source::Loop {
            header.value("source", &self.source);
        }
        if let Some(abandoned) = &self.abandoned {
            header.value("abandoned", abandoned);
        }
        if !self.halt.is_empty() {
            header.value("halt", &self.halt);
        }
        if let Some(call) = &self.call {
            header.value("call", call);
        }
        if let Some(wrote) = &self.wrote {
            header.value("wrote", wrote);
        }
        if self.ahead > 0 {
            header.number("ahead", self.ahead);
        }
        if !self.deferred.is_empty() {
            header.value("deferred", &self.deferred);
        }
        if !self.session.is_empty() {
            header.value("session", &self.session);
        }
        if let Some(parent) = &self.parent {
            header.value("parent", parent);
        }
        if !self.overlay.is_empty() {
            header.value("overlay", &self.overlay);
        }
        if !self.skips.is_empty() {
            header.value("skips", &self.skips);
        }
        if !self.outputs.is_empty() {
            header.value("outputs", &self.outputs);
        }
        if !self.memories.is_empty() {
            header.value("memories", &self.memories);
        }
        if !self.stuck.is_empty() {
            header.value("stuck", &self.stuck);
        }
        self.eager.write_to(&mut header);
        for (key, value) in &self.unknown {
            header.raw(key, |bytes| bytes.extend_from_slice(value));
        }
        header.finish(operations);
        record
    }

    pub(crate) fn time(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_micros(self.time)).unwrap_or(UNIX_EPOCH)
    }
}

fn read<'de, T: Deserialize<'de>>(key: &str, value: &'de [u8]) -> Result<T, FormatError> {
    super::delta::decode(value).map_err(|error| damaged(format!("its header key `{key}`: {error}")))
}

/// The microseconds since 1970; 0 for times before.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let Ok(since) = time.duration_since(UNIX_EPOCH) else { return 0 };
    since.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(since.subsec_micros()))
}

/// The two parts of a record.
pub(crate) struct RecordView<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) operations: &'a [u8],
}

pub(crate) fn open(record: &[u8]) -> Result<RecordView<'_>, FormatError> {
    let [format, length @ ..] = record else { return Err(damaged("it is empty")) };
    match *format {
        FORMAT => {}
        0 => return Err(damaged("it has format 0, which was never written")),
        SEALED => return Err(FormatError::Sealed),
        newer => return Err(FormatError::Newer(newer)),
    }
    let (length, rest) = length.split_first_chunk::<4>().ok_or_else(|| damaged("it is cut off"))?;
    let length = u32::from_be_bytes(*length) as usize;
    let (header, operations) =
        rest.split_at_checked(length).ok_or_else(|| damaged("its header is cut off"))?;
    Ok(RecordView { header, operations })
}

/// Writes a record's header, key by key, into a buffer that lives as long as the run.
///
/// The map's length is written last: it is a `map 16`, whose two bytes are filled in by [`finish`](Self::finish).
pub(crate) struct HeaderWriter<'a> {
    bytes: &'a mut Vec<u8>,
    keys: u16,
}

/// Keys of a header and their values, encoded once and written often.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    bytes: Vec<u8>,
    keys: u16,
}

impl Pairs {
    pub(crate) fn of(write: impl FnOnce(&mut HeaderWriter<'_>)) -> Self {
        let mut bytes = Vec::new();
        let mut header = HeaderWriter { bytes: &mut bytes, keys: 0 };
        write(&mut header);
        let keys = header.keys;
        Pairs { bytes, keys }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

const HEAD: usize = 5;

impl<'a> HeaderWriter<'a> {
    pub(crate) fn begin(bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        bytes.extend_from_slice(&[FORMAT, 0, 0, 0, 0, 0xde, 0, 0]);
        HeaderWriter { bytes, keys: 0 }
    }

    /// A value that serde writes. Header values are of our own types, which all can be encoded.
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let start = self.bytes.len();
        let written = text(self.bytes, key).and_then(|()| encode(self.bytes, value));
        match written {
            Ok(()) => self.keys += 1,
            Err(_) => self.bytes.truncate(start),
        }
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.raw(key, |bytes| uint(bytes, value));
    }

    /// A value that the caller writes.
    #[inline]
    pub(crate) fn raw(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if text(self.bytes, key).is_ok() {
            write(self.bytes);
            self.keys += 1;
        }
    }

    /// Pairs of keys and values that were written before.
    pub(crate) fn pairs(&mut self, pairs: &Pairs) {
        self.bytes.extend_from_slice(&pairs.bytes);
        self.keys += pairs.keys;
    }

    /// Completes the record with its operations.
    pub(crate) fn finish(self, operations: &[u8]) {
        let length = u32::try_from(self.bytes.len() - HEAD).unwrap_or(u32::MAX);
        self.bytes[1..HEAD].copy_from_slice(&length.to_be_bytes());
        self.bytes[HEAD + 1..HEAD + 3].copy_from_slice(&self.keys.to_be_bytes());
        self.bytes.extend_from_slice(operations);
    }
}

/// The length of the MessagePack value at the start of `bytes`, without building it. Not recursive: nested values
/// are counted, so hostile depth costs nothing.
pub(crate) fn value_length(bytes: &[u8]) -> Result<usize, FormatError> {
    let mut at = 0;
    let mut pending: u64 = 1;
    while pending > 0 {
        let marker = *bytes.get(at).ok_or_else(|| damaged("a value is cut off"))?;
        let (head, body, inside) = shape(marker, &bytes[at..])?;
        at = at
            .checked_add(head + body)
            .filter(|end| *end <= bytes.len())
            .ok_or_else(|| damaged("a value is cut off"))?;
        pending = pending - 1 + inside;
    }
    Ok(at)
}

/// Of one value: the bytes of its head, of its own body, and how many values follow inside it.
pub(crate) fn shape(marker: u8, bytes: &[u8]) -> Result<(usize, usize, u64), FormatError> {
    let long = |width: usize| -> Result<u64, FormatError> {
        let digits = bytes.get(1..1 + width).ok_or_else(|| damaged("a value is cut off"))?;
        Ok(digits.iter().fold(0, |number, digit| (number << 8) | u64::from(*digit)))
    };
    let sized = |width: usize, extra: usize| Ok((1 + width + extra, long(width)? as usize, 0));
    let nested = |width: usize, each: u64| Ok((1 + width, 0, long(width)? * each));
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Ok((1, 0, 0)),
        0x80..=0x8f => Ok((1, 0, u64::from(marker & 0x0f) * 2)),
        0x90..=0x9f => Ok((1, 0, u64::from(marker & 0x0f))),
        0xa0..=0xbf => Ok((1, usize::from(marker & 0x1f), 0)),
        0xc4 | 0xd9 => sized(1, 0),
        0xc5 | 0xda => sized(2, 0),
        0xc6 | 0xdb => sized(4, 0),
        0xc7 => sized(1, 1),
        0xc8 => sized(2, 1),
        0xc9 => sized(4, 1),
        0xcc | 0xd0 => Ok((1, 1, 0)),
        0xcd | 0xd1 => Ok((1, 2, 0)),
        0xca | 0xce | 0xd2 => Ok((1, 4, 0)),
        0xcb | 0xcf | 0xd3 => Ok((1, 8, 0)),
        0xd4..=0xd8 => Ok((2, 1 << (marker - 0xd4), 0)),
        0xdc => nested(2, 1),
        0xdd => nested(4, 1),
        0xde => nested(2, 2),
        0xdf => nested(4, 2),
        0xc1 => Err(damaged("a value has a marker that MessagePack does not use")),
    }
}
