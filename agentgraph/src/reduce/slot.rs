//! [`Slot`]: the place of one channel in an update.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Misfit, Reducer, StoredReducer, Undo};
use crate::state::{StateError, WriteKind};
use agentgraph_checkpoint::delta::{self, DeltaWriter, EncodeError};

/// The change of one channel in an update: none, a write for the reducer, or a value that overwrites.
///
/// Derived code consists of these; otherwise they are needed only to implement [`State`](crate::State) by
/// hand.
pub struct Slot<T: Clone, R: Reducer<T>>(Option<Write<T, R::Write>>);

/// The write in a [`Slot`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Write<T, W> {
    /// For the reducer.
    Reduce(W),
    /// The new value. In a box, since an update has room for one of each channel, is moved often, and rarely
    /// has any.
    Overwrite(Box<T>),
}

impl<T: Clone, R: Reducer<T>> Slot<T, R> {
    /// Adds a write after the earlier ones of the same update. Without effect after an overwrite.
    pub fn write(&mut self, write: R::Write) {
        match &mut self.0 {
            None => self.0 = Some(Write::Reduce(write)),
            Some(Write::Reduce(earlier)) => R::combine(earlier, write),
            Some(Write::Overwrite(_)) => {}
        }
    }

    /// Replaces the value, whatever else is written in the superstep.
    pub fn overwrite(&mut self, value: T) {
        self.0 = Some(Write::Overwrite(Box::new(R::admit(value))));
    }

    /// The write, if there is one.
    pub fn get(&self) -> Option<&Write<T, R::Write>> {
        self.0.as_ref()
    }

    /// Whether the write fits `value`; an overwriting value always does.
    ///
    /// # Errors
    /// Those of [`Reducer::check`].
    #[inline]
    pub fn check(&self, value: &T) -> Result<(), Misfit> {
        match &self.0 {
            Some(Write::Reduce(write)) => R::check(value, write),
            Some(Write::Overwrite(_)) | None => Ok(()),
        }
    }

    /// Whether [`compose`](Slot::compose) with `later` is possible: its write must fit an overwriting value.
    ///
    /// # Errors
    /// Those of [`Reducer::check`].
    pub fn check_compose(&self, later: &Self) -> Result<(), Misfit> {
        match (&self.0, &later.0) {
            (Some(Write::Overwrite(value)), Some(Write::Reduce(write))) => R::check(value, write),
            _ => Ok(()),
        }
    }

    /// Adds a later update of the same channel: applying the result has the effect of applying both.
    pub fn compose(&mut self, later: Self) {
        match (&mut self.0, later.0) {
            (_, None) => {}
            (Some(Write::Reduce(earlier)), Some(Write::Reduce(write))) => R::combine(earlier, write),
            (Some(Write::Overwrite(value)), Some(Write::Reduce(write))) => R::reduce(value, write),
            (this, later) => *this = later,
        }
    }

    /// How the slot writes the channel, if it does.
    pub fn kind(&self) -> Option<WriteKind> {
        self.0.as_ref().map(|write| match write {
            Write::Reduce(_) => WriteKind::Reduce,
            Write::Overwrite(_) => WriteKind::Overwrite,
        })
    }

    /// Removes the write.
    pub fn discard(&mut self) {
        self.0 = None;
    }

    /// Applies the write, which has passed [`check`](Slot::check).
    pub fn apply(self, value: &mut T) {
        match self.0 {
            None => {}
            Some(Write::Reduce(write)) => R::reduce(value, write),
            Some(Write::Overwrite(new)) => *value = *new,
        }
    }

    /// Applies the write so that [`take_off`](Slot::take_off) can undo it. `None` if there is no write.
    pub fn try_on(&mut self, value: &mut T) -> Option<Undo<T>> {
        match &mut self.0 {
            None => None,
            Some(Write::Reduce(write)) => Some(R::try_on(value, write)),
            Some(Write::Overwrite(new)) => {
                std::mem::swap(value, &mut **new);
                Some(Undo::Swap)
            }
        }
    }

    /// Undoes [`try_on`](Slot::try_on).
    pub fn take_off(&mut self, value: &mut T, undo: Option<Undo<T>>) {
        let Some(undo) = undo else { return };
        match &mut self.0 {
            None => {}
            Some(Write::Reduce(write)) => R::take_off(value, write, undo),
            Some(Write::Overwrite(new)) => std::mem::swap(value, &mut **new),
        }
    }

