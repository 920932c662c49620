//! [`OnceResults`]: the durable steps of one task.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::OnceError;
use crate::context::TaskRequest;
use crate::record::bytes::Bytes;
use crate::record::once::{OnceCall, OnceKey, StoredOnce};

/// A result in MessagePack.
pub(super) type Encoded = Arc<[u8]>;

/// Where the results of durable steps go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnceStorage {
    /// To the store.
    Kept,
    /// Nowhere, although the run is stored at its end.
    AtTheEnd,
    /// Nowhere: retries in the same call see them.
    #[default]
    InMemory,
    /// The task runs on a host, apart from its run.
    Host,
}

/// The durable steps of one task: results of earlier calls, and those of the running attempt.
#[derive(Debug, Default)]
pub(crate) struct OnceResults {
    results: HashMap<OnceKey, OnceResult>,
    /// The number of calls in the attempt that are told apart by their index, by kind and name.
    calls: HashMap<(Counted, String), u32>,
    /// The steps that the attempt has called.
    called: HashSet<OnceKey>,
    /// The number of results whose steps the attempt has not called.
    uncalled: usize,
    running: HashSet<OnceKey>,
    /// The number of calls of the node's function, by which a step of an earlier one is told from those of
    /// the current one.
    pub(super) call: u64,
    /// The number of results that have a slot in the store.
    slots: u32,
}

/// The kinds of steps that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    Work,
    Sleep,
}

#[derive(Debug)]
struct OnceResult {
    value: Encoded,
    /// The attempts that it took.
    attempts: u32,
    /// Its place in the order in which the results came.
    place: u32,
    storing: Storing,
}

#[derive(Debug)]
enum Storing {
    Stored,
    /// The waker of the step that waits for it.
    Waits(Waker),
    /// The loop has taken it.
    Taken(Waker),
}

/// A result that the loop is to store: its task's index and node, its place among the task's results, and
/// itself.
#[derive(Debug)]
pub(crate) struct NewOnce {
    pub(crate) index: u32,
    pub(crate) node: u32,
    pub(crate) slot: u32,
    pub(crate) result: StoredOnce,
}

/// What a step has produced.
pub(super) struct Produced {
    pub(super) value: Encoded,
    pub(super) attempts: u32,
    /// It is stored as far as it ever will be.
    pub(super) is_stored: bool,
}

impl OnceResults {
    pub(crate) fn of(stored: Vec<(u32, StoredOnce)>) -> Self {
        let slots = stored.iter().map(|(slot, _)| slot.saturating_add(1)).max().unwrap_or(0);
        let results = stored.into_iter().map(|(place, one)| {
            let value = Arc::from(one.value.0);
            (one.key, OnceResult { value, attempts: one.attempts, place, storing: Storing::Stored })
        });
        let results: HashMap<_, _> = results.collect();
        OnceResults { uncalled: results.len(), results, slots, ..OnceResults::default() }
    }

    /// The node's function is called again, and calls its steps from the start.
    pub(crate) fn begin_call(&mut self) {
        self.calls.clear();
        self.called.clear();
        self.uncalled = self.results.len();
        self.running.clear();
        self.call += 1;
    }

    /// The index of the next call of this name.
    pub(crate) fn next_index(&mut self, kind: Counted, name: &str) -> u32 {
        let next = self.calls.entry((kind, name.to_owned())).or_default();
        let index = *next;
        *next = next.saturating_add(1);
        index
    }

    /// Whether the attempt has called every step that has a result.
    pub(crate) fn has_called_all(&self) -> bool {
        self.uncalled == 0
    }

    /// Starts a step. Returns its result if an earlier attempt has done it.
    pub(super) fn begin(&mut self, key: &OnceKey) -> Result<Option<Encoded>, OnceError> {
        let is_first = self.called.insert(key.clone());
        let result = self.results.get(key);
        self.uncalled -= usize::from(is_first && result.is_some());
        let found = match result {
            Some(OnceResult { value, storing: Storing::Stored, .. }) => return Ok(Some(Arc::clone(value))),
            // An attempt before this one may have been dropped while the result was being stored.
            Some(unstored) => Some(Arc::clone(&unstored.value)),
            None => None,
        };
        match &key.call {
            _ if self.running.insert(key.clone()) => Ok(found),
            OnceCall::Key(own) => Err(OnceError::SameKey { name: key.name.clone(), key: own.clone() }),
            OnceCall::Version => Err(OnceError::SameKey { name: key.name.clone(), key: String::new() }),
            OnceCall::Nth(_) | OnceCall::Sleep(_) => Err(OnceError::TooLate),
        }
    }

    /// A step is no longer running.
    pub(super) fn leave(&mut self, key: &OnceKey) {
        self.running.remove(key);
    }

    /// Adds a result.
    pub(super) fn put(&mut self, key: &OnceKey, produced: Produced, waker: &Waker) {
        let Produced { value, attempts, is_stored } = produced;
        let storing = if is_stored { Storing::Stored } else { Storing::Waits(waker.clone()) };
        let place = self.slots;
        self.slots = self.slots.saturating_add(1);
        self.results.insert(key.clone(), OnceResult { value, attempts, place, storing });
    }

    /// Whether a result is stored. The waker is called when it is.
    pub(super) fn poll_stored(&mut self, key: &OnceKey, cx: &mut Context<'_>) -> Poll<()> {
        match self.results.get_mut(key).map(|result| &mut result.storing) {
            Some(Storing::Waits(waker) | Storing::Taken(waker)) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Some(Storing::Stored) | None => Poll::Ready(()),
        }
    }

    /// Takes a result that is to be stored; `None` if it is taken already.
    pub(crate) fn take_unstored(&mut self, task: TaskRequest, key: &OnceKey) -> Option<NewOnce> {
        let result = self.results.get_mut(key)?;
        let Storing::Waits(waker) = &result.storing else { return None };
        result.storing = Storing::Taken(waker.clone());
        let TaskRequest { index, node, .. } = task;
        Some(NewOnce { index, node, slot: result.place, result: result.to_stored(key) })
    }

    /// Records that a result is stored. Returns the waker of the step that waits for it.
    pub(crate) fn mark_stored(&mut self, key: &OnceKey) -> Option<Waker> {
        let result = self.results.get_mut(key)?;
        match std::mem::replace(&mut result.storing, Storing::Stored) {
            Storing::Stored => None,
            Storing::Waits(waker) | Storing::Taken(waker) => Some(waker),
        }
    }

    /// The results, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<StoredOnce> {
        let mut all: Vec<_> = self.results.iter().collect();
        all.sort_unstable_by_key(|(_, result)| result.place);
        all.into_iter().map(|(key, result)| result.to_stored(key)).collect()
    }
}

impl OnceResult {
    fn to_stored(&self, key: &OnceKey) -> StoredOnce {
        StoredOnce { key: key.clone(), value: Bytes(self.value.to_vec()), attempts: self.attempts }
    }
}
