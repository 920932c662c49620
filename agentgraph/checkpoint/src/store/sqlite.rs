//! [`SqliteStore`]: items in an SQLite file.
//!
//! This file decides which call uses which connection. `statements.rs` has the statements, `schema.rs` the
//! tables, `readers.rs` the connections of searches, `builder.rs` the options. Opening files, waiting for
//! locks and explaining failures are those of the checkpointer (`crate::sqlite`).
//!
//! Changes and short reads use one connection, which is held for one transaction and never across an await.
//! A search with a filter or a text may look at many items, so it runs on a thread for blocking work, on a
//! connection of its own, and sees the items as they were when it began.

mod builder;
mod readers;
mod schema;
mod statements;

pub use builder::SqliteStoreBuilder;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use self::readers::Readers;
use self::statements::Read;
use super::Store;
use super::change::Change;
use super::embedder::embed_query;
use super::item::{Found, Item};
use super::namespace::{Namespace, check_key};
use super::options::{Options, rows_of};
use super::pattern::NamespaceQuery;
use super::search::SearchQuery;
use crate::error::StoreError;
use crate::impls::shows;
use crate::sqlite::anchor::Anchor;
use crate::sqlite::exclusive::Exclusive;
use crate::sqlite::fault::{Fault, Home, Patience};

/// Keeps items in an SQLite file, which is created on first use.
/// A clone is another handle of the same store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// # let folder = std::env::temp_dir().join(format!("agentgraph-store-doc-{}", std::process::id()));
/// use agentgraph_checkpoint::{Namespace, SqliteStore, StoreExt};
///
/// let ada = Namespace::new(["users", "ada"])?;
/// let store = SqliteStore::open(folder.join("memory.db")).await?;
/// store.put(&ada, "city", "Rome").await?;
/// drop(store);
///
/// let store = SqliteStore::open(folder.join("memory.db")).await?;
/// assert_eq!(store.get_as::<String>(&ada, "city").await?.as_deref(), Some("Rome"));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok(())
/// # }
/// ```
///
/// Several stores and several processes may open one file if it is on a local disk. The file is one of its
/// own: the checkpoints of a [`SqliteSaver`](crate::SqliteSaver) go into another one. Durability, locks,
/// full disks and files that are moved are as described there.
///
/// Filters are evaluated item by item, after the items of the namespace were read. Vectors are stored as
/// they are, and compared one by one: the order is exact, and a search by text reads every vector in its
/// namespace. The [scan limit](SqliteStoreBuilder::scan_limit) bounds both.
///
/// # Errors
///
/// [`StoreCode::Store`](crate::StoreCode::Store) if SQLite fails; its message names the file and what to
/// do, its source is SQLite's own error. [`StoreCode::ItemUnreadable`](crate::StoreCode::ItemUnreadable)
/// if stored bytes are damaged; other items are not affected.
#[derive(Clone)]
pub struct SqliteStore {
    options: Options,
    home: Home,
    busy_timeout: Duration,
    /// Held for one transaction.
    connection: Arc<Exclusive<Connection>>,
    /// `None` for a database in memory, which has one connection only.
    readers: Option<Arc<Readers>>,
    anchor: Arc<Anchor>,
}

impl SqliteStore {
    /// Opens a database file; creates it, and the folders above it, if it does not exist.
    ///
    /// # Errors
    /// [`StoreCode::Store`](crate::StoreCode::Store) if the file cannot be opened or written, is no
    /// database, or belongs to another program;
    /// [`StoreCode::UnknownFormat`](crate::StoreCode::UnknownFormat) if a newer release wrote it. Nothing
    /// is changed then.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder(path).open().await
    }

    /// A store with a database in memory, which is dropped together with it.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn in_memory() -> Result<Self, StoreError> {
        SqliteStoreBuilder::new(Path::new("")).in_memory()
    }

    /// Set options, then [`open`](SqliteStoreBuilder::open).
    pub fn builder(path: impl AsRef<Path>) -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(path.as_ref())
    }

    /// Runs `work` on the connection, and again while another process has the file locked.
    async fn attempt<T>(&self, work: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            match self.connection.with(&work).await {
                Err(fault) if fault.is_busy() && patience.pause().await => {}
                done => return done.map_err(|fault| self.home.explain(fault)),
            }
        }
    }

    /// Runs a search that may look at many items.
    async fn scan(&self, read: Read) -> Result<Vec<Found>, StoreError> {
        let read = Arc::new(read);
        let Some(readers) = &self.readers else {
            return self.attempt(|connection| statements::scan(connection, &read)).await;
        };
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            let read = Arc::clone(&read);
            match Arc::clone(readers).run(move |connection| statements::scan(connection, &read)).await {
                Err(fault) if fault.is_busy() && patience.pause().await => {}
                done => return done.map_err(|fault| self.home.explain(fault)),
            }
        }
    }

    async fn refresh(&self, page: &mut [Found], now: u64) -> Result<(), StoreError> {
        if page.iter().all(|found| found.item.expires_at.is_none()) {
            return Ok(());
        }
        self.anchor.check(&self.home)?;
        let versions: Vec<u64> = page.iter().map(|found| found.item.version).collect();
        let ends = self.attempt(|connection| statements::refresh(connection, &versions, now)).await?;
        for (found, end) in page.iter_mut().zip(ends) {
            found.item.expires_at = end.or(found.item.expires_at);
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(
        &self,
        namespace: &Namespace,
        key: &str,
        refresh: Option<bool>,
    ) -> Result<Option<Item>, StoreError> {
        check_key(key)?;
        let now = self.options.now();
        let item = self.attempt(|connection| statements::get(connection, namespace, key, now)).await?;
        let Some(item) = item else { return Ok(None) };
        let mut found = [Found::new(item, None)];
        if self.options.refreshes(refresh) {
            self.refresh(&mut found, now).await?;
        }
        let [found] = found;
        Ok(Some(found.item))
    }

    async fn change(&self, changes: Vec<Change>) -> Result<Vec<Option<u64>>, StoreError> {
        let prepared = self.options.prepare(changes).await?;
        let rows = rows_of(prepared)?;
        self.anchor.check(&self.home)?;
        self.attempt(|connection| statements::change(connection, &rows)).await
    }

    async fn find(&self, query: &SearchQuery) -> Result<Vec<Found>, StoreError> {
        query.check()?;
        let vector = embed_query(self.options.index.as_ref(), query.text.as_deref()).await?;
        let now = self.options.now();
        let read = Read { query: query.clone(), vector, now, scan_limit: self.options.scan_limit };
        let mut page = if query.filter.is_none() && query.text.is_none() {
            self.attempt(|connection| statements::page(connection, query, now)).await?
        } else {
            self.scan(read).await?
        };
        if self.options.refreshes(query.refresh) {
            self.refresh(&mut page, now).await?;
        }
        Ok(page)
    }

    async fn list(&self, query: &NamespaceQuery) -> Result<Vec<Namespace>, StoreError> {
        query.check()?;
        let now = self.options.now();
        self.attempt(|connection| statements::list(connection, query, now)).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.anchor.check(&self.home)?;
        let now = self.options.now();
        let mut swept = 0;
        loop {
            // A batch at a time, so that a long list of ended items does not block the executor.
            let batch = self.attempt(|connection| statements::sweep(connection, now)).await?;
            if batch == 0 {
                return Ok(swept);
            }
            swept += batch;
            crate::services::yield_now().await;
        }
    }
}

shows!(SqliteStore: |it| { home: it.home, options: it.options });
