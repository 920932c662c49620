//! [`Leased`]: a store for one run.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::error::StoreError;
use crate::id::CheckpointId;
use crate::leases::Leases;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail};
use crate::upkeep::{self, Upkeep};

/// A store for one run: every write carries the fence of the run's lease.
pub struct Leased {
    /// The store.
    pub inner: Arc<dyn Checkpointer>,
    /// The fence of the run's lease.
    pub fence: u64,
}

/// The calls of every superstep return the future of the inner store instead of boxing it a second time.
#[async_trait]
impl Checkpointer for Leased {
    fn get<'me, 'a, 'async_trait>(
        &'me self,
        place: Place<'a>,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'async_trait, Result<Option<Tail>, StoreError>>
    where
        'me: 'async_trait,
        'a: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.get(place, at)
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.inner.row(place, id).await
    }

    fn put<'me, 'a, 'async_trait>(&'me self, put: Put<'a>) -> BoxFuture<'async_trait, Result<(), StoreError>>
    where
        'me: 'async_trait,
        'a: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.put(Put { fence: self.fence, ..put })
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        self.inner.try_put(&Put { fence: self.fence, ..*put })
    }

    fn put_writes<'me, 'a, 'async_trait>(
        &'me self,
        put: PutWrites<'a>,
    ) -> BoxFuture<'async_trait, Result<(), StoreError>>
    where
        'me: 'async_trait,
        'a: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.put_writes(PutWrites { fence: self.fence, ..put })
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.inner.list(place, query).await
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.inner.threads().await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.inner.delete_thread(thread).await
    }

    fn outlives_its_process(&self) -> bool {
        self.inner.outlives_its_process()
    }

    fn keeps_secrets(&self) -> bool {
        self.inner.keeps_secrets()
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.inner.leases()
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        self.inner.catalog()
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        self.inner.upkeep().map(|_| self as &dyn Upkeep)
    }
}

/// Rewriting stores too, so it carries the fence.
#[async_trait]
impl Upkeep for Leased {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        upkeep::copy_thread(&*self.inner, from, to).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        upkeep::rewrite(&*self.inner, Rewrite { fence: self.fence, ..rewrite }).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        upkeep::compact(&*self.inner).await
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Leased").field("fence", &self.fence).finish_non_exhaustive()
    }
}
