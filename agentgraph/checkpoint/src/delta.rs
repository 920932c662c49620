//! The change of a superstep, field by field, as bytes.
//!
//! A delta is a sequence of operations on numbered fields. Every operation carries finished MessagePack, so
//! replaying a history only copies bytes and needs neither the state's type nor its reducers. A changed
//! reducer therefore never changes stored values. Reducers write here while they merge, so a value is
//! encoded once and only if it changed.

use std::io;

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::id::CheckpointId;

/// Why a value could not be encoded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl EncodeError {
    /// An error for custom reducers that fail to encode.
    pub fn new(problem: impl Into<String>) -> Self {
        EncodeError(problem.into())
    }
}

/// The operations, as stored. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// `bin value`: the whole value.
    Set = 0,
    /// `uint count, bin items`: items to the end of a list.
    Append = 1,
    /// `bin key, bin value`: one entry of a map.
    Entry = 2,
    /// `str key, bin item`: one item of a keyed list, replaced in place or added at the end.
    Upsert = 3,
    /// `str key`: removes one item of a keyed list.
    Remove = 4,
    /// `uint length`: cuts a list to that length.
    Truncate = 5,
    /// `uint branch, uint step`: the whole value is the one in that record.
    Refer = 6,
    /// No operands: an empty keyed list, to be filled by upserts.
    Keyed = 7,
    /// No operands: an empty map, to be filled by entries.
    Entries = 8,
}

impl Op {
    pub(crate) fn from_number(number: u64) -> Option<Op> {
        Some(match number {
            0 => Op::Set,
            1 => Op::Append,
            2 => Op::Entry,
            3 => Op::Upsert,
            4 => Op::Remove,
            5 => Op::Truncate,
            6 => Op::Refer,
            7 => Op::Keyed,
            8 => Op::Entries,
            _ => return None,
        })
    }
}

/// Reducers write their changes to it. One lives as long as its run; its buffer is reused.
#[derive(Debug, Default)]
pub struct DeltaWriter {
    bytes: Vec<u8>,
    field: usize,
    record: CheckpointId,
    weights: Vec<Weight>,
}

/// An unchanged stored value of at least this many bytes is referred to, not repeated.
pub(crate) const LARGE: u64 = 4 * 1024;

/// The cost of a field in a full record, and whether a record already contains it whole. The cost includes
/// the field number and the lengths: where entries have a few bytes, these are most of a full.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Its bytes in a full.
    pub live: u64,
    /// The record that contains it whole.
    pub whole_at: Option<CheckpointId>,
}

impl DeltaWriter {
    /// A writer for a state with this many channels.
    pub fn new(channels: usize) -> Self {
        // Room for the delta of a small step: it begins with a few bytes and would grow several times.
        let bytes = Vec::with_capacity(128);
        DeltaWriter { bytes, weights: vec![Weight::default(); channels], ..Self::default() }
    }

    /// Selects the channel of the following calls.
    pub fn channel(&mut self, channel: usize) -> &mut Self {
        self.field = channel;
        self
    }

