//! Leases: whose turn it is to write a thread, and the fence by which a store knows who comes too late.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use super::forward::forwards;
use crate::checkpointer::Checkpointer;
use crate::error::{StoreCode, StoreError};
use crate::row::{Put, PutWrites, Rewrite};

/// What a writer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The time it is, by the clock of whoever asks.
    pub now: SystemTime,
    /// Until when the lease is to hold, if nobody renews it.
    pub until: SystemTime,
    /// Take the thread from whoever has it.
    pub seize: bool,
}

/// What became of the wish for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The thread is the writer's.
    Granted {
        /// To be given with everything it stores.
        fence: u64,
    },
    /// Another one has it.
    Held {
        /// The other's fence.
        fence: u64,
        /// Until when, if nobody renews it.
        until: SystemTime,
    },
}

/// The error of a writer whose lease is another's by now, for authors of checkpointers.
pub fn lease_lost(thread: &str) -> StoreError {
    let problem = "another run has taken the thread meanwhile, so nothing of this one was stored since: read the thread \
                   again before you go on";
    StoreError::new(StoreCode::LeaseLost, problem).on_thread(thread)
}

/// A store as one run sees it: everything it stores carries the fence of its lease.
pub struct Leased {
    /// The store.
    pub inner: Arc<dyn Checkpointer>,
    /// The fence of its lease.
    pub fence: u64,
}

forwards!(($) to_inner: put try_put put_writes rewrite);

#[async_trait]
impl Checkpointer for Leased {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.inner.put(Put { fence: self.fence, ..put }).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        self.inner.try_put(&Put { fence: self.fence, ..*put })
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.inner.put_writes(PutWrites { fence: self.fence, ..put }).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        self.inner.rewrite(Rewrite { fence: self.fence, ..rewrite }).await
    }

    to_inner!(self => (self.inner));
}

impl fmt::Debug for Leased {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Leased").field("fence", &self.fence).finish_non_exhaustive()
    }
}
