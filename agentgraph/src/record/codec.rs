//! The functions that encode a state, captured where the compiler knows that the state can be stored.
//!
//! The loop also runs states that are never stored. So it asks of a state only what every state has, and
//! calls the rest through these pointers, which exist once a checkpointer or a host was attached.

#[cfg(feature = "testing")]
use crate::record::content::{Content, Entries, Tree, writes};
#[cfg(feature = "testing")]
use crate::state::Channel;
use crate::state::{StateError, StoredState, without_secrets};
use crate::typed::{AnySchema, AnyState, AnyUpdate, Seen};
use agentgraph_checkpoint::delta::DeltaWriter;
#[cfg(feature = "testing")]
use agentgraph_checkpoint::fold::{Folded, Value};

/// How to encode a state.
#[allow(clippy::type_complexity)]
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    /// The version of the state's fields.
    pub(crate) version: u32,
    pub(crate) apply_recorded:
        fn(&mut AnyState, &AnySchema, AnyUpdate, &mut DeltaWriter) -> Result<(), StateError>,
    /// Takes the state itself: see [`AnyState::seen`].
    pub(crate) record_channel: fn(Seen<'_>, &AnySchema, usize, &mut DeltaWriter) -> Result<(), StateError>,
    pub(crate) restore_channel: fn(&mut AnyState, &AnySchema, usize, &[u8]) -> Result<(), StateError>,
    pub(crate) encode_update: fn(&AnySchema, &AnyUpdate) -> Result<Vec<u8>, StateError>,
    pub(crate) decode_update: fn(&AnySchema, &[u8]) -> Result<AnyUpdate, StateError>,
}

impl Codec {
    /// The functions of a state that can be stored. Their errors do not quote secret values.
    pub(crate) fn of<S: StoredState>(version: u32) -> Self {
        Codec {
            version,
            apply_recorded: |state, schema, update, delta| {
                let update = update.into_update::<S>();
                let applied = state.get_mut::<S>().apply_recorded(schema.typed::<S>(), update, delta);
                applied.map_err(|error| hidden(schema, error))
            },
            record_channel: |state, schema, channel, delta| {
                let recorded = state.state::<S>().record_channel(schema.typed::<S>(), channel, delta);
                recorded.map_err(|error| hidden(schema, error))
            },
            restore_channel: |state, schema, channel, value| {
                let restored = state.get_mut::<S>().restore_channel(schema.typed::<S>(), channel, value);
                restored.map_err(|error| hidden(schema, error))
            },
            encode_update: |schema, update| {
                let encoded = match update.seen::<S>() {
                    Some(update) => S::encode_update(schema.typed::<S>(), update),
                    None => S::encode_update(schema.typed::<S>(), &S::Update::default()),
                };
                encoded.map_err(|error| hidden(schema, error))
            },
            decode_update: |schema, bytes| {
                let decoded = S::decode_update(schema.typed::<S>(), bytes);
                decoded.map(AnyUpdate::new::<S>).map_err(|error| hidden(schema, error))
            },
        }
    }

    /// The stored channels of a state, as the operations of a record.
    pub(crate) fn whole(&self, schema: &AnySchema, state: Seen<'_>) -> Result<DeltaWriter, StateError> {
        let channels = schema.channels();
        let mut whole = DeltaWriter::new(channels.len());
        for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
            (self.record_channel)(state, schema, at, &mut whole)?;
        }
        Ok(whole)
    }
}

#[cfg(feature = "testing")]
impl Codec {
    /// The stored channels of a state as they are encoded. Empty if one cannot be encoded.
    fn recorded(&self, schema: &AnySchema, state: &AnyState) -> Folded {
        let mut folded = Folded::default();
        match self.whole(schema, state.seen()).map(|whole| folded.apply(whole.bytes(), None)) {
            Ok(Ok(_)) => folded,
            _ => Folded::default(),
        }
    }

    /// The state as another process reads it: its maps without an order have another one. Channels that are
    /// not stored stay as they are.
    pub(crate) fn reread(&self, schema: &AnySchema, state: &AnyState) -> AnyState {
        let folded = self.recorded(schema, state);
        let mut copy = state.clone();
        for at in 0..schema.channels().len() {
            if let Ok(Value::Bytes(value)) = folded.value(at) {
                // A channel that cannot be read stays as it is: the engine reports it elsewhere.
                let _ = (self.restore_channel)(&mut copy, schema, at, &value);
            }
        }
        copy
    }

    /// The stored channels of a state with its type.
    pub(crate) fn content_of<S: StoredState>(schema: &S::Schema, state: &S) -> Content {
        let state = AnyState::new(std::sync::Arc::new(state.clone()));
        Codec::of::<S>(0).content(&AnySchema::new::<S>(schema.clone()), &state)
    }

    /// The stored channels of a state.
    fn content(self, schema: &AnySchema, state: &AnyState) -> Content {
        let (schema, state) = (schema.clone(), state.clone());
        let channels = self.channels(&schema, &state);
        Content::new(channels, move || self.channels(&schema, &self.reread(&schema, &state)))
    }

    fn channels(&self, schema: &AnySchema, state: &AnyState) -> Entries {
        let folded = self.recorded(schema, state);
        let channel = |(at, channel): (usize, &Channel)| match folded.value(at) {
            Ok(Value::Bytes(value)) => Some((channel.name.to_string(), Tree::read(&value))),
            _ => None,
        };
        schema.channels().iter().enumerate().filter_map(channel).collect()
    }

    /// The writes of an update by channel.
    pub(crate) fn content_of_update(self, schema: &AnySchema, update: &AnyUpdate) -> Content {
        let schema = schema.clone();
        let bytes = (self.encode_update)(&schema, update).unwrap_or_default();
        Content::new(writes(schema.channels(), &bytes), move || {
            let again = (self.decode_update)(&schema, &bytes);
            let again = again.and_then(|update| (self.encode_update)(&schema, &update));
            writes(schema.channels(), &again.unwrap_or_default())
        })
    }
}

fn hidden(schema: &AnySchema, error: StateError) -> StateError {
    without_secrets(schema.channels(), error)
}
