//! [`Upkeep`]: changes to whole threads, outside of runs.

use async_trait::async_trait;

use crate::checkpointer::Checkpointer;
use crate::error::{StoreError, missing_extension};
use crate::row::Rewrite;

/// The upkeep of a store, returned by [`Checkpointer::upkeep`]: copies, pruning, and freeing space.
///
/// ```
/// use agentgraph_checkpoint::{CheckpointId, Checkpointer, MemorySaver, Place, Put, Rewrite, RowKind, Upkeep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemorySaver::new();
/// let place = Place::root("t-1");
/// for step in 0..3 {
///     store.put(Put::new(place, CheckpointId::new(0, step), RowKind::Full, b"record")).await?;
/// }
/// store.copy_thread("t-1", "t-2").await?;
/// let gone = [(0, 0..2)];
/// store.rewrite(Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone }).await?;
///
/// assert_eq!(store.list(place, Default::default()).await?.len(), 1);
/// assert_eq!(store.list(Place::root("t-2"), Default::default()).await?.len(), 3);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Copies everything of a thread but its lease, in one transaction.
    ///
    /// Must fail with [`StoreCode::ThreadExists`](crate::StoreCode::ThreadExists) (see
    /// [`thread_exists`](crate::thread_exists)), and change nothing, if `to` has any data, also if that is
    /// only pending writes; otherwise with [`StoreCode::UnknownThread`](crate::StoreCode::UnknownThread)
    /// (see [`unknown_thread`](crate::unknown_thread)) if `from` has none.
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Removes rows and replaces others with fulls, in one transaction. Pruning uses it.
    ///
    /// Must fail with [`StoreCode::LeaseLost`](crate::StoreCode::LeaseLost) as [`Checkpointer::put`] does.
    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError>;

    /// Returns the space of removed rows to the system, where this does not happen automatically.
    async fn compact(&self) -> Result<(), StoreError>;
}

/// [`Upkeep::copy_thread`] of any store.
pub async fn copy_thread(store: &dyn Checkpointer, from: &str, to: &str) -> Result<(), StoreError> {
    match store.upkeep() {
        Some(upkeep) => upkeep.copy_thread(from, to).await,
        None => Err(missing_extension(from, "copy a thread", "upkeep")),
    }
}

/// [`Upkeep::rewrite`] of any store.
pub async fn rewrite(store: &dyn Checkpointer, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
    match store.upkeep() {
        Some(upkeep) => upkeep.rewrite(rewrite).await,
        None => Err(missing_extension(rewrite.place.thread, "be pruned", "upkeep")),
    }
}

/// [`Upkeep::compact`] of any store; one without upkeep has nothing to free.
pub async fn compact(store: &dyn Checkpointer) -> Result<(), StoreError> {
    match store.upkeep() {
        Some(upkeep) => upkeep.compact().await,
        None => Ok(()),
    }
}
