//! The functions that turn a state into bytes, captured where it is known that the state can be stored.
//!
//! The loop runs states that are never stored as well. It therefore asks nothing of `S` but `State`, and reaches the
//! rest through these pointers, which exist only once a checkpointer or a host was attached.

use super::delta::DeltaWriter;
use crate::state::{State, StateError, StoredState};

/// [`StoredState`], as values.
#[allow(clippy::type_complexity)]
pub(crate) struct Codec<S: State> {
    /// The version of the state, which stored updates carry.
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
            apply_recorded: S::apply_recorded,
            record_channel: S::record_channel,
            restore_channel: S::restore_channel,
            encode_update: S::encode_update,
            decode_update: S::decode_update,
        }
    }
}

impl<S: State> Clone for Codec<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State> Copy for Codec<S> {}
