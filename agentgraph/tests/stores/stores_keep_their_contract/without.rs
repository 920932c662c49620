//! A store that lacks extensions and is correct otherwise.

use agentgraph::checkpoint::conformance::Extension;
use agentgraph::checkpoint::{
    Catalog, Leases, ListQuery, Place, Put, PutWrites, Row, StoreError, Tail, Upkeep,
};
use agentgraph::{CheckpointId, Checkpointer, MemorySaver};

pub(crate) struct LimitedStore {
    inner: MemorySaver,
    lacking: &'static [Extension],
}

impl LimitedStore {
    pub(crate) fn new(lacking: &'static [Extension]) -> Self {
        LimitedStore { inner: MemorySaver::new(), lacking }
    }

    fn has(&self, extension: Extension) -> bool {
        !self.lacking.contains(&extension)
    }
}

#[async_trait::async_trait]
impl Checkpointer for LimitedStore {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.inner.put(put).await
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.inner.put_writes(put).await
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
        self.inner.leases().filter(|_| self.has(Extension::Leases))
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        self.inner.catalog().filter(|_| self.has(Extension::Catalog))
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        self.inner.upkeep().filter(|_| self.has(Extension::Upkeep))
    }
}
