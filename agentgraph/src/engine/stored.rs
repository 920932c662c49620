//! The result of a task as bytes, for pending writes and for replies of hosts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::context::NewOnce;
use crate::dependency::outputs::StoredDropped;
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::record::header::{StoredLimits, StoredSleep, StoredSpot, StoredStuck};
use crate::record::migrate::Migrations;
use crate::record::once::StoredOnce;
use crate::record::unordered;
use crate::step::{Command, Dispatch, Goto, InputValue, Step};
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use crate::words::{GraphEdit, Request, Spot, StoredStop};
use agentgraph_checkpoint::frame::{FormatError, NEEDS_KEY, SEALED, begin_write, complete_write, open_write};
use agentgraph_checkpoint::header::StoredMemories;
use agentgraph_checkpoint::{PendingWrite, TaskId, canonical, delta};

/// The step of a finished task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredStep {
    /// The version of the state that the update was written for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(in crate::engine) version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) update: Option<Bytes>,
    #[serde(default)]
    pub(in crate::engine) targets: Vec<StoredTarget>,
    #[serde(default)]
    pub(in crate::engine) replaces_edges: bool,
    /// The turn of a node in a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<StoredTurn>,
    /// The temporary edits of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) edits: Vec<GraphEdit>,
    /// The positions of memories after the task's calls.
    #[serde(default, skip_serializing_if = "StoredMemories::is_empty")]
    pub(in crate::engine) memories: StoredMemories,
    /// The joins that still waited when the subgraph called by the task ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) stuck: Vec<StoredStuck>,
    /// The kinds of the reducers that the update was written for, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) kinds: Vec<Cow<'static, str>>,
}

/// The record of a finished node in a pass, from which the pass can be replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredTurn {
    pub(in crate::engine) node: String,
    /// The number of nodes that finished before it.
    pub(in crate::engine) place: u64,
    /// Its edits, without those that changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) edits: Vec<GraphEdit>,
    /// Its edits that could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) dropped: Option<StoredDropped>,
}

impl StoredTurn {
    /// The sort key for replaying turns.
    pub(crate) fn order(&self) -> (u64, &str) {
        (self.place, &self.node)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredTarget {
    pub(in crate::engine) node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) input: Option<Bytes>,
    /// The time limits of a dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) limits: Option<StoredLimits>,
}

/// The "task" of pending writes that belong to the run and to none of its tasks.
pub(crate) const OF_RUN: TaskId = TaskId::from_u128(0);

/// Slot of [`OF_RUN`]: the static interrupts at this checkpoint were reported to the caller. Contains a list
/// of [`StoredStop`], which is empty in older records.
pub(super) const TOLD: u32 = 0;

/// Slot of [`OF_RUN`]: the sessions after the finished tasks of the superstep.
pub(super) const SESSIONS: u32 = 1;

/// Slot of [`OF_RUN`]: the amounts that the run has used up.
pub(super) const SPENT: u32 = 2;

/// Slot of [`OF_RUN`]: a failure of the superstep that belongs to no task. Empty if it is over.
pub(super) const FAILURE: u32 = 3;

/// Slots of results of durable steps: the n-th result of a task is at `ONCE + 2 n`. Even numbers, so that no
/// store takes them for requests.
pub(super) const ONCE: u32 = PendingWrite::KEPT;

/// The pending write for a result of a durable step.
pub(crate) fn once_write(task: TaskId, new: &NewOnce) -> Result<PendingWrite, Error> {
    let slot = ONCE.saturating_add(new.slot.saturating_mul(2));
    if slot >= PendingWrite::SPECIAL {
        let problem = "the numbers of its stored results leave no room for another durable step";
        return Err(Error::new(Code::CorruptCheckpoint, problem));
    }
    Ok(PendingWrite { task, slot, bytes: to_bytes(&new.result)? })
}

/// The result in a write that [`once_write`] has made, and its number.
pub(crate) fn once_result(write: &PendingWrite) -> Result<Option<(u32, StoredOnce)>, Error> {
    let is_result = (ONCE..PendingWrite::SPECIAL).contains(&write.slot) && write.slot.is_multiple_of(2);
    let result = is_result.then(|| Ok(((write.slot - ONCE) / 2, from_bytes(&write.bytes)?)));
    result.transpose()
}

/// Slot of a failed, open task: its [`Failure`](crate::Failure). Empty if it is over. An even number, so that
/// earlier releases treat it as an answer without a question.
pub(super) const ERROR: u32 = u32::MAX - 3;

/// Slot of a task that calls a subgraph: the task whose call it continues, by its id before the checkpoint
/// was edited.
pub(super) const CALL: u32 = u32::MAX - 1;

/// Slot of a failed task whose failure is handled: its [`Failure`](crate::Failure).
pub(super) const FAILED: u32 = u32::MAX;

/// A request of a task, as a pending write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    pub(crate) node: String,
    pub(in crate::engine) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) schema: Option<Value>,
    /// In a pass, the sources that the node started with, if it does not wait for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::engine) sources: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "StoredSpot::follows_from_the_number")]
    pub(in crate::engine) spot: StoredSpot,
}

