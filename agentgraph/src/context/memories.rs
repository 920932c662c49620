//! The memories of a run: the checkpoint that each of them continues from.
//!
//! A memory is a namespace that subgraphs with [`Memory::PerThread`](crate::Memory) keep for a whole
//! thread. Its records alone do not show which of them count: a call may have stored some and then been
//! undone with its task. So the records of the parent run name one checkpoint for each memory, and a name
//! changes in the same commit as the result of the call.

use agentgraph_checkpoint::CheckpointId;
use std::collections::{BTreeMap, BTreeSet};

use super::{RunShared, TaskRequest};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::header::StoredMemories;

/// The memories that a run names.
#[derive(Default)]
pub(crate) struct Memories(Lock<Inner>);

#[derive(Default)]
struct Inner {
    /// The names in the last commit, or in the next one if a superstep is merged and not committed.
    named: StoredMemories,
    /// The memories whose names differ from those in the head.
    unsaved: BTreeSet<String>,
    /// The head contains the names of an earlier call.
    foreign: bool,
    /// The memories called by tasks that are not merged, by task index, with their checkpoints after calls
    /// that have ended.
    called: BTreeMap<u32, BTreeMap<String, Option<(u32, u64)>>>,
}

impl Memories {
    /// The memories that a record names.
    pub(crate) fn of(named: StoredMemories) -> Self {
        Memories(Lock::new(Inner { named, ..Inner::default() }))
    }

    /// Starts a call in a namespace that an earlier call has used: the names of that call belong to the
    /// parent run.
    pub(crate) fn begin_call(&self) {
        let mut inner = self.0.lock();
        let named = std::mem::take(&mut inner.named);
        inner.foreign |= !named.is_empty();
    }

    /// The names of all memories.
    pub(crate) fn named(&self) -> StoredMemories {
        self.0.lock().named.clone()
    }

    /// Records the checkpoints of memories after the calls of a task that has ended, to be named when it is
    /// merged.
    pub(crate) fn ended(&self, index: u32, stand: StoredMemories) {
        if !stand.is_empty() {
            let ended = stand.into_iter().map(|(memory, at)| (memory, Some(at)));
            self.0.lock().called.entry(index).or_default().extend(ended);
        }
    }

    /// The checkpoints of memories after the calls of a task.
    pub(crate) fn of_task(&self, index: u32) -> StoredMemories {
        let inner = self.0.lock();
        let called = inner.called.get(&index).into_iter().flatten();
        called.filter_map(|(memory, at)| Some((memory.clone(), (*at)?))).collect()
    }

    /// A task ended without a result, or another one replaces it: its calls are dropped.
    pub(crate) fn forget(&self, index: u32) {
        self.0.lock().called.remove(&index);
    }

    /// Drops the calls of all tasks, since the superstep is not merged.
    pub(crate) fn forget_all(&self) {
        self.0.lock().called.clear();
    }

    /// Names the checkpoints of memories after the calls of all tasks of the superstep, which is merged.
    pub(crate) fn merge_all(&self) {
        let mut inner = self.0.lock();
        for called in std::mem::take(&mut inner.called).into_values() {
            inner.merge(called);
        }
    }

    /// [`merge_all`](Self::merge_all) for a task that belongs to no superstep.
    pub(crate) fn merge(&self, index: u32) {
        let mut inner = self.0.lock();
        if let Some(called) = inner.called.remove(&index) {
            inner.merge(called);
        }
    }

    /// The memories whose names have changed since the last commit, for a delta; `None` if the delta must
    /// contain all of them.
    pub(crate) fn changes(&self) -> Option<StoredMemories> {
        let inner = self.0.lock();
        let at = |memory: &String| Some((memory.clone(), *inner.named.get(memory)?));
        (!inner.foreign).then(|| inner.unsaved.iter().filter_map(at).collect())
    }

    /// A record with all names is committed.
    pub(crate) fn committed(&self) {
        let mut inner = self.0.lock();
        inner.unsaved.clear();
        inner.foreign = false;
    }

    /// Claims a memory for a task. `false` if another task that is not merged has called it.
    fn claim(&self, index: u32, memory: &str) -> bool {
        let mut inner = self.0.lock();
        if inner.called.iter().any(|(other, called)| *other != index && called.contains_key(memory)) {
            return false;
        }
        inner.called.entry(index).or_default().entry(memory.to_owned()).or_insert(None);
        true
    }

    fn get(&self, memory: &str) -> Option<(u32, u64)> {
        self.0.lock().named.get(memory).copied()
    }
}

impl Inner {
    fn merge(&mut self, called: BTreeMap<String, Option<(u32, u64)>>) {
        for (memory, at) in called {
            let Some(at) = at else { continue };
            if self.named.get(&memory) != Some(&at) {
                self.unsaved.insert(memory.clone());
                self.named.insert(memory, at);
            }
        }
    }
}

impl RunShared {
    /// The checkpoint of a memory for the tasks of this run, as named by this run or by its parent runs.
    pub(crate) fn memory(&self, memory: &str) -> Option<CheckpointId> {
        let mut shared = self;
        loop {
            if let Some((branch, step)) = shared.nest.as_ref().and_then(|nest| nest.memories.get(memory)) {
                return Some(CheckpointId::new(branch, step));
            }
            shared = &shared.outer.as_ref()?.shared;
        }
    }

    /// Claims a memory for a task, and for the tasks around it. `false` if a task beside one of them has
    /// called it: of two calls from one checkpoint, only one could be remembered.
    pub(crate) fn claim_memory(&self, request: TaskRequest, memory: &str) -> bool {
        let mut shared = self;
        let mut index = request.index;
        loop {
            if shared.nest.as_ref().is_some_and(|nest| !nest.memories.claim(index, memory)) {
                return false;
            }
            let Some(outer) = &shared.outer else { return true };
            (shared, index) = (&outer.shared, outer.request.index);
        }
    }
}
