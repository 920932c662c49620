//! Finding values whose encoding has another order each time, such as a `HashSet`.
//!
//! Maps are sorted where that matters, but a set is a list in MessagePack, and its order may be lost on it.
//! So a value is decoded and encoded again a few times: a set whose hasher has a new seed each time gives
//! itself away.

use crate::error::{Code, Error};
use crate::record::codec::Codec;
use crate::typed::AnySchema;
use agentgraph_checkpoint::canonical::sort_maps;
use agentgraph_checkpoint::delta::DeltaWriter;
use agentgraph_checkpoint::fold::{Folded, Value};
use agentgraph_checkpoint::frame::shape;

/// Checks the channels that a record changes, each by its changes alone.
pub(crate) fn check_changes(codec: &Codec, schema: &AnySchema, operations: &[u8]) -> Result<(), Error> {
    if sets_plain_values(operations) {
        return Ok(());
    }
    let mut folded = Folded::default();
    if folded.apply(operations, None).is_err() {
        return Ok(());
    }
    for (at, channel) in schema.channels().iter().enumerate() {
        let Ok(Value::Bytes(value)) = folded.changes_alone(at) else { continue };
        let again = |value: &[u8]| {
            let mut state = schema.initial();
            (codec.restore_channel)(&mut state, schema, at, value).ok()?;
            let mut delta = DeltaWriter::new(at + 1);
            (codec.record_channel)(state.seen(), schema, at, &mut delta).ok()?;
            let mut folded = Folded::default();
            folded.apply(delta.bytes(), None).ok()?;
            match folded.value(at) {
                Ok(Value::Bytes(value)) => {
                    let mut value = value.into_owned();
                    sort_maps(&mut value).ok().map(|()| value)
                }
                _ => None,
            }
        };
        if is_unordered(&value, again) {
            return Err(error(&format!("channel `{}`", channel.name)));
        }
    }
    Ok(())
}

/// Whether all operations set whole values without lists, as most changes do: those need not be folded. The
/// number of such an operation is 0.
fn sets_plain_values(mut operations: &[u8]) -> bool {
    while let [0..=0x7f, 0, rest @ ..] = operations {
        let Some(marker @ 0xc4..=0xc6) = rest.first() else { return false };
        let Ok((head, body, _)) = shape(*marker, rest) else { return false };
        match rest.get(head..).and_then(|rest| rest.split_at_checked(body)) {
            Some((value, more)) if !may_have_a_set(value) => operations = more,
            _ => return false,
        }
    }
    operations.is_empty()
}

/// Checks an update, as [`encode_update`](crate::state::StoredState::encode_update) has encoded it.
pub(crate) fn check_update(codec: &Codec, schema: &AnySchema, update: &[u8]) -> Result<(), Error> {
    let again = |update: &[u8]| {
        let update = (codec.decode_update)(schema, update).ok()?;
        (codec.encode_update)(schema, &update).ok()
    };
    if is_unordered(update, again) { Err(error("a write of the update")) } else { Ok(()) }
}

/// Whether decoding and encoding a value again gives other bytes at times. `again` does both.
pub(crate) fn is_unordered(value: &[u8], again: impl Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
    if !may_have_a_set(value) {
        return false;
    }
    // Few items often happen to have the same order.
    let times = match value.len() {
        0..128 => 10,
        128..1024 => 5,
        _ => 2,
    };
    let Some(first) = again(value) else { return false };
    (1..times).any(|_| again(value).is_some_and(|bytes| bytes != first))
}

pub(crate) fn error(whose: &str) -> Error {
    let problem = format!(
        "{whose} contains a value that has another order each time it is encoded, as a `HashSet` does: use a \
         `BTreeSet`, since a run that is driven from outside has to ask for the same bytes when it is built again"
    );
    Error::new(Code::UnorderedValue, problem)
}

/// Whether a list of two or more items is in a value, or bytes that may be an encoded value themselves.
fn may_have_a_set(value: &[u8]) -> bool {
    let mut at = 0;
    while let Some(marker) = value.get(at) {
        let Ok((head, body, inside)) = shape(*marker, &value[at..]) else { return true };
        let is_list = matches!(marker, 0x90..=0x9f | 0xdc | 0xdd);
        if (is_list && inside > 1) || matches!(marker, 0xc4..=0xc6) {
            return true;
        }
        at += head + body;
    }
    false
}
