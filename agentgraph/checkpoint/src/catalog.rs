//! The catalog of any store, also of one that has none.

use crate::blob::Usage;
pub use crate::checkpointer::Catalog;

use crate::checkpointer::Checkpointer;
use crate::error::{StoreError, corrupt, missing_extension};
use crate::row::{ListQuery, Place, Waiting, WaitingQuery, check_id};

/// The most branches that are searched one by one.
const MOST_BRANCHES: u32 = 1 << 16;

/// [`Catalog::branches`] by [`Checkpointer::list`]: one call for each branch up to the newest.
///
/// ```
/// use agentgraph_checkpoint::{
///     CheckpointId, Checkpointer, MemorySaver, Place, Put, RowKind, listed_branches,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemorySaver::new();
/// let place = Place::root("t-1");
/// for branch in [0, 2] {
///     store.put(Put::new(place, CheckpointId::new(branch, 0), RowKind::Full, b"record")).await?;
/// }
/// assert_eq!(listed_branches(&store, place).await?, [0, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StoreCode::CorruptCheckpoint`](crate::StoreCode::CorruptCheckpoint) if the newest branch has a number
/// above 65,536; when the store fails.
pub async fn listed_branches(store: &dyn Checkpointer, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
    let newest = store.list(place, ListQuery { limit: Some(1), ..ListQuery::default() }).await?;
    let Some(newest) = newest.first().map(|row| row.id) else { return Ok(Vec::new()) };
    check_id(place, newest)?;
    if newest.branch > MOST_BRANCHES {
        return Err(corrupt(place, newest, "its branch has a number that no branch can have"));
    }
    let mut found = Vec::new();
    for branch in 0..newest.branch {
        let query = ListQuery { branch: Some(branch), limit: Some(1), ..ListQuery::default() };
        if !store.list(place, query).await?.is_empty() {
            found.push(branch);
        }
    }
    found.push(newest.branch);
    Ok(found)
}

/// [`Catalog::waiting`] of any store.
pub async fn waiting(store: &dyn Checkpointer, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
    match store.catalog() {
        Some(catalog) => catalog.waiting(query).await,
        None => Err(missing_extension("", "list waiting threads", "catalog")),
    }
}

/// [`Catalog::namespaces`] of any store.
pub async fn namespaces(store: &dyn Checkpointer, thread: &str) -> Result<Vec<String>, StoreError> {
    match store.catalog() {
        Some(catalog) => catalog.namespaces(thread).await,
        None => Err(missing_extension(thread, "list the namespaces of a thread", "catalog")),
    }
}

/// [`Catalog::branches`] of any store.
pub async fn branches(store: &dyn Checkpointer, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
    match store.catalog() {
        Some(catalog) => catalog.branches(place).await,
        None => listed_branches(store, place).await,
    }
}

/// [`Catalog::usage`] of any store.
pub async fn usage(store: &dyn Checkpointer) -> Result<Usage, StoreError> {
    match store.catalog() {
        Some(catalog) => catalog.usage().await,
        None => Err(missing_extension("", "report its usage", "catalog")),
    }
}
