//! From a path to a connection: the folders, the file, the settings, the schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::task::spawn_blocking;

use super::SqliteSaver;
use super::fault::{Content, Fault, Home, Patience};
use super::owner;
use super::schema::{self, Contents, Tables};
use crate::blob::SHARE_FROM;
use crate::error::StoreError;

/// When a commit survives a power cut. With both, it survives a kill of the process at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// After SQLite next moves its log into the file. Until then a power cut may lose the last commits, in
    /// order, and leaves the file intact.
    #[default]
    Normal,
    /// Before the call returns.
    Full,
}

impl Synchronous {
    fn name(self) -> &'static str {
        match self {
            Synchronous::Normal => "NORMAL",
            Synchronous::Full => "FULL",
        }
    }
}

/// The options of a [`SqliteSaver`], made by [`SqliteSaver::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// # let folder = std::env::temp_dir().join(format!("agentgraph-options-{}", std::process::id()));
/// use agentgraph_checkpoint::{Checkpointer, SqliteSaver, Synchronous};
/// use std::time::Duration;
///
/// let saver = SqliteSaver::builder(folder.join("threads.db"))
///     .synchronous(Synchronous::Full)
///     .busy_timeout(Duration::from_secs(30))
///     .open()
///     .await?;
/// assert!(saver.threads().await?.is_empty());
/// # drop(saver);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `open`"]
pub struct SqliteSaverBuilder {
    pub(super) file: FileOptions,
    pub(super) share_from: usize,
}

/// How a database file is opened.
#[derive(Clone, Debug)]
pub(crate) struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) max_size: Option<u64>,
    pub(crate) read_only: bool,
}

impl FileOptions {
    pub(crate) fn new(path: &Path) -> Self {
        FileOptions {
            path: path.to_owned(),
            synchronous: Synchronous::default(),
            busy_timeout: Duration::from_secs(5),
            max_size: None,
            read_only: false,
        }
    }
}

/// The methods that the builders of a saver and a store in a file have in common.
macro_rules! file_methods {
    ($change:literal) => {
        #[doc = concat!("When a ", $change, " survives a power cut. [`Synchronous::Normal`] if not set.")]
        pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
            self.file.synchronous = synchronous;
            self
        }

        /// The longest time that a call sleeps and retries while another process has the file locked, before
        /// it fails with [`StoreCode::Store`](crate::StoreCode::Store). 5 seconds if not set; zero does not
        /// wait.
        pub fn busy_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.file.busy_timeout = timeout;
            self
        }

        /// The largest size of the file in bytes, in whole pages of 4 KiB; no limit if not set. A call that
        /// would exceed it fails with [`StoreCode::Store`](crate::StoreCode::Store), and stored data stays:
        /// prune or delete some, or raise the limit, and continue. A file that is larger already is not
        /// changed. SQLite's log beside the file is not counted; it is mostly below 4 MiB and at most 64 MiB
        /// between writes.
        pub fn max_size(mut self, bytes: u64) -> Self {
            self.file.max_size = Some(bytes);
            self
        }
    };
}
pub(crate) use file_methods;

impl SqliteSaverBuilder {
    pub(super) fn new(path: &Path) -> Self {
        SqliteSaverBuilder { file: FileOptions::new(path), share_from: SHARE_FROM }
    }

    file_methods!("commit");

    /// Opens an existing file for reading: its threads, their states and their histories. Calls that store
    /// fail with [`StoreCode::Store`](crate::StoreCode::Store). For a file without write permission, and
    /// for looking at the threads of a running program.
    ///
    /// To read while another program writes, SQLite needs the files of the log, and creates them beside the
    /// database if it may. If it may not, and there is no log, the file is treated as one that does not
    /// change: later writes are not visible, and the file may appear damaged.
    pub fn read_only(mut self) -> Self {
        self.file.read_only = true;
        self
    }

