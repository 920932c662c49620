//! [`Slots`]: which key of the object has which row.
//!
//! Each checkpoint has a row of its own. With a key for each row an object would need a removal for each
//! write, and a removal is an entry of the journal. So rows are in slots: `r0`, `r1`, and so on. A row takes
//! the slot of a row that is not needed any more, and overwrites it.
//!
//! ```text
//! value of a slot = head payload
//! head            = [key of the row, number of the change, free slots after it], as MessagePack
//! ```
//!
//! A free slot has its old value until it is taken. The head with the highest number says which ones are
//! free. A reader gets all values of one moment from the runtime, which may lie between two writes of a
//! change. So the last write of a change frees the slots of the rows that it makes obsolete, and no row takes
//! one of them before.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use agentgraph::{Code, Error};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The most free slots. Others are cleared.
const FREE: usize = 8;

/// A larger value is cleared when its row is not needed any more.
const MAY_STAY: usize = 8 * 1024;

/// The slots of a thread. They follow from what is read and written, so they are the same on every replay.
#[derive(Default)]
pub(super) struct Slots {
    of_rows: BTreeMap<String, u32>,
    free: BTreeSet<u32>,
    /// The bytes of each slot.
    sizes: BTreeMap<u32, usize>,
    /// The number of the last change.
    change: u64,
}

/// What a change does to the object: each key with its value, or without one if it is cleared.
pub(super) type SlotChanges = Vec<(String, Option<Bytes>)>;

#[derive(Serialize, Deserialize)]
struct Head<R> {
    row: R,
    change: u64,
    free: BTreeSet<u32>,
}

impl Slots {
    /// The rows of an object, by their keys, from the values of its slots.
    ///
    /// # Errors
    /// [`Code::Host`] if a value has no head.
    pub(super) fn read(
        values: impl IntoIterator<Item = (String, Bytes)>,
    ) -> Result<(Self, BTreeMap<String, Bytes>), Error> {
        let mut slots = Slots::default();
        let mut rows = Vec::new();
        for (key, value) in values {
            let slot = slot_of(&key).ok_or_else(|| unreadable(&key))?;
            let (head, payload) = split(&value).ok_or_else(|| unreadable(&key))?;
            slots.sizes.insert(slot, value.len());
            if head.change >= slots.change {
                (slots.change, slots.free) = (head.change, head.free);
            }
            rows.push((slot, head.row, payload));
        }
        slots.free.retain(|slot| slots.sizes.contains_key(slot));
        rows.retain(|(slot, ..)| !slots.free.contains(slot));
        slots.of_rows = rows.iter().map(|(slot, row, _)| (row.clone(), *slot)).collect();
        Ok((slots, rows.into_iter().map(|(_, row, payload)| (row, payload)).collect()))
    }

    /// The keys of the rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = &String> {
        self.of_rows.keys()
    }

    /// Carries out a change of rows. Returns what it does to the object, in an order in which a reader finds
    /// the rows before the change until it finds those after it.
    pub(super) fn change(&mut self, set: Vec<(String, Bytes)>, clear: &[String]) -> SlotChanges {
        let freed: BTreeSet<u32> = clear.iter().filter_map(|row| self.of_rows.remove(row)).collect();
        let mut changes = Vec::with_capacity(set.len());
        let last = set.len().checked_sub(1);
        for (at, (row, payload)) in set.into_iter().enumerate() {
            let slot = self.slot_for(&row);
            if Some(at) == last {
                self.free.extend(&freed);
            }
            self.change += 1;
            let value = joined(&Head { row: &*row, change: self.change, free: self.free.clone() }, &payload);
            self.sizes.insert(slot, value.len());
            changes.push((key_of(slot), Some(value)));
        }
        let cleared = match last {
            Some(_) => self.clear_free(),
            // No head says which slots are free.
            None => std::mem::take(&mut self.free).into_iter().chain(freed).collect(),
        };
        self.sizes.retain(|slot, _| !cleared.contains(slot));
        changes.extend(cleared.into_iter().map(|slot| (key_of(slot), None)));
        changes
    }

    /// The slot that a row has or takes.
    fn slot_for(&mut self, row: &str) -> u32 {
        if let Some(slot) = self.of_rows.get(row) {
            return *slot;
        }
        let slot = self.free.pop_first().unwrap_or_else(|| self.first_unused());
        self.of_rows.insert(row.to_owned(), slot);
        slot
    }

    fn first_unused(&self) -> u32 {
        let used = self.sizes.keys().zip(0..).take_while(|(slot, at)| **slot == *at);
        u32::try_from(used.count()).unwrap_or(u32::MAX)
    }

    /// Gives up the free slots that are large or too many.
    fn clear_free(&mut self) -> Vec<u32> {
        let mut left = FREE;
        let (stay, cleared) = self.free.iter().partition::<BTreeSet<u32>, _>(|slot| {
            let stays = left > 0 && self.sizes.get(slot).is_some_and(|size| *size <= MAY_STAY);
            left -= usize::from(stays);
            stays
        });
        self.free = stay;
        cleared.into_iter().collect()
    }
}

