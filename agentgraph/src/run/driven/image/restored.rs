//! [`ThreadRows`]: the rows of a thread, read from the store that has its history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::RowKey;
use super::{is_memory, referred_to};
use crate::error::Error;
use crate::record::blob::Blob;
use crate::record::header::Header;
use agentgraph_checkpoint::catalog::{branches, namespaces};
use agentgraph_checkpoint::{CheckpointId, Checkpointer, ListQuery, Place, Row, RowKind};

/// The rows that a thread needs to go on, read from the [`Checkpointer`] that has its history: for a
/// [`Ground`](super::super::Ground) whose own rows are lost, and for a thread that began in another way. A
/// serde value.
///
/// ```
/// use agentgraph::host::{Ground, HostedGraph, RunCall, ThreadRows};
/// use agentgraph::prelude::*;
/// use std::time::SystemTime;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Page { text: String }
/// # async fn read(ctx: Ctx) -> Result<PageUpdate> { Ok(Page::update().text(ctx.interrupt::<String>("what?")?)) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let store = MemorySaver::new();
/// let graph = StateGraph::new().node("read", read).edge(START, "read").compile()?.checkpointer(store.clone());
/// graph.invoke(Page::update()).thread("t-1").await?;
///
/// // The run goes on elsewhere.
/// let rows = ThreadRows::read("t-1", &store).await?;
/// let ground = Ground::new("t-1", 7, SystemTime::now()).rows(rows.into_vec());
/// let mut run = graph.drive(RunCall::resume("this")?, ground)?;
/// assert!(!run.needs()?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRows(BTreeMap<String, Blob>);

impl ThreadRows {
    /// Reads them; there are none if the store has no such thread.
    ///
    /// # Errors
    /// If the store fails, has no catalog, or has bytes that cannot be read.
    pub async fn read(thread: &str, saver: &dyn Checkpointer) -> Result<Self, Error> {
        let mut rows = ThreadRows::default();
        let root = Place::root(thread);
        let Some(tail) = saver.get(root, None).await? else { return Ok(rows) };
        // Calls of subgraphs are over with the run; only memories outlive it.
        let has_calls = !Header::of_rows(root, &tail.rows)?.next.is_empty();
        for namespace in namespaces(saver, thread).await? {
            let place = Place { thread, namespace: &namespace };
            if is_memory(&namespace) {
                rows.add_all(place, saver).await?;
            }
            if is_memory(&namespace) || namespace.is_empty() || has_calls {
                rows.add_newest(place, saver).await?;
            }
        }
        Ok(rows)
    }

    /// The rows, in the order of their keys, for [`Ground::rows`](super::super::Ground::rows).
    pub fn into_vec(self) -> Vec<(String, Vec<u8>)> {
        self.0.into_iter().map(|(key, bytes)| (key, bytes.0.to_vec())).collect()
    }

    /// Adds the newest checkpoint of a place, the records that it refers to, and its pending writes.
    async fn add_newest(&mut self, place: Place<'_>, saver: &dyn Checkpointer) -> Result<(), Error> {
        let Some(tail) = saver.get(place, None).await? else { return Ok(()) };
        let newest = tail.rows.last().map_or_else(CheckpointId::default, |row| row.id);
        for row in tail.rows {
            if row.kind == RowKind::Full {
                for id in referred_to(&row.record, row.id) {
                    let referred = saver.row(place, id).await?;
                    referred.into_iter().for_each(|row| self.add(place, row));
                }
            }
            self.add(place, row);
        }
        for write in tail.writes {
            let key = RowKey::write(place.namespace, newest, &write).to_text();
            self.0.insert(key, Blob::from(write.bytes));
        }
        Ok(())
    }

    /// Adds all checkpoints of a memory. The root's record names the one that is in effect.
    async fn add_all(&mut self, place: Place<'_>, saver: &dyn Checkpointer) -> Result<(), Error> {
        for branch in branches(saver, place).await? {
            let query = ListQuery { branch: Some(branch), ..ListQuery::default() };
            saver.list(place, query).await?.into_iter().for_each(|row| self.add(place, row));
        }
        Ok(())
    }

    fn add(&mut self, place: Place<'_>, row: Row) {
        let key = RowKey::row(place.namespace, row.id, row.kind).to_text();
        self.0.insert(key, Blob::from(row.record));
    }
}

/// Omits the rows, which may contain secrets.
impl std::fmt::Debug for ThreadRows {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ThreadRows").field("rows", &self.0.len()).finish()
    }
}
