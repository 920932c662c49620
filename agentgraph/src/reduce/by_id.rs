//! [`ById`]: a list whose items have keys, such as chat messages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Reducer, StoredReducer, Undo, UndoStep};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// An item with a key, for `#[reduce(by_id)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no key, so a list of it cannot be reduced by id",
    label = "needs `Keyed`",
    note = "implement `agentgraph::Keyed` for it: `fn key(&self) -> Cow<'_, str>`"
)]
pub trait Keyed {
    /// The key. It must not change while the item is in a state.
    fn key(&self) -> Cow<'_, str>;
}

/// One write to a keyed list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyedWrite<T> {
    /// Replaces the item with the same key, or adds the item at the end.
    Upsert(T),
    /// Removes the item with this key, if there is one.
    Remove(String),
}

/// `#[reduce(by_id)]` on a `Vec` of [`Keyed`] items: a write replaces items by key, adds new ones at the end,
/// or removes them. Stored item by item.
///
/// A key is searched from the end of the list, so replacing a recent item is cheap and adding one reads all
/// keys.
#[derive(Debug)]
pub struct ById;

fn position<T: Keyed>(items: &[T], key: &str) -> Option<usize> {
    let end = end(key);
    items.iter().rposition(|item| {
        let known = item.key();
        known.len() == key.len() && self::end(&known) == end && *known == *key
    })
}

/// The last eight bytes, 0 for a shorter key. Keys of one source are often alike up to a number at their
/// ends: a look there saves most comparisons.
#[inline]
fn end(key: &str) -> u64 {
    key.as_bytes().last_chunk().map_or(0, |end| u64::from_ne_bytes(*end))
}

fn position_of<T: Keyed>(items: &[T], write: &KeyedWrite<T>) -> Option<usize> {
    match write {
        KeyedWrite::Upsert(item) => position(items, &item.key()),
        KeyedWrite::Remove(key) => position(items, key),
    }
}

impl<T: Keyed + Clone + Send + Sync + 'static> Reducer<Vec<T>> for ById {
    type Write = Vec<KeyedWrite<T>>;
    const KIND: &'static str = "by_id";

    fn reduce(value: &mut Vec<T>, write: Self::Write) {
        for one in write {
            let at = position_of(value, &one);
            reduce_one(value, one, at, |_| {});
        }
    }

    fn combine(write: &mut Self::Write, mut later: Self::Write) {
        write.append(&mut later);
    }

    fn admit(value: Vec<T>) -> Vec<T> {
        let mut places = HashMap::with_capacity(value.len());
        let mut admitted: Vec<T> = Vec::with_capacity(value.len());
        for item in value {
            match places.entry(item.key().into_owned()) {
                Entry::Occupied(place) => admitted[*place.get()] = item,
                Entry::Vacant(place) => {
                    place.insert(admitted.len());
                    admitted.push(item);
                }
            }
        }
        admitted
    }

    fn try_on(value: &mut Vec<T>, write: &mut Self::Write) -> Undo<Vec<T>> {
        let mut old = Vec::new();
        let mut steps = Vec::new();
        for one in write.iter().cloned() {
            let at = position_of(value, &one);
            reduce_one(value, one, at, |(step, displaced)| {
                steps.push(step);
                old.extend(displaced);
            });
        }
        Undo::Steps { old, steps }
    }

    fn take_off(value: &mut Vec<T>, _: &mut Self::Write, undo: Undo<Vec<T>>) {
        let Undo::Steps { mut old, steps } = undo else { return };
        for step in steps.into_iter().rev() {
            match step {
                UndoStep::Added => drop(value.pop()),
                UndoStep::Replaced(at) => {
                    if let (Some(slot), Some(item)) = (value.get_mut(at), old.pop()) {
                        *slot = item;
                    }
                }
                UndoStep::Removed(at) => {
                    if let Some(item) = old.pop() {
                        value.insert(at.min(value.len()), item);
                    }
                }
            }
        }
    }
}

/// Applies one write to the item at `at`, and passes the change, with the displaced item, to `done`.
fn reduce_one<T>(
    value: &mut Vec<T>,
    write: KeyedWrite<T>,
    at: Option<usize>,
    mut done: impl FnMut((UndoStep, Option<T>)),
) {
    match (write, at) {
        (KeyedWrite::Upsert(item), Some(at)) => {
            let old = std::mem::replace(&mut value[at], item);
            done((UndoStep::Replaced(at), Some(old)));
        }
        (KeyedWrite::Upsert(item), None) => {
            value.push(item);
            done((UndoStep::Added, None));
        }
        (KeyedWrite::Remove(_), Some(at)) => {
            let old = value.remove(at);
            done((UndoStep::Removed(at), Some(old)));
        }
        (KeyedWrite::Remove(_), None) => {}
    }
}

impl<T> StoredReducer<Vec<T>> for ById
where
    T: Keyed + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    fn reduce_recorded(
        value: &mut Vec<T>,
        write: Self::Write,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        for one in write {
            let at = position_of(value, &one);
            record_one(&one, at.map(|at| &value[at]), delta)?;
            reduce_one(value, one, at, |_| {});
        }
        Ok(())
    }

    fn record(value: &Vec<T>, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        delta.keyed(value.iter().map(|item| (item.key(), item)))
    }
}

fn record_one<T: Keyed + Serialize>(
    write: &KeyedWrite<T>,
    known: Option<&T>,
    delta: &mut DeltaWriter,
) -> Result<(), EncodeError> {
    match (write, known) {
        (KeyedWrite::Upsert(item), known) => delta.upsert(&item.key(), item, known),
        (KeyedWrite::Remove(key), Some(item)) => delta.remove(key, item),
        (KeyedWrite::Remove(_), None) => Ok(()),
    }
}
