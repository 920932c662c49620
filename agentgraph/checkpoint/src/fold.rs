//! Replaying deltas without the state's type: bytes of fields in, bytes of fields out.
//!
//! The same code folds the deltas after a full into values, and 1,024 deltas without a full into a segment.
//! The only difference is whether a field has a base.

mod items;
#[cfg(test)]
mod laws;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use self::items::Items;
use super::delta::{Op, entry_size, head_size, item_size, text, uint, whole_size};
use super::frame::{FormatError, damaged};
use crate::id::CheckpointId;

/// The fields after the operations applied so far.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    fields: Vec<Field>,
}

/// One field: its known start, and the changes since.
#[derive(Clone, Debug, Default)]
struct Field {
    base: Base,
    /// The changes of a list of unknown length before `last`, where the two cannot be merged without
    /// knowing the length.
    earlier: Vec<Tail>,
    last: Tail,
    keyed: Keyed,
    entries: Keyed,
}

/// A list that was cut, and then grew.
#[derive(Clone, Debug, Default)]
struct Tail {
    /// Cut to this length, if the list was longer.
    cut: Option<u64>,
    appended: List,
}

#[derive(Clone, Debug, Default)]
enum Base {
    /// Its earlier value, which is unknown.
    #[default]
    Before,
    /// This value; and the record that contains the whole value, if later records can refer to it. Clones
    /// share it.
    Value(Arc<[u8]>, Option<CheckpointId>),
    /// A list that was cut. Appended items are in it.
    List(Items),
    /// The value in another record.
    Elsewhere(CheckpointId),
    /// A keyed list, all of it in `keyed`.
    Keyed,
    /// A map, all of it in `entries`.
    Entries,
}

/// Items and their count. The bytes begin with room for the head of an array: a long list that was empty
/// before need not be copied to become MessagePack.
#[derive(Clone, Debug, Default)]
struct List {
    count: u64,
    bytes: Vec<u8>,
}

/// The longest head of an array.
const HEAD: usize = 5;

impl List {
    fn add(&mut self, count: u64, items: &[u8]) {
        self.count = self.count.saturating_add(count);
        if self.bytes.is_empty() {
            self.bytes.resize(HEAD, 0);
        }
        self.bytes.extend_from_slice(items);
        // Right before the items, as it may be shorter.
        let head = array(self.count, &[]);
        self.bytes[HEAD - head.len()..HEAD].copy_from_slice(&head);
    }

    fn items(&self) -> &[u8] {
        self.bytes.get(HEAD..).unwrap_or_default()
    }

    /// Its MessagePack, if there are items.
    fn as_array(&self) -> Option<&[u8]> {
        let head = match self.count {
            0..=0xf => 1,
            0x10..=0xffff => 3,
            _ => HEAD,
        };
        self.bytes.get(HEAD - head..)
    }
}

/// Keyed items in order. A removed one stays as a tombstone, so that positions hold, and because an item
/// with its key may exist before these operations. Boxed, since most fields have none.
#[derive(Clone, Debug, Default)]
struct Keyed(Option<Box<KeyedItems>>);

#[derive(Clone, Debug, Default)]
struct KeyedItems {
    items: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    places: HashMap<Vec<u8>, usize>,
}

impl KeyedItems {
    fn push(&mut self, key: &[u8], item: Option<Vec<u8>>) {
        self.places.insert(key.to_vec(), self.items.len());
        self.items.push((key.to_vec(), item));
    }
}

impl Keyed {
    fn put(&mut self, key: &[u8], item: &[u8]) {
        let keyed = self.0.get_or_insert_default();
        match keyed.places.get(key) {
            Some(place) if keyed.items[*place].1.is_some() => keyed.items[*place].1 = Some(item.to_vec()),
            _ => keyed.push(key, Some(item.to_vec())),
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let keyed = self.0.get_or_insert_default();
        if let Some(place) = keyed.places.get(key) {
            keyed.items[*place].1 = None;
        } else {
            keyed.push(key, None);
        }
    }

    fn items(&self) -> &[(Vec<u8>, Option<Vec<u8>>)] {
        self.0.as_ref().map_or(&[], |keyed| &keyed.items)
    }

    fn live(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.items().iter().filter_map(|(key, item)| Some((&key[..], item.as_deref()?)))
    }
}

/// The value of a field for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Never written.
    Absent,
    /// Its MessagePack.
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    fn of(bytes: Vec<u8>) -> Self {
        Value::Bytes(Cow::Owned(bytes))
    }