    /// Values of at least `bytes` bytes are stored once, however many checkpoints, branches and threads use
    /// them; 64 KiB if not set, `usize::MAX` for never. Values already in the file are not changed; savers
    /// that share a file may differ.
    ///
    /// A smaller size finds more equal values. It costs an index entry of about 150 bytes for each use of a
    /// value, and a hash of the value on every write and read.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> agentgraph::prelude::Result<()> {
    /// # let folder = std::env::temp_dir().join(format!("agentgraph-shared-{}", std::process::id()));
    /// # use agentgraph::prelude::*;
    /// use agentgraph_checkpoint::{Catalog, SqliteSaver};
    /// use std::sync::Arc;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Reading { page: String, n: u64 }
    /// # async fn read() {}
    /// # let graph = StateGraph::<Reading>::new().node("read", read).edge(START, "read").compile()?;
    /// let saver = SqliteSaver::builder(folder.join("threads.db")).share_values_from(10_000).open().await?;
    /// let saver = Arc::new(saver);
    /// let graph = graph.checkpointer(Arc::clone(&saver));
    /// for thread in ["a", "b", "c"] {
    ///     graph.invoke(Reading::update().page("page ".repeat(100_000))).thread(thread).await?;
    /// }
    /// let usage = saver.usage().await?;
    /// assert_eq!((usage.values, usage.value_bytes, usage.uses), (1, 500_000, 3));
    /// # drop((graph, saver));
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn share_values_from(mut self, bytes: usize) -> Self {
        self.share_from = bytes;
        self
    }

    /// Opens the file; creates it, and the folders above it, if it does not exist.
    ///
    /// # Errors
    /// As [`SqliteSaver::open`].
    pub async fn open(self) -> Result<SqliteSaver, StoreError> {
        let home = Home::of_file(self.file.path.clone(), Content::Checkpoints);
        let connection = self.file.open(&home, &schema::CHECKPOINTS).await?;
        if !self.file.read_only {
            let path = opened(&connection, &self.file.path);
            // Beside the database, so it may wait for the disk; a failure leaves files that do no harm.
            let _ = spawn_blocking(move || owner::sweep(&path)).await;
        }
        Ok(SqliteSaver::new(home, &self, connection))
    }
}

impl FileOptions {
    /// Opens the file, and creates or updates its tables.
    pub(crate) async fn open(&self, home: &Home, tables: &'static Tables) -> Result<Connection, StoreError> {
        if self.path.as_os_str() == ":memory:" {
            let instead = match home.content() {
                Content::Checkpoints => "`MemorySaver`, or `SqliteSaver::in_memory()`",
                Content::Items => "`MemoryStore`, or `SqliteStore::in_memory()`",
            };
            return Err(home.error(format!("names no file in SQLite: use {instead}")));
        }
        let mut patience = Patience::new(self.busy_timeout);
        loop {
            match self.attempt(home, tables).await {
                Ok(connection) => return Ok(connection),
                Err(fault) if fault.is_busy() && patience.pause().await => {}
                Err(fault) => return Err(home.explain(fault)),
            }
        }
    }

    /// On a thread for blocking work, because creating a file waits for the disk several times.
    async fn attempt(&self, home: &Home, tables: &'static Tables) -> Result<Connection, Fault> {
        let options = self.clone();
        let its_home = home.clone();
        let attempt = spawn_blocking(move || options.connect(&its_home, tables));
        match attempt.await {
            Ok(outcome) => outcome,
            Err(error) => Err(home.error("could not be opened").with_source(error).into()),
        }
    }

    fn connect(&self, home: &Home, tables: &Tables) -> Result<Connection, Fault> {
        if self.read_only {
            return self.connect_to_read(home, tables);
        }
        let path = create_folders(&self.path, home)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        if connection.is_readonly("main")? {
            return Err(home.read_only().into());
        }
        let contents = schema::contents(&connection, home, tables)?;
        if contents == Contents::Nothing {
            // Can only be set while the file is empty.
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        }
        use_log(&connection, home)?;
        let connection = finish(connection, contents, self.synchronous, home, tables)?;
        if let Some(bytes) = self.max_size {
            limit_pages(&connection, bytes)?;
        }
        Ok(connection)
    }

