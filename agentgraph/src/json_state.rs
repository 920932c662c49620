//! [`JsonState`]: a state whose channels are named at run time, for graphs that are built from a file or by
//! another program.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::nearest;
use crate::reduce::derived::{decode_fields, encode_field, encode_fields};
use crate::state::{Channel, Lifetime, MASK, State, StateError, StoredState, WriteKind};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// A state of JSON values under keys that a [`JsonChannels`] lists.
///
/// ```
/// use agentgraph::json_state::{JsonReducer, JsonChannels, JsonUpdate};
/// use agentgraph::prelude::*;
/// use serde_json::json;
///
/// async fn count(state: Snapshot<JsonState>) -> JsonUpdate {
///     let n = state["n"].as_u64().unwrap_or(0);
///     JsonUpdate::new().set("n", n + 1).set("log", format!("saw {n}"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let schema = JsonChannels::new().channel("n", json!(0), JsonReducer::Once).channel("log", json!([]), JsonReducer::Append);
/// let graph = StateGraph::with_schema(schema).node("count", count).edge(START, "count").compile()?;
/// let state = graph.invoke(JsonUpdate::new().set("n", 4)).await?.into_finished()?;
/// assert_eq!(state["n"], 5);
/// assert_eq!(state["log"], json!(["saw 4"]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct JsonState {
    values: Vec<Value>,
    schema: JsonChannels,
}

/// How a write changes a key of a [`JsonState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JsonReducer {
    /// The write replaces the value; two writers in a superstep are an error.
    Once,
    /// The last write in task order replaces the value.
    Last,
    /// The value is an array: the items of a written array are appended, and so is any other written value.
    Append,
    /// The value is an object: the entries of a written object replace those with the same key.
    Merge,
}

/// The keys of a [`JsonState`], each with its initial value and its reducer. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonChannels(Arc<ChannelTable>);

#[derive(Clone, Debug, Default, PartialEq)]
struct ChannelTable {
    channels: Vec<Channel>,
    reducers: Vec<JsonReducer>,
    initial: Vec<Value>,
    places: HashMap<String, usize>,
}

impl JsonChannels {
    /// A schema without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key, or replaces the one with the same name.
    #[must_use]
    pub fn channel(self, name: impl Into<String>, initial: Value, reducer: JsonReducer) -> Self {
        self.with_lifetime(name, initial, reducer, Lifetime::Thread)
    }

    /// Adds a key with a lifetime.
    #[must_use]
    pub fn with_lifetime(
        self,
        name: impl Into<String>,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
    ) -> Self {
        self.add(name.into(), initial, reducer, lifetime, false)
    }

    /// Adds a key whose values are secret: stored encrypted or not at all, and not shown in streams or by
    /// `Debug`.
    #[must_use]
    pub fn secret(
        self,
        name: impl Into<String>,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
    ) -> Self {
        self.add(name.into(), initial, reducer, lifetime, true)
    }

    fn add(
        mut self,
        name: String,
        initial: Value,
        reducer: JsonReducer,
        lifetime: Lifetime,
        secret: bool,
    ) -> Self {
        let table = Arc::make_mut(&mut self.0);
        let channel = Channel {
            name: Cow::Owned(name.clone()),
            reducer: Cow::Borrowed(reducer.kind()),
            exclusive: reducer == JsonReducer::Once,
            lifetime,
            aliases: Cow::Borrowed(&[]),
            secret,
        };
        let next = table.channels.len();
        let at = *table.places.entry(name).or_insert(next);
        if at == next {
            table.channels.push(channel);
            table.reducers.push(reducer);
            table.initial.push(initial);
        } else {
            table.channels[at] = channel;
            table.reducers[at] = reducer;
            table.initial[at] = initial;
        }
        self
    }

    fn place(&self, name: &str) -> Result<usize, StateError> {
        self.0.places.get(name).copied().ok_or_else(|| StateError::UnknownChannel {
            channel: name.to_owned(),
            nearest: nearest(name, self.0.places.keys().map(String::as_str)).map(str::to_owned),
        })
    }

