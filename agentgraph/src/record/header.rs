//! The header of a record in this release's types.
//!
//! In the package of the stores, `frame.rs` divides the bytes and `header.rs` adds up headers. Keys of
//! format 1:
//!
//! - of the run: `run`, `source`, `time` (microseconds since 1970), `spent` (the resources it has used),
//!   `session` (name to value of each), `abandoned`, `ahead` (offset between the step used in task ids and
//!   the record's own step);
//! - its position: `next` (the frontier), `joins` (those whose round has started), `deferred` (nodes that
//!   wait), `halt` (a static interrupt after these nodes), `stuck` (joins that still waited when subgraphs
//!   of the run ended);
//! - temporary edits: `overlay` (the current edits), `skips` (the nodes that are skipped next), `outputs`
//!   (the last outputs of nodes);
//! - of subgraphs: `memories` (the checkpoints that they continue from), and in a subgraph's namespace
//!   `call` (the call of its newest run) and `wrote` (the sum of the record's updates, if its node returns
//!   them);
//! - in fulls: `fields`, `fingerprint`, `discipline`, `schema` (version), `fence`, `codec`, `parent`;
//! - of an eager run: `log`, `groups`, `written`, `kept`, see `header/eager.rs`;
//! - reserved for later: `key`.
//!
//! Keys unknown to this release are kept, and written again with the next full.

mod eager;
mod limits;

pub(crate) use eager::{
    EagerHeader, StoredEager, StoredGroup, StoredLeft, StoredSleep, StoredSpot, StoredState,
};
pub(crate) use limits::StoredLimits;

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bytes::Bytes;
use crate::error::Error;
use crate::words::{GraphEdit, Spent};
use agentgraph_checkpoint::engine::{check_id, unreadable};
use agentgraph_checkpoint::frame::{FormatError, open};
use agentgraph_checkpoint::header::{HeaderMap, StoredMemories, read};
use agentgraph_checkpoint::services::from_micros;
use agentgraph_checkpoint::{Place, Row, RunId, Source, TaskId};

/// A next task, by the names that survive a change of the graph. A node that was reached by an edge is
/// stored as its name alone, a dispatch as a map, an activation of an eager run as a map with other keys.
/// Both maps have `limits` if the dispatch has time limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredActivation {
    pub(crate) node: String,
    pub(crate) dispatch: Option<StoredDispatch>,
    pub(crate) eager: Option<Box<StoredEager>>,
}

/// The map of an activation, for reading.
#[derive(Deserialize)]
struct StoredMap {
    node: String,
    /// In an eager run; the map then has the keys of a [`StoredEager`].
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

/// The fields of a stored dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredDispatch {
    pub(crate) node: String,
    /// The dispatching node.
    pub(crate) from: String,
    /// Its index among the dispatches of the frontier.
    pub(crate) index: u32,
    pub(crate) input: Bytes,
    /// Its time limits.
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

/// The call of the newest run of a subgraph's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    /// The task of the parent graph.
    pub(crate) task: TaskId,
    /// Its result is the sum of its updates, so each record contains the updates it merged.
    #[serde(default)]
    pub(crate) updates: bool,
    /// The parent run names the checkpoint that the memory continues from. Earlier releases continued from
    /// the newest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_named: bool,
    /// The newest checkpoint of the memory from such an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unnamed: Option<(u32, u64)>,
}

/// A join whose round has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredJoin {
    pub(crate) sources: Vec<String>,
    pub(crate) to: String,
    pub(crate) arrived: Vec<String>,
    /// It has fired in this round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fired: bool,
    /// When it fires with the sources that have arrived, in microseconds since 1970.
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

/// The header after some records: every key that a full would repeat. One field per key of the format.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// The resources the run has used.
    pub(crate) spent: Spent,
    pub(crate) call: Option<StoredCall>,
    /// The sum of the updates that this record merged.
    pub(crate) wrote: Option<Bytes>,
    /// Offset between the step used in task ids and the record's own step.
    pub(crate) ahead: u64,
    /// The keys of eager runs only.
    pub(crate) eager: EagerHeader,
    /// The current temporary edits, in order.
    pub(crate) overlay: Vec<GraphEdit>,
    /// Nodes that are skipped when they are reached next.
    pub(crate) skips: Vec<String>,
    /// The last outputs of nodes that keep theirs.
    pub(crate) outputs: BTreeMap<String, Bytes>,
    /// The checkpoints that memories continue from.
    pub(crate) memories: StoredMemories,
    /// Joins of called subgraphs that were still waiting when these ended.
    pub(crate) stuck: Vec<StoredStuck>,
    /// Keys unknown to this release, with their MessagePack values.
    pub(crate) unknown: Vec<(String, Vec<u8>)>,
}

impl Header {
    /// The header that the headers of some records add up to.
    pub(crate) fn of(map: &HeaderMap) -> Result<Self, FormatError> {
        let mut header = Header { discipline: "superstep".into(), ..Header::default() };
        map.iter().try_for_each(|(key, value)| header.set(key, &value))?;
        Ok(header)
    }

    /// The header of a single record.
    pub(crate) fn of_row(place: Place<'_>, row: &Row) -> Result<Self, Error> {
        Self::of_rows(place, std::slice::from_ref(row))
    }

    /// The header of consecutive records. Default if there are none.
    pub(crate) fn of_rows(place: Place<'_>, rows: &[Row]) -> Result<Self, Error> {
        let mut map = HeaderMap::default();
        for row in rows {
            check_id(place, row.id)?;
            let read = open(row.kind, &row.record).and_then(|view| map.apply(view.header));
            read.map_err(|error| unreadable(place, row.id, error))?;
        }
        let Some(last) = rows.last() else { return Ok(Header::default()) };
        Ok(Self::of(&map).map_err(|error| unreadable(place, last.id, error))?)
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), FormatError> {
        match key {
            "run" => self.run = read(key, value)?,
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
            "skips" => self.skips = read(key, value)?,
            "outputs" => self.outputs = read(key, value)?,
            "memories" => self.memories = read(key, value)?,
            "stuck" => self.stuck = read(key, value)?,
            "log" => self.eager.log = read(key, value)?,
            "groups" => self.eager.groups = read(key, value)?,
            "written" => self.eager.written = read(key, value)?,
            "kept" => self.eager.kept = read(key, value)?,
            _ => self.unknown.push((key.to_owned(), value.to_vec())),
        }
        Ok(())
    }

    pub(crate) fn time(&self) -> SystemTime {
        from_micros(self.time)
    }
}
