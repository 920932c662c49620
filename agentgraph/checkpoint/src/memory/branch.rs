//! The rows and writes of one branch of a place.

use std::collections::{BTreeMap, HashMap};

use super::shared::{self, Piece};
use crate::blob::Usage;
use crate::error::StoreError;
use crate::error::stale;
use crate::id::{CheckpointId, TaskId};
use crate::row::{PendingWrite, Put, Rewrite, Row, RowKind, Tail};

/// One log of bytes and an index into it, so that a step needs no allocation of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    log: Vec<u8>,
    /// In order of steps; a segment directly after the delta of its step.
    pub(super) rows: Vec<Entry>,
    /// The pieces of rows that have any, by step and whether the row is a segment.
    pieces: HashMap<(u64, bool), Vec<Piece>>,
    writes: BTreeMap<WriteKey, Kept>,
}

/// Step, task and slot.
pub(super) type WriteKey = (u64, TaskId, u32);

/// Bytes without their large values, and these values.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) rest: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) step: u64,
    pub(super) kind: RowKind,
    start: usize,
    end: usize,
}

impl Branch {
    pub(super) fn put(&mut self, put: &Put<'_>, held: Option<[Vec<Piece>; 2]>) -> Result<(), StoreError> {
        if self.rows.last().is_some_and(|last| last.step >= put.id.step) {
            return Err(stale(put.place, put.id));
        }
        self.add(put.id.step, put.kind, put.record);
        if let Some(segment) = put.segment {
            self.add(put.id.step, RowKind::Segment, segment);
        }
        if let Some([record, segment]) = held {
            self.hold(put.id.step, false, record);
            self.hold(put.id.step, true, segment);
        }
        if put.clears_writes {
            let before = put.id.step.saturating_sub(1);
            self.writes.retain(|(step, ..), _| *step != before);
        }
        Ok(())
    }

    /// Whether the branch has a full or a delta of this step.
    pub(super) fn has(&self, step: u64) -> bool {
        // Almost always it is the last.
        self.rows.last().is_some_and(|last| last.step == step) || self.find(step).is_some()
    }

    /// The full or the delta of this step, which comes before the segment of the step.
    pub(super) fn find(&self, step: u64) -> Option<&Entry> {
        self.rows.get(self.before(Some(step)).len()).filter(|found| found.step == step)
    }

    /// The rows of the steps before `step`, or all of them.
    pub(super) fn before(&self, step: Option<u64>) -> &[Entry] {
        match step {
            None => &self.rows,
            Some(step) => &self.rows[..self.rows.partition_point(|row| row.step < step)],
        }
    }

    fn add(&mut self, step: u64, kind: RowKind, record: &[u8]) {
        let start = self.log.len();
        self.log.extend_from_slice(record);
        self.rows.push(Entry { step, kind, start, end: self.log.len() });
    }

    pub(super) fn put_writes(&mut self, writes: impl IntoIterator<Item = (WriteKey, Kept)>) {
        self.writes.extend(writes);
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.writes.is_empty()
    }

    pub(super) fn count(&self, usage: &mut Usage) {
        usage.rows += self.rows.len() as u64;
        usage.writes += self.writes.len() as u64;
        usage.bytes += self.log.len() as u64;
        usage.bytes += self.writes.values().map(|kept| kept.rest.len() as u64).sum::<u64>();
        usage.uses += self.pieces.values().map(|pieces| pieces.len() as u64).sum::<u64>();
        usage.uses += self.writes.values().map(|kept| kept.pieces.len() as u64).sum::<u64>();
    }

    fn hold(&mut self, step: u64, segment: bool, pieces: Vec<Piece>) {
        if !pieces.is_empty() {
            self.pieces.insert((step, segment), pieces);
        }
    }

