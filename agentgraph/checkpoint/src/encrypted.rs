//! [`EncryptedSaver`]: encrypts everything that another checkpointer stores.
//!
//! It wraps a store and does not know records: all bytes are put into envelopes (`seal.rs`) before they
//! reach the store, and taken out when they are read. The store sees the keys of its rows, and ciphertext.
//!
//! An envelope is bound to its thread, namespace, checkpoint and slot. A copy of a thread is made by the
//! store, which cannot bind bytes anew. So a copy carries a permission, itself encrypted, that names the
//! threads whose bytes it may contain (`origin.rs`). Branches of one thread need none: their rows are
//! written like all others.

pub(crate) mod key;
mod origin;
pub(crate) mod random;
mod reseal;
mod same;
pub(crate) mod seal;

pub use key::{EncryptionKey, KeyRing};

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use self::origin::{Origins, PERMISSIONS};
use self::random::Random;
use self::seal::{Label, SealError, is_sealed, open, seal};
use crate::catalog::{self, Catalog};
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::StoreError;
use crate::id::{CheckpointId, TaskId};
use crate::impls::shows;
use crate::row::{
    ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, RowKind, Tail, Waiting, WaitingQuery,
};
use crate::services::{Services, SystemServices};
use crate::upkeep::{self, Upkeep};

