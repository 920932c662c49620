//! Writing the rows of a thread into a store that lacks them.

use std::collections::BTreeMap;

use super::key::{RowKey, What};
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, StoreCode, StoreError, stale,
};

/// What a thread has of one checkpoint.
#[derive(Default)]
struct Parts<'a> {
    /// The full or the delta.
    row: Option<(RowKind, &'a [u8])>,
    segment: Option<&'a [u8]>,
    writes: Vec<PendingWrite>,
}

/// Writes the rows that the store lacks, the oldest first. What they are based on is not needed: the rows of
/// a thread begin with a full.
pub(in crate::run::driven) async fn write_base(
    thread: &str,
    rows: &[(String, Vec<u8>)],
    saver: &dyn Checkpointer,
) -> Result<(), StoreError> {
    for ((namespace, id), parts) in &by_checkpoint(rows)? {
        parts.put_into(Place { thread, namespace }, *id, saver).await?;
    }
    Ok(())
}

fn by_checkpoint(
    rows: &[(String, Vec<u8>)],
) -> Result<BTreeMap<(String, CheckpointId), Parts<'_>>, StoreError> {
    let mut all: BTreeMap<(String, CheckpointId), Parts<'_>> = BTreeMap::new();
    for (key, bytes) in rows {
        let unknown = || {
            let problem = format!("a row of the thread has a key that this release does not know: `{key}`");
            StoreError::new(StoreCode::UnknownFormat, problem)
        };
        let RowKey { namespace, id, what } = RowKey::from_text(key).ok_or_else(unknown)?;
        let parts = all.entry((namespace, id)).or_default();
        match what {
            What::Row(RowKind::Segment) => parts.segment = Some(bytes),
            What::Row(kind) => parts.row = Some((kind, bytes)),
            What::Write(task, slot) => parts.writes.push(PendingWrite { task, slot, bytes: bytes.clone() }),
        }
    }
    Ok(all)
}

impl Parts<'_> {
    async fn put_into(
        &self,
        place: Place<'_>,
        id: CheckpointId,
        saver: &dyn Checkpointer,
    ) -> Result<(), StoreError> {
        let Some((kind, record)) = self.row else { return Ok(()) };
        if let Some(there) = saver.row(place, id).await? {
            return if (there.kind, &*there.record) == (kind, record) {
                Ok(())
            } else {
                Err(stale(place, id))
            };
        }
        let put = Put { segment: self.segment, ..Put::new(place, id, kind, record) };
        saver.put(put).await?;
        match self.writes.is_empty() {
            true => Ok(()),
            false => saver.put_writes(PutWrites::new(place, id, &self.writes)).await,
        }
    }
}