impl StoredRequest {
    pub(super) fn new(node: String, request: Request) -> Self {
        let Request { n, spot, value, schema, replaces, until } = request;
        let (nth, key, sleep) = match spot {
            Spot::Nth(nth) => (Some(nth).filter(|nth| *nth != n), None, None),
            Spot::Key(key) => (None, Some(key), None),
            Spot::Sleep { name, nth } => {
                (None, None, Some(StoredSleep { name, nth, until: until.unwrap_or_default() }))
            }
        };
        StoredRequest { node, value, schema, sources: None, spot: StoredSpot { nth, key, replaces, sleep } }
    }

    /// The request with number `n`.
    pub(crate) fn request(&self, n: u32) -> Request {
        let StoredRequest { value, schema, spot: StoredSpot { replaces, .. }, .. } = self.clone();
        Request { n, spot: self.spot(n), value, schema, replaces, until: self.until() }
    }

    /// A request with neither key nor index is the n-th.
    pub(super) fn spot(&self, n: u32) -> Spot {
        match (&self.spot.key, &self.spot.sleep) {
            (Some(key), _) => Spot::Key(key.clone()),
            (None, Some(sleep)) => Spot::Sleep { name: sleep.name.clone(), nth: sleep.nth },
            (None, None) => Spot::Nth(self.spot.nth.unwrap_or(n)),
        }
    }

    /// The end of a sleep, in microseconds since 1970.
    pub(super) fn until(&self) -> Option<u64> {
        self.spot.sleep.as_ref().map(|sleep| sleep.until)
    }
}

/// The pending write which records that these static interrupts are reported to the caller.
pub(super) fn reported_stops_write(stops: &[StoredStop]) -> Result<PendingWrite, Error> {
    Ok(PendingWrite { task: OF_RUN, slot: TOLD, bytes: to_bytes(stops)? })
}

/// The answer to a request, as a pending write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StoredAnswer {
    Given(Value),
    /// The answer was refused after it was stored, so its request is open.
    Refused,
    /// The answer is not delivered: its task asks something else.
    Voided,
}

/// A given answer is stored as its MessagePack. A refused one is nil, by which stores know that the request
/// is open. The two other cases are MessagePack binaries, which no answer is: empty for a voided answer, and
/// the byte of nil for an answer that is null itself.
impl Serialize for StoredAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StoredAnswer::Given(Value::Null) => serializer.serialize_bytes(&[NIL]),
            StoredAnswer::Given(value) => value.serialize(serializer),
            StoredAnswer::Refused => serializer.serialize_unit(),
            StoredAnswer::Voided => serializer.serialize_bytes(&[]),
        }
    }
}

/// Nil in MessagePack.
const NIL: u8 = 0xc0;

impl StoredAnswer {
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let answer = open(bytes)?;
        if let Ok(Bytes(inner)) = delta::decode::<Bytes>(answer) {
            return match inner[..] {
                [] => Ok(StoredAnswer::Voided),
                _ => decode(&inner).map(StoredAnswer::Given),
            };
        }
        let answer: Option<Value> = decode(answer)?;
        Ok(answer.map_or(StoredAnswer::Refused, StoredAnswer::Given))
    }

    /// The pending write for the n-th request of a task.
    pub(super) fn write(&self, task: TaskId, n: u32) -> Result<PendingWrite, Error> {
        Ok(PendingWrite { task, slot: PendingWrite::answer_slot(n), bytes: to_bytes(self)? })
    }
}

impl StoredStep {
    pub(crate) fn of_step(step: Step<AnyState>, codec: &Codec, schema: &AnySchema) -> Result<Self, Error> {
        match step {
            Step::None => Self::of_parts(None, &[], false, codec, schema),
            Step::Update(update) => Self::of_parts(Some(&update), &[], false, codec, schema),
            Step::Command(command) => {
                let Command { update, targets, replaces_edges, .. } = *command;
                Self::of_parts(update.as_ref(), &targets, replaces_edges, codec, schema)
            }
        }
    }

    fn of_parts(
        update: Option<&AnyUpdate>,
        targets: &[Goto],
        replaces_edges: bool,
        codec: &Codec,
        schema: &AnySchema,
    ) -> Result<Self, Error> {
        let update = update.map(|update| (codec.encode_update)(schema, update)).transpose()?;
        if let (true, Some(update)) = (canonical::is_on(), &update) {
            unordered::check_update(codec, schema, update)?;
        }
        let step = Self::of_encoded(codec.version, update);
        Ok(StoredStep { targets: stored_targets(targets)?, replaces_edges, ..step })
    }

    /// The command of a task to the graph around its own, with the encoded update of that graph's state.
    pub(crate) fn of_parent_command(update: Option<Vec<u8>>, targets: &[Goto]) -> Result<Self, Error> {
        Ok(StoredStep {
            targets: stored_targets(targets)?,
            replaces_edges: true,
            ..Self::of_encoded(0, update)
        })
    }

    /// The parts of [`of_parent_command`](Self::of_parent_command).
    pub(super) fn into_parent_command(self) -> (Option<Vec<u8>>, Vec<Goto>) {
        let targets = self.targets.into_iter().map(StoredTarget::into_goto).collect();
        (self.update.map(|Bytes(update)| update), targets)
    }

