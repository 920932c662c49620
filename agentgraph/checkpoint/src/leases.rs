//! The leases of any store, also of one that has none.

use std::future::pending;
use std::sync::Weak;
use std::time::SystemTime;

use async_trait::async_trait;

pub use crate::checkpointer::Leases;

use crate::checkpointer::Checkpointer;
use crate::error::{StoreError, missing_extension};
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};

/// The leases of a store. Without any, every request is granted with the fence 0, which is never checked.
pub fn leases_of(store: &dyn Checkpointer) -> &dyn Leases {
    store.leases().unwrap_or(&NoLeases)
}

/// [`Leases::ask_to_stop`] of any store.
pub async fn ask_to_stop(
    store: &dyn Checkpointer,
    thread: &str,
    now: SystemTime,
) -> Result<Option<u64>, StoreError> {
    match store.leases() {
        Some(leases) => leases.ask_to_stop(thread, now).await,
        None => Err(missing_extension(thread, "ask a run to stop", "leases")),
    }
}

/// [`Leases::held`] of any store.
pub async fn held(store: &dyn Checkpointer, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
    match store.leases() {
        Some(leases) => leases.held(query).await,
        None => Err(missing_extension("", "list the threads that run", "leases")),
    }
}

struct NoLeases;

#[async_trait]
impl Leases for NoLeases {
    async fn acquire(&self, _: &str, _: LeaseTerms) -> Result<Claim, StoreError> {
        Ok(Claim::Granted { fence: 0 })
    }

    async fn renew(&self, _: &str, _: u64, _: SystemTime) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn release(&self, _: &str, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn let_go(&self, _: &str, _: u64) {}

    async fn released(&self, _: &str, _: u64) {
        pending().await
    }

    async fn ask_to_stop(&self, _: &str, _: SystemTime) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn held(&self, _: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        Ok(Vec::new())
    }

    fn hear_stops(&self, _: Weak<dyn HearsStops>) {}
}
