//! [`KillSwitch`]: the point at which a run is killed, and a store that never answers after it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;

use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, Leases, ListQuery, MemorySaver, Place, Put, PutWrites, Row, StoreError, Tail,
    delegate,
};

/// A point of a run at which its process may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KillPoint {
    /// Before the n-th write to the store.
    BeforeWrite(u64),
    /// After the n-th write to the store, before anything else.
    AfterWrite(u64),
    /// When nodes have been pending for the n-th time: inside a node.
    InNode(u64),
}

/// Counts the points that a run has passed, and kills it at one of them.
#[derive(Default)]
pub(super) struct KillSwitch {
    at: Lock<Option<KillPoint>>,
    killed: AtomicBool,
    writes: AtomicU64,
}

impl KillSwitch {
    pub(super) fn at(point: Option<KillPoint>) -> Arc<Self> {
        Arc::new(KillSwitch { at: Lock::new(point), ..KillSwitch::default() })
    }

    /// Whether the run is dead: it makes no progress, and is dropped.
    pub(super) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// The process starts again, and is not killed any more.
    pub(super) fn restart(&self) {
        *self.at.lock() = None;
        self.killed.store(false, Ordering::Release);
    }

    /// The number of writes so far.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Nodes have been pending for the n-th time.
    pub(super) fn pended(&self, nth: u64) {
        self.pass(KillPoint::InNode(nth));
    }

    fn pass(&self, point: KillPoint) -> bool {
        if *self.at.lock() == Some(point) {
            self.killed.store(true, Ordering::Release);
        }
        self.is_killed()
    }

    /// Whether the run dies before its next write.
    fn dies_before(&self) -> bool {
        self.pass(KillPoint::BeforeWrite(self.writes() + 1))
    }

    /// Counts a write. Returns whether the run dies after it.
    fn wrote(&self) -> bool {
        let nth = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        self.pass(KillPoint::AfterWrite(nth))
    }
}

/// A store in memory for one thread, whose writes are counted. It has no leases: a killed process holds none.
pub(super) struct TestSaver {
    inner: MemorySaver,
    kill: Arc<KillSwitch>,
}

impl TestSaver {
    pub(super) fn new(kill: &Arc<KillSwitch>) -> Self {
        TestSaver { inner: MemorySaver::new(), kill: Arc::clone(kill) }
    }

    /// Never answers a dead run.
    async fn answer(&self) {
        if self.kill.is_killed() {
            pending().await
        }
    }

    async fn begin_write(&self) {
        if self.kill.is_killed() || self.kill.dies_before() {
            pending().await
        }
    }

    async fn end_write(&self) {
        if self.kill.wrote() {
            pending().await
        }
    }
}

#[async_trait]
impl Checkpointer for TestSaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.answer().await;
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.answer().await;
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.begin_write().await;
        self.inner.put(put).await?;
        self.end_write().await;
        Ok(())
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.begin_write().await;
        self.inner.put_writes(put).await?;
        self.end_write().await;
        Ok(())
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.answer().await;
        self.inner.list(place, query).await
    }

    fn outlives_its_process(&self) -> bool {
        false
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    delegate!(self => &self.inner; threads, delete_thread, catalog, upkeep);
}
