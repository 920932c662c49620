//! [`DrivenStore`]: the image of a thread as the store of a driven run.

use std::sync::Arc;

use async_trait::async_trait;

use super::Image;
use crate::run::driven::desk::{Desk, WaitForReply};
use crate::run::driven::need::{NeedId, NeedKind, Reply};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::{
    Catalog, CheckpointId, Checkpointer, Leases, ListQuery, Place, Put, PutWrites, Row, StoreCode,
    StoreError, Tail, Upkeep,
};

/// Reads and writes the image, and asks for each change to be stored. A thread has one driver at a time, so
/// there are no leases.
pub(in crate::run::driven) struct DrivenStore {
    desk: Arc<Desk>,
    image: Lock<Image>,
    /// Whether only commits of the root are handed out while the run is under way.
    journaled: bool,
}

impl DrivenStore {
    pub(in crate::run::driven) fn new(desk: Arc<Desk>, image: Image, journaled: bool) -> Self {
        DrivenStore { desk, image: Lock::new(image), journaled }
    }

    /// Asks for the changes that are not handed out yet, at the end of the run.
    pub(in crate::run::driven) fn hand_out_rest(&self) -> Option<NeedId> {
        let change = self.image.lock().take_change()?;
        Some(self.desk.ask_without_waiting(NeedKind::Store(change)))
    }

    /// Asks for the changes to be stored, unless they can wait.
    fn hand_out(&self, is_commit: bool) -> Option<WaitForReply> {
        if self.journaled && !is_commit {
            return None;
        }
        let change = self.image.lock().take_change()?;
        Some(self.desk.ask(NeedKind::Store(change)))
    }
}

async fn stored(asked: Option<WaitForReply>) -> Result<(), StoreError> {
    let Some(asked) = asked else { return Ok(()) };
    match asked.await {
        Reply::Stored(stored) => stored,
        _ => Err(StoreError::new(StoreCode::Store, "the reply is not one to a change of rows")),
    }
}

#[async_trait]
impl Checkpointer for DrivenStore {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        Ok(self.image.lock().tail(place.namespace, at))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        Ok(self.image.lock().find(place.namespace, id))
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.image.lock().put(&put)?;
        stored(self.hand_out(put.place.namespace.is_empty())).await
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        self.image.lock().put_writes(&put);
        stored(self.hand_out(false)).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        Ok(self.image.lock().list(place, query))
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        let image = self.image.lock();
        Ok(if image.rows.is_empty() { Vec::new() } else { vec![image.thread.to_string()] })
    }

    async fn delete_thread(&self, _: &str) -> Result<(), StoreError> {
        let problem = "a driven run cannot delete its thread: remove the thread's rows where they are stored";
        Err(StoreError::new(StoreCode::Store, problem))
    }

    fn outlives_its_process(&self) -> bool {
        false
    }

    fn keeps_secrets(&self) -> bool {
        true
    }

    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        None
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        None
    }
}