    /// A step with only an encoded update.
    pub(crate) fn of_update(version: u32, update: Vec<u8>) -> Self {
        Self::of_encoded(version, Some(update))
    }

    fn of_encoded(version: u32, update: Option<Vec<u8>>) -> Self {
        StoredStep { version, update: update.map(Bytes), ..StoredStep::default() }
    }

    /// The same step, migrated to the current version of the state.
    pub(crate) fn migrated(mut self, migrations: &Migrations) -> Result<Self, Error> {
        if let Some(Bytes(update)) = &mut self.update {
            if self.version != migrations.version {
                // Migrations decide about writes of another version.
                self.kinds.clear();
            }
            *update = migrations.update(self.version, std::mem::take(update))?;
        }
        Ok(StoredStep { version: migrations.version, ..self })
    }

    pub(super) fn into_step(self, codec: &Codec, schema: &AnySchema) -> Result<Step<AnyState>, Error> {
        let update = self.update.map(|bytes| (codec.decode_update)(schema, &bytes.0)).transpose()?;
        if self.targets.is_empty() && !self.replaces_edges {
            return Ok(update.map_or(Step::None, Step::Update));
        }
        let targets = self.targets.into_iter().map(StoredTarget::into_goto).collect();
        Ok(Step::Command(Box::new(Command {
            update,
            targets,
            replaces_edges: self.replaces_edges,
            ..Command::new()
        })))
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = begin_write();
        bytes.reserve(self.update.as_ref().map_or(0, |update| update.0.len() + 128));
        encoded_after(bytes, self)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        from_bytes(bytes)
    }
}

/// The positions of memories after the calls of a task, from its record.
pub(super) fn memories_of(record: &[u8]) -> Result<StoredMemories, Error> {
    Ok(StoredStep::from_bytes(record)?.memories)
}

fn stored_targets(targets: &[Goto]) -> Result<Vec<StoredTarget>, Error> {
    targets.iter().map(StoredTarget::of).collect()
}

fn is_zero(version: &u32) -> bool {
    *version == 0
}

impl StoredTarget {
    pub(super) fn new(node: &str, input: Option<&InputValue>) -> Result<Self, Error> {
        let limits = input.and_then(InputValue::stored_limits);
        let input = input.map(|input| input.encode_for(node)).transpose()?;
        Ok(StoredTarget { node: node.to_owned(), input: input.map(Bytes), limits })
    }

    fn of(goto: &Goto) -> Result<Self, Error> {
        match goto {
            Goto::Node(node) => StoredTarget::new(node, None),
            Goto::Dispatch(dispatch) => StoredTarget::new(&dispatch.node, Some(&dispatch.input)),
        }
    }

    fn into_goto(self) -> Goto {
        match self.input {
            None => Goto::Node(self.node.into()),
            Some(Bytes(input)) => {
                let input = InputValue::stored(input, self.limits);
                Goto::Dispatch(Dispatch { node: self.node.into(), input })
            }
        }
    }
}

/// Encodes an internal type as MessagePack, with a checksum.
pub(crate) fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    encoded_after(begin_write(), value)
}

fn encoded_after<T: Serialize + ?Sized>(mut bytes: Vec<u8>, value: &T) -> Result<Vec<u8>, Error> {
    match delta::encode(&mut bytes, value) {
        Ok(()) => {
            complete_write(&mut bytes);
            Ok(bytes)
        }
        Err(error) => Err(Error::new(Code::Encode, format!("a task's record cannot be stored: {error}"))),
    }
}

/// Decodes the output of [`to_bytes`].
pub(crate) fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    decode(open(bytes)?)
}

/// Compares the checksum.
fn open(bytes: &[u8]) -> Result<&[u8], Error> {
    open_write(bytes).map_err(|error| {
        let code = match error {
            FormatError::Newer(_) => Code::UnknownFormat,
            _ => Code::CorruptCheckpoint,
        };
        Error::new(code, format!("a pending write cannot be read: {error}"))
    })
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    delta::decode(bytes).map_err(|error| {
        if bytes.first() == Some(&SEALED) {
            return Error::new(Code::UnknownKey, format!("a pending write cannot be read: {NEEDS_KEY}"));
        }
        Error::new(Code::CorruptCheckpoint, format!("a pending write cannot be read: {error}"))
    })
}

/// The pending write for the failure of a task.
pub(super) fn error_write(task: TaskId, failure: &Failure) -> Result<PendingWrite, Error> {
    Ok(PendingWrite { task, slot: ERROR, bytes: to_bytes(failure)? })
}

/// The pending write that ends the stored error of a task from an earlier call.
pub(super) fn no_error(task: TaskId) -> PendingWrite {
    PendingWrite { task, slot: ERROR, bytes: Vec::new() }
}

/// Reads the failure of a task or of a run; `None` if it is over.
pub(super) fn read_failure(bytes: &[u8]) -> Result<Option<Failure>, Error> {
    if bytes.is_empty() { Ok(None) } else { from_bytes(bytes).map(Some) }
}