/// A wrapper around a checkpointer that encrypts everything stored (feature `encryption`): AES-256-GCM,
/// with a separate key for each record.
/// A clone is another handle of the same store.
///
/// ```
/// # use agentgraph::prelude::*;
/// use agentgraph::checkpoint::{EncryptedSaver, EncryptionKey, KeyRing};
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Login {
///     user: String,
///     #[channel(secret)]
///     token: String,
/// }
/// async fn log_in() -> LoginUpdate { Login::update().token("hunter2") }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let key_file = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// let keys = KeyRing::new("2026-11", EncryptionKey::from_hex(key_file)?)?;
/// let graph = StateGraph::new().node("log_in", log_in).edge(START, "log_in").compile()?;
/// let graph = graph.checkpointer(EncryptedSaver::new(MemorySaver::new(), keys));
/// graph.invoke(Login::update().user("Ada")).thread("t-1").await?;
/// assert_eq!(graph.state("t-1").await?.unwrap().values.token, "hunter2");
/// # Ok(())
/// # }
/// ```
///
/// Not encrypted is only the data by which a store finds its rows: names of threads, namespaces of
/// subgraphs (made of node names and task ids), branch and step, full or delta, ids of tasks and numbers of
/// their slots, fences and leases, the length of encrypted bytes, and the name of the key. Values, inputs,
/// questions, answers, node names in the frontier, edits, sessions and times are all inside the envelopes.
///
/// Bytes that were changed, cut off, or moved to another thread, checkpoint or slot fail with
/// [`StoreCode::SealBroken`](crate::StoreCode::SealBroken). Encryption cannot detect that something is
/// *missing*: with write access to the store one can remove the newest rows of a thread, put back older
/// rows of the same thread, and take back an answer whose superstep is still open, so that its question is
/// asked again. (The bytes that mark an answer as taken back are the only content stored
/// unencrypted: the store needs it to find the threads that wait.)
#[derive(Clone)]
pub struct EncryptedSaver<C> {
    inner: C,
    keys: KeyRing,
    random: Random,
    reads_clear: bool,
    services: Arc<dyn Services>,
    /// The number of consecutive rows that the inner store's `try_put` did not take.
    awaited: Arc<AtomicU32>,
}

/// After this many, the inner store is assumed to always need an await.
const AWAITED: u32 = 8;

/// Bytes named for an error message.
enum Named<'a> {
    Row(CheckpointId),
    Write(CheckpointId, &'a PendingWrite),
}

impl<C: Checkpointer> EncryptedSaver<C> {
    /// Encrypts everything that `inner` stores.
    pub fn new(inner: C, keys: KeyRing) -> Self {
        EncryptedSaver {
            inner,
            keys,
            random: Random::of_the_system(),
            reads_clear: false,
            services: Arc::new(SystemServices),
            awaited: Arc::default(),
        }
    }

    /// Whether unencrypted bytes are read too, for threads from before there was a key. `false` if not set:
    /// they fail with [`StoreCode::NotEncrypted`](crate::StoreCode::NotEncrypted). Otherwise anyone with
    /// write access to the store could replace encrypted records by their own.
    #[must_use]
    pub fn reads_clear(mut self, reads: bool) -> Self {
        self.reads_clear = reads;
        self
    }

    /// The clock for the lease of a thread that is [encrypted anew](Self::reseal); the system's if not set.
    /// It must be the clock of the graphs that run in the thread.
    #[must_use]
    pub fn services(mut self, services: impl Services) -> Self {
        self.services = Arc::new(services);
        self
    }

    /// The inner store.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    fn seal_row(
        &self,
        place: Place<'_>,
        put: (CheckpointId, RowKind),
        clear: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        seal(&self.keys, &self.random, &Label::row(place.thread, place, put.0, put.1), clear)
    }

    fn seal_write(
        &self,
        place: Place<'_>,
        at: CheckpointId,
        write: &PendingWrite,
    ) -> Result<PendingWrite, StoreError> {
        let PendingWrite { task, slot, .. } = *write;
        if is_taken_back(write) {
            return Ok(write.clone());
        }
        let label = Label::write(place.thread, place, at, write);
        let bytes = seal(&self.keys, &self.random, &label, &write.bytes)?;
        Ok(PendingWrite { task, slot, bytes })
    }

    fn seal_writes(&self, put: PutWrites<'_>) -> Result<Vec<PendingWrite>, StoreError> {
        put.writes.iter().map(|write| self.seal_write(put.place, put.at, write)).collect()
    }

    async fn open_row(
        &self,
        place: Place<'_>,
        row: &mut Row,
        origins: &mut Origins,
    ) -> Result<(), StoreError> {
        let Row { id, kind, ref record } = *row;
        let label = |thread: &str| Label::row(thread, place, id, kind);
        row.record = self.open(place, record, label, Named::Row(id), origins).await?;
        Ok(())
    }

    async fn open_write(
        &self,
        place: Place<'_>,
        at: CheckpointId,
        write: &mut PendingWrite,
        origins: &mut Origins,
    ) -> Result<(), StoreError> {
        if is_taken_back(write) {
            return Ok(());
        }
        let label = |thread: &str| Label::write(thread, place, at, write);
        write.bytes = self.open(place, &write.bytes, label, Named::Write(at, write), origins).await?;
        Ok(())
    }

    /// Opens bytes written for this thread, or for a thread that this one is a copy of.
    async fn open(
        &self,
        place: Place<'_>,
        bytes: &[u8],
        label: impl Fn(&str) -> Label + Send,
        named: Named<'_>,
        origins: &mut Origins,
    ) -> Result<Vec<u8>, StoreError> {
        if self.reads_clear && !is_sealed(bytes) {
            return Ok(bytes.to_vec());
        }
        let problem = match open(&self.keys, &label(place.thread), bytes) {
            Ok(clear) => return Ok(clear),
            Err(SealError::Broken) => SealError::Broken,
            Err(problem) => return Err(named.unreadable(place, &problem)),
        };
        for origin in origins.of(&self.inner, &self.keys, place.thread).await? {
            if let Ok(clear) = open(&self.keys, &label(origin), bytes) {
                return Ok(clear);
            }
        }
        Err(named.unreadable(place, &problem))
    }

    async fn open_tail(&self, place: Place<'_>, mut tail: Tail) -> Result<Tail, StoreError> {
        let mut origins = Origins::default();
        for row in &mut tail.rows {
            self.open_row(place, row, &mut origins).await?;
        }
        let at = tail.rows.last().map(|row| row.id).unwrap_or_default();
        for write in &mut tail.writes {
            self.open_write(place, at, write, &mut origins).await?;
        }
        Ok(tail)
    }
}

/// An answer that was taken back has no content, and stores must be able to recognize it.
fn is_taken_back(write: &PendingWrite) -> bool {
    let is_answer = write.slot.is_multiple_of(2) && write.slot > 0 && write.slot < PendingWrite::SPECIAL;
    is_answer && write.task != TaskId::from_u128(0) && PendingWrite::takes_back(&write.bytes)
}

impl Named<'_> {
    fn unreadable(&self, place: Place<'_>, problem: &SealError) -> StoreError {
        let message = match self {
            Named::Row(id) => format!("checkpoint {id} cannot be read: {problem}"),
            Named::Write(at, write) => format!(
                "the pending write of task {} on checkpoint {at} (slot {}) cannot be read: {problem}",
                write.task, write.slot
            ),
        };
        StoreError::new(problem.code(), message).on_thread(place.thread)
    }
}