    fn into_owned(self) -> Value<'static> {
        match self {
            Value::Absent => Value::Absent,
            Value::Bytes(bytes) => Value::of(bytes.into_owned()),
        }
    }
}

impl Folded {
    /// Applies the operations of one record. `id` is its checkpoint, if later records may refer to its
    /// values.
    pub fn apply(&mut self, mut operations: &[u8], id: Option<CheckpointId>) -> Result<(), FormatError> {
        let from = &mut operations;
        while !from.is_empty() {
            let field = read_uint(from)?;
            let op = Op::from_number(read_uint(from)?).ok_or_else(|| damaged("an operation is unknown"))?;
            let field = self.field(field)?;
            field.apply(op, from, id)?;
        }
        Ok(())
    }

    fn field(&mut self, number: u64) -> Result<&mut Field, FormatError> {
        // Each number up to it costs memory, and the bytes are not trusted with more than this.
        const MOST: u64 = 1 << 16;
        let at = usize::try_from(number).ok().filter(|_| number < MOST);
        let at = at.ok_or_else(|| damaged("a field number is out of range"))?;
        if self.fields.len() <= at {
            self.fields.resize_with(at + 1, Field::default);
        }
        Ok(&mut self.fields[at])
    }

    /// The fields whose values are referred to, each with the checkpoint of the record that contains the
    /// value.
    pub fn elsewhere(&self) -> Vec<(usize, CheckpointId)> {
        let fields = self.fields.iter().enumerate();
        fields
            .filter_map(|(at, field)| match field.base {
                Base::Elsewhere(id) => Some((at, id)),
                _ => None,
            })
            .collect()
    }

    /// Changes which record a field's value is in.
    pub fn refer_to(&mut self, field: usize, id: CheckpointId) {
        if let Some(Field { base: base @ Base::Elsewhere(_), .. }) = self.fields.get_mut(field) {
            *base = Base::Elsewhere(id);
        }
    }

    /// Inserts the value of one field before its changes, from the record that contains it whole. Returns
    /// its length.
    pub fn fill(&mut self, field: usize, other: &Folded, id: CheckpointId) -> Result<u64, FormatError> {
        let found = other.fields.get(field).map(|field| &field.base);
        match (found, self.fields.get_mut(field)) {
            (Some(Base::Value(value, _)), Some(field)) => {
                field.base = Base::Value(value.clone(), Some(id));
                Ok(value.len() as u64)
            }
            _ => Err(damaged("a record refers to a value that its target does not contain")),
        }
    }

    /// Fills in the values that are referred to and that an earlier checkpoint of the place has, too.
    pub fn share_with(&mut self, earlier: &Folded) {
        for (field, id) in self.elsewhere() {
            let known = earlier.fields.get(field).map(|field| &field.base);
            if let Some(known @ Base::Value(_, Some(holder))) = known
                && *holder == id
            {
                self.fields[field].base = known.clone();
            }
        }
    }

    /// Whether a field has a value, in this record or another.
    pub fn is_written(&self, field: usize) -> bool {
        let field = self.fields.get(field);
        field.is_some_and(|field| !(matches!(field.base, Base::Before) && field.is_untouched()))
    }

    /// The value of a field.
    pub fn value(&self, field: usize) -> Result<Value<'_>, FormatError> {
        self.fields.get(field).map_or(Ok(Value::Absent), Field::value)
    }

    /// The value that the operations alone give a field which was empty before.
    pub fn changes_alone(&self, field: usize) -> Result<Value<'static>, FormatError> {
        let Some(field) = self.fields.get(field) else { return Ok(Value::Absent) };
        let base = match &field.base {
            Base::Elsewhere(_) => return Ok(Value::Absent),
            Base::Before if field.is_untouched() => return Ok(Value::Absent),
            Base::Before if !field.entries.items().is_empty() => Base::Entries,
            Base::Before if !field.keyed.items().is_empty() => Base::Keyed,
            Base::Before => Base::List(Items::default()),
            known => known.clone(),
        };
        Field { base, ..field.clone() }.value().map(Value::into_owned)
    }

    /// The bytes that a full record would use for a field whose value has `value` bytes.
    pub fn weight(&self, field: usize, value: usize) -> u64 {
        let size = |bytes: &[u8]| bytes.len() as u64;
        match self.fields.get(field) {
            Some(Field { base: Base::Keyed, keyed, .. }) => {
                let items = keyed.live().map(|(key, item)| item_size(field, size(key), size(item)));
                head_size(field) + items.sum::<u64>()
            }
            Some(Field { base: Base::Entries, entries, .. }) => {
                let entries = entries.live().map(|(key, value)| entry_size(field, size(key), size(value)));
                head_size(field) + entries.sum::<u64>()
            }
            _ => whole_size(field, value as u64),
        }
    }

    /// The checkpoint of the record that contains the field's value whole, if there is one.
    pub fn whole_at(&self, field: usize) -> Option<CheckpointId> {
        let field = self.fields.get(field).filter(|field| field.is_untouched())?;
        match field.base {
            Base::Value(_, id) => id,
            Base::Elsewhere(id) => Some(id),
            _ => None,
        }
    }

    /// Operations with the same effect as all those applied.
    pub fn to_operations(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, field) in self.fields.iter().enumerate() {
            field.to_operations(number as u64, &mut bytes);
        }
        bytes
    }
}

