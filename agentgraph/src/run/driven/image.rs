//! [`Image`]: the rows of one thread in memory, and what has changed since it was last handed out.

mod base;
mod key;
mod restored;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::key::{RowKey, What};
use super::commit::{Commit, Record};
use super::need::StoreChange;
use crate::error::{Code, Error};
use crate::record::blob::Blob;
use crate::record::header::StoredActivation;
use agentgraph_checkpoint::fold::Folded;
use agentgraph_checkpoint::frame::open;
use agentgraph_checkpoint::header::HeaderMap;
use agentgraph_checkpoint::{
    CheckpointId, ListQuery, PendingWrite, Place, Put, PutWrites, Row, RowKind, Source, StoreError, Tail,
    stale,
};

pub(super) use base::write_base;
pub use restored::ThreadRows;
pub(super) use store::DrivenStore;

/// A delta of fewer bytes contains no value that later records refer to.
const MAY_BE_REFERRED_TO: usize = 4 * 1024;

/// The rows of one thread.
pub(super) struct Image {
    thread: Arc<str>,
    /// Commits share their bytes.
    rows: BTreeMap<RowKey, Blob>,
    changed: Changed,
    /// The rows that were handed out, or come from the ground.
    known: BTreeSet<RowKey>,
}

/// The changes since the image was last handed out.
#[derive(Default)]
struct Changed {
    set: BTreeSet<RowKey>,
    clear: BTreeSet<RowKey>,
    records: Vec<Record>,
}

