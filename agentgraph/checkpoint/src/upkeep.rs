//! The upkeep of any store, also of one that has none.

pub use crate::checkpointer::Upkeep;

use crate::checkpointer::Checkpointer;
use crate::error::{StoreError, missing_extension};
use crate::row::Rewrite;

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
