//! [`MemorySaver`]: checkpoints in the memory of the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Checkpointer, ListQuery, PendingWrite, Place, Put, Row, RowKind, Tail, stale};
use crate::context::{CheckpointId, TaskId};
use crate::error::Error;

/// Keeps checkpoints as long as it lives. For tests, and for interrupts within one process.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Default)]
/// # struct Count { n: u64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// async fn add(state: Snapshot<Count>) -> CountUpdate {
///     Count::update().n(state.n + 1)
/// }
/// let graph = StateGraph::new().node("add", add).edge(START, "add").compile()?.checkpointer(MemorySaver::new());
/// for _ in 0..3 {
///     graph.invoke(Count::update()).thread("t").await?;
/// }
/// assert_eq!(graph.state("t").await?.unwrap().values.n, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemorySaver {
    threads: Mutex<HashMap<String, Thread>>,
}

/// Namespace, then branch. Most threads hold one of each, so both are searched from the end.
type Thread = Vec<(String, Vec<Branch>)>;

/// One log of bytes and an index into it, so that a step costs no allocation of its own.
#[derive(Debug, Default)]
struct Branch {
    log: Vec<u8>,
    /// In order of steps; a segment directly after the delta of its step.
    rows: Vec<Entry>,
    writes: BTreeMap<(u64, TaskId, u32), Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    step: u64,
    kind: RowKind,
    start: usize,
    end: usize,
}

/// Almost every namespace is empty, and comparing empty strings is not free: an empty `String` points nowhere, and on
/// processors that read behind a mask even a comparison of no bytes pays for that, more than for all the rest of a commit.
fn equal(name: &str, other: &str) -> bool {
    name.len() == other.len() && (name.is_empty() || name == other)
}

impl MemorySaver {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<String, Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_branches<T>(&self, place: Place<'_>, read: impl FnOnce(&[Branch]) -> T) -> T {
        let threads = self.threads();
        let namespaces = threads.get(place.thread).map_or(&[][..], Vec::as_slice);
        let found = namespaces.iter().find(|(name, _)| equal(name, place.namespace));
        read(found.map_or(&[], |(_, branches)| branches))
    }

    fn change<T>(&self, place: Place<'_>, branch: u32, change: impl FnOnce(&mut Branch) -> T) -> T {
        let mut threads = self.threads();
        let thread = match threads.get_mut(place.thread) {
            Some(thread) => thread,
            None => threads.entry(place.thread.to_owned()).or_default(),
        };
        let at = thread.iter().position(|(name, _)| equal(name, place.namespace)).unwrap_or_else(|| {
            thread.push((place.namespace.to_owned(), Vec::new()));
            thread.len() - 1
        });
        let branches = &mut thread[at].1;
        if branches.len() <= branch as usize {
            branches.resize_with(branch as usize + 1, Branch::default);
        }
        change(&mut branches[branch as usize])
    }

    fn store(&self, put: &Put<'_>) -> Result<(), Error> {
        self.change(put.place, put.id.branch, |branch| branch.put(put))
    }
}

impl Branch {
    fn put(&mut self, put: &Put<'_>) -> Result<(), Error> {
        if self.rows.last().is_some_and(|last| last.step >= put.id.step) {
            return Err(stale(put.place, put.id));
        }
        self.add(put.id.step, put.kind, put.record);
        if let Some(segment) = put.segment {
            self.add(put.id.step, RowKind::Segment, segment);
        }
        if put.clears_writes {
            let before = put.id.step.saturating_sub(1);
            self.writes.retain(|(step, ..), _| *step != before);
        }
        Ok(())
    }

    fn add(&mut self, step: u64, kind: RowKind, record: &[u8]) {
        let start = self.log.len();
        self.log.extend_from_slice(record);
        self.rows.push(Entry { step, kind, start, end: self.log.len() });
    }

    fn row(&self, branch: u32, entry: &Entry) -> Row {
        Row {
            id: CheckpointId::new(branch, entry.step),
            kind: entry.kind,
            record: self.log[entry.start..entry.end].to_vec(),
        }
    }

    fn tail(&self, number: u32, at: Option<u64>) -> Option<Tail> {
        let end = match at {
            None => self.rows.len(),
            Some(step) => self.rows.partition_point(|entry| entry.step <= step),
        };
        let rows = &self.rows[..end];
        let last = rows.last()?;
        if at.is_some_and(|step| step != last.step) {
            return None;
        }
        let full = rows.iter().rposition(|entry| entry.kind == RowKind::Full)?;
        let folded =
            rows.iter().rposition(|entry| entry.kind == RowKind::Segment).map_or(full, |at| at.max(full));
        let needed = rows.iter().enumerate().skip(full).filter(|(at, entry)| match entry.kind {
            RowKind::Full => *at == full,
            RowKind::Segment => true,
            RowKind::Delta => *at > folded,
        });
        let writes = self.writes.range((last.step, TaskId::from_u128(0), 0)..);
        let writes = writes.take_while(|((step, ..), _)| *step == last.step);
        Some(Tail {
            rows: needed.map(|(_, entry)| self.row(number, entry)).collect(),
            writes: writes
                .map(|((_, task, slot), bytes)| PendingWrite {
                    task: *task,
                    slot: *slot,
                    bytes: bytes.clone(),
                })
                .collect(),
        })
    }
}

/// The last branch that has a checkpoint; one with nothing but pending writes has not begun.
fn newest_branch(branches: &[Branch]) -> Option<u32> {
    let newest = branches.iter().rposition(|branch| !branch.rows.is_empty())?;
    u32::try_from(newest).ok()
}

#[async_trait]
impl Checkpointer for MemorySaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, Error> {
        Ok(self.with_branches(place, |branches| {
            let number = match at {
                Some(id) => id.branch,
                None => newest_branch(branches)?,
            };
            branches.get(number as usize)?.tail(number, at.map(|id| id.step))
        }))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Error> {
        Ok(self.with_branches(place, |branches| {
            let branch = branches.get(id.branch as usize)?;
            let found = branch.rows.iter().find(|row| row.step == id.step && row.kind != RowKind::Segment)?;
            Some(branch.row(id.branch, found))
        }))
    }

    async fn put(&self, put: Put<'_>) -> Result<(), Error> {
        self.store(&put)
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), Error>> {
        Some(self.store(put))
    }

    async fn put_writes(
        &self,
        place: Place<'_>,
        at: CheckpointId,
        writes: &[PendingWrite],
    ) -> Result<(), Error> {
        self.change(place, at.branch, |branch| {
            for write in writes {
                branch.writes.insert((at.step, write.task, write.slot), write.bytes.clone());
            }
        });
        Ok(())
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Error> {
        Ok(self.with_branches(place, |branches| {
            let Some(number) = query.branch.or_else(|| newest_branch(branches)) else { return Vec::new() };
            let Some(branch) = branches.get(number as usize) else { return Vec::new() };
            let rows = branch.rows.iter().rev().filter(|row| {
                row.kind != RowKind::Segment && query.before.is_none_or(|before| row.step < before)
            });
            rows.take(query.limit.unwrap_or(usize::MAX)).map(|row| branch.row(number, row)).collect()
        }))
    }

    async fn threads(&self) -> Result<Vec<String>, Error> {
        let threads = self.threads();
        let begun = threads
            .iter()
            .filter(|(_, thread)| thread.iter().any(|(_, branches)| newest_branch(branches).is_some()));
        let mut names: Vec<String> = begun.map(|(name, _)| name.clone()).collect();
        names.sort();
        Ok(names)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.threads().remove(thread);
        Ok(())
    }
}