impl Field {
    fn apply(&mut self, op: Op, from: &mut &[u8], id: Option<CheckpointId>) -> Result<(), FormatError> {
        match op {
            Op::Set => *self = Field { base: Base::Value(read_bin(from)?.into(), id), ..Field::default() },
            Op::Keyed => *self = Field { base: Base::Keyed, ..Field::default() },
            Op::Entries => *self = Field { base: Base::Entries, ..Field::default() },
            Op::Refer => {
                let branch =
                    u32::try_from(read_uint(from)?).map_err(|_| damaged("a branch is out of range"))?;
                let id = CheckpointId::new(branch, read_uint(from)?);
                *self = Field { base: Base::Elsewhere(id), ..Field::default() };
            }
            Op::Append => {
                let count = read_uint(from)?;
                let items = read_bin(from)?;
                match &mut self.base {
                    Base::List(list) => list.append(count, items)?,
                    _ => self.last.appended.add(count, items),
                }
            }
            Op::Entry => {
                let key = read_bin(from)?;
                self.entries.put(key, read_bin(from)?);
            }
            Op::Upsert => {
                let key = read_str(from)?;
                self.keyed.put(key.as_bytes(), read_bin(from)?);
            }
            Op::Remove => self.keyed.remove(read_str(from)?.as_bytes()),
            Op::Truncate => {
                let length = read_uint(from)?;
                self.truncate(length)?;
            }
        }
        Ok(())
    }

    fn is_untouched(&self) -> bool {
        self.is_plain() && self.last.appended.count == 0 && self.has_no_keys()
    }

    /// Only additions, no cuts.
    fn is_plain(&self) -> bool {
        self.earlier.is_empty() && self.last.cut.is_none()
    }

    fn has_no_keys(&self) -> bool {
        self.keyed.items().is_empty() && self.entries.items().is_empty()
    }

    fn truncate(&mut self, length: u64) -> Result<(), FormatError> {
        match &mut self.base {
            Base::Before | Base::Elsewhere(_) => self.truncate_unknown(length),
            Base::List(list) => list.truncate(length),
            _ => {
                let mut list = self.items()?;
                list.truncate(length);
                *self = Field { base: Base::List(list), ..Field::default() };
            }
        }
        Ok(())
    }

    /// Whether the cut removes appended items depends on the unknown length before them.
    fn truncate_unknown(&mut self, length: u64) {
        let Tail { cut, appended } = &self.last;
        let at_most = cut.map(|cut| cut.saturating_add(appended.count));
        if at_most.is_some_and(|most| most <= length) {
            return;
        }
        if length == 0 {
            self.earlier.clear();
        } else if appended.count > 0 {
            self.earlier.push(std::mem::take(&mut self.last));
        }
        self.last = Tail { cut: Some(length), appended: List::default() };
    }

    /// The items of a list, with all changes applied.
    fn items(&self) -> Result<Items, FormatError> {
        let mut list = match &self.base {
            Base::Value(value, _) if self.has_no_keys() => Items::of(value)?,
            Base::List(list) if self.has_no_keys() => list.clone(),
            _ => return Err(not_a_list()),
        };
        for Tail { cut, appended } in self.earlier.iter().chain([&self.last]) {
            if let Some(length) = cut {
                list.truncate(*length);
            }
            list.append(appended.count, appended.items())?;
        }
        Ok(list)
    }

