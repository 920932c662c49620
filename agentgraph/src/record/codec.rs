//! The functions that encode a state, captured where the compiler knows that the state can be stored.
//!
//! The run loop also runs states that are never stored. So it requires only `State` of `S`, and calls the
//! rest through these pointers, which exist once a checkpointer or a host was attached.

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
    /// The state as another process reads it: its maps without an order have another one. Channels that are
    /// not stored stay as they are.
    pub(crate) fn reread(&self, schema: &S::Schema, state: &S) -> S {
        let channels = S::channels(schema);
        let mut delta = DeltaWriter::new(channels.len());
        delta.begin(CheckpointId::default());
        let mut copy = state.clone();
        for (at, _) in channels.iter().enumerate().filter(|(_, channel)| channel.is_stored()) {
            if (self.record_channel)(state, schema, at, &mut delta).is_err() {
                return copy;
            }
        }
        let mut folded = Folded::default();
        if folded.apply(delta.bytes(), None).is_ok() {
            for at in 0..channels.len() {
                if let Ok(Value::Bytes(value)) = folded.value(at) {
                    // A channel that cannot be read stays as it is: the engine reports it elsewhere.
                    let _ = (self.restore_channel)(&mut copy, schema, at, &value);
                }
            }
        }
        copy
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
