//! Owned copies of requests, for writes that another task carries out.

use crate::id::CheckpointId;
use crate::row::{PendingWrite, Place, Put, RowKind};

/// A [`Put`] without its thread, which the queue stores once.
#[derive(Debug)]
pub(super) struct OwnedPut {
    namespace: String,
    id: CheckpointId,
    fence: u64,
    kind: RowKind,
    record: Vec<u8>,
    segment: Option<Vec<u8>>,
    clears_writes: bool,
    parent: Option<CheckpointId>,
    writes: Vec<PendingWrite>,
}

impl OwnedPut {
    pub(super) fn of(put: &Put<'_>) -> Self {
        OwnedPut {
            namespace: put.place.namespace.to_owned(),
            id: put.id,
            fence: put.fence,
            kind: put.kind,
            record: put.record.to_vec(),
            segment: put.segment.map(<[u8]>::to_vec),
            clears_writes: put.clears_writes,
            parent: put.parent,
            writes: put.writes.to_vec(),
        }
    }

    pub(super) fn borrowed<'a>(&'a self, thread: &'a str) -> Put<'a> {
        Put {
            place: Place { thread, namespace: &self.namespace },
            id: self.id,
            fence: self.fence,
            kind: self.kind,
            record: &self.record,
            segment: self.segment.as_deref(),
            clears_writes: self.clears_writes,
            parent: self.parent,
            writes: &self.writes,
        }
    }

    /// Its size in bytes.
    #[cfg(feature = "sqlite")]
    pub(super) fn bytes(&self) -> usize {
        let writes: usize = self.writes.iter().map(|write| write.bytes.len()).sum();
        self.record.len() + self.segment.as_ref().map_or(0, Vec::len) + writes
    }
}

/// The names of a [`Place`].
#[cfg(feature = "postgres")]
pub(super) struct OwnedPlace {
    thread: String,
    namespace: String,
}

#[cfg(feature = "postgres")]
impl OwnedPlace {
    pub(super) fn of(place: Place<'_>) -> Self {
        OwnedPlace { thread: place.thread.to_owned(), namespace: place.namespace.to_owned() }
    }

    pub(super) fn borrowed(&self) -> Place<'_> {
        Place { thread: &self.thread, namespace: &self.namespace }
    }
}