    fn name(&self, channel: usize) -> String {
        self.0.channels.get(channel).map_or_else(String::new, |channel| channel.name.to_string())
    }
}

impl JsonReducer {
    const fn kind(self) -> &'static str {
        match self {
            JsonReducer::Once => "once",
            JsonReducer::Last => "last",
            JsonReducer::Append => "append",
            JsonReducer::Merge => "merge",
        }
    }

    /// The reason why `write` cannot be applied to `value`.
    fn problem(self, value: &Value, write: &Value) -> Option<&'static str> {
        match (self, value, write) {
            (JsonReducer::Append, Value::Array(_), _) | (JsonReducer::Once | JsonReducer::Last, ..) => None,
            (JsonReducer::Append, ..) => Some("it holds no array to append to"),
            (JsonReducer::Merge, Value::Object(_), Value::Object(_)) => None,
            (JsonReducer::Merge, Value::Object(_), _) => Some("only an object can be merged into it"),
            (JsonReducer::Merge, ..) => Some("it holds no object to merge into"),
        }
    }

    fn apply(self, value: &mut Value, write: Value) {
        match (self, value, write) {
            (JsonReducer::Append, Value::Array(items), Value::Array(mut more)) => items.append(&mut more),
            (JsonReducer::Append, Value::Array(items), one) => items.push(one),
            (JsonReducer::Merge, Value::Object(entries), Value::Object(more)) => entries.extend(more),
            (_, value, write) => *value = write,
        }
    }

    fn record(self, value: &Value, write: &Value, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        match (self, value, write) {
            (JsonReducer::Append, _, Value::Array(items)) => delta.append(items),
            (JsonReducer::Append, _, one) => delta.append(std::slice::from_ref(one)),
            (JsonReducer::Merge, Value::Object(entries), Value::Object(more)) => {
                more.iter().try_for_each(|(key, value)| delta.entry(key, value, entries.get(key)))
            }
            _ => delta.set(write),
        }
    }
}

impl JsonState {
    /// The value of a key; `None` for a key the schema does not have.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(self.schema.place(key).ok()?)
    }

    /// The whole state as one JSON object.
    pub fn to_value(&self) -> Value {
        let names = self.schema.0.channels.iter().map(|channel| channel.name.to_string());
        Value::Object(names.zip(self.values.iter().cloned()).collect::<Map<_, _>>())
    }
}

/// The values by key; secret ones are masked.
impl fmt::Debug for JsonState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = self.schema.0.channels.iter().zip(&self.values);
        let shown = channels.map(|(channel, value)| {
            let value: &dyn fmt::Debug = if channel.secret { &MASK } else { value };
            (&channel.name, value)
        });
        out.debug_map().entries(shown).finish()
    }
}

/// The value of a key; null for a key the schema does not have.
impl std::ops::Index<&str> for JsonState {
    type Output = Value;
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

/// Writes to some keys of a [`JsonState`].
#[derive(Clone, Default, PartialEq)]
pub struct JsonUpdate {
    writes: Vec<(String, WriteOf)>,
}

/// Shows which keys it writes and how, but no values: it does not know which keys are secret.
impl fmt::Debug for JsonUpdate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.writes.iter().map(|(key, write)| match write {
            WriteOf::Reduce(_) => (key, WriteKind::Reduce),
            WriteOf::Overwrite(_) => (key, WriteKind::Overwrite),
        });
        out.debug_map().entries(kinds).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum WriteOf {
    Reduce(Value),
    Overwrite(Value),
}

impl JsonUpdate {
    /// An empty update.
    pub fn new() -> Self {
        Self::default()
    }

    /// A write to a key, through its reducer.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.writes.push((key.into(), WriteOf::Reduce(value.into())));
        self
    }

