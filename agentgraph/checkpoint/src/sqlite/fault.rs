//! Explains a failure of SQLite to the user: which file, and what to do. Also [`Patience`]: how long to
//! wait for a lock.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;
use tokio::time::{Instant, sleep};

use crate::error::{StoreCode, StoreError};

/// The failure of a statement, before it is known whether it is reported.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Known(StoreError),
}

impl Fault {
    /// Whether the same call may succeed once another connection is done.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Fault::Sqlite(error) if is_busy(error))
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Known(error)
    }
}

/// The kind of data in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Checkpoints,
    Items,
}

/// The location of the rows, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// `None` for a database in memory.
    file: Option<PathBuf>,
    content: Content,
}

impl fmt::Display for Home {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = match self.content {
            Content::Checkpoints => "checkpoint",
            Content::Items => "item",
        };
        match &self.file {
            Some(path) => write!(out, "the {content} database `{}`", path.display()),
            None => write!(out, "the {content} database in memory"),
        }
    }
}

impl Home {
    pub(crate) fn of_file(path: PathBuf, content: Content) -> Self {
        Home { file: Some(path), content }
    }

    pub(crate) fn in_memory(content: Content) -> Self {
        Home { file: None, content }
    }

    /// The path, unless it is in memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// The error for the user.
    pub(crate) fn explain(&self, fault: Fault) -> StoreError {
        match fault {
            Fault::Known(error) => error,
            Fault::Sqlite(error) if is_foreign_value(&error) => self.foreign_value().with_source(error),
            Fault::Sqlite(error) => self.error(self.remedy(&error)).with_source(error),
        }
    }

    fn foreign_value(&self) -> StoreError {
        let (code, what) = match self.content {
            Content::Checkpoints => (StoreCode::CorruptCheckpoint, "thread"),
            Content::Items => (StoreCode::ItemUnreadable, "item"),
        };
        let problem = format!(
            "{self} holds a value that agentgraph did not write; restore a backup, or delete the {what}"
        );
        StoreError::new(code, problem)
    }

    fn remedy(&self, error: &rusqlite::Error) -> String {
        let remedy = remedy(error);
        match self.content {
            Content::Checkpoints => remedy,
            Content::Items => remedy
                .replace("SqliteSaverBuilder", "SqliteStoreBuilder")
                .replace("continue with `proceed()`", "try again"),
        }
    }

    /// The problem with a file that this process may not write.
    pub(super) fn read_only(&self) -> StoreError {
        match self.content {
            Content::Checkpoints => self.error(READ_ONLY),
            Content::Items => {
                self.error("is read-only: make the file and its folder writable for this process, or choose another path")
            }
        }
    }

    pub(crate) fn error(&self, problem: impl fmt::Display) -> StoreError {
        StoreError::new(StoreCode::Store, format!("{self} {problem}"))
    }

    /// For a row whose leader took it and never answered, because it panicked during the commit.
    pub(super) fn lost(&self) -> StoreError {
        self.error("may or may not hold the last commit; read the thread again before you continue")
    }
}

fn is_foreign_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

fn remedy(error: &rusqlite::Error) -> String {
    let known = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "stayed locked by another process for longer than the busy timeout: end that process, or raise \
             `SqliteSaverBuilder::busy_timeout`"
        }
        Some(
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied,
        ) => READ_ONLY,
        Some(ErrorCode::CannotOpen) => {
            "cannot be opened: its path must name a file, and this process must be allowed to write it and its \
             folder"
        }
        Some(ErrorCode::NotADatabase) => {
            "is not an SQLite database: choose another path, or move that file away"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "is damaged: restore a backup, or save what can be read with the `.recover` command of `sqlite3`"
        }
        Some(ErrorCode::DiskFull) => {
            "has no room left: free some on its disk, or raise `SqliteSaverBuilder::max_size`, then continue with `proceed()`"
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed) => {
            "could not be read or written: check the disk; it must be a local one, not a network file system"
        }
        Some(ErrorCode::TooBig) => {
            "cannot hold a record above 1 GB: keep large values in files and their names in the state"
        }
        _ => return format!("failed: {error}"),
    };
    known.to_owned()
}

const READ_ONLY: &str = "is read-only: make the file and its folder writable for this process, choose another \
                                    path, or open it with `SqliteSaverBuilder::read_only` to read from it";

/// The wait for another process: pauses from 1 ms, doubled up to 50 ms, until the limit.
#[derive(Debug)]
pub(crate) struct Patience {
    since: Instant,
    limit: Duration,
    next: Duration,
}

impl Patience {
    const LONGEST: Duration = Duration::from_millis(50);

    pub(crate) fn new(limit: Duration) -> Self {
        Patience { since: Instant::now(), limit, next: Duration::from_millis(1) }
    }

    /// Sleeps, unless the limit has passed; returns whether it slept.
    pub(crate) async fn pause(&mut self) -> bool {
        let patient = self.since.elapsed() < self.limit;
        if patient {
            self.sleep().await;
        }
        patient
    }

    pub(super) async fn sleep(&mut self) {
        sleep(self.next()).await;
    }

    /// The length of the next pause.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(Self::LONGEST);
        pause
    }
}
