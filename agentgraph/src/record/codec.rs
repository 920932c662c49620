//! The functions that encode a state, captured where the compiler knows that the state can be stored.
//!
//! The run loop also runs states that are never stored. So it requires only `State` of `S`, and calls the
//! rest through these pointers, which exist once a checkpointer or a host was attached.

#[cfg(feature = "testing")]
use crate::record::content::{Content, Entries, Tree, writes};
#[cfg(feature = "testing")]
use crate::state::Channel;
use crate::state::{State, StateError, StoredState, without_secrets};
#[cfg(feature = "testing")]
use agentgraph_checkpoint::CheckpointId;
use agentgraph_checkpoint::delta::DeltaWriter;
#[cfg(feature = "testing")]
use agentgraph_checkpoint::fold::{Folded, Value};

/// [`StoredState`] as function pointers.
#[allow(clippy::type_complexity)]
pub(crate) struct Codec<S: State> {
    /// The version of the state, recorded in stored updates.
    pub(crate) version: u32,
    pub(crate) apply_recorded: fn(&mut S, &S::Schema, S::Update, &mut DeltaWriter) -> Result<(), StateError>,
    pub(crate) record_channel: fn(&S, &S::Schema, usize, &mut DeltaWriter) -> Result<(), StateError>,
    pub(crate) restore_channel: fn(&mut S, &S::Schema, usize, &[u8]) -> Result<(), StateError>,
    pub(crate) encode_update: fn(&S::Schema, &S::Update) -> Result<Vec<u8>, StateError>,
    pub(crate) decode_update: fn(&S::Schema, &[u8]) -> Result<S::Update, StateError>,
}

impl<S: StoredState> Codec<S> {
    pub(crate) fn of(version: u32) -> Self {
        Codec {
            version,
            apply_recorded: |state, schema, update, delta| {
                state.apply_recorded(schema, update, delta).map_err(|error| hidden::<S>(schema, error))
            },
            record_channel: |state, schema, channel, delta| {
                state.record_channel(schema, channel, delta).map_err(|error| hidden::<S>(schema, error))
            },
            restore_channel: |state, schema, channel, value| {
                state.restore_channel(schema, channel, value).map_err(|error| hidden::<S>(schema, error))
            },
            encode_update: |schema, update| {
                S::encode_update(schema, update).map_err(|error| hidden::<S>(schema, error))
            },
            decode_update: |schema, bytes| {
                S::decode_update(schema, bytes).map_err(|error| hidden::<S>(schema, error))
            },
        }
    }
}

#[cfg(feature = "testing")]
impl<S: State> Codec<S> {
    /// The stored channels of a state as they are encoded. Empty if one cannot be encoded.
    fn recorded(&self, schema: &S::Schema, state: &S) -> Folded {
        let channels = S::channels(schema);
        let mut delta = DeltaWriter::new(channels.len());
        delta.begin(CheckpointId::default());
        for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
            if (self.record_channel)(state, schema, at, &mut delta).is_err() {
                return Folded::default();
            }
        }
        let mut folded = Folded::default();
        match folded.apply(delta.bytes(), None) {
            Ok(_) => folded,
            Err(_) => Folded::default(),
        }
    }

    /// The state as another process reads it: its maps without an order have another one. Channels that are
    /// not stored stay as they are.
    pub(crate) fn reread(&self, schema: &S::Schema, state: &S) -> S {
        let folded = self.recorded(schema, state);
        let mut copy = state.clone();
        for at in 0..S::channels(schema).len() {
            if let Ok(Value::Bytes(value)) = folded.value(at) {
                // A channel that cannot be read stays as it is: the engine reports it elsewhere.
                let _ = (self.restore_channel)(&mut copy, schema, at, &value);
            }
        }
        copy
    }

    /// The stored channels of a state.
    pub(crate) fn content(self, schema: &S::Schema, state: &S) -> Content {
        let (schema, state) = (schema.clone(), state.clone());
        let channels = self.channels(&schema, &state);
        Content::new(channels, move || self.channels(&schema, &self.reread(&schema, &state)))
    }

    fn channels(&self, schema: &S::Schema, state: &S) -> Entries {
        let folded = self.recorded(schema, state);
        let channel = |(at, channel): (usize, &Channel)| match folded.value(at) {
            Ok(Value::Bytes(value)) => Some((channel.name.to_string(), Tree::read(&value))),
            _ => None,
        };
        S::channels(schema).iter().enumerate().filter_map(channel).collect()
    }

    /// The writes of an update by channel.
    pub(crate) fn content_of_update(self, schema: &S::Schema, update: &S::Update) -> Content {
        let schema = schema.clone();
        let bytes = (self.encode_update)(&schema, update).unwrap_or_default();
        Content::new(writes(S::channels(&schema), &bytes), move || {
            let again = (self.decode_update)(&schema, &bytes);
            let again = again.and_then(|update| (self.encode_update)(&schema, &update));
            writes(S::channels(&schema), &again.unwrap_or_default())
        })
    }
}

fn hidden<S: State>(schema: &S::Schema, error: StateError) -> StateError {
    without_secrets(S::channels(schema), error)
}

impl<S: State> Clone for Codec<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State> Copy for Codec<S> {}