    /// Replaces the value of a key, and overrides every other write of the superstep.
    #[must_use]
    pub fn overwrite(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.writes.push((key.into(), WriteOf::Overwrite(value.into())));
        self
    }
}

/// The entries of an object as writes. Any other JSON value is an error.
impl TryFrom<Value> for JsonUpdate {
    type Error = StateError;
    fn try_from(value: Value) -> Result<Self, StateError> {
        match value {
            Value::Object(entries) => {
                let writes = entries.into_iter().map(|(key, value)| (key, WriteOf::Reduce(value)));
                Ok(JsonUpdate { writes: writes.collect() })
            }
            _ => Err(StateError::BadValue {
                channel: "*".into(),
                problem: "an update is a JSON object".into(),
            }),
        }
    }
}

impl JsonState {
    /// Applies the writes one by one; `record` gets each write with the value before it.
    fn apply_with(
        &mut self,
        schema: &JsonChannels,
        update: JsonUpdate,
        mut record: impl FnMut(usize, JsonReducer, &Value, &WriteOf) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        for (key, write) in update.writes {
            let at = schema.place(&key)?;
            let reducer = schema.0.reducers[at];
            let value = &mut self.values[at];
            if let WriteOf::Reduce(write) = &write
                && let Some(problem) = reducer.problem(value, write)
            {
                return Err(StateError::BadValue { channel: key, problem: problem.to_owned() });
            }
            record(at, reducer, value, &write)?;
            match write {
                WriteOf::Reduce(write) => reducer.apply(value, write),
                WriteOf::Overwrite(new) => *value = new,
            }
        }
        Ok(())
    }
}

impl State for JsonState {
    type Schema = JsonChannels;
    type Update = JsonUpdate;

    fn channels(schema: &JsonChannels) -> &[Channel] {
        &schema.0.channels
    }

    fn initial(schema: &JsonChannels) -> Self {
        JsonState { values: schema.0.initial.clone(), schema: schema.clone() }
    }

    fn apply(&mut self, schema: &JsonChannels, update: JsonUpdate) -> Result<(), StateError> {
        check_names(schema, &update)?;
        self.apply_with(schema, update, |_, _, _, _| Ok(()))
    }

