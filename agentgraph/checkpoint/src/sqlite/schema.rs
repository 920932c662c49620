//! The tables, and whether a file has them. Only this file creates or checks a schema.
//!
//! The table has a rowid, although `WITHOUT ROWID` would save a fifth of the time for the smallest rows:
//! without a rowid every row of more than 1,000 bytes takes a separate overflow page, so a kilobyte takes
//! four on disk, and rows of a megabyte take twice the time.
//!
//! A row contains the number of its place and not the names. Those would be in the table and in its index:
//! a third of the file if threads are named by UUIDs and steps change little.

use rusqlite::Connection;

use super::fault::{Fault, Home};
use super::rows;
use crate::error::{StoreCode, StoreError};

/// "agcp": distinguishes our files from those of other programs.
const APPLICATION: i64 = 0x6167_6370;

/// The changes from each version to the next, starting with an empty file. They are only ever added to.
const MIGRATIONS: &[&str] = &[CREATE, ADD_LEASES, ADD_REQUESTS, ADD_BLOBS];
const VERSION: i64 = MIGRATIONS.len() as i64;

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

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Nothing,
    /// Tables of an earlier release.
    Older,
    Checkpoints,
}

/// Reads the content of the file and changes nothing. In one transaction, because another process may be
/// creating it.
pub(super) fn contents(connection: &Connection, home: &Home) -> Result<Contents, Fault> {
    rows::transaction(connection, rows::Begin::ToRead, || Ok(judge(connection, home)?.0))
}

/// The content of the file, and its version.
fn judge(connection: &Connection, home: &Home) -> Result<(Contents, i64), Fault> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    match (application, version, tables) {
        (0, 0, 0) => Ok((Contents::Nothing, 0)),
        (APPLICATION, VERSION, _) => Ok((Contents::Checkpoints, VERSION)),
        (APPLICATION, newer, _) if newer > VERSION => Err(written_by_newer(home, newer).into()),
        (APPLICATION, older @ 1.., _) => Ok((Contents::Older, older)),
        _ => Err(home.error("is the database of another program: choose a path of its own").into()),
    }
}

/// Creates the tables, or brings them up to date, unless another process was faster.
pub(super) fn migrate(connection: &Connection, home: &Home) -> Result<(), Fault> {
    rows::transaction(connection, rows::Begin::ToWrite, || {
        let (contents, version) = judge(connection, home)?;
        if contents == Contents::Checkpoints {
            return Ok(());
        }
        let done = usize::try_from(version).unwrap_or(0);
        for step in &MIGRATIONS[done..] {
            connection.execute_batch(step)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        Ok(())
    })
}

fn written_by_newer(home: &Home, version: i64) -> StoreError {
    let problem = format!(
        "{home} was written by a newer release of agentgraph (schema version {version}, this one reads {VERSION}): \
         update agentgraph, or choose another path"
    );
    StoreError::new(StoreCode::UnknownFormat, problem)
}
