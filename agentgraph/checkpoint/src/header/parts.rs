//! Lists and maps whose items stay encoded.

use std::collections::BTreeMap;

use crate::frame::value_length;

/// The items of a MessagePack array, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct RawList {
    count: u32,
    items: Vec<u8>,
}

impl RawList {
    /// The items of an array; no bytes are no items. `None` if the bytes are something else.
    pub(super) fn of(array: &[u8]) -> Option<Self> {
        let mut list = RawList::default();
        if !array.is_empty() {
            list.extend(array)?;
        }
        Some(list)
    }

    /// Adds the items of an array.
    pub(super) fn extend(&mut self, mut array: &[u8]) -> Option<()> {
        let count = rmp::decode::read_array_len(&mut array).ok()?;
        self.count = self.count.checked_add(count)?;
        self.items.extend_from_slice(array);
        Some(())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.items.len() + 5);
        let _ = rmp::encode::write_array_len(&mut bytes, self.count);
        bytes.extend_from_slice(&self.items);
        bytes
    }
}

/// The entries of a MessagePack map whose keys are texts.
#[derive(Clone, Debug, Default)]
pub(super) struct RawMap(BTreeMap<String, Vec<u8>>);

impl RawMap {
    /// The entries of a map; no bytes are no entries. `None` if the bytes are something else.
    pub(super) fn of(map: &[u8]) -> Option<Self> {
        let mut entries = RawMap::default();
        if !map.is_empty() {
            entries.extend(map)?;
        }
        Some(entries)
    }

    /// Adds the entries of a map; they replace entries with the same keys.
    pub(super) fn extend(&mut self, mut map: &[u8]) -> Option<()> {
        let count = rmp::decode::read_map_len(&mut map).ok()?;
        for _ in 0..count {
            let (key, after) = rmp::decode::read_str_from_slice(map).ok()?;
            let (value, after) = after.split_at_checked(value_length(after).ok()?)?;
            self.0.insert(key.to_owned(), value.to_vec());
            map = after;
        }
        Some(())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = rmp::encode::write_map_len(&mut bytes, u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        for (key, value) in &self.0 {
            let _ = rmp::encode::write_str(&mut bytes, key);
            bytes.extend_from_slice(value);
        }
        bytes
    }
}

/// The items of a MessagePack array. `None` if the bytes are something else.
pub(super) fn items_of(mut array: &[u8]) -> Option<Vec<&[u8]>> {
    let count = rmp::decode::read_array_len(&mut array).ok()?;
    let mut items = Vec::new();
    for _ in 0..count {
        let (item, after) = array.split_at_checked(value_length(array).ok()?)?;
        items.push(item);
        array = after;
    }
    array.is_empty().then_some(items)
}
