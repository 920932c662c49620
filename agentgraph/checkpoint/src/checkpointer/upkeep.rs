//! [`Upkeep`]: changes to whole threads, outside of runs.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::row::Rewrite;

/// The upkeep of a store, returned by [`upkeep`](crate::Checkpointer::upkeep): copies, pruning, and freeing
/// space.
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
    /// Must fail with [`StoreCode::LeaseLost`](crate::StoreCode::LeaseLost) as
    /// [`put`](crate::Checkpointer::put) does.
    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError>;

    /// Returns the space of removed rows to the system, where this does not happen automatically.
    async fn compact(&self) -> Result<(), StoreError>;
}
