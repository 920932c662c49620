//! [`Append`]: a list that grows at its end.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reducer, StoredReducer, Undo};
use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// `#[reduce(append)]` on a `Vec`: appends the items of a write. Only the new items are stored.
#[derive(Debug)]
pub struct Append;

impl<T: Clone + Send + Sync + 'static> Reducer<Vec<T>> for Append {
    type Write = Vec<T>;
    const KIND: &'static str = "append";

    fn reduce(value: &mut Vec<T>, mut write: Vec<T>) {
        value.append(&mut write);
    }

    fn combine(write: &mut Vec<T>, mut later: Vec<T>) {
        write.append(&mut later);
    }

    fn try_on(value: &mut Vec<T>, write: &mut Vec<T>) -> Undo<Vec<T>> {
        let length = value.len();
        value.append(write);
        Undo::Tail(length)
    }

    fn take_off(value: &mut Vec<T>, write: &mut Vec<T>, undo: Undo<Vec<T>>) {
        if let Undo::Tail(length) = undo {
            *write = value.split_off(length);
        }
    }
}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> StoredReducer<Vec<T>> for Append {
    fn reduce_recorded(
        value: &mut Vec<T>,
        write: Vec<T>,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        delta.append(&write)?;
        Self::reduce(value, write);
        Ok(())
    }
}
