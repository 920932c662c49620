//! States and updates as JSON objects of channel names: for a screen, a log or another program.

use serde_json::{Map, Value, json};

use crate::error::{Code, Error};
use crate::record::codec::Codec;
use crate::reduce::derived::decode_fields;
use crate::state::MASK;
use crate::typed::{AnySchema, AnyUpdate, Seen};
use agentgraph_checkpoint::delta::{DeltaWriter, decode};
use agentgraph_checkpoint::fold;

/// The writes of an update: see [`CompiledGraph::update_json`](crate::CompiledGraph::update_json).
pub(crate) fn of_update(codec: &Codec, schema: &AnySchema, update: &AnyUpdate) -> Result<Value, Error> {
    writes(codec, schema, update, Err)
}

/// [`of_update`], where a channel that JSON cannot represent is null.
pub(crate) fn of_update_as_far(
    codec: &Codec,
    schema: &AnySchema,
    update: &AnyUpdate,
) -> Result<Value, Error> {
    writes(codec, schema, update, |_| Ok(Value::Null))
}

fn writes(
    codec: &Codec,
    schema: &AnySchema,
    update: &AnyUpdate,
    otherwise: impl Fn(Error) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let bytes = (codec.encode_update)(schema, update)?;
    let mut writes = Map::new();
    for (channel, write) in decode_fields(&bytes)? {
        let secret = schema.channels().iter().any(|known| known.secret && known.is_called(channel));
        let unreadable = |error| Error::new(Code::Encode, format!("channel `{channel}`: {error}"));
        let mut write: Value = decode(write).map_err(unreadable).or_else(&otherwise)?;
        if let Some(reduced) = write.get_mut("Reduce") {
            write = if secret { MASK.into() } else { reduced.take() };
        } else if secret && write.get("Remove").is_some() {
            write = json!({ "Remove": MASK });
        } else if secret {
            write = json!({ "Overwrite": MASK });
        }
        writes.insert(channel.to_owned(), write);
    }
    Ok(Value::Object(writes))
}

/// The stored channels of a state, secret ones masked. A channel that JSON cannot represent is null.
pub(crate) fn of_state(codec: &Codec, schema: &AnySchema, state: Seen<'_>) -> Value {
    let channels = schema.channels();
    let mut delta = DeltaWriter::new(channels.len());
    let mut shown = Map::new();
    for (at, channel) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
        if channel.secret {
            shown.insert(channel.name.to_string(), MASK.into());
            continue;
        }
        let written = (codec.record_channel)(state, schema, at, &mut delta);
        shown.insert(channel.name.to_string(), Value::Null);
        if written.is_err() {
            return Value::Object(shown);
        }
    }
    let mut folded = fold::Folded::default();
    if folded.apply(delta.bytes(), None).is_ok() {
        for (at, channel) in channels.iter().enumerate() {
            if let Ok(fold::Value::Bytes(value)) = folded.value(at) {
                shown.insert(channel.name.to_string(), decode(&value).unwrap_or_default());
            }
        }
    }
    Value::Object(shown)
}
