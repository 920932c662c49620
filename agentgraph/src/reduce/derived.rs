//! The functions that the code of `derive(State)` calls, so that derived code is short.
//!
//! The requirements on a field's type are checked once for each field, in a constant: [`Field::REDUCER`]
//! checks the reducer and [`stored_channel`] checks serde. So an unsuitable type causes one message, and
//! not one for each use.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Misfit, Reducer, Slot, StoredReducer, Undo};
use crate::state::{Channel, StateError};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

pub use super::shown::{WithDebug, WithoutDebug, peeked, shown_write};
pub use super::slot::decode_fields;
use super::slot::nearest_channel;
pub(crate) use super::slot::{encode_field, encode_fields};

/// The state before the first input.
pub fn initial<S: InitialState>() -> S {
    S::default()
}

/// [`Default`], with an error message that explains why a state needs it.
#[diagnostic::on_unimplemented(
    message = "the state `{Self}` has no initial value",
    label = "needs `Default`",
    note = "derive or implement `Default`: it is the state before the first input, and what channels are reset to"
)]
pub trait InitialState: Default {}

#[diagnostic::do_not_recommend]
impl<S: Default> InitialState for S {}

/// A field whose reducer may not fit its type. [`By`] turns it into a reducer that always fits, so only the
/// constant mentions the real reducer, and the compiler can reject it only there.
pub trait Field: 'static {
    /// The field's type.
    type Value: Clone;
    /// [`Reducer::Write`].
    type Write: Clone + Send + Sync + 'static;
    /// The real reducer.
    const REDUCER: ReducerTable<Self::Value, Self::Write>;
}

/// A reducer as a table of functions.
pub struct ReducerTable<T, W> {
    kind: &'static str,
    exclusive: bool,
    check: fn(&T, &W) -> Result<(), Misfit>,
    reduce: fn(&mut T, W),
    combine: fn(&mut W, W),
    admit: fn(T) -> T,
    try_on: fn(&mut T, &mut W) -> Undo<T>,
    take_off: fn(&mut T, &mut W, Undo<T>),
}

/// The functions of `R`.
pub const fn reducer<T: Clone, R: Reducer<T, Write = W>, W>() -> ReducerTable<T, W> {
    ReducerTable {
        kind: R::KIND,
        exclusive: R::EXCLUSIVE,
        check: R::check,
        reduce: R::reduce,
        combine: R::combine,
        admit: R::admit,
        try_on: R::try_on,
        take_off: R::take_off,
    }
}

/// The reducer of a [`Field`].
pub struct By<F>(PhantomData<fn() -> F>);

impl<F: Field> Reducer<F::Value> for By<F> {
    type Write = F::Write;
    const KIND: &'static str = F::REDUCER.kind;
    const EXCLUSIVE: bool = F::REDUCER.exclusive;

    fn check(value: &F::Value, write: &F::Write) -> Result<(), Misfit> {
        (F::REDUCER.check)(value, write)
    }

    fn reduce(value: &mut F::Value, write: F::Write) {
        (F::REDUCER.reduce)(value, write);
    }

    fn combine(write: &mut F::Write, later: F::Write) {
        (F::REDUCER.combine)(write, later);
    }

    fn admit(value: F::Value) -> F::Value {
        (F::REDUCER.admit)(value)
    }

    fn try_on(value: &mut F::Value, write: &mut F::Write) -> Undo<F::Value> {
        (F::REDUCER.try_on)(value, write)
    }

    fn take_off(value: &mut F::Value, write: &mut F::Write, undo: Undo<F::Value>) {
        (F::REDUCER.take_off)(value, write, undo);
    }
}

/// A channel of a derived state.
pub const fn channel<T: Clone, R: Reducer<T>>(
    name: &'static str,
    aliases: &'static [&'static str],
) -> Channel {
    Channel::aliased(name, R::KIND, aliases).with_exclusive(R::EXCLUSIVE)
}

/// The error for a write that does not fit the value of a field.
#[cold]
pub fn misfit(channel: &'static str, misfit: &Misfit) -> StateError {
    StateError::BadValue { channel: channel.to_owned(), problem: misfit.to_string() }
}

/// The error for a name that no field has, not even as an alias.
pub fn unknown_channel(name: &str, channels: &[Channel]) -> StateError {
    nearest_channel(name, channels.iter().map(|channel| &*channel.name))
}