impl Image {
    pub(super) fn new(
        thread: &str,
        rows: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, Error> {
        let rows = rows.into_iter().map(|(key, bytes)| match RowKey::from_text(&key) {
            Some(key) => Ok((key, Blob::from(bytes))),
            None => {
                let problem =
                    format!("a row of the thread has a key that this release does not know: `{key}`");
                Err(Error::new(Code::UnknownFormat, problem).on_thread(Some(thread)))
            }
        });
        let rows: BTreeMap<RowKey, Blob> = rows.collect::<Result<_, Error>>()?;
        let known = rows.keys().cloned().collect();
        Ok(Image { thread: Arc::from(thread), rows, changed: Changed::default(), known })
    }

    /// The changes since the last call, if there are any.
    fn take_change(&mut self) -> Option<StoreChange> {
        let Changed { set, clear, records } = std::mem::take(&mut self.changed);
        if set.is_empty() && clear.is_empty() && records.is_empty() {
            return None;
        }
        self.known.retain(|key| !clear.contains(key));
        self.known.extend(set.iter().cloned());
        let set = set.iter().filter_map(|key| Some((key.to_text(), self.rows.get(key)?.0.to_vec())));
        let thread = self.thread.to_string();
        let commit = (!records.is_empty()).then_some(Commit { thread, records });
        Some(StoreChange { set: set.collect(), clear: clear.iter().map(RowKey::to_text).collect(), commit })
    }

    fn set(&mut self, key: RowKey, bytes: Blob) {
        self.changed.clear.remove(&key);
        self.changed.set.insert(key.clone());
        self.rows.insert(key, bytes);
    }

    fn clear(&mut self, key: &RowKey) {
        self.rows.remove(key);
        self.changed.set.remove(key);
        if self.known.contains(key) {
            self.changed.clear.insert(key.clone());
        }
    }

    fn put(&mut self, put: &Put<'_>) -> Result<(), StoreError> {
        let namespace = put.place.namespace;
        let is_late = self.last_of(namespace, put.id.branch).is_some_and(|last| last.step >= put.id.step);
        if is_late || put.parent.is_some_and(|parent| self.row_of(namespace, parent).is_none()) {
            return Err(stale(put.place, put.id));
        }
        let record = Record::of_put(put);
        if let Some(row) = &record.row {
            self.set(RowKey::row(namespace, put.id, put.kind), row.bytes.clone());
            if let Some(segment) = &row.segment {
                self.set(RowKey::row(namespace, put.id, RowKind::Segment), segment.clone());
            }
        }
        if let (true, Some(before)) = (put.clears_writes, put.id.step.checked_sub(1)) {
            self.clear_writes(namespace, CheckpointId::new(put.id.branch, before));
        }
        self.changed.records.push(record);
        self.write(&put.own_writes());
        self.clear_obsolete(put);
        self.clear_ended_calls(put);
        Ok(())
    }

    fn put_writes(&mut self, put: &PutWrites<'_>) {
        if !put.writes.is_empty() {
            self.changed.records.push(Record::of_writes(*put));
            self.write(put);
        }
    }

    fn write(&mut self, put: &PutWrites<'_>) {
        for write in put.writes {
            self.set(RowKey::write(put.place.namespace, put.at, write), Blob(write.bytes[..].into()));
        }
    }

    /// Removes the pending writes of a checkpoint, also from what the history is to get.
    fn clear_writes(&mut self, namespace: &str, at: CheckpointId) {
        for key in self.writes_of(namespace, at).map(|(key, ..)| key.clone()).collect::<Vec<_>>() {
            self.clear(&key);
        }
        self.changed
            .records
            .retain(|record| record.row.is_some() || record.namespace != namespace || record.id != at);
    }

    /// Removes the rows that no reader needs after this one.
    fn clear_obsolete(&mut self, put: &Put<'_>) {
        let namespace = put.place.namespace;
        if put.kind == RowKind::Full && !is_memory(namespace) {
            // The content of a full is read only if a row may hold what it refers to.
            let holds =
                |(key, bytes): (&RowKey, &Blob)| key.id != put.id && bytes.0.len() >= MAY_BE_REFERRED_TO;
            let referred = match self.of_namespace(namespace).any(holds) {
                true => referred_to(put.record, put.id),
                false => BTreeSet::new(),
            };
            let obsolete = self.of_namespace(namespace).filter(|(key, _)| {
                key.id != put.id && !referred.contains(&key.id) && !matches!(key.what, What::Write(..))
            });
            for key in obsolete.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.clear(&key);
            }
        }
        if put.segment.is_some() {
            // The segment contains them. A later full may refer to a large value in one of them.
            let folded = self.of_namespace(namespace).filter(|(key, bytes)| {
                key.what == What::Row(RowKind::Delta) && key.id < put.id && bytes.0.len() < MAY_BE_REFERRED_TO
            });
            for key in folded.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.clear(&key);
            }
        }
    }

    /// Removes the records of the subgraph calls whose tasks this row merges. Without subgraphs it costs one
    /// look into the map.
    fn clear_ended_calls(&mut self, put: &Put<'_>) {
        let calls = self.calls_in(put.place.namespace);
        if !calls.is_empty() && ends_all_tasks(put) {
            calls.iter().for_each(|key| self.clear(key));
        }
    }

    /// The rows of all subgraph calls in a namespace.
    fn calls_in(&self, around: &str) -> Vec<RowKey> {
        let mut calls = Vec::new();
        let mut last = RowKey::last_of(around);
        while let Some((key, _)) = self.rows.range(&last..).next() {
            let Some(inside) = key.namespace.strip_prefix(around) else { break };
            if (around.is_empty() || inside.starts_with('|')) && !is_memory(inside) {
                calls.extend(self.of_namespace(&key.namespace).map(|(key, _)| key.clone()));
            }
            last = RowKey::last_of(&key.namespace);
        }
        calls
    }

    fn of_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl DoubleEndedIterator<Item = (&'a RowKey, &'a Blob)> {
        let first = RowKey::first_of(namespace);
        let last = RowKey::last_of(namespace);
        self.rows.range(first..=last)
    }

    fn of_branch<'a>(
        &'a self,
        namespace: &'a str,
        branch: u32,
    ) -> impl DoubleEndedIterator<Item = (&'a RowKey, &'a Blob)> {
        let first = RowKey::row(namespace, CheckpointId::new(branch, 0), RowKind::Full);
        let last = RowKey { id: CheckpointId::new(branch, u64::MAX), ..RowKey::last_of(namespace) };
        self.rows.range(first..=last)
    }

    fn writes_of<'a>(
        &'a self,
        namespace: &'a str,
        at: CheckpointId,
    ) -> impl Iterator<Item = (&'a RowKey, PendingWrite)> {
        let first = RowKey::row(namespace, at, RowKind::Full);
        let last = RowKey { id: at, ..RowKey::last_of(namespace) };
        self.rows.range(first..=last).filter_map(|(key, bytes)| match key.what {
            What::Write(task, slot) => Some((key, PendingWrite { task, slot, bytes: bytes.0.to_vec() })),
            What::Row(_) => None,
        })
    }

    /// The newest checkpoint of a branch.
    fn last_of(&self, namespace: &str, branch: u32) -> Option<CheckpointId> {
        self.of_branch(namespace, branch).rev().find(|(key, _)| key.is_step()).map(|(key, _)| key.id)
    }

    /// The newest branch with a checkpoint.
    fn newest_branch(&self, namespace: &str) -> Option<u32> {
        self.of_namespace(namespace).rev().find(|(key, _)| key.is_step()).map(|(key, _)| key.id.branch)
    }

    fn find(&self, namespace: &str, id: CheckpointId) -> Option<Row> {
        let (kind, record) = self.row_of(namespace, id)?;
        Some(Row { id, kind, record: record.0.to_vec() })
    }

    /// The full or the delta of a checkpoint.
    fn row_of(&self, namespace: &str, id: CheckpointId) -> Option<(RowKind, &Blob)> {
        let kinds = [RowKind::Full, RowKind::Delta];
        kinds.into_iter().find_map(|kind| Some((kind, self.rows.get(&RowKey::row(namespace, id, kind))?)))
    }

    fn tail(&self, namespace: &str, at: Option<CheckpointId>) -> Option<Tail> {
        let branch = match at {
            Some(at) => at.branch,
            None => self.newest_branch(namespace)?,
        };
        let at = match at {
            Some(at) => self.find(namespace, at)?.id,
            None => self.last_of(namespace, branch)?,
        };
        // From the newest row back to the full: the deltas after the last segment, then the segments.
        let (mut deltas, mut segments, mut full) = (Vec::new(), Vec::new(), None);
        for (key, record) in self.of_branch(namespace, branch).rev().filter(|(key, _)| key.id <= at) {
            let What::Row(kind) = key.what else { continue };
            let row = || Row { id: key.id, kind, record: record.0.to_vec() };
            match kind {
                RowKind::Full => {
                    full = Some(row());
                    break;
                }
                RowKind::Segment => segments.push(row()),
                _ if segments.is_empty() => deltas.push(row()),
                _ => {}
            }
        }
        let rows = full.into_iter().chain(segments.into_iter().rev()).chain(deltas.into_iter().rev());
        let writes = self.writes_of(namespace, at).map(|(_, write)| write);
        Some(Tail { rows: rows.collect(), writes: writes.collect() })
    }

    fn list(&self, place: Place<'_>, query: ListQuery) -> Vec<Row> {
        let Some(branch) = query.branch.or_else(|| self.newest_branch(place.namespace)) else {
            return Vec::new();
        };
        let steps = self.of_branch(place.namespace, branch).rev().filter(|(key, _)| key.is_step());
        let before = steps.filter(|(key, _)| query.before.is_none_or(|before| key.id.step < before));
        let rows = before.filter_map(|(key, record)| match key.what {
            What::Row(kind) => Some(Row { id: key.id, kind, record: record.0.to_vec() }),
            What::Write(..) => None,
        });
        rows.take(query.limit.unwrap_or(usize::MAX)).collect()
    }
}