    /// Builds the log anew from the remaining rows.
    fn rewrite(&mut self, number: u32, rewrite: &Rewrite<'_>, kept: &[Kept]) {
        let gone = |step: u64| {
            let of_branch = rewrite.gone.iter().filter(|(branch, _)| *branch == number);
            of_branch.clone().any(|(_, steps)| steps.contains(&step))
        };
        let full = |step: u64| {
            let id = CheckpointId::new(number, step);
            rewrite.fulls.iter().position(|(of, _)| *of == id).and_then(|at| kept.get(at))
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        let old = Branch {
            log: std::mem::take(&mut self.log),
            rows: std::mem::take(&mut self.rows),
            ..Branch::default()
        };
        for row in old.rows.iter().filter(|row| !gone(row.step)) {
            let unfolded = rewrite.unfold.contains(&CheckpointId::new(number, row.step));
            match (row.kind, full(row.step)) {
                (RowKind::Segment, Some(_)) => {}
                (RowKind::Segment, None) if unfolded => {}
                (_, Some(kept)) => {
                    self.add(row.step, RowKind::Full, &kept.rest);
                    self.hold(row.step, false, kept.pieces.clone());
                }
                (kind, None) => {
                    self.add(row.step, kind, &old.log[row.start..row.end]);
                    let key = (row.step, kind == RowKind::Segment);
                    self.hold(row.step, key.1, pieces.remove(&key).unwrap_or_default());
                }
            }
        }
        self.log.shrink_to_fit();
        self.writes.retain(|(step, ..), _| !gone(*step));
    }

    pub(super) fn row(&self, branch: u32, entry: &Entry) -> Row {
        Row { id: CheckpointId::new(branch, entry.step), kind: entry.kind, record: self.record(entry) }
    }

    fn record(&self, entry: &Entry) -> Vec<u8> {
        let rest = &self.log[entry.start..entry.end];
        // Most threads have nothing large.
        let pieces = if self.pieces.is_empty() {
            None
        } else {
            self.pieces.get(&(entry.step, entry.kind == RowKind::Segment))
        };
        pieces.map_or_else(|| rest.to_vec(), |pieces| shared::whole(rest, pieces))
    }

    /// The requests on the last row that have no answers, and its notes.
    pub(super) fn waiting(&self, number: u32) -> Vec<(CheckpointId, PendingWrite)> {
        let Some(last) = self.rows.last().map(|row| row.step) else { return Vec::new() };
        let at = CheckpointId::new(number, last);
        let answered = |task, slot| {
            self.writes
                .get(&(last, task, slot))
                .is_some_and(|answer| !PendingWrite::takes_back(&answer.rest) || !answer.pieces.is_empty())
        };
        let writes = self.writes.range((last, TaskId::from_u128(0), 0)..);
        let writes = writes.take_while(|((step, ..), _)| *step == last);
        writes
            .map(|((_, task, slot), kept)| kept.to_write(*task, *slot))
            .filter(|write| write.is_note() || (write.is_request() && !answered(write.task, write.slot + 1)))
            .map(|write| (at, write))
            .collect()
    }

    pub(super) fn tail(&self, number: u32, at: Option<u64>) -> Option<Tail> {
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
            writes: writes.map(|((_, task, slot), kept)| kept.to_write(*task, *slot)).collect(),
        })
    }
}

impl Kept {
    fn to_write(&self, task: TaskId, slot: u32) -> PendingWrite {
        PendingWrite { task, slot, bytes: shared::whole(&self.rest, &self.pieces) }
    }
}

/// The branches of a place, by number. The numbers may have gaps of any size.
#[derive(Clone, Debug, Default)]
pub(super) struct Branches(Vec<(u32, Branch)>);

impl Branches {
    fn find(&self, number: u32) -> Result<usize, usize> {
        match self.0.last() {
            // Almost always it is the last.
            Some((last, _)) if *last == number => Ok(self.0.len() - 1),
            _ => self.0.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Branch> {
        self.find(number).ok().map(|at| &self.0[at].1)
    }

    /// The branch with this number, created if missing.
    pub(super) fn begun(&mut self, number: u32) -> &mut Branch {
        let at = self.find(number).unwrap_or_else(|at| {
            self.0.insert(at, (number, Branch::default()));
            at
        });
        &mut self.0[at].1
    }

    /// The branches with checkpoints; a branch with pending writes only does not count.
    pub(super) fn with_rows(&self) -> impl DoubleEndedIterator<Item = (u32, &Branch)> {
        self.0.iter().filter(|(_, branch)| !branch.rows.is_empty()).map(|(number, branch)| (*number, branch))
    }

    pub(super) fn newest(&self) -> Option<(u32, &Branch)> {
        self.with_rows().next_back()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Branch> {
        self.0.iter().map(|(_, branch)| branch)
    }

    /// Returns whether anything remains.
    pub(super) fn rewrite(&mut self, rewrite: &Rewrite<'_>, kept: &[Kept]) -> bool {
        self.0.iter_mut().for_each(|(number, branch)| branch.rewrite(*number, rewrite, kept));
        self.0.retain(|(_, branch)| !branch.is_empty());
        !self.0.is_empty()
    }
}