    /// The same write for another reducer with the same write type.
    pub(super) fn reduced_by<Q: Reducer<T, Write = R::Write>>(self) -> Slot<T, Q> {
        Slot(self.0)
    }
}

impl<T: Clone + Serialize + DeserializeOwned, R: StoredReducer<T>> Slot<T, R> {
    /// Applies the write and records the change, on the current channel of `delta`.
    ///
    /// # Errors
    /// If the change cannot be encoded.
    pub fn apply_recorded(self, value: &mut T, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        match self.0 {
            None => Ok(()),
            Some(Write::Reduce(write)) => R::reduce_recorded(value, write, delta),
            Some(Write::Overwrite(new)) => {
                R::record(&new, delta)?;
                *value = *new;
                Ok(())
            }
        }
    }
}

impl<T, R> Slot<T, R>
where
    T: Clone + Serialize + DeserializeOwned,
    R: Reducer<T, Write: Serialize + DeserializeOwned>,
{
    /// The write as MessagePack.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn encode(&self) -> Result<Option<Vec<u8>>, EncodeError> {
        let Some(write) = &self.0 else { return Ok(None) };
        let mut bytes = Vec::new();
        delta::encode(&mut bytes, write)?;
        Ok(Some(bytes))
    }

    /// The reverse of [`encode`](Slot::encode); the error's text describes what is wrong with the bytes.
    ///
    /// # Errors
    /// If the bytes are not a write of this channel.
    pub fn decode(bytes: &[u8]) -> Result<Self, EncodeError> {
        match delta::decode(bytes) {
            Ok(write) => Ok(Slot(Some(write))),
            Err(error) => Err(EncodeError::new(error.to_string())),
        }
    }
}

impl<T: Clone, R: Reducer<T>> Default for Slot<T, R> {
    fn default() -> Self {
        Slot(None)
    }
}

impl<T: Clone, R: Reducer<T>> Clone for Slot<T, R> {
    fn clone(&self) -> Self {
        Slot(self.0.clone())
    }
}

impl<T: Clone + fmt::Debug, R: Reducer<T, Write: fmt::Debug>> fmt::Debug for Slot<T, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => out.write_str("-"),
            Some(Write::Reduce(write)) => write.fmt(out),
            Some(Write::Overwrite(value)) => write!(out, "overwrite {value:?}"),
        }
    }
}

/// The head of an encoded update: a map from `count` channel names to writes, which [`encode_field`] adds.
pub(crate) fn encode_fields(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to a Vec does not fail, and no state has 2^32 channels.
    let _ = rmp::encode::write_map_len(&mut bytes, u32::try_from(count).unwrap_or(u32::MAX));
    bytes
}

/// Adds one channel to an encoded update.
pub(crate) fn encode_field(bytes: &mut Vec<u8>, channel: &str, write: &[u8]) {
    let _ = rmp::encode::write_str(bytes, channel);
    let _ = rmp::encode::write_bin(bytes, write);
}

/// The channels of an encoded update and their writes.
pub fn decode_fields(mut bytes: &[u8]) -> Result<Vec<(&str, &[u8])>, StateError> {
    let damaged =
        |_| StateError::BadValue { channel: "*".into(), problem: "the stored update is damaged".into() };
    let count = rmp::decode::read_map_len(&mut bytes).map_err(|_| damaged(()))?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let (name, rest) = rmp::decode::read_str_from_slice(bytes).map_err(|_| damaged(()))?;
        bytes = rest;
        let length = rmp::decode::read_bin_len(&mut bytes).map_err(|_| damaged(()))? as usize;
        let (write, rest) = bytes.split_at_checked(length).ok_or(()).map_err(damaged)?;
        bytes = rest;
        fields.push((name, write));
    }
    Ok(fields)
}

/// The error for an unknown channel.
pub(super) fn nearest_channel<'a>(channel: &str, known: impl Iterator<Item = &'a str>) -> StateError {
    StateError::UnknownChannel {
        channel: channel.to_owned(),
        nearest: crate::error::nearest(channel, known).map(str::to_owned),
    }
}
