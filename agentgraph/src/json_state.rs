//! [`JsonState`]: a state whose channels are named at run time, for graphs that are built from a file or by
//! another program.

mod channels;
mod functions;
mod keyed;
mod number;
mod reducer;
mod update;

pub use channels::JsonChannels;
pub use functions::{JsonFunction, JsonFunctions, UnknownFunction};
pub use reducer::JsonReducer;
pub use update::{JsonUpdate, JsonWrite};

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::reducer::Fault;
use self::update::WriteOf;
use crate::reduce::derived::{decode_fields, encode_field, encode_fields};
use crate::state::{Channel, Lifetime, MASK, State, StateError, StoredState, WriteKind, without_secrets};
use agentgraph_checkpoint::delta::DeltaWriter;

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
/// let state = graph.invoke(JsonUpdate::new().set("n", 4)).finish().await?;
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

impl JsonState {
    /// The value of a key; `None` for a key the schema does not have.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(self.schema.place(key).ok()?)
    }

    /// The value of a key as a `T`.
    ///
    /// ```
    /// use agentgraph::json_state::JsonReducer;
    /// use agentgraph::prelude::*;
    /// use serde_json::json;
    ///
    /// #[derive(Debug, serde::Deserialize)]
    /// struct Plan {
    ///     steps: Vec<String>,
    /// }
    ///
    /// let channels = JsonChannels::new().channel("plan", json!({ "steps": ["ask"] }), JsonReducer::Once);
    /// let state = JsonState::initial(&channels);
    /// assert_eq!(state.get_as::<Plan>("plan").unwrap().steps, ["ask"]);
    /// assert!(state.get_as::<u8>("plan").is_err());
    /// assert!(state.get_as::<Plan>("paln").unwrap_err().to_string().contains("did you mean `plan`?"));
    /// ```
    ///
    /// # Errors
    /// [`StateError::UnknownChannel`] for a key that the schema does not have, [`StateError::BadValue`] for a
    /// value that is no `T`.
    pub fn get_as<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<T, StateError> {
        let value = &self.values[self.schema.place(key)?];
        T::deserialize(value).map_err(|error| {
            let error = StateError::BadValue { channel: key.to_owned(), problem: error.to_string() };
            without_secrets(&self.schema.table().channels, error)
        })
    }

    /// The whole state as one JSON object.
    pub fn to_value(&self) -> Value {
        let names = self.schema.table().channels.iter().map(|channel| channel.name.to_string());
        Value::Object(names.zip(self.values.iter().cloned()).collect::<Map<_, _>>())
    }
}

/// The values by key; secret ones are masked.
impl fmt::Debug for JsonState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = self.schema.table().channels.iter().zip(&self.values);
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

impl JsonState {
    /// Applies the writes one by one, and records the changes of stored keys.
    fn apply_to(
        &mut self,
        schema: &JsonChannels,
        update: JsonUpdate,
        mut delta: Option<&mut DeltaWriter>,
    ) -> Result<(), StateError> {
        for (key, write) in update.writes {
            let at = schema.place(&key)?;
            let table = schema.table();
            let delta = match &mut delta {
                Some(delta) if table.channels[at].is_stored() => Some(delta.channel(at)),
                _ => None,
            };
            table.reducers[at].fold(&mut self.values[at], write, delta).map_err(|fault| named(key, fault))?;
        }
        Ok(())
    }
}

fn named(channel: String, fault: Fault) -> StateError {
    match fault {
        Fault::Misfit(problem) => StateError::BadValue { channel, problem },
        Fault::Encode(error) => StateError::Encode { channel, problem: error.to_string() },
    }
}

impl State for JsonState {
    type Schema = JsonChannels;
    type Update = JsonUpdate;
    const SEVERAL_WRITES: &'static str = "give the key another reducer, such as `JsonReducer::Last`";

    fn channels(schema: &JsonChannels) -> &[Channel] {
        &schema.table().channels
    }

    fn initial(schema: &JsonChannels) -> Self {
        JsonState { values: schema.table().initial.clone(), schema: schema.clone() }
    }

    fn apply(&mut self, schema: &JsonChannels, update: JsonUpdate) -> Result<(), StateError> {
        check_names(schema, &update)?;
        self.apply_to(schema, update, None)
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
        let applied = self.apply_to(schema, update.clone(), None);
        let seen = applied.map(|()| look(self));
        before.into_iter().for_each(|(at, value)| self.values[at] = value);
        seen
    }

    fn problems(schema: &JsonChannels) -> Vec<StateError> {
        schema.problems()
    }

    fn reset(&mut self, schema: &JsonChannels, lifetime: Lifetime) {
        let channels = schema.table().channels.iter().enumerate();
        for (at, _) in channels.filter(|(_, channel)| channel.lifetime == lifetime) {
            self.values[at] = schema.table().initial[at].clone();
        }
    }

    fn writes(schema: &JsonChannels, update: &JsonUpdate, each: &mut dyn FnMut(usize, WriteKind)) {
        let mut seen: Vec<(usize, WriteKind)> = Vec::new();
        for (key, write) in &update.writes {
            let kind = write.kind();
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
            let reducer = &schema.table().reducers[schema.place(&key)?];
            // Only the last write of the key can take up a later one: what lies between them would be lost.
            let last = update.writes.iter_mut().rfind(|(known, _)| *known == key);
            match (write, last) {
                (write @ WriteOf::Overwrite(_), _) => {
                    update.writes.retain(|(known, _)| *known != key);
                    update.writes.push((key, write));
                }
                (write, Some((_, WriteOf::Overwrite(value)))) => {
                    reducer.fold_overwriting(value, write).map_err(|fault| named(key, fault))?
                }
                (write, _) => update.writes.push((key, write)),
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
        self.apply_to(schema, update, Some(delta))
    }

    fn record_channel(
        &self,
        schema: &JsonChannels,
        channel: usize,
        delta: &mut DeltaWriter,
    ) -> Result<(), StateError> {
        let recorded =
            schema.table().reducers[channel].record_whole(&self.values[channel], delta.channel(channel));
        recorded.map_err(|error| named(schema.name(channel), error.into()))
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
