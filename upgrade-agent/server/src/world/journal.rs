//! The data file: every row of the world as text in one SQLite table.
//!
//! A change is written before the response. It survives a kill of the process, but it is not flushed to disk,
//! so a power cut may lose the last changes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};

use super::table::Change;
use super::{World, migrate};
use crate::error::ServerError;
use crate::wire::dialect::Dialect;

/// Distinguishes data files from other SQLite files ("UpGr").
const APPLICATION: i32 = 0x5570_4772;
/// The version of the rows' format, raised with each incompatible change.
const FORMAT: i32 = 2;

/// The time for which a stopping server may still hold the file.
const PATIENCE: Duration = Duration::from_millis(500);

/// An open data file, locked until it is dropped.
pub(crate) struct Journal {
    path: PathBuf,
    file: Connection,
    dialect: Dialect,
}

impl Journal {
    /// Opens or creates the file of a server with this dialect.
    pub(crate) fn open(path: &Path, dialect: Dialect) -> Result<Self, ServerError> {
        let failed = |why: rusqlite::Error| trouble(path, &why);
        if let Some(folder) = path.parent() {
            let failed = |why: io::Error| ServerError::Data { path: path.to_owned(), why: why.to_string() };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = Connection::open(path).map_err(failed)?;
        prepare(&file).map_err(failed)?;
        let journal = Self { path: path.to_owned(), file, dialect };
        journal.check_kind()?;
        journal.check_dialect()?;
        Ok(journal)
    }

    fn check_kind(&self) -> Result<(), ServerError> {
        let number = |pragma| self.file.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
        let failed = |why: rusqlite::Error| trouble(&self.path, &why);
        let kind = (number("application_id").map_err(failed)?, number("user_version").map_err(failed)?);
        match kind {
            (APPLICATION, FORMAT) => Ok(()),
            (0, 0) if self.is_blank().map_err(failed)? => self.create_tables().map_err(failed),
            (APPLICATION, old) if old < FORMAT => migrate::migrate(&self.file, old, FORMAT)
                .map_err(|why| self.wrong(format!("it cannot be brought up to date: {why}"))),
            (APPLICATION, newer) => {
                Err(self.wrong(format!("it has the format {newer}, this version reads {FORMAT}")))
            }
            _ => Err(self.wrong("it belongs to another program".into())),
        }
    }

    /// A file belongs to one dialect, because the other one could not show its data. A file without a dialect
    /// was written when there was only one.
    fn check_dialect(&self) -> Result<(), ServerError> {
        let asked = "SELECT value FROM about WHERE name = 'version'";
        let stored = self.file.query_row(asked, [], |row| row.get::<_, String>(0));
        let stored = stored.unwrap_or_else(|_| Dialect::V65.version().to_owned());
        let is_ours = Dialect::of_version(&stored) == Some(self.dialect);
        let other = || {
            self.wrong(format!("it holds the data of UpGrade {stored}, not of {}", self.dialect.version()))
        };
        if is_ours { Ok(()) } else { Err(other()) }
    }

    fn is_blank(&self) -> rusqlite::Result<bool> {
        let count = "SELECT count(*) FROM sqlite_schema";
        self.file.query_row(count, [], |row| row.get::<_, i64>(0)).map(|tables| tables == 0)
    }

    fn create_tables(&self) -> rusqlite::Result<()> {
        self.file.execute_batch(&format!(
            "BEGIN;
             CREATE TABLE record (kind TEXT, key TEXT, row TEXT NOT NULL, PRIMARY KEY (kind, key))
             WITHOUT ROWID;
             CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
             INSERT INTO about VALUES ('version', '{version}');
             PRAGMA application_id = {APPLICATION};
             PRAGMA user_version = {FORMAT};
             COMMIT;",
            version = self.dialect.version(),
        ))
    }

    /// Reads all rows.
    pub(crate) fn load(&self) -> Result<World, ServerError> {
        let failed = |why: rusqlite::Error| trouble(&self.path, &why);
        let mut world = World::new(self.dialect);
        let mut rows = self.file.prepare("SELECT kind, key, row FROM record").map_err(failed)?;
        let mut rows = rows.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let text = |at| row.get::<_, String>(at).map_err(failed);
            let kind = text(0)?;
            let key = text(1)?;
            let row = text(2)?;
            let damaged = |what: &str| self.wrong(format!("the {kind} {key} {what}"));
            match world.restore(&kind, key.clone(), &row) {
                Ok(true) => {}
                Ok(false) => return Err(damaged("is of no known kind")),
                Err(_) => return Err(damaged("cannot be read")),
            }
        }
        Ok(world)
    }

    /// Writes the changes in one transaction.
    pub(crate) fn write(&mut self, changes: &[Change]) -> rusqlite::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let writing = self.file.transaction()?;
        for Change { table, key, row } in changes {
            match row {
                Some(row) => writing
                    .prepare_cached("INSERT OR REPLACE INTO record (kind, key, row) VALUES (?, ?, ?)")?
                    .execute(params![table, key, row])?,
                None => writing
                    .prepare_cached("DELETE FROM record WHERE kind = ? AND key = ?")?
                    .execute(params![table, key])?,
            };
        }
        writing.commit()
    }

    fn wrong(&self, why: String) -> ServerError {
        ServerError::Data { path: self.path.clone(), why }
    }
}

/// The first statement takes the lock, which is kept: two servers on one file would overwrite each other's
/// rows.
fn prepare(file: &Connection) -> rusqlite::Result<()> {
    file.busy_timeout(PATIENCE)?;
    file.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    file.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    file.pragma_update(None, "synchronous", "NORMAL")?;
    file.execute_batch("BEGIN EXCLUSIVE; COMMIT;")
}

fn trouble(path: &Path, why: &rusqlite::Error) -> ServerError {
    let path = path.to_owned();
    match why.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ServerError::InUse { path },
        Some(ErrorCode::NotADatabase) => ServerError::Data { path, why: "it is not an SQLite file".into() },
        _ => ServerError::Data { path, why: why.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::*;
    use crate::contexts::Contexts;
    use crate::core::{ApiRequest, Core};
    use crate::students;
    use crate::world::sources;

    #[test]
    fn a_call_fails_and_is_undone_if_its_changes_cannot_be_stored() {
        let path = std::env::temp_dir().join(format!("upgrade-journal-{}", uuid::Uuid::new_v4()));
        let journal = Journal::open(&path, Dialect::V65).unwrap();
        let world = journal.load().unwrap();
        journal.file.pragma_update(None, "query_only", true).unwrap();
        let clock = Box::new(|| SystemTime::UNIX_EPOCH);
        let mut core = Core::new(world, Some(journal), Contexts::default(), clock, sources::seeded(1));
        let asked = ApiRequest { user: Some("ada".into()), body: json!({}), ..ApiRequest::default() };
        let fault = core.run(students::init, &asked).unwrap_err();
        assert_eq!(fault.status, 500);
        assert!(core.world.user("ada").is_none());
        drop(core);
        for suffix in ["", "-wal"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
    }
}
