//! Canonical encoding: the same value gives the same bytes, in every process.
//!
//! A run that is built again from its start has to ask for the same bytes as before, and a `HashMap` in its
//! state has another order each time. While such a run is polled, maps are written with their keys in order.

use std::cell::Cell;

use crate::format::{FormatError, damaged, shape};

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Encodes canonically on this thread until it is dropped.
#[must_use = "it ends when it is dropped"]
pub struct Canonical {
    before: bool,
}

impl Canonical {
    /// Encodes canonically from now on.
    pub fn begin() -> Self {
        Canonical { before: IS_ON.replace(true) }
    }
}

impl Drop for Canonical {
    fn drop(&mut self) {
        IS_ON.set(self.before);
    }
}

/// Whether values are encoded canonically on this thread.
#[inline]
pub fn is_on() -> bool {
    IS_ON.get()
}

/// Sorts the entries of all maps in one MessagePack value by their encoded keys. Entries with equal keys keep
/// their order.
pub fn sort_maps(value: &mut [u8]) -> Result<(), FormatError> {
    let end = sort_value(value)?;
    if end == value.len() { Ok(()) } else { Err(damaged("bytes follow a value")) }
}

/// Sorts the maps in the value at the start of `bytes`, and returns its length. The bytes come from the
/// encoder, so their nesting is that of a value in memory.
fn sort_value(bytes: &mut [u8]) -> Result<usize, FormatError> {
    let marker = *bytes.first().ok_or_else(|| damaged("a value is cut off"))?;
    let (head, body, inside) = shape(marker, bytes)?;
    let mut at = head + body;
    if inside == 0 {
        return Ok(at);
    }
    if !matches!(marker, 0x80..=0x8f | 0xde | 0xdf) {
        for _ in 0..inside {
            at += sort_value(rest(bytes, at)?)?;
        }
        return Ok(at);
    }
    let entries_start = at;
    let mut entries = Vec::new();
    for _ in 0..inside / 2 {
        let start = at;
        at += sort_value(rest(bytes, at)?)?;
        let key_end = at;
        at += sort_value(rest(bytes, at)?)?;
        entries.push((start, key_end, at));
    }
    let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    let key = |entry: &(usize, usize, usize)| part(entry.0, entry.1);
    if !entries.is_sorted_by(|one, other| key(one) <= key(other)) {
        entries.sort_by(|one, other| key(one).cmp(key(other)));
        let sorted: Vec<u8> = entries.iter().flat_map(|entry| part(entry.0, entry.2)).copied().collect();
        if let Some(place) = bytes.get_mut(entries_start..at) {
            place.copy_from_slice(&sorted);
        }
    }
    Ok(at)
}

fn rest(bytes: &mut [u8], at: usize) -> Result<&mut [u8], FormatError> {
    bytes.get_mut(at..).ok_or_else(|| damaged("a value is cut off"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;
    use crate::delta::encode;

    fn encoded(value: &impl serde::Serialize) -> Vec<u8> {
        let _canonical = Canonical::begin();
        let mut bytes = Vec::new();
        encode(&mut bytes, value).unwrap();
        bytes
    }

    #[test]
    fn nested_hash_maps_are_encoded_like_sorted_maps() {
        for count in [0, 1, 2, 15, 16, 70_000] {
            let inner = |n: u32| (0..n % 40).map(|key| (key.to_string(), key));
            let unsorted: HashMap<u32, HashMap<String, u32>> =
                (0..count).map(|n| (n, inner(n).collect())).collect();
            let sorted: BTreeMap<u32, BTreeMap<String, u32>> =
                (0..count).map(|n| (n, inner(n).collect())).collect();
            assert_eq!(encoded(&(1, unsorted, "x")), encoded(&(1, sorted, "x")), "{count}");
        }
    }

    #[test]
    fn the_value_before_is_not_touched_and_the_guard_ends() {
        let mut bytes = vec![0x82, 0xa1, b'b', 1, 0xa1, b'a', 2];
        {
            let _canonical = Canonical::begin();
            encode(&mut bytes, &HashMap::from([("b", 1), ("a", 2)])).unwrap();
        }
        assert_eq!(bytes[..7], [0x82, 0xa1, b'b', 1, 0xa1, b'a', 2]);
        assert_eq!(bytes[7..], [0x82, 0xa1, b'a', 2, 0xa1, b'b', 1]);
        assert!(!is_on());
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        for bytes in
            [&[][..], &[0x81], &[0x81, 0xa1], &[0x92, 1], &[1, 2], &[0xdf, 255, 255, 255, 255], &[0xc1]]
        {
            assert!(sort_maps(&mut bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }
}