/// Whether the tasks before this row are merged, and none after it has begun: a superstep, or the input of a
/// run. In an eager run others may be under way. A header that adds to the one before it is one of those.
fn ends_all_tasks(put: &Put<'_>) -> bool {
    let mut header = HeaderMap::default();
    let read = open(put.kind, put.record).and_then(|view| header.apply(view.header));
    let source = read.and_then(|()| header.get("source")).map(Option::unwrap_or_default);
    let is_eager = |next: Vec<StoredActivation>| next.iter().any(|task| task.eager.is_some());
    match source {
        Ok(Source::Input) => true,
        Ok(Source::Loop) => header.get("next").is_ok_and(|next| next.is_some_and(|next| !is_eager(next))),
        _ => false,
    }
}

/// Whether a namespace is that of a memory for the whole thread. Which of its checkpoints is in effect is in
/// the record of the root.
fn is_memory(namespace: &str) -> bool {
    !namespace.is_empty() && !namespace.contains(':')
}

/// The records that a full refers to. One that cannot be read refers to nothing, and its reader says why.
fn referred_to(full: &[u8], id: CheckpointId) -> BTreeSet<CheckpointId> {
    let mut folded = Folded::default();
    match open(RowKind::Full, full).and_then(|view| folded.apply(view.operations, Some(id))) {
        Ok(()) => folded.elsewhere().into_iter().map(|(_, id)| id).collect(),
        Err(_) => BTreeSet::new(),
    }
}