    /// Writes the whole value of the channel.
    ///
    /// # Errors
    /// If serde cannot encode `value`; nothing is written then. The same holds for every call below.
    pub fn set<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let size = self.operation(Op::Set, |bytes| bin(bytes, value))?;
        *self.weight() = Weight { live: size, whole_at: Some(self.record) };
        Ok(())
    }

    /// Writes items added at the end of a list.
    ///
    /// # Errors
    /// If serde cannot encode an item.
    pub fn append<T: Serialize>(&mut self, items: &[T]) -> Result<(), EncodeError> {
        if items.is_empty() {
            return Ok(());
        }
        let mut size = 0;
        self.operation(Op::Append, |bytes| {
            uint(bytes, items.len() as u64);
            size = sized(bytes, |bytes| items.iter().try_for_each(|item| encode(bytes, item)))?;
            Ok(())
        })?;
        // A full has one list of all items.
        self.changes(size, 0);
        Ok(())
    }

    /// Writes one entry of a map; `replaced` is the earlier value of the key.
    ///
    /// # Errors
    /// If serde cannot encode the key or the value.
    pub fn entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
        replaced: Option<&V>,
    ) -> Result<(), EncodeError> {
        let size = self.operation(Op::Entry, |bytes| {
            bin(bytes, key)?;
            bin(bytes, value)
        })?;
        let gone = replaced.map_or(0, |old| entry_size(self.field, measure(key), measure(old)));
        self.changes(size, gone);
        Ok(())
    }

    /// Writes one item of a keyed list; `replaced` is the earlier item with the key.
    ///
    /// # Errors
    /// If serde cannot encode the item.
    pub fn upsert<T: Serialize>(
        &mut self,
        key: &str,
        item: &T,
        replaced: Option<&T>,
    ) -> Result<(), EncodeError> {
        let size = self.operation(Op::Upsert, |bytes| {
            text(bytes, key)?;
            bin(bytes, item)
        })?;
        let gone = replaced.map_or(0, |old| item_size(self.field, key.len() as u64, measure(old)));
        self.changes(size, gone);
        Ok(())
    }

    /// Writes the removal of an item of a keyed list.
    ///
    /// # Errors
    /// If the key is longer than 4 GiB.
    pub fn remove<T: Serialize>(&mut self, key: &str, removed: &T) -> Result<(), EncodeError> {
        self.operation(Op::Remove, |bytes| text(bytes, key))?;
        self.changes(0, item_size(self.field, key.len() as u64, measure(removed)));
        Ok(())
    }

    /// Writes that a list was cut to `length` items; `cut` are the removed ones.
    ///
    /// # Errors
    /// None today.
    pub fn truncate<T: Serialize>(&mut self, length: usize, cut: &[T]) -> Result<(), EncodeError> {
        self.operation(Op::Truncate, |bytes| {
            uint(bytes, length as u64);
            Ok(())
        })?;
        let gone = cut.iter().map(measure).sum();
        self.changes(0, gone);
        Ok(())
    }

    /// Writes the whole of a keyed list, in order.
    ///
    /// # Errors
    /// If serde cannot encode an item.
    pub fn keyed<'a, T: Serialize + 'a, K: AsRef<str>>(
        &mut self,
        items: impl Iterator<Item = (K, &'a T)>,
    ) -> Result<(), EncodeError> {
        self.weight().live = self.operation(Op::Keyed, |_| Ok(()))?;
        for (key, item) in items {
            self.upsert(key.as_ref(), item, None)?;
        }
        Ok(())
    }

    /// Writes the whole of a map.
    ///
    /// # Errors
    /// If serde cannot encode an entry.
    pub fn entries<'a, K: Serialize + 'a, V: Serialize + 'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a K, &'a V)>,
    ) -> Result<(), EncodeError> {
        self.weight().live = self.operation(Op::Entries, |_| Ok(()))?;
        if canonical::is_on() {
            return self.sorted_entries(entries);
        }
        for (key, value) in entries {
            self.entry(key, value, None)?;
        }
        Ok(())
    }

    fn sorted_entries<'a, K: Serialize + 'a, V: Serialize + 'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a K, &'a V)>,
    ) -> Result<(), EncodeError> {
        let with_key = |(key, value): (&'a K, &'a V)| {
            let mut encoded = Vec::new();
            encode(&mut encoded, key).map(|()| (encoded, key, value))
        };
        let mut entries = entries.map(with_key).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        entries.into_iter().try_for_each(|(_, key, value)| self.entry(key, value, None))
    }

    /// Refers to the whole value in another record instead of repeating it.
    #[doc(hidden)]
    pub fn refer(&mut self, record: CheckpointId) {
        let _ = self.operation(Op::Refer, |bytes| {
            uint(bytes, u64::from(record.branch));
            uint(bytes, record.step);
            Ok(())
        });
    }

    /// Refers to the channel's value if it is in another record than `record`, large and unchanged. Returns
    /// its length; 0 if the value has to be written.
    #[doc(hidden)]
    pub fn refer_if_large(&mut self, channel: usize, record: CheckpointId) -> u64 {
        let Weight { live, whole_at } = self.weight_of(channel);
        match whole_at {
            Some(holder) if live >= LARGE && holder != record => {
                self.channel(channel).refer(holder);
                live
            }
            _ => 0,
        }
    }

    /// Writes the whole value of the channel, as MessagePack that was read.
    #[doc(hidden)]
    pub fn set_encoded(&mut self, value: &[u8]) {
        let encoded = self.operation(Op::Set, |bytes| {
            sized(bytes, |bytes| {
                bytes.extend_from_slice(value);
                Ok(())
            })
            .map(drop)
        });
        // Bytes that were read are not longer than 4 GiB.
        if let Ok(size) = encoded {
            *self.weight() = Weight { live: size, whole_at: Some(self.record) };
        }
    }

    /// Starts the operations of this record with an empty buffer.
    #[doc(hidden)]
    pub fn begin(&mut self, record: CheckpointId) {
        self.bytes.clear();
        self.record = record;
    }

    /// The operations since [`begin`](DeltaWriter::begin).
    #[doc(hidden)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The weight of one channel, as far as this writer knows it.
    #[doc(hidden)]
    pub fn weight_of(&self, channel: usize) -> Weight {
        self.weights.get(channel).copied().unwrap_or_default()
    }

    /// Sets the weight of a channel that was read from a store.
    #[doc(hidden)]
    pub fn set_weight(&mut self, channel: usize, weight: Weight) {
        self.field = channel;
        *self.weight() = weight;
    }

    /// Forgets which records contain values whole, since these may be removed: the next full repeats them.
    #[doc(hidden)]
    pub fn forget_records(&mut self) {
        self.weights.iter_mut().for_each(|weight| weight.whole_at = None);
    }

    /// The bytes that a full record of everything would have.
    #[doc(hidden)]
    pub fn live(&self) -> u64 {
        self.weights.iter().map(|weight| weight.live).sum()
    }

    /// Writes one operation and returns its length.
    fn operation(
        &mut self,
        op: Op,
        payload: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<u64, EncodeError> {
        let start = self.bytes.len();
        uint(&mut self.bytes, self.field as u64);
        uint(&mut self.bytes, op as u64);
        if let Err(error) = payload(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        Ok((self.bytes.len() - start) as u64)
    }

    fn changes(&mut self, added: u64, gone: u64) {
        let weight = self.weight();
        weight.live = (weight.live + added).saturating_sub(gone);
        weight.whole_at = None;
    }

    fn weight(&mut self) -> &mut Weight {
        if self.weights.len() <= self.field {
            self.weights.resize(self.field + 1, Weight::default());
        }
        &mut self.weights[self.field]
    }
}

/// The length of the operation that sets a whole value of `value` bytes.
#[doc(hidden)]
pub fn whole_size(field: usize, value: u64) -> u64 {
    head_size(field) + BIN + value
}

/// The length of the operation for an entry of a map.
#[doc(hidden)]
pub fn entry_size(field: usize, key: u64, value: u64) -> u64 {
    head_size(field) + BIN + key + BIN + value
}

/// The length of the operation for an item of a keyed list.
#[doc(hidden)]
pub fn item_size(field: usize, key: u64, item: u64) -> u64 {
    let text = match key {
        0..32 => 1,
        32..0x100 => 2,
        0x100..0x1_0000 => 3,
        _ => 5,
    };
    head_size(field) + text + key + BIN + item
}

/// The length of the field number and the operation.
#[doc(hidden)]
pub fn head_size(field: usize) -> u64 {
    1 + match field {
        0..0x80 => 1,
        0x80..0x100 => 2,
        0x100..0x1_0000 => 3,
        _ => 5,
    }
}

/// The length of a value's length prefix.
const BIN: u64 = 5;

/// Encodes a value as MessagePack with named fields.
#[doc(hidden)]
pub fn encode<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    let start = bytes.len();
    value
        .serialize(&mut rmp_serde::Serializer::new(&mut *bytes).with_struct_map())
        .map_err(|error| EncodeError(error.to_string()))?;
    if canonical::is_on() {
        let written = bytes.get_mut(start..).unwrap_or_default();
        canonical::sort_maps(written).map_err(|error| EncodeError(error.to_string()))?;
    }
    Ok(())
}

