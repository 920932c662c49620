//! Updates of a state from JSON: a channel's value, or messages in LangChain's shape.

use std::collections::BTreeMap;

use agentgraph::state::StoredState;
use agentgraph::{Code, Error};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::messages;

/// The update that a JSON object of channels is. Names that are no channels are left out, as LangGraph does,
/// unless none of them is one.
pub(super) fn update_of<S: StoredState>(schema: &S::Schema, input: &Value) -> Result<S::Update, Error> {
    let Value::Object(fields) = input else {
        let problem = "the input must be a JSON object whose fields are channels of the state";
        return Err(Error::new(Code::BadInput, problem));
    };
    let is_channel = |name: &str| S::channels(schema).iter().any(|channel| channel.name == name);
    let channels = || fields.iter().filter(|(name, _)| is_channel(name));
    // Mostly each value is what its channel takes as it is.
    if channels().next().is_some()
        && let Ok(update) = decode::<S>(schema, channels().map(|(name, value)| (name, as_is(value))))
    {
        return Ok(update);
    }
    let mut writes = Map::new();
    for (name, value) in channels() {
        writes.insert(name.clone(), write_of::<S>(schema, name, value)?);
    }
    if writes.is_empty() && !fields.is_empty() {
        let known: Vec<&str> = S::channels(schema).iter().map(|channel| &*channel.name).collect();
        let problem =
            format!("no field of the input is a channel of the state, which has {}", known.join(", "));
        return Err(Error::new(Code::UnknownChannel, problem));
    }
    decode::<S>(schema, &writes)
}

/// An update as the engine stores it: a map from channel to the bytes of its write.
fn decode<'a, S: StoredState>(
    schema: &S::Schema,
    writes: impl IntoIterator<Item = (&'a String, impl Serialize)>,
) -> Result<S::Update, Error> {
    let unreadable = |error: rmp_serde::encode::Error| Error::new(Code::BadInput, error.to_string());
    let mut encoded = BTreeMap::new();
    for (channel, write) in writes {
        encoded.insert(channel, Bytes(rmp_serde::to_vec_named(&write).map_err(unreadable)?));
    }
    let bytes = rmp_serde::to_vec_named(&encoded).map_err(unreadable)?;
    Ok(S::decode_update(schema, &bytes)?)
}

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// The write of a channel for a value as it is: the first of [`readings`].
fn as_is(value: &Value) -> BTreeMap<&str, &Value> {
    BTreeMap::from([match value.get("__overwrite__") {
        Some(value) => ("Overwrite", value),
        None => ("Reduce", value),
    }])
}

/// The write of a channel: the first reading of the value that has the channel's type.
fn write_of<S: StoredState>(schema: &S::Schema, name: &str, value: &Value) -> Result<Value, Error> {
    if let Some(value) = value.get("__overwrite__") {
        let readings = readings(value).into_iter().map(|reading| json!({ "Overwrite": reading }));
        return first_that_fits::<S>(schema, name, readings);
    }
    first_that_fits::<S>(
        schema,
        name,
        readings(value).into_iter().map(|reading| json!({ "Reduce": reading })),
    )
}

fn first_that_fits<S: StoredState>(
    schema: &S::Schema,
    name: &str,
    readings: impl Iterator<Item = Value>,
) -> Result<Value, Error> {
    let mut problem = None;
    for write in readings {
        match decode::<S>(schema, &Map::from_iter([(name.to_owned(), write.clone())])) {
            Ok(_) => return Ok(write),
            // That of the value as it is says most.
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or_else(|| Error::new(Code::BadInput, format!("channel `{name}` has no value"))))
}

/// The ways to read a value: as it is, as messages, as one item of a list; and a keyed list's items as
/// writes.
fn readings(value: &Value) -> Vec<Value> {
    let mut readings = vec![value.clone()];
    let items = match value {
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    };
    let keyed = |items: &[Value]| {
        let write = |item: &Value| match item.get("Remove") {
            Some(_) => item.clone(),
            None => json!({ "Upsert": item }),
        };
        items.iter().map(write).collect::<Value>()
    };
    if !items.is_empty() && items.iter().all(messages::is_message_like) {
        if let Some(converted) = messages::messages_from(&items) {
            readings.push(keyed(&converted));
            if let [one] = converted.as_slice() {
                readings.push(one.clone());
            }
            readings.push(converted.into());
        } else if let Some(converted) = messages::messages_from(std::slice::from_ref(value)) {
            // A pair such as `["user", "hi"]` is one message.
            readings.push(keyed(&converted));
            readings.push(converted.into());
        }
    }
    readings.push(keyed(&items));
    readings.push(items.into());
    readings
}

/// What an update writes, as LangGraph shows it: the values without how they are written.
pub(super) fn shown_update(update: Value) -> Value {
    let Value::Object(fields) = update else { return update };
    let shown = fields.into_iter().map(|(name, write)| (name, shown_write(write)));
    Value::Object(shown.collect())
}

fn shown_write(write: Value) -> Value {
    match write {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("Overwrite") => {
            messages::shown(fields.remove("Overwrite").unwrap_or_default())
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(is_keyed_write) => {
            messages::shown(items.into_iter().map(shown_keyed_write).collect())
        }
        other => messages::shown(other),
    }
}

fn is_keyed_write(item: &Value) -> bool {
    item.as_object().is_some_and(|fields| {
        fields.len() == 1 && (fields.contains_key("Upsert") || fields.contains_key("Remove"))
    })
}

fn shown_keyed_write(mut item: Value) -> Value {
    match item.get_mut("Upsert") {
        Some(item) => item.take(),
        None => json!({ "type": "remove", "id": item["Remove"], "content": "" }),
    }
}
