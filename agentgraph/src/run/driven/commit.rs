//! [`Commit`]: what a driven run has stored, for a store that keeps its history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::image::write_base;
use crate::record::blob::Blob;
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, StoreCode, StoreError, TaskId,
};

/// What a driven run has stored, for a [`Checkpointer`] that keeps the history of the thread.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    pub(super) thread: String,
    pub(super) records: Vec<Record>,
}

/// One call of a store, with its own bytes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) namespace: String,
    pub(super) id: CheckpointId,
    /// `None` for pending writes alone.
    pub(super) row: Option<RecordRow>,
    pub(super) writes: Vec<(TaskId, u32, Blob)>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordRow {
    kind: u8,
    pub(super) bytes: Blob,
    pub(super) segment: Option<Blob>,
    pub(super) clears_writes: bool,
    parent: Option<CheckpointId>,
}

impl Record {
    pub(super) fn of_put(put: &Put<'_>) -> Self {
        let row = RecordRow {
            kind: put.kind.to_number(),
            bytes: Blob(put.record.into()),
            segment: put.segment.map(|segment| Blob(segment.into())),
            clears_writes: put.clears_writes,
            parent: put.parent,
        };
        Record { row: Some(row), ..Record::of_writes(put.own_writes()) }
    }

    pub(super) fn of_writes(put: PutWrites<'_>) -> Self {
        let writes = put.writes.iter().map(|write| (write.task, write.slot, Blob::from(write.bytes.clone())));
        Record { namespace: put.place.namespace.to_owned(), id: put.at, row: None, writes: writes.collect() }
    }
}

impl Commit {
    /// Writes it to a store. Writing it again changes nothing.
    ///
    /// # Errors
    /// [`StoreCode::Stale`] if the store has another row in the place of one of these: something else writes
    /// the thread there. Any error of the store.
    pub async fn put_into(&self, saver: &dyn Checkpointer) -> Result<(), StoreError> {
        for record in &self.records {
            self.put_record(record, saver).await?;
        }
        Ok(())
    }

    /// [`put_into`](Self::put_into) for a store that may lack the thread, or its last checkpoints: one that
    /// was attached when the thread was there already. Then `rows`, those that the thread had before this
    /// change, are written first, and the history begins with the oldest of them.
    ///
    /// # Errors
    /// As [`put_into`](Self::put_into).
    pub async fn put_after(
        &self,
        rows: &[(String, Vec<u8>)],
        saver: &dyn Checkpointer,
    ) -> Result<(), StoreError> {
        match self.put_into(saver).await {
            Err(error) if error.code() == StoreCode::Stale && self.is_ahead_of(saver).await? => {
                write_base(&self.thread, rows, saver).await?;
                self.put_into(saver).await
            }
            stored => stored,
        }
    }

    /// Whether the store lacks a checkpoint that a record follows.
    async fn is_ahead_of(&self, saver: &dyn Checkpointer) -> Result<bool, StoreError> {
        for record in &self.records {
            let place = Place { thread: &self.thread, namespace: &record.namespace };
            if let Some(parent) = record.row.as_ref().and_then(|row| row.parent)
                && saver.row(place, parent).await?.is_none()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn put_record(&self, record: &Record, saver: &dyn Checkpointer) -> Result<(), StoreError> {
        let place = Place { thread: &self.thread, namespace: &record.namespace };
        let writes = record.writes.iter();
        let writes: Vec<PendingWrite> = writes
            .map(|(task, slot, bytes)| PendingWrite { task: *task, slot: *slot, bytes: bytes.0.to_vec() })
            .collect();
        let Some(row) = &record.row else {
            return saver.put_writes(PutWrites::new(place, record.id, &writes)).await;
        };
        let kind = RowKind::from_number(row.kind).ok_or_else(|| {
            StoreError::new(StoreCode::UnknownFormat, "a commit has a row of an unknown kind")
        })?;
        let put = Put {
            place,
            id: record.id,
            fence: 0,
            kind,
            record: &row.bytes.0,
            segment: row.segment.as_ref().map(|segment| &segment.0[..]),
            clears_writes: row.clears_writes,
            parent: row.parent,
            writes: &writes,
        };
        match saver.put(put).await {
            Err(error) if error.code() == StoreCode::Stale => {
                let there = saver.row(place, record.id).await?;
                let is_same = there.is_some_and(|there| there.kind == kind && *there.record == *row.bytes.0);
                if is_same { Ok(()) } else { Err(error) }
            }
            stored => stored,
        }
    }
}

/// Omits the bytes, which may contain secrets.
impl fmt::Debug for Commit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.records.iter().map(|record| record.id.to_string()).collect();
        out.debug_struct("Commit").field("thread", &self.thread).field("records", &ids).finish()
    }
}