/// A type that a stored channel with the reducer `R` and the slot `P` may have.
#[diagnostic::on_unimplemented(
    message = "a channel of type `{Self}` cannot be stored",
    label = "needs `Serialize` and `Deserialize`",
    note = "derive `Serialize` and `Deserialize` for it, or mark the field `#[channel(untracked)]` (never stored), or the struct `#[state(volatile)]` (nothing is stored)",
    note = "its reducer must fit it, and be a `StoredReducer` if it is one of your own"
)]
pub trait StoredField<R, P>: Sized {
    /// [`Slot::apply_recorded`].
    fn apply(slot: P, value: &mut Self, delta: &mut DeltaWriter) -> Result<(), EncodeError>;
    /// [`StoredReducer::record`].
    fn record(&self, delta: &mut DeltaWriter) -> Result<(), EncodeError>;
    /// Decodes the value.
    fn restore(bytes: &[u8]) -> Result<Self, EncodeError>;
    /// [`Slot::encode`].
    fn encode(slot: &P) -> Result<Option<Vec<u8>>, EncodeError>;
    /// [`Slot::decode`].
    fn decode(bytes: &[u8]) -> Result<P, EncodeError>;
}

#[diagnostic::do_not_recommend]
impl<T, R, P> StoredField<R, Slot<T, P>> for T
where
    T: Clone + Serialize + DeserializeOwned,
    R: StoredReducer<T>,
    P: Reducer<T, Write = R::Write>,
{
    fn apply(slot: Slot<T, P>, value: &mut T, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        slot.reduced_by::<R>().apply_recorded(value, delta)
    }

    fn record(&self, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        R::record(self, delta)
    }

    fn restore(bytes: &[u8]) -> Result<T, EncodeError> {
        agentgraph_checkpoint::delta::decode(bytes).map_err(|error| EncodeError::new(error.to_string()))
    }

    fn encode(slot: &Slot<T, P>) -> Result<Option<Vec<u8>>, EncodeError> {
        slot.encode()
    }

    fn decode(bytes: &[u8]) -> Result<Slot<T, P>, EncodeError> {
        Slot::decode(bytes)
    }
}

/// The functions of one stored channel. They are those of [`StoredField`] as pointers, so that only the
/// constant itself requires that trait.
pub struct StoredChannel<T, P> {
    name: &'static str,
    apply: fn(P, &mut T, &mut DeltaWriter) -> Result<(), EncodeError>,
    record: fn(&T, &mut DeltaWriter) -> Result<(), EncodeError>,
    restore: fn(&[u8]) -> Result<T, EncodeError>,
    encode: fn(&P) -> Result<Option<Vec<u8>>, EncodeError>,
    decode: fn(&[u8]) -> Result<P, EncodeError>,
}

/// The table of one stored channel.
pub const fn stored_channel<T: StoredField<R, P>, R, P>(name: &'static str) -> StoredChannel<T, P> {
    StoredChannel {
        name,
        apply: T::apply,
        record: T::record,
        restore: T::restore,
        encode: T::encode,
        decode: T::decode,
    }
}

impl<T, P> StoredChannel<T, P> {
    /// Applies a write and records the change.
    pub fn apply(&self, slot: P, value: &mut T, delta: &mut DeltaWriter) -> Result<(), StateError> {
        (self.apply)(slot, value, delta).map_err(|error| self.unstored(&error))
    }

    /// Records the whole value.
    pub fn record(&self, value: &T, delta: &mut DeltaWriter) -> Result<(), StateError> {
        (self.record)(value, delta).map_err(|error| self.unstored(&error))
    }

    /// Restores the value.
    pub fn restore(&self, value: &mut T, bytes: &[u8]) -> Result<(), StateError> {
        *value = (self.restore)(bytes).map_err(|error| self.unread(&error))?;
        Ok(())
    }

    /// Adds the write to an encoded update.
    pub fn encode(&self, slot: &P, fields: &mut FieldsWriter) -> Result<(), StateError> {
        if let Some(write) = (self.encode)(slot).map_err(|error| self.unstored(&error))? {
            fields.add(self.name, &write);
        }
        Ok(())
    }

    /// Decodes the write.
    pub fn decode(&self, bytes: &[u8]) -> Result<P, StateError> {
        (self.decode)(bytes).map_err(|error| self.unread(&error))
    }

    fn unstored(&self, error: &EncodeError) -> StateError {
        StateError::Encode { channel: self.name.to_owned(), problem: error.to_string() }
    }

    fn unread(&self, error: &EncodeError) -> StateError {
        StateError::BadValue { channel: self.name.to_owned(), problem: error.to_string() }
    }
}

/// An encoded update while it is built. The number of fields comes first and is known last.
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
