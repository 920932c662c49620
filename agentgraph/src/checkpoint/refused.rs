//! [`Refused`]: what stands in the place of a checkpointer that a graph must not have. Whatever is asked of it, the answer is
//! why; so nothing is ever stored, whoever forgets to look.

use async_trait::async_trait;

use super::{Checkpointer, Claim, LeaseTerms, ListQuery, Place, Put, PutWrites, Row, Tail, WaitingQuery};
use crate::context::CheckpointId;
use crate::error::{Code, Error};

/// Says why, each time.
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) why: String,
}

impl Refused {
    fn error(&self) -> Error {
        Error::new(self.code, self.why.clone())
    }
}

#[async_trait]
impl Checkpointer for Refused {
    async fn get(&self, _: Place<'_>, _: Option<CheckpointId>) -> Result<Option<Tail>, Error> {
        Err(self.error())
    }

    async fn row(&self, _: Place<'_>, _: CheckpointId) -> Result<Option<Row>, Error> {
        Err(self.error())
    }

    async fn put(&self, _: Put<'_>) -> Result<(), Error> {
        Err(self.error())
    }

    async fn put_writes(&self, _: PutWrites<'_>) -> Result<(), Error> {
        Err(self.error())
    }

    async fn list(&self, _: Place<'_>, _: ListQuery) -> Result<Vec<Row>, Error> {
        Err(self.error())
    }

    async fn threads(&self) -> Result<Vec<String>, Error> {
        Err(self.error())
    }

    async fn delete_thread(&self, _: &str) -> Result<(), Error> {
        Err(self.error())
    }

    async fn acquire(&self, _: &str, _: LeaseTerms) -> Result<Claim, Error> {
        Err(self.error())
    }

    async fn waiting(&self, _: WaitingQuery<'_>) -> Result<Vec<super::Waiting>, Error> {
        Err(self.error())
    }

    async fn namespaces(&self, _: &str) -> Result<Vec<String>, Error> {
        Err(self.error())
    }

    async fn copy_thread(&self, _: &str, _: &str) -> Result<(), Error> {
        Err(self.error())
    }
}
