//! [`Places`]: the concurrency limit of a call, across all its graphs.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The concurrency limit of a call: for each run, and for all its runs together.
#[derive(Clone)]
pub(crate) struct Places {
    /// Tasks of one run, including those that call subgraphs.
    most: usize,
    /// One permit for each running task of all runs. A task that calls a subgraph holds none, or the tasks
    /// inside could wait for it forever. `None`: no limit, or no subgraphs, so that `most` suffices.
    shared: Option<Arc<Semaphore>>,
}

impl Places {
    /// Places for a call. `nests`: it may have subgraphs.
    pub(crate) fn new(most: usize, nests: bool) -> Self {
        let is_limited = nests && most <= Semaphore::MAX_PERMITS;
        Places { most, shared: is_limited.then(|| Arc::new(Semaphore::new(most))) }
    }

    pub(crate) fn unlimited() -> Self {
        Places::new(usize::MAX, false)
    }

    /// The maximum number of concurrent tasks of one run.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Semaphore>> {
        self.shared.as_ref()
    }
}

/// Waits for a place, in FIFO order.
pub(crate) async fn take_place(places: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    places.acquire_owned().await.ok()
}