    fn peek<R>(
        &mut self,
        schema: &JsonChannels,
        update: &mut JsonUpdate,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError> {
        check_names(schema, update)?;
        let written = update.writes.iter().map(|(key, _)| schema.place(key));
        let written: Vec<usize> = written.collect::<Result<_, _>>()?;
        let before: Vec<(usize, Value)> = written.iter().map(|at| (*at, self.values[*at].clone())).collect();
        let applied = self.apply_with(schema, update.clone(), |_, _, _, _| Ok(()));
        let seen = applied.map(|()| look(self));
        before.into_iter().for_each(|(at, value)| self.values[at] = value);
        seen
    }

    fn reset(&mut self, schema: &JsonChannels, lifetime: Lifetime) {
        let channels = schema.0.channels.iter().enumerate();
        for (at, _) in channels.filter(|(_, channel)| channel.lifetime == lifetime) {
            self.values[at] = schema.0.initial[at].clone();
        }
    }

    fn writes(schema: &JsonChannels, update: &JsonUpdate, each: &mut dyn FnMut(usize, WriteKind)) {
        let mut seen: Vec<(usize, WriteKind)> = Vec::new();
        for (key, write) in &update.writes {
            let kind = match write {
                WriteOf::Reduce(_) => WriteKind::Reduce,
                WriteOf::Overwrite(_) => WriteKind::Overwrite,
            };
            // Several writes to one key in one update are one writer.
            if let Ok(at) = schema.place(key)
                && !seen.contains(&(at, kind))
            {
                seen.push((at, kind));
                each(at, kind);
            }
        }
    }

    fn discard(schema: &JsonChannels, update: &mut JsonUpdate, channel: usize) {
        update.writes.retain(|(key, _)| schema.place(key).ok() != Some(channel));
    }

    fn compose(schema: &JsonChannels, update: &mut JsonUpdate, later: JsonUpdate) -> Result<(), StateError> {
        for (key, write) in later.writes {
            let reducer = schema.0.reducers[schema.place(&key)?];
            let overwritten = update.writes.iter_mut().find_map(|(known, write)| match write {
                WriteOf::Overwrite(value) if *known == key => Some(value),
                _ => None,
            });
            match (write, overwritten) {
                (WriteOf::Reduce(write), Some(value)) => match reducer.problem(value, &write) {
                    None => reducer.apply(value, write),
                    Some(problem) => {
                        return Err(StateError::BadValue { channel: key, problem: problem.to_owned() });
                    }
                },
                (write @ WriteOf::Reduce(_), None) => update.writes.push((key, write)),
                (write @ WriteOf::Overwrite(_), _) => {
                    update.writes.retain(|(known, _)| *known != key);
                    update.writes.push((key, write));
                }
            }
        }
        Ok(())
    }
}

fn check_names(schema: &JsonChannels, update: &JsonUpdate) -> Result<(), StateError> {
    update.writes.iter().try_for_each(|(key, _)| schema.place(key).map(drop))
}

impl StoredState for JsonState {
    fn apply_recorded(
        &mut self,
        schema: &JsonChannels,
        update: JsonUpdate,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        check_names(schema, &update)?;
        self.apply_with(schema, update, |at, reducer, value, write| {
            if !schema.0.channels[at].is_stored() {
                return Ok(());
            }
            let delta = delta.channel(at);
            let recorded = match write {
                WriteOf::Reduce(write) => reducer.record(value, write, delta),
                WriteOf::Overwrite(new) => record_whole(reducer, new, delta),
            };
            recorded
                .map_err(|error| StateError::Encode { channel: schema.name(at), problem: error.to_string() })
        })
    }

    fn record_channel(
        &self,
        schema: &JsonChannels,
        channel: usize,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        let recorded =
            record_whole(schema.0.reducers[channel], &self.values[channel], delta.channel(channel));
        recorded
            .map_err(|error| StateError::Encode { channel: schema.name(channel), problem: error.to_string() })
    }

    fn restore_channel(
        &mut self,
        schema: &JsonChannels,
        channel: usize,
        value: &[u8],
    ) -> Result<(), StateError> {
        self.values[channel] = agentgraph_checkpoint::delta::decode(value).map_err(|error| {
            StateError::BadValue { channel: schema.name(channel), problem: error.to_string() }
        })?;
        Ok(())
    }

    fn encode_update(schema: &JsonChannels, update: &JsonUpdate) -> Result<Vec<u8>, StateError> {
        check_names(schema, update)?;
        let mut bytes = encode_fields(update.writes.len());
        for (key, write) in &update.writes {
            let mut encoded = Vec::new();
            agentgraph_checkpoint::delta::encode(&mut encoded, write)
                .map_err(|error| StateError::Encode { channel: key.clone(), problem: error.to_string() })?;
            encode_field(&mut bytes, key, &encoded);
        }
        Ok(bytes)
    }

    fn decode_update(schema: &JsonChannels, bytes: &[u8]) -> Result<JsonUpdate, StateError> {
        let mut update = JsonUpdate::new();
        for (key, write) in decode_fields(bytes)? {
            schema.place(key)?;
            let write = agentgraph_checkpoint::delta::decode(write)
                .map_err(|error| StateError::BadValue { channel: key.into(), problem: error.to_string() })?;
            update.writes.push((key.to_owned(), write));
        }
        Ok(update)
    }
}

/// Stores a map as entries, so that later merges can be stored entry by entry.
fn record_whole(reducer: JsonReducer, value: &Value, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
    match (reducer, value) {
        (JsonReducer::Merge, Value::Object(entries)) => delta.entries(entries.iter()),
        _ => delta.set(value),
    }
}
