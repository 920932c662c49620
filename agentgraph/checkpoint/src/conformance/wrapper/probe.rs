//! [`Probe`]: the store beneath. It records its calls and behaves as a clause demands.

use std::fmt::{self, Debug, Formatter};
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use async_trait::async_trait;

use super::super::{Extension, Store};
use crate::blob::Usage;
use crate::catalog::{self, Catalog};
use crate::checkpointer::Checkpointer;
use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::{Leases, leases_of};
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::upkeep::{self, Upkeep};

/// How the probe differs from the store inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It does not differ.
    Plain,
    Outlives(bool),
    KeepsSecrets(bool),
    Lacks(Extension),
    /// `released` returns at once.
    LeasesEnd,
    /// `released` never returns.
    LeasesLast,
    /// `put` and `put_writes` fail.
    FailsToStore,
    /// All other methods fail.
    FailsToAnswer,
}

pub(super) struct Probe {
    pub(super) inner: Store,
    manner: Manner,
    asked: Mutex<Vec<String>>,
}

/// The arguments of a call without its bytes, which a wrapper may change.
pub(super) struct Shape(String);

impl Debug for Shape {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

pub(super) fn shape(put: &Put<'_>) -> Shape {
    let Put { place, id, fence, kind, segment, clears_writes, parent, writes, .. } = *put;
    let has_segment = segment.is_some();
    let keys = keys(writes);
    Shape(format!(
        "{place:?} {id} fence={fence} {kind:?} segment={has_segment} clears_writes={clears_writes} parent={parent:?} writes={keys:?}"
    ))
}

pub(super) fn shape_of_writes(put: &PutWrites<'_>) -> Shape {
    let PutWrites { place, at, fence, writes } = *put;
    Shape(format!("{place:?} {at} fence={fence} writes={:?}", keys(writes)))
}

pub(super) fn shape_of_rewrite(rewrite: &Rewrite<'_>) -> Shape {
    let Rewrite { place, fence, fulls, unfold, gone } = *rewrite;
    let fulls: Vec<CheckpointId> = fulls.iter().map(|(id, _)| *id).collect();
    Shape(format!("{place:?} fence={fence} fulls={fulls:?} unfold={unfold:?} gone={gone:?}"))
}

/// Tasks and slots.
fn keys(writes: &[PendingWrite]) -> Vec<(u128, u32)> {
    writes.iter().map(|write| (write.task.to_u128(), write.slot)).collect()
}

/// The code of the probe's failures. A wrapper does not produce it by itself.
pub(super) const FAILURE: StoreCode = StoreCode::LeaseLost;

impl Probe {
    pub(super) fn new(inner: Store, manner: Manner) -> Self {
        Probe { inner, manner, asked: Mutex::default() }
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, Vec<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, method: &str, said: impl Debug) {
        self.asked().push(call(method, said));
    }

    fn answer(&self, method: &str, said: impl Debug) -> Result<(), StoreError> {
        self.note(method, said);
        self.fail_if(Manner::FailsToAnswer)
    }

    fn fail_if(&self, manner: Manner) -> Result<(), StoreError> {
        if self.manner == manner { Err(StoreError::new(FAILURE, "the store beneath fails")) } else { Ok(()) }
    }

    fn has(&self, extension: Extension) -> bool {
        self.manner != Manner::Lacks(extension) && extension.is_in(&*self.inner)
    }
}

/// A call as the probe records it.
pub(super) fn call(method: &str, said: impl Debug) -> String {
    format!("{method} {said:?}")
}

#[async_trait]
impl Checkpointer for Probe {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.answer("get", (place, at))?;
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.answer("row", (place, id))?;
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.note("put", shape(&put));
        self.fail_if(Manner::FailsToStore)?;
        self.inner.put(put).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        self.note("try_put", shape(put));
        if let Err(error) = self.fail_if(Manner::FailsToStore) {
            return Some(Err(error));
        }
        self.inner.try_put(put)
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.note("put_writes", shape_of_writes(&put));
        self.fail_if(Manner::FailsToStore)?;
        self.inner.put_writes(put).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.answer("list", (place, query))?;
        self.inner.list(place, query).await
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.answer("threads", ())?;
        self.inner.threads().await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.answer("delete_thread", thread)?;
        self.inner.delete_thread(thread).await
    }

    fn outlives_its_process(&self) -> bool {
        match self.manner {
            Manner::Outlives(outlives) => outlives,
            _ => self.inner.outlives_its_process(),
        }
    }

    fn keeps_secrets(&self) -> bool {
        match self.manner {
            Manner::KeepsSecrets(keeps) => keeps,
            _ => self.inner.keeps_secrets(),
        }
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.has(Extension::Leases).then_some(self as &dyn Leases)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        self.has(Extension::Catalog).then_some(self as &dyn Catalog)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        self.has(Extension::Upkeep).then_some(self as &dyn Upkeep)
    }
}

#[async_trait]
impl Leases for Probe {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        self.answer("acquire", (thread, terms))?;
        leases_of(&*self.inner).acquire(thread, terms).await
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        self.answer("renew", (thread, fence, until))?;
        leases_of(&*self.inner).renew(thread, fence, until).await
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        self.answer("release", (thread, fence))?;
        leases_of(&*self.inner).release(thread, fence).await
    }

    fn let_go(&self, thread: &str, fence: u64) {
        self.note("let_go", (thread, fence));
        leases_of(&*self.inner).let_go(thread, fence);
    }

    async fn released(&self, thread: &str, fence: u64) {
        self.note("released", (thread, fence));
        match self.manner {
            Manner::LeasesEnd => {}
            Manner::LeasesLast => pending().await,
            _ => leases_of(&*self.inner).released(thread, fence).await,
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        self.answer("ask_to_stop", (thread, now))?;
        leases_of(&*self.inner).ask_to_stop(thread, now).await
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        self.answer("held", query)?;
        leases_of(&*self.inner).held(query).await
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        self.note("hear_stops", ());
        leases_of(&*self.inner).hear_stops(listener);
    }
}

#[async_trait]
impl Catalog for Probe {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        self.answer("waiting", query)?;
        catalog::waiting(&*self.inner, query).await
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        self.answer("namespaces", thread)?;
        catalog::namespaces(&*self.inner, thread).await
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        self.answer("branches", place)?;
        catalog::branches(&*self.inner, place).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        self.answer("usage", ())?;
        catalog::usage(&*self.inner).await
    }
}

#[async_trait]
impl Upkeep for Probe {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.answer("copy_thread", (from, to))?;
        upkeep::copy_thread(&*self.inner, from, to).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        self.answer("rewrite", shape_of_rewrite(&rewrite))?;
        upkeep::rewrite(&*self.inner, rewrite).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        self.answer("compact", ())?;
        upkeep::compact(&*self.inner).await
    }
}
