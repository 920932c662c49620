//! [`ReadOnly`]: a store in which a call is tried out before it takes a thread from another run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use agentgraph_checkpoint::catalog::Catalog;
use agentgraph_checkpoint::leases::Leases;
use agentgraph_checkpoint::upkeep::Upkeep;
use agentgraph_checkpoint::{Checkpointer, Put, PutWrites, StoreCode, StoreError, delegate};

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
    async fn put(&self, _: Put<'_>) -> Result<(), StoreError> {
        self.write()
    }

    async fn put_writes(&self, _: PutWrites<'_>) -> Result<(), StoreError> {
        self.write()
    }

    async fn delete_thread(&self, _: &str) -> Result<(), StoreError> {
        self.write()
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

    delegate!(self => &*self.inner; get, row, list, threads, outlives_its_process, keeps_secrets);
}