/// The deepest nesting of stored values. A reader recurses once a level, and the bytes are not trusted with
/// the stack.
const DEPTH: usize = 200;

/// The reverse of [`encode`].
#[doc(hidden)]
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, rmp_serde::decode::Error> {
    let mut from = rmp_serde::Deserializer::from_read_ref(bytes);
    from.set_max_depth(DEPTH);
    T::deserialize(&mut from)
}

/// The length of an encoded value; 0 for one that cannot be encoded, which was never stored either.
fn measure<T: Serialize + ?Sized>(value: &T) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match value.serialize(&mut rmp_serde::Serializer::new(&mut count).with_struct_map()) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

fn bin<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    sized(bytes, |bytes| encode(bytes, value)).map(drop)
}

/// A `bin 32` whose length is filled in after its content is written, so that nothing is encoded twice.
#[doc(hidden)]
pub fn sized(
    bytes: &mut Vec<u8>,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<u64, EncodeError> {
    bytes.push(0xc6);
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    content(bytes)?;
    let size = bytes.len() - at - 4;
    let length = u32::try_from(size).map_err(|_| EncodeError("the value is longer than 4 GiB".into()))?;
    bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(size as u64)
}

#[doc(hidden)]
#[inline]
pub fn uint(bytes: &mut Vec<u8>, value: u64) {
    match value {
        // Most numbers are small, and several are in every record.
        0..128 => bytes.push(value as u8),
        // Writing to a Vec does not fail.
        _ => drop(rmp::encode::write_uint(bytes, value)),
    }
}

#[doc(hidden)]
#[inline]
pub fn text(bytes: &mut Vec<u8>, value: &str) -> Result<(), EncodeError> {
    if value.len() < 32 {
        bytes.push(0xa0 | value.len() as u8);
        bytes.extend_from_slice(value.as_bytes());
        return Ok(());
    }
    if u32::try_from(value.len()).is_err() {
        return Err(EncodeError("the key is longer than 4 GiB".into()));
    }
    let _ = rmp::encode::write_str(bytes, value);
    Ok(())
}
