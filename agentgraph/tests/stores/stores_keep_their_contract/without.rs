//! A store that lacks extensions and is correct otherwise.

use agentgraph::checkpoint::conformance::Extension;
use agentgraph::checkpoint::{Catalog, Leases, Upkeep, delegate};
use agentgraph::{Checkpointer, MemorySaver};

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
    fn leases(&self) -> Option<&dyn Leases> {
        self.inner.leases().filter(|_| self.has(Extension::Leases))
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        self.inner.catalog().filter(|_| self.has(Extension::Catalog))
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        self.inner.upkeep().filter(|_| self.has(Extension::Upkeep))
    }

    delegate!(self => &self.inner; get, row, put, put_writes, list, threads, delete_thread, outlives_its_process);
    delegate!(self => &self.inner; keeps_secrets);
}