#[async_trait]
impl<C: Checkpointer> Checkpointer for EncryptedSaver<C> {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        match self.inner.get(place, at).await? {
            Some(tail) => self.open_tail(place, tail).await.map(Some),
            None => Ok(None),
        }
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        let mut found = self.inner.row(place, id).await?;
        if let Some(row) = &mut found {
            self.open_row(place, row, &mut Origins::default()).await?;
        }
        Ok(found)
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let record = self.seal_row(put.place, (put.id, put.kind), put.record)?;
        let segment = put.segment.map(|clear| self.seal_row(put.place, (put.id, RowKind::Segment), clear));
        let segment = segment.transpose()?;
        let writes = self.seal_writes(put.own_writes())?;
        self.inner.put(Put { record: &record, segment: segment.as_deref(), writes: &writes, ..put }).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        if put.segment.is_some() || !put.writes.is_empty() || self.awaited.load(Ordering::Relaxed) >= AWAITED
        {
            return None;
        }
        let record = match self.seal_row(put.place, (put.id, put.kind), put.record) {
            Ok(record) => record,
            Err(error) => return Some(Err(error)),
        };
        let stored = self.inner.try_put(&Put { record: &record, ..*put });
        match &stored {
            // The record was encrypted for this attempt and has to be encrypted again.
            None => drop(self.awaited.fetch_add(1, Ordering::Relaxed)),
            Some(_) => self.awaited.store(0, Ordering::Relaxed),
        }
        stored
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let sealed = self.seal_writes(put)?;
        self.inner.put_writes(PutWrites { writes: &sealed, ..put }).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let mut origins = Origins::default();
        let mut rows = self.inner.list(place, query).await?;
        for row in &mut rows {
            self.open_row(place, row, &mut origins).await?;
        }
        Ok(rows)
    }

    fn keeps_secrets(&self) -> bool {
        true
    }

    delegate!(self over &self.inner; catalog, upkeep);
    delegate!(self => &self.inner; threads, delete_thread, outlives_its_process, leases);
}

#[async_trait]
impl<C: Checkpointer> Catalog for EncryptedSaver<C> {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let mut waiting = catalog::waiting(&self.inner, query).await?;
        // The requests are grouped by thread.
        let mut of = String::new();
        let mut origins = Origins::default();
        for Waiting { thread, namespace, at, request } in &mut waiting {
            if of != *thread {
                (of, origins) = (thread.clone(), Origins::default());
            }
            self.open_write(Place { thread, namespace }, *at, request, &mut origins).await?;
        }
        Ok(waiting)
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let mut namespaces = catalog::namespaces(&self.inner, thread).await?;
        namespaces.retain(|namespace| namespace != PERMISSIONS);
        Ok(namespaces)
    }

    delegate!(self => &self.inner; branches, usage);
}

#[async_trait]
impl<C: Checkpointer> Upkeep for EncryptedSaver<C> {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        origin::copy_thread(self, from, to).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        let place = rewrite.place;
        let sealed = rewrite
            .fulls
            .iter()
            .map(|(id, record)| Ok((*id, self.seal_row(place, (*id, RowKind::Full), record)?)));
        let sealed: Vec<_> = sealed.collect::<Result<_, StoreError>>()?;
        upkeep::rewrite(&self.inner, Rewrite { fulls: &sealed, ..rewrite }).await
    }

    delegate!(self => &self.inner; compact);
}

shows!([C] EncryptedSaver<C>: |it| { keys: it.keys });

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::random::Random;
    use super::{EncryptedSaver, EncryptionKey, KeyRing};
    use crate::MemorySaver;
    use crate::checkpointer::Checkpointer;
    use crate::error::StoreCode;
    use crate::id::{CheckpointId, TaskId};
    use crate::row::{PendingWrite, Place, Put, PutWrites, RowKind};

    #[test]
    fn without_randomness_nothing_is_stored() {
        let keys = KeyRing::new("k", EncryptionKey::from_bytes([1; 32])).unwrap();
        let store = Arc::new(MemorySaver::new());
        let mut saver = EncryptedSaver::new(Arc::clone(&store), keys);
        saver.random = Random::of(|_| false);
        let place = Place::root("t");
        let id = CheckpointId::new(0, 0);
        let put = Put::new(place, id, RowKind::Full, b"x");
        let writes = [PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: b"x".to_vec() }];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for failed in [
                saver.put(put).await,
                saver.try_put(&put).unwrap(),
                saver.put_writes(PutWrites::new(place, id, &writes)).await,
            ] {
                let error = failed.unwrap_err();
                assert!(
                    error.code() == StoreCode::Store && error.to_string().contains("randomness"),
                    "{error}"
                );
            }
            assert!(store.threads().await.unwrap().is_empty());
        });
    }
}