fn key_of(slot: u32) -> String {
    format!("r{slot}")
}

/// Whether this is the key of a slot.
pub(super) fn is_slot(key: &str) -> bool {
    slot_of(key).is_some()
}

fn slot_of(key: &str) -> Option<u32> {
    let slot = key.strip_prefix('r')?.parse().ok()?;
    (key_of(slot) == key).then_some(slot)
}

fn joined(head: &Head<&str>, payload: &[u8]) -> Bytes {
    let mut value = Vec::with_capacity(payload.len() + head.row.len() + 2 * head.free.len() + 24);
    // Writing such a value to a `Vec` does not fail.
    let _ = rmp_serde::encode::write(&mut value, head);
    value.extend_from_slice(payload);
    value.into()
}

fn split(value: &Bytes) -> Option<(Head<String>, Bytes)> {
    let mut from = rmp_serde::Deserializer::new(Cursor::new(&value[..]));
    let head = Head::deserialize(&mut from).ok()?;
    let at = usize::try_from(from.get_ref().position()).ok()?;
    Some((head, value.slice(at.min(value.len())..)))
}

fn unreadable(key: &str) -> Error {
    let problem = format!(
        "the value of `{key}` in the thread's object is no row: its writer has another release of agentgraph, or is none"
    );
    Error::new(Code::Host, problem)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A change of some of twelve rows: the rows to set with their sizes, and those to clear.
    type Change = (Vec<(u8, usize)>, Vec<u8>, bool);

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let size = prop_oneof![0..100_usize, 8_000..9_000_usize];
        vec((vec((0..12_u8, size), 0..4), vec(0..12_u8, 0..6), any::<bool>()), 1..40)
    }

    fn row(number: u8) -> String {
        format!("row {number}")
    }

    fn read(object: &BTreeMap<String, Bytes>) -> (Slots, BTreeMap<String, Bytes>) {
        Slots::read(object.clone()).unwrap()
    }

    /// The change as the engine would ask for it: rows to set in order, others that exist to clear.
    fn of_model(
        model: &BTreeMap<String, Bytes>,
        (set, clear, _): &Change,
        fill: u8,
    ) -> (BTreeMap<String, Bytes>, Vec<String>) {
        let set: BTreeMap<String, Bytes> =
            set.iter().map(|(number, size)| (row(*number), Bytes::from(vec![fill; *size]))).collect();
        let clear: BTreeSet<String> = clear.iter().map(|number| row(*number)).collect();
        let clear = clear.into_iter().filter(|row| model.contains_key(row) && !set.contains_key(row));
        let clear = clear.collect();
        (set, clear)
    }

    proptest! {
        /// A map of rows is the model. A reader may come after each entry of a change.
        #[test]
        fn a_reader_finds_the_rows_before_a_change_until_it_finds_those_after_it(changes in changes()) {
            let (mut slots, mut model, mut object) = (Slots::default(), BTreeMap::new(), BTreeMap::new());
            for (fill, change) in changes.iter().enumerate() {
                let (set, clear) = of_model(&model, change, fill as u8);
                let mut seen = model.clone();
                let sets: Vec<_> = set.into_iter().collect();
                let of_object = slots.change(sets.clone(), &clear);
                let after = {
                    let mut after: BTreeMap<String, Bytes> = model.clone();
                    after.extend(sets.iter().cloned());
                    after.retain(|row, _| !clear.contains(row));
                    after
                };
                for (at, (key, value)) in of_object.into_iter().enumerate() {
                    match value {
                        Some(value) => object.insert(key, value),
                        None => object.remove(&key),
                    };
                    let found = read(&object).1;
                    if sets.is_empty() {
                        prop_assert!(found.iter().all(|row| model.get(row.0) == Some(row.1)));
                        prop_assert!(after.iter().all(|row| found.get(row.0) == Some(row.1)));
                        continue;
                    }
                    seen.extend(sets.get(at).cloned());
                    if at + 1 >= sets.len() {
                        seen = after.clone();
                    }
                    prop_assert_eq!(&found, &seen);
                }
                model = after;
                let (reread, found) = read(&object);
                prop_assert_eq!(&found, &model);
                prop_assert!(object.len() <= model.len() + FREE, "{} values of {} rows", object.len(), model.len());
                if change.2 {
                    slots = reread;
                }
            }
        }

        #[test]
        fn any_value_is_a_row_or_an_error(key in "r?[0-9]{0,3}", value in vec(any::<u8>(), 0..40)) {
            let _ = Slots::read([(key, Bytes::from(value))]);
        }
    }

    /// A superstep that replaces a row is one entry of the journal.
    #[test]
    fn rows_that_replace_each_other_need_no_removals() {
        let mut slots = Slots::default();
        let row = |step: usize| format!("step {step}");
        slots.change(vec![(row(0), Bytes::new())], &[]);
        for step in (1..100).step_by(2) {
            let delta = slots.change(vec![(row(step), Bytes::new())], &[]);
            let full = slots.change(vec![(row(step + 1), Bytes::new())], &[row(step - 1), row(step)]);
            assert_eq!((delta.len(), full.len()), (1, 1));
        }
    }
}
