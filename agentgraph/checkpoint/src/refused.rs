//! [`Refused`]: what stands in the place of a checkpointer that a graph must not have. Whatever is asked of
//! it, the answer is why; so nothing is ever stored, whoever forgets to look.

use async_trait::async_trait;

use crate::checkpointer::Checkpointer;
use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::lease::{Claim, LeaseTerms};
use crate::row::{ListQuery, Place, Put, PutWrites, Row, Tail, WaitingQuery};

/// Says why, each time.
pub struct Refused {
    /// The code of each answer.
    pub code: StoreCode,
    /// And its text.
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

    async fn acquire(&self, _: &str, _: LeaseTerms) -> Result<Claim, StoreError> {
        Err(self.error())
    }

    async fn waiting(&self, _: WaitingQuery<'_>) -> Result<Vec<super::Waiting>, StoreError> {
        Err(self.error())
    }

    async fn namespaces(&self, _: &str) -> Result<Vec<String>, StoreError> {
        Err(self.error())
    }

    async fn copy_thread(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Err(self.error())
    }
}
