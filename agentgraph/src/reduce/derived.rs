//! What the code that `derive(State)` writes calls, so that derived code is short.
//!
//! Everything asked of serde goes through [`stored_channel`], once a field: a type that lacks serde is one message and
//! not one for each of the five things done with it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reducer, Slot, StoredReducer};
use crate::checkpoint::delta::{DeltaWriter, EncodeError};
use crate::state::{Channel, StateError};

pub use super::slot::decode_fields;
use super::slot::{encode_field, encode_fields, nearest_channel};

/// The state before the first input.
pub fn initial<S: InitialState>() -> S {
    S::default()
}

/// [`Default`], with a message that says why a state needs it.
#[diagnostic::on_unimplemented(
    message = "the state `{Self}` has no initial value",
    label = "needs `Default`",
    note = "derive or implement `Default`: it is the state before the first input, and what channels are reset to"
)]
pub trait InitialState: Default {}

#[diagnostic::do_not_recommend]
impl<S: Default> InitialState for S {}

/// A channel of a derived state.
pub const fn channel<T: Clone, R: Reducer<T>>(
    name: &'static str,
    aliases: &'static [&'static str],
) -> Channel {
    Channel::aliased(name, R::KIND, aliases).with_exclusive(R::EXCLUSIVE)
}

/// The error for a channel that no field or alias is called.
pub fn unknown_channel(name: &str, channels: &[Channel]) -> StateError {
    nearest_channel(name, channels.iter().map(|channel| &*channel.name))
}

/// A type that a stored channel with the reducer `R` may have.
#[diagnostic::on_unimplemented(
    message = "a channel of type `{Self}` cannot be stored",
    label = "needs `Serialize` and `Deserialize`",
    note = "derive `Serialize` and `Deserialize` for it, or mark the field `#[channel(untracked)]` (never stored), or the struct `#[state(volatile)]` (nothing is stored)",
    note = "a reducer of your own must implement `StoredReducer` as well"
)]
pub trait StoredField<R: Reducer<Self>>: Clone {
    /// [`Slot::apply_recorded`].
    fn apply(slot: Slot<Self, R>, value: &mut Self, delta: &mut DeltaWriter) -> Result<(), EncodeError>;
    /// [`StoredReducer::record`].
    fn record(&self, delta: &mut DeltaWriter) -> Result<(), EncodeError>;
    /// The value of these bytes.
    fn restore(bytes: &[u8]) -> Result<Self, EncodeError>;
    /// [`Slot::encode`].
    fn encode(slot: &Slot<Self, R>) -> Result<Option<Vec<u8>>, EncodeError>;
    /// [`Slot::decode`].
    fn decode(bytes: &[u8]) -> Result<Slot<Self, R>, EncodeError>;
}

#[diagnostic::do_not_recommend]
impl<T: Clone + Serialize + DeserializeOwned, R: StoredReducer<T>> StoredField<R> for T {
    fn apply(slot: Slot<T, R>, value: &mut T, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        slot.apply_recorded(value, delta)
    }

    fn record(&self, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        R::record(self, delta)
    }

    fn restore(bytes: &[u8]) -> Result<T, EncodeError> {
        rmp_serde::from_slice(bytes).map_err(|error| EncodeError::new(error.to_string()))
    }

    fn encode(slot: &Slot<T, R>) -> Result<Option<Vec<u8>>, EncodeError> {
        slot.encode()
    }

    fn decode(bytes: &[u8]) -> Result<Slot<T, R>, EncodeError> {
        Slot::decode(bytes)
    }
}

/// What a derived state does with one stored channel. Its functions are those of [`StoredField`], kept as pointers so
/// that only the constant itself asks for that trait.
pub struct StoredChannel<T: Clone, R: Reducer<T>> {
    name: &'static str,
    apply: fn(Slot<T, R>, &mut T, &mut DeltaWriter) -> Result<(), EncodeError>,
    record: fn(&T, &mut DeltaWriter) -> Result<(), EncodeError>,
    restore: fn(&[u8]) -> Result<T, EncodeError>,
    encode: fn(&Slot<T, R>) -> Result<Option<Vec<u8>>, EncodeError>,
    decode: fn(&[u8]) -> Result<Slot<T, R>, EncodeError>,
}

/// The table of one stored channel.
pub const fn stored_channel<T: StoredField<R>, R: Reducer<T>>(name: &'static str) -> StoredChannel<T, R> {
    StoredChannel {
        name,
        apply: T::apply,
        record: T::record,
        restore: T::restore,
        encode: T::encode,
        decode: T::decode,
    }
}

impl<T: Clone, R: Reducer<T>> StoredChannel<T, R> {
    /// Applies a write and writes down what it changed.
    pub fn apply(&self, slot: Slot<T, R>, value: &mut T, delta: &mut DeltaWriter) -> Result<(), StateError> {
        match slot.kind() {
            None => Ok(()),
            Some(_) => (self.apply)(slot, value, delta).map_err(|error| self.unstored(&error)),
        }
    }

    /// Writes down the whole value.
    pub fn record(&self, value: &T, delta: &mut DeltaWriter) -> Result<(), StateError> {
        (self.record)(value, delta).map_err(|error| self.unstored(&error))
    }

    /// Reads the value back.
    pub fn restore(&self, value: &mut T, bytes: &[u8]) -> Result<(), StateError> {
        *value = (self.restore)(bytes).map_err(|error| self.unread(&error))?;
        Ok(())
    }

    /// Adds the write to an encoded update.
    pub fn encode(&self, slot: &Slot<T, R>, fields: &mut FieldsWriter) -> Result<(), StateError> {
        if let Some(write) = (self.encode)(slot).map_err(|error| self.unstored(&error))? {
            fields.add(self.name, &write);
        }
        Ok(())
    }

    /// The write of an encoded update.
    pub fn decode(&self, bytes: &[u8]) -> Result<Slot<T, R>, StateError> {
        (self.decode)(bytes).map_err(|error| self.unread(&error))
    }

    fn unstored(&self, error: &EncodeError) -> StateError {
        StateError::Encode { channel: self.name.to_owned(), problem: error.to_string() }
    }

    fn unread(&self, error: &EncodeError) -> StateError {
        StateError::BadValue { channel: self.name.to_owned(), problem: error.to_string() }
    }
}

/// An encoded update in the making. The number of its fields stands before them and is known after them.
#[derive(Default)]
pub struct FieldsWriter {
    count: usize,
    fields: Vec<u8>,
}

impl FieldsWriter {
    fn add(&mut self, channel: &str, write: &[u8]) {
        self.count += 1;
        encode_field(&mut self.fields, channel, write);
    }

    /// The update as bytes.
    pub fn finish(self) -> Vec<u8> {
        let mut bytes = encode_fields(self.count);
        bytes.extend(self.fields);
        bytes
    }
}
