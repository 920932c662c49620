//! A list whose items can be counted from its end.

use super::{array, split_array};
use crate::frame::{FormatError, damaged, value_length};

/// Items with their ends: a list that is cut again and again is scanned once.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Items {
    /// The items of a MessagePack array.
    pub(super) fn of(value: &[u8]) -> Result<Self, FormatError> {
        let (count, items) = split_array(value)?;
        let mut list = Items::default();
        list.append(count, items)?;
        Ok(list)
    }

    pub(super) fn append(&mut self, count: u64, items: &[u8]) -> Result<(), FormatError> {
        let before = self.bytes.len();
        let mut rest = items;
        for _ in 0..count {
            let length = value_length(rest)?;
            rest = rest.get(length..).unwrap_or_default();
            self.ends.push(before + items.len() - rest.len());
        }
        if !rest.is_empty() {
            return Err(damaged("a list has more items than its length"));
        }
        self.bytes.extend_from_slice(items);
        Ok(())
    }

    /// Keeps at most `length` items.
    pub(super) fn truncate(&mut self, length: u64) {
        let Some(length) = usize::try_from(length).ok().filter(|length| *length < self.ends.len()) else {
            return;
        };
        self.ends.truncate(length);
        self.bytes.truncate(self.ends.last().copied().unwrap_or_default());
    }

    pub(super) fn to_array(&self) -> Vec<u8> {
        array(self.ends.len() as u64, &[&self.bytes])
    }
}