    /// Opens an existing file for reading, without creating tables.
    pub(crate) fn connect_to_read(&self, home: &Home, tables: &Tables) -> Result<Connection, Fault> {
        let path = absolute(&self.path, home)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let look = |connection: Connection| {
            connection.busy_timeout(Duration::ZERO)?;
            let contents = schema::contents(&connection, home, tables)?;
            Ok((connection, contents))
        };
        let (connection, contents) = match look(Connection::open_with_flags(&path, flags)?) {
            Err(Fault::Sqlite(error)) if needs_files_beside(&error) && !has_log(&path) => {
                let unchanging = as_unchanging(&path).ok_or(Fault::Sqlite(error))?;
                look(Connection::open_with_flags(unchanging, flags | OpenFlags::SQLITE_OPEN_URI)?)?
            }
            looked => looked?,
        };
        if contents != Contents::Current {
            let problem = "has no tables of this release: open it once without `read_only` to create them";
            return Err(home.error(problem).into());
        }
        finish(connection, contents, self.synchronous, home, tables)
    }
}

/// Whether SQLite cannot read a file because it may not create the files of its log.
fn needs_files_beside(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether stored data may be in a log and not yet in the file. `true` if that cannot be determined.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match std::fs::metadata(log) {
        Ok(log) => log.len() > 0,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// SQLite's name for a file that does not change.
fn as_unchanging(path: &Path) -> Option<String> {
    let path = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{path}?immutable=1"))
}

/// A separate database for every call.
pub(super) fn in_memory() -> Result<SqliteSaver, StoreError> {
    let home = Home::in_memory(Content::Checkpoints);
    let options = SqliteSaverBuilder::new(Path::new("")).busy_timeout(Duration::ZERO);
    let connection = connect_in_memory(&home, &schema::CHECKPOINTS)?;
    Ok(SqliteSaver::new(home, &options, connection))
}

/// A new database in memory, with its tables.
pub(crate) fn connect_in_memory(home: &Home, tables: &Tables) -> Result<Connection, StoreError> {
    let connection = Connection::open_in_memory().map_err(Fault::from);
    connection
        .and_then(|connection| finish(connection, Contents::Nothing, Synchronous::Normal, home, tables))
        .map_err(|fault| home.explain(fault))
}

/// The path of the open file, whatever directory the process changes to. SQLite follows links, and its log
/// is beside the target.
pub(crate) fn opened(connection: &Connection, path: &Path) -> PathBuf {
    let known = connection.path().filter(|path| !path.is_empty()).map(PathBuf::from);
    known.or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

/// The absolute path: SQLite gives relative ones such as `:memory:` and `file:...` a special meaning.
fn absolute(path: &Path, home: &Home) -> Result<PathBuf, Fault> {
    let absolute = std::path::absolute(path);
    Ok(absolute.map_err(|error| home.error("is not a valid path for a file").with_source(error))?)
}

fn create_folders(path: &Path, home: &Home) -> Result<PathBuf, Fault> {
    let absolute = absolute(path, home)?;
    if let Some(folder) = absolute.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let problem = format!("needs the folder `{}`, which cannot be created", folder.display());
            home.error(problem).with_source(error)
        })?;
    }
    Ok(absolute)
}

fn use_log(connection: &Connection, home: &Home) -> Result<(), Fault> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let problem = format!("cannot use SQLite's WAL mode (it stays at `{mode}`): put it on a local disk");
        return Err(home.error(problem).into());
    }
    Ok(())
}

/// SQLite forgets the limit when the connection closes.
fn limit_pages(connection: &Connection, bytes: u64) -> Result<(), Fault> {
    let page: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = u32::try_from(bytes / u64::from(page.max(1))).unwrap_or(u32::MAX - 1).max(1);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    Ok(())
}

/// The limit on the log keeps one burst of large records from leaving a log of that size for ever. The file
/// may be untrusted, so its schema may not call functions. Deleted data is overwritten, since users who
/// delete a thread expect that; only deletions pay for it.
fn finish(
    connection: Connection,
    contents: Contents,
    synchronous: Synchronous,
    home: &Home,
    tables: &Tables,
) -> Result<Connection, Fault> {
    let settings = format!(
        "PRAGMA synchronous = {};
         PRAGMA journal_size_limit = 67108864;
         PRAGMA secure_delete = ON;
         PRAGMA trusted_schema = OFF;",
        synchronous.name()
    );
    connection.execute_batch(&settings)?;
    if contents != Contents::Current {
        schema::migrate(&connection, home, tables)?;
    }
    (tables.prepare)(&connection)?;
    Ok(connection)
}
