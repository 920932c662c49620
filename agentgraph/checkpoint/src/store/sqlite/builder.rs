//! [`SqliteStoreBuilder`]: the options of a store in a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::SqliteStore;
use super::readers::Readers;
use super::schema::TABLES;
use crate::error::StoreError;
use crate::sqlite::Synchronous;
use crate::sqlite::anchor::Anchor;
use crate::sqlite::exclusive::Exclusive;
use crate::sqlite::fault::{Content, Home};
use crate::sqlite::open::{FileOptions, connect_in_memory, file_methods, opened};
use crate::store::options::{Options, SCAN_LIMIT, option_methods};

/// The options of a [`SqliteStore`], made by [`SqliteStore::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// # let folder = std::env::temp_dir().join(format!("agentgraph-store-options-{}", std::process::id()));
/// use agentgraph_checkpoint::{Namespace, SqliteStore, StoreExt, Synchronous};
/// use std::time::Duration;
///
/// let store = SqliteStore::builder(folder.join("memory.db"))
///     .synchronous(Synchronous::Full)
///     .lifetime(Duration::from_secs(30 * 24 * 3600))
///     .open()
///     .await?;
/// store.put(&Namespace::root(), "hello", "world").await?;
/// # drop(store);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `open`"]
pub struct SqliteStoreBuilder {
    file: FileOptions,
    options: Options,
}

impl SqliteStoreBuilder {
    pub(super) fn new(path: &Path) -> Self {
        SqliteStoreBuilder { file: FileOptions::new(path), options: Options::new(SCAN_LIMIT) }
    }

    option_methods!();

    file_methods!("change");

    /// Opens the file; creates it, and the folders above it, if it does not exist.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        let home = Home::of_file(self.file.path.clone(), Content::Items);
        let connection = self.file.open(&home, &TABLES).await?;
        let path = opened(&connection, &self.file.path);
        let file = FileOptions { path: path.clone(), ..self.file.clone() };
        let readers = Arc::new(Readers::new(file, home.clone()));
        Ok(self.store(home, connection, Some(readers), Some(&path)))
    }

    /// A store with these options and a database in memory, which is dropped together with it.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn in_memory(mut self) -> Result<SqliteStore, StoreError> {
        let home = Home::in_memory(Content::Items);
        let connection = connect_in_memory(&home, &TABLES)?;
        self.file.busy_timeout = Duration::ZERO;
        Ok(self.store(home, connection, None, None))
    }

    fn store(
        self,
        home: Home,
        connection: Connection,
        readers: Option<Arc<Readers>>,
        path: Option<&Path>,
    ) -> SqliteStore {
        SqliteStore {
            options: self.options,
            home,
            busy_timeout: self.file.busy_timeout,
            connection: Arc::new(Exclusive::new(connection)),
            readers,
            anchor: Arc::new(Anchor::of(path)),
        }
    }
}
