//! [`Refused`]: replaces a checkpointer that a graph must not use. Every call returns the reason as an
//! error, so nothing is stored even if a caller forgets to check.

use std::sync::Weak;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::blob::Usage;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::Leases;
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery};
use crate::upkeep::Upkeep;

/// Fails every call with the same error.
pub struct Refused {
    /// The code of the error.
    pub code: StoreCode,
    /// The text of the error.
    pub why: String,
}

impl Refused {
    fn error(&self) -> StoreError {
        StoreError::new(self.code, self.why.clone())
    }
}

#[async_trait]
impl Checkpointer for Refused {
    async fn get(&self, _: Place<'_>, _: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        Err(self.error())
    }

    async fn row(&self, _: Place<'_>, _: CheckpointId) -> Result<Option<Row>, StoreError> {
        Err(self.error())
    }

    async fn put(&self, _: Put<'_>) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn put_writes(&self, _: PutWrites<'_>) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn list(&self, _: Place<'_>, _: ListQuery) -> Result<Vec<Row>, StoreError> {
        Err(self.error())
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        Err(self.error())
    }

    async fn delete_thread(&self, _: &str) -> Result<(), StoreError> {
        Err(self.error())
    }

    fn outlives_its_process(&self) -> bool {
        true
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }
}

#[async_trait]
impl Leases for Refused {
    async fn acquire(&self, _: &str, _: LeaseTerms) -> Result<Claim, StoreError> {
        Err(self.error())
    }

    async fn renew(&self, _: &str, _: u64, _: SystemTime) -> Result<bool, StoreError> {
        Err(self.error())
    }

    async fn release(&self, _: &str, _: u64) -> Result<(), StoreError> {
        Err(self.error())
    }

    /// It has granted nothing.
    fn let_go(&self, _: &str, _: u64) {}

    async fn released(&self, _: &str, _: u64) {}

    async fn ask_to_stop(&self, _: &str, _: SystemTime) -> Result<Option<u64>, StoreError> {
        Err(self.error())
    }

    async fn held(&self, _: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        Err(self.error())
    }

    /// Nobody can be asked.
    fn hear_stops(&self, _: Weak<dyn HearsStops>) {}
}

#[async_trait]
impl Catalog for Refused {
    async fn waiting(&self, _: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        Err(self.error())
    }

    async fn namespaces(&self, _: &str) -> Result<Vec<String>, StoreError> {
        Err(self.error())
    }

    async fn branches(&self, _: Place<'_>) -> Result<Vec<u32>, StoreError> {
        Err(self.error())
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        Err(self.error())
    }
}

#[async_trait]
impl Upkeep for Refused {
    async fn copy_thread(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn rewrite(&self, _: Rewrite<'_>) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn compact(&self) -> Result<(), StoreError> {
        Err(self.error())
    }
}
