//! The tables, and whether a file has them. Only this file creates or checks a schema.
//!
//! The table has a rowid, although `WITHOUT ROWID` would save a fifth of the time for the smallest rows:
//! without a rowid every row of more than 1,000 bytes takes a separate overflow page, so a kilobyte takes
//! four on disk, and rows of a megabyte take twice the time.
//!
//! A row contains the number of its place and not the names. Those would be in the table and in its index:
//! a third of the file if threads are named by UUIDs and steps change little.

use std::cmp::Ordering;

use rusqlite::Connection;

use super::fault::{Fault, Home};
use super::rows;
use crate::error::{StoreCode, StoreError};

/// The tables of a kind of database.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Distinguishes our files from those of other programs.
    pub(crate) application: i64,
    /// The changes from each version to the next, starting with an empty file. They are only ever added to.
    pub(crate) migrations: &'static [&'static str],
    /// All statements, which are compiled when a file is opened.
    pub(crate) prepare: fn(&Connection) -> Result<(), Fault>,
}

/// "agcp".
pub(crate) const CHECKPOINTS: Tables = Tables {
    application: 0x6167_6370,
    migrations: &[CREATE, ADD_LEASES, ADD_REQUESTS, ADD_BLOBS, ADD_STOPS],
    prepare: rows::prepare,
};
/// "agst".
pub(crate) const ITEMS: i64 = 0x6167_7374;

impl Tables {
    fn version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }
}

/// `part` is 0 for a full or a delta and 1 for the segment beside it. The partial index contains fulls and
/// segments only, so a read finds the newest full without scanning the deltas after it, and most commits do
/// not touch the index.
const CREATE: &str = "
CREATE TABLE place (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    namespace TEXT NOT NULL,
    UNIQUE (thread, namespace)
);
CREATE TABLE checkpoint (
    place INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    step INTEGER NOT NULL,
    part INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (place, branch, step, part)
);
CREATE INDEX base ON checkpoint (place, branch, step, kind) WHERE kind <> 1;
CREATE TABLE pending (
    place INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    step INTEGER NOT NULL,
    task BLOB NOT NULL,
    slot INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (place, branch, step, task, slot)
);
";

/// Fences come from one sequence for the whole file, so the fence of a deleted thread is never granted
/// again.
const ADD_LEASES: &str = "
CREATE TABLE lease (
    fence INTEGER PRIMARY KEY AUTOINCREMENT,
    thread TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL
);
";

/// Finds open requests without scanning the results and answers beside them.
const ADD_REQUESTS: &str = "CREATE INDEX asked ON pending (place) WHERE slot % 2 = 1";

/// Large values, each once, and the rows and writes they were cut out of. `owner` is one byte for a row,
/// its `part`; for a pending write it is the byte 2, the task and the slot.
const ADD_BLOBS: &str = "
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
);
CREATE TABLE piece (
    place INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    step INTEGER NOT NULL,
    owner BLOB NOT NULL,
    at INTEGER NOT NULL,
    blob INTEGER NOT NULL REFERENCES blob,
    PRIMARY KEY (place, branch, step, owner, at)
) WITHOUT ROWID;
CREATE INDEX used ON piece (blob);
ALTER TABLE checkpoint ADD COLUMN pieces INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending ADD COLUMN pieces INTEGER NOT NULL DEFAULT 0;
";

/// Whether the writer was asked to stop. The index covers only the writers that were asked, which are almost
/// always none, so that looking for them is cheap.
const ADD_STOPS: &str = "
ALTER TABLE lease ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;
CREATE INDEX stopping ON lease (thread) WHERE stops <> 0;
";

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Nothing,
    /// Tables of an earlier release.
    Older,
    Current,
}

/// Reads the content of the file and changes nothing. In one transaction, because another process may be
/// creating it.
pub(super) fn contents(connection: &Connection, home: &Home, tables: &Tables) -> Result<Contents, Fault> {
    rows::transaction(connection, rows::Begin::ToRead, || Ok(judge(connection, home, tables)?.0))
}

/// The content of the file, and its version.
fn judge(connection: &Connection, home: &Home, tables: &Tables) -> Result<(Contents, i64), Fault> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let count = number("SELECT count(*) FROM sqlite_master")?;
    let newest = tables.version();
    match (application, version, count) {
        (0, 0, 0) => Ok((Contents::Nothing, 0)),
        (application, version, _) if application == tables.application && version > 0 => {
            match version.cmp(&newest) {
                Ordering::Equal => Ok((Contents::Current, version)),
                Ordering::Less => Ok((Contents::Older, version)),
                Ordering::Greater => Err(written_by_newer(home, version, newest).into()),
            }
        }
        (application, ..) if application == CHECKPOINTS.application => {
            Err(home.error("holds checkpoints: choose another path for the items of a store").into())
        }
        (application, ..) if application == ITEMS => {
            Err(home.error("holds the items of a store: choose another path for checkpoints").into())
        }
        _ => Err(home.error("is the database of another program: choose a path of its own").into()),
    }
}

/// Creates the tables, or brings them up to date, unless another process was faster.
pub(super) fn migrate(connection: &Connection, home: &Home, tables: &Tables) -> Result<(), Fault> {
    rows::transaction(connection, rows::Begin::ToWrite, || {
        let (contents, version) = judge(connection, home, tables)?;
        if contents == Contents::Current {
            return Ok(());
        }
        let done = usize::try_from(version).unwrap_or(0);
        for step in tables.migrations.iter().skip(done) {
            connection.execute_batch(step)?;
        }
        connection.pragma_update(None, "application_id", tables.application)?;
        connection.pragma_update(None, "user_version", tables.version())?;
        Ok(())
    })
}

fn written_by_newer(home: &Home, version: i64, newest: i64) -> StoreError {
    let problem = format!(
        "{home} was written by a newer release of agentgraph (schema version {version}, this one reads {newest}): \
         update agentgraph, or choose another path"
    );
    StoreError::new(StoreCode::UnknownFormat, problem)
}
