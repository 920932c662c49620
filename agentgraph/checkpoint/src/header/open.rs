//! The open activations of an eager run.
//!
//! In a full, a segment and the first record of a run, `next` contains all of them. A delta contains
//! instead those that `ended` and those that have `begun` or changed, so a record is no larger than the
//! change.

use std::collections::HashSet;

use serde::Deserialize;

use super::parts::items_of;
use crate::delta::decode;

/// Identifies an activation within its run: the number of the commit that made it, and its index there.
/// Tasks of other disciplines have no key.
type Key = Option<(u64, u32)>;

/// The items of `next`, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Open(Vec<(Key, Vec<u8>)>);

impl Open {
    /// The items of an array; no bytes are no items. `None` if the bytes are something else.
    pub(super) fn of(array: &[u8]) -> Option<Self> {
        if array.is_empty() {
            return Some(Open::default());
        }
        let items = items_of(array)?;
        items.into_iter().map(|item| Some((key_of(item)?, item.to_vec()))).collect::<Option<_>>().map(Open)
    }

    pub(super) fn end(&mut self, ended: &[u8]) -> Option<()> {
        let ended: HashSet<(u64, u32)> = decode(ended).ok()?;
        self.0.retain(|(key, _)| key.is_none_or(|key| !ended.contains(&key)));
        Some(())
    }

    /// Adds activations, or replaces those with the same keys.
    pub(super) fn begin(&mut self, begun: &[u8]) -> Option<()> {
        for item in items_of(begun)? {
            let key = key_of(item)?;
            let item = item.to_vec();
            match self.0.binary_search_by_key(&key, |(key, _)| *key) {
                Ok(at) => self.0[at] = (key, item),
                Err(at) => self.0.insert(at, (key, item)),
            }
        }
        Some(())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = rmp::encode::write_array_len(&mut bytes, u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        self.0.iter().for_each(|(_, item)| bytes.extend_from_slice(item));
        bytes
    }
}

/// The key of an item: a node's name, or a map. `None` if it is something else.
fn key_of(item: &[u8]) -> Option<Key> {
    #[derive(Deserialize)]
    struct Made {
        made: Option<u64>,
        #[serde(default)]
        index: u32,
    }
    if rmp::decode::read_str_from_slice(item).is_ok() {
        return Some(None);
    }
    let Made { made, index } = decode(item).ok()?;
    Some(made.map(|made| (made, index)))
}
