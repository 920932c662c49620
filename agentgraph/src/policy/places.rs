//! [`Places`]: how many tasks of a call run at once, over all its graphs.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The tasks that may run at once: in one run, and together with those of the subgraphs of its call.
#[derive(Clone)]
pub(crate) struct Places {
    /// In one run, its calls of subgraphs included.
    most: usize,
    /// Nodes that are no subgraphs take a place while they run, in all runs of the call. A task that waits in
    /// a subgraph holds none, so those inside can go on. `None`: no limit, or a call without subgraphs, for
    /// which `most` is enough.
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

    /// The tasks that may run at once in one run, its calls of subgraphs included.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Semaphore>> {
        self.shared.as_ref()
    }
}

/// Waits for a place. Tasks get them in the order in which they began to wait.
pub(crate) async fn take_place(places: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    places.acquire_owned().await.ok()
}
