//! [`Leased`]: a store for one run.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::StoreError;
use crate::impls::shows;
use crate::row::{Put, PutWrites, Rewrite};
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

    delegate!(self over &*self.inner; upkeep);
    delegate!(self => &*self.inner; get, row, list, threads, delete_thread);
    delegate!(self => &*self.inner; outlives_its_process, keeps_secrets, leases, catalog);
}

/// Rewriting stores too, so it carries the fence.
#[async_trait]
impl Upkeep for Leased {
    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        upkeep::rewrite(&*self.inner, Rewrite { fence: self.fence, ..rewrite }).await
    }

    delegate!(self => &*self.inner; copy_thread, compact);
}

shows!(Leased: |it| { fence: it.fence });
