//! A value that each write replaces: [`Once`] accepts one writer per superstep, [`Last`] any number.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reducer, StoredReducer, Undo};

/// The reducer of a field without `#[reduce]`: a write replaces the value, and two writers in a superstep are
/// an error.
#[derive(Debug)]
pub struct Once;

/// `#[reduce(last)]`: the last write in task order replaces the value.
#[derive(Debug)]
pub struct Last;

macro_rules! replaces {
    ($reducer:ty, $kind:literal, $exclusive:literal) => {
        impl<T: Clone + Send + Sync + 'static> Reducer<T> for $reducer {
            type Write = T;
            const KIND: &'static str = $kind;
            const EXCLUSIVE: bool = $exclusive;

            fn reduce(value: &mut T, write: T) {
                *value = write;
            }

            fn combine(write: &mut T, later: T) {
                *write = later;
            }

            fn try_on(value: &mut T, write: &mut T) -> Undo<T> {
                std::mem::swap(value, write);
                Undo::Swap
            }

            fn take_off(value: &mut T, write: &mut T, _: Undo<T>) {
                std::mem::swap(value, write);
            }
        }

        impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> StoredReducer<T> for $reducer {}
    };
}

replaces!(Once, "once", true);
replaces!(Last, "last", false);
