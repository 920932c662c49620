//! [`BlobStore`]: large values by their hash, in the graph's checkpointer.
//!
//! The blobs of thread `t` are rows of a thread of their own, `blob/t`, one namespace each. A blob is never
//! changed, so it is written at most once, and a second writer is no error. Journals refer to blobs as long
//! as the runtime keeps them, so blobs are deleted with their thread only.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use agentgraph::checkpoint::{CheckpointId, Checkpointer, Place, Put, Row, RowKind, StoreCode};
use agentgraph::{Code, Error};
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Blobs of this many bytes in all are kept in the memory of the process.
const CACHED: usize = 64 * 1024 * 1024;

/// The SHA-256 of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlobHash(pub(crate) [u8; 32]);

impl BlobHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        BlobHash(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

#[derive(Clone)]
pub(crate) struct BlobStore {
    saver: Arc<dyn Checkpointer>,
    cache: Arc<Mutex<Cache>>,
}

/// The blobs that this process has read or written, the oldest first.
#[derive(Default)]
struct Cache {
    blobs: HashMap<(String, BlobHash), Bytes>,
    order: VecDeque<(String, BlobHash)>,
    bytes: usize,
}

impl BlobStore {
    pub(crate) fn new(saver: Arc<dyn Checkpointer>) -> Self {
        BlobStore { saver, cache: Arc::default() }
    }

    /// Stores a blob, unless it is there.
    pub(crate) async fn put(&self, thread: &str, hash: BlobHash, bytes: &[u8]) -> Result<(), Error> {
        if self.cached(thread, hash).is_some() {
            return Ok(());
        }
        let (owner, name) = (owner(thread), hash.to_string());
        let place = Place { thread: &owner, namespace: &name };
        if self.saver.row(place, FIRST).await?.is_none() {
            match self.saver.put(Put::new(place, FIRST, RowKind::Full, bytes)).await {
                Err(error) if error.code() == StoreCode::Stale => {}
                stored => stored?,
            }
        }
        self.cache(thread, hash, Bytes::copy_from_slice(bytes));
        Ok(())
    }

    pub(crate) async fn get(&self, thread: &str, hash: BlobHash) -> Result<Bytes, Error> {
        if let Some(bytes) = self.cached(thread, hash) {
            return Ok(bytes);
        }
        let (owner, name) = (owner(thread), hash.to_string());
        let found = self.saver.row(Place { thread: &owner, namespace: &name }, FIRST).await?;
        let Some(Row { record, .. }) = found else {
            let problem = format!(
                "the large value {name} of thread `{thread}` is not in the checkpointer: all workers of a graph \
                 need the same one"
            );
            return Err(Error::new(Code::CorruptCheckpoint, problem));
        };
        if BlobHash::of(&record) != hash {
            let problem =
                format!("the large value {name} of thread `{thread}` has changed in the checkpointer");
            return Err(Error::new(Code::CorruptCheckpoint, problem));
        }
        let bytes = Bytes::from(record);
        self.cache(thread, hash, bytes.clone());
        Ok(bytes)
    }

    fn cached(&self, thread: &str, hash: BlobHash) -> Option<Bytes> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.blobs.get(&(thread.to_owned(), hash)).cloned()
    }

    fn cache(&self, thread: &str, hash: BlobHash, bytes: Bytes) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (thread.to_owned(), hash);
        cache.bytes += bytes.len();
        if let Some(before) = cache.blobs.insert(key.clone(), bytes) {
            cache.bytes -= before.len();
            return;
        }
        cache.order.push_back(key);
        while cache.bytes > CACHED {
            let Some(oldest) = cache.order.pop_front() else { break };
            let dropped = cache.blobs.remove(&oldest).map_or(0, |bytes| bytes.len());
            cache.bytes -= dropped;
        }
    }
}

const FIRST: CheckpointId = CheckpointId::new(0, 0);

/// The thread that has the blobs of another one.
pub(crate) fn owner(thread: &str) -> String {
    format!("blob/{thread}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use agentgraph::MemorySaver;

    use super::*;

    #[tokio::test]
    async fn a_blob_is_stored_once_and_read_by_another_process() {
        let saver: Arc<dyn Checkpointer> = Arc::new(MemorySaver::new());
        let bytes = [7; 1000];
        let hash = BlobHash::of(&bytes);
        let [one, other, reader] = [(); 3].map(|()| BlobStore::new(Arc::clone(&saver)));
        one.put("t", hash, &bytes).await.unwrap();
        other.put("t", hash, &bytes).await.unwrap();
        assert_eq!(reader.get("t", hash).await.unwrap(), &bytes[..]);
        let missing = reader.get("other", hash).await.unwrap_err();
        assert_eq!(missing.code(), Code::CorruptCheckpoint);
    }

    #[tokio::test]
    async fn the_cache_has_a_limit() {
        let store = BlobStore::new(Arc::new(MemorySaver::new()));
        for n in 0..5_u8 {
            let blob = Bytes::from(vec![n; CACHED / 4]);
            store.cache("t", BlobHash::of(&blob[..100]), blob);
        }
        let cache = store.cache.lock().unwrap();
        assert_eq!((cache.blobs.len(), cache.order.len(), cache.bytes), (4, 4, CACHED));
    }
}
