//! [`ReadOnly`]: a store in which a call is tried out before it takes a thread from another run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use agentgraph_checkpoint::catalog::Catalog;
use agentgraph_checkpoint::leases::Leases;
use agentgraph_checkpoint::upkeep::Upkeep;
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, ListQuery, Place, Put, PutWrites, Row, StoreCode, StoreError, Tail,
};

/// Reads from a store and writes nothing to it. The first write fails, and is noted: a call that came so far
/// was not refused.
pub(crate) struct ReadOnly {
    inner: Arc<dyn Checkpointer>,
    written: AtomicBool,
}

impl ReadOnly {
    pub(super) fn of(inner: Arc<dyn Checkpointer>) -> Self {
        ReadOnly { inner, written: AtomicBool::new(false) }
    }

    pub(crate) fn was_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    fn write(&self) -> Result<(), StoreError> {
        self.written.store(true, Ordering::Relaxed);
        Err(StoreError::new(StoreCode::Store, "a call that is tried out stores nothing"))
    }
}

#[async_trait]
impl Checkpointer for ReadOnly {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.inner.row(place, id).await
    }

    async fn put(&self, _: Put<'_>) -> Result<(), StoreError> {
        self.write()
    }

    async fn put_writes(&self, _: PutWrites<'_>) -> Result<(), StoreError> {
        self.write()
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.inner.list(place, query).await
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        self.inner.threads().await
    }

    async fn delete_thread(&self, _: &str) -> Result<(), StoreError> {
        self.write()
    }

    fn outlives_its_process(&self) -> bool {
        self.inner.outlives_its_process()
    }

    fn keeps_secrets(&self) -> bool {
        self.inner.keeps_secrets()
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        None
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }
}
