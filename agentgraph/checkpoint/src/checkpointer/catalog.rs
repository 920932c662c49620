//! [`Catalog`]: lists the content of a store, across threads and within one.

use async_trait::async_trait;

use crate::blob::Usage;
use crate::error::StoreError;
use crate::row::{Place, Waiting, WaitingQuery};

/// The catalog of a store, returned by [`catalog`](crate::Checkpointer::catalog): its places, the requests
/// that wait for answers, and its size.
///
/// ```
/// use agentgraph_checkpoint::{Catalog, CheckpointId, Checkpointer, MemorySaver, Place, Put, RowKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemorySaver::new();
/// for (namespace, branch) in [("", 0), ("", 2), ("memory", 0)] {
///     let place = Place { thread: "t-1", namespace };
///     store.put(Put::new(place, CheckpointId::new(branch, 0), RowKind::Full, b"record")).await?;
/// }
/// assert_eq!(store.namespaces("t-1").await?, ["", "memory"]);
/// assert_eq!(store.branches(Place::root("t-1")).await?, [0, 2]);
/// assert_eq!(store.usage().await?.rows, 3);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The unanswered requests, across threads: pending writes on the newest checkpoint of their place
    /// whose slot is odd and below [`PendingWrite::SPECIAL`](crate::PendingWrite::SPECIAL), whose task is
    /// not 0, and which have no answer in the next slot, or one that was
    /// [taken back](crate::PendingWrite::takes_back).
    /// Also returned are the notes of runs that stopped without a question: task 0, slot 0, which no answer
    /// ends. In order of thread, namespace, task and slot.
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError>;

    /// The namespaces of a thread that have rows, in alphabetical order; the root's is empty.
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError>;

    /// The branches of a place that have rows, in ascending order. A store that has no faster way calls
    /// [`listed_branches`](crate::listed_branches).
    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError>;

    /// The size of the store's content. May read every row.
    async fn usage(&self) -> Result<Usage, StoreError>;
}