    fn value(&self) -> Result<Value<'_>, FormatError> {
        match &self.base {
            Base::Before if self.is_untouched() => Ok(Value::Absent),
            Base::Before | Base::Elsewhere(_) => {
                Err(damaged("a field has changes but no value to apply them to"))
            }
            Base::Value(value, _) if self.is_untouched() => Ok(Value::Bytes(Cow::Borrowed(value))),
            // A list that only grew is not split into items.
            Base::Value(value, _) if self.is_plain() && self.has_no_keys() => {
                let (count, items) = split_array(value)?;
                let more = &self.last.appended;
                match more.as_array() {
                    Some(bytes) if count == 0 && items.is_empty() => Ok(Value::Bytes(Cow::Borrowed(bytes))),
                    _ => Ok(Value::of(array(count.saturating_add(more.count), &[items, more.items()]))),
                }
            }
            Base::Value(..) | Base::List(_) => Ok(Value::of(self.items()?.to_array())),
            Base::Keyed => {
                let mut count = 0;
                let mut items = Vec::new();
                for (_, item) in self.keyed.live() {
                    count += 1;
                    items.extend_from_slice(item);
                }
                Ok(Value::of(array(count, &[&items])))
            }
            Base::Entries => {
                let mut count = 0_u32;
                let mut items = Vec::new();
                for (key, value) in self.entries.live() {
                    count += 1;
                    items.extend_from_slice(key);
                    items.extend_from_slice(value);
                }
                let mut bytes = Vec::with_capacity(items.len() + 5);
                let _ = rmp::encode::write_map_len(&mut bytes, count);
                bytes.extend_from_slice(&items);
                Ok(Value::of(bytes))
            }
        }
    }

    fn to_operations(&self, number: u64, bytes: &mut Vec<u8>) {
        let begin = |op: Op, bytes: &mut Vec<u8>| {
            uint(bytes, number);
            uint(bytes, op as u64);
        };
        match &self.base {
            Base::Before => {}
            Base::Value(value, _) => {
                begin(Op::Set, bytes);
                bin(bytes, value);
            }
            Base::List(list) => {
                begin(Op::Set, bytes);
                bin(bytes, &list.to_array());
            }
            Base::Elsewhere(id) => {
                begin(Op::Refer, bytes);
                uint(bytes, u64::from(id.branch));
                uint(bytes, id.step);
            }
            Base::Keyed => begin(Op::Keyed, bytes),
            Base::Entries => begin(Op::Entries, bytes),
        }
        for Tail { cut, appended } in self.earlier.iter().chain([&self.last]) {
            if let Some(length) = cut {
                begin(Op::Truncate, bytes);
                uint(bytes, *length);
            }
            if appended.count > 0 {
                begin(Op::Append, bytes);
                uint(bytes, appended.count);
                bin(bytes, appended.items());
            }
        }
        for (key, item) in self.keyed.items() {
            let key = std::str::from_utf8(key).unwrap_or_default();
            begin(if item.is_some() { Op::Upsert } else { Op::Remove }, bytes);
            // A key that was read is short enough to be written.
            let _ = text(bytes, key);
            if let Some(item) = item {
                bin(bytes, item);
            }
        }
        for (key, value) in self.entries.live() {
            begin(Op::Entry, bytes);
            bin(bytes, key);
            bin(bytes, value);
        }
    }
}

fn bin(bytes: &mut Vec<u8>, content: &[u8]) {
    let _ = rmp::encode::write_bin(bytes, content);
}

fn array(count: u64, items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(items.iter().map(|items| items.len()).sum::<usize>() + 5);
    let _ = rmp::encode::write_array_len(&mut bytes, u32::try_from(count).unwrap_or(u32::MAX));
    items.iter().for_each(|items| bytes.extend_from_slice(items));
    bytes
}

fn split_array(mut value: &[u8]) -> Result<(u64, &[u8]), FormatError> {
    let count = rmp::decode::read_array_len(&mut value).map_err(|_| not_a_list())?;
    Ok((u64::from(count), value))
}

fn not_a_list() -> FormatError {
    damaged("items are added to something that is not a list, or cut from it")
}

fn read_uint(from: &mut &[u8]) -> Result<u64, FormatError> {
    rmp::decode::read_int(from).map_err(|_| damaged("a number is missing"))
}

fn read_bin<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], FormatError> {
    let length = rmp::decode::read_bin_len(from).map_err(|_| damaged("a value is missing"))?;
    let (content, rest) =
        from.split_at_checked(length as usize).ok_or_else(|| damaged("a value is cut off"))?;
    *from = rest;
    Ok(content)
}

fn read_str<'a>(from: &mut &'a [u8]) -> Result<&'a str, FormatError> {
    let (text, rest) = rmp::decode::read_str_from_slice(*from).map_err(|_| damaged("a key is missing"))?;
    *from = rest;
    Ok(text)
}
