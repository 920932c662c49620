//! [`SqliteRecords`]: records in a SQLite file, which may be that of the checkpoints.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::{Kind, LogEntry, Query, Record, Records, SortBy};
use crate::error::RecordError;

/// Records in a SQLite file. Calls run on tokio's threads for blocking work, one at a time.
///
/// ```
/// use agentgraph_server::records::{Kind, Records, SqliteRecords};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_server::RecordError> {
/// let records = SqliteRecords::open(":memory:").await?;
/// assert_eq!(records.get(Kind::Thread, "t-1").await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteRecords(Arc<Mutex<Connection>>);

/// Runs are looked for by their thread or their status, and written more often than they are looked for, so
/// two indexes are of threads alone; a file may still have those of all records. With such indexes SQLite
/// prepares a statement again whenever its kind is bound, so each statement has its kind as a literal.
const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS server_records (
        kind TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, status TEXT NOT NULL,
        created INTEGER NOT NULL, updated INTEGER NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    DROP INDEX IF EXISTS server_records_created;
    DROP INDEX IF EXISTS server_records_updated;
    CREATE INDEX IF NOT EXISTS server_threads_created ON server_records (kind, created, id) WHERE kind = 'thread';
    CREATE INDEX IF NOT EXISTS server_threads_updated ON server_records (kind, updated, id) WHERE kind = 'thread';
    CREATE INDEX IF NOT EXISTS server_records_status ON server_records (kind, status, id);
    CREATE INDEX IF NOT EXISTS server_records_parent ON server_records (kind, parent, created);
    CREATE TABLE IF NOT EXISTS server_logs (
        log TEXT NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (log, seq)
    ) WITHOUT ROWID;
";

const COLUMNS: &str = "kind, id, parent, status, created, updated, version, data";

impl SqliteRecords {
    /// Opens a file, which is made if it is missing.
    ///
    /// # Errors
    /// If the file cannot be opened or written.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref().to_owned();
        blocking(move || {
            let connection = Connection::open(path)?;
            // Other connections on the file write too, for a short time each.
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.execute_batch(TABLES)?;
            Ok(SqliteRecords(Arc::new(Mutex::new(connection))))
        })
        .await
    }

    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, RecordError> {
        let connection = Arc::clone(&self.0);
        blocking(move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, RecordError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(RecordError::new),
        Err(error) => Err(RecordError::new(error)),
    }
}

/// The integer that a number is in SQLite, which has no unsigned ones.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let kind = match row.get_ref(0)?.as_str()? {
        "assistant" => Kind::Assistant,
        "run" => Kind::Run,
        _ => Kind::Thread,
    };
    let data: String = row.get(7)?;
    // Fields are read and written by name.
    let data: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&data).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(7, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(Record {
        kind,
        id: row.get(1)?,
        parent: row.get(2)?,
        status: row.get(3)?,
        created: row.get(4)?,
        updated: row.get(5)?,
        version: u64::try_from(row.get::<_, i64>(6)?).unwrap_or(0),
        data: data.into(),
    })
}

/// The conditions on columns; metadata and ids are compared here, row by row.
fn conditions(query: &Query) -> (String, Vec<Sql>) {
    let mut text = format!("kind = '{}'", query.kind.as_str());
    let mut values = Vec::new();
    for (column, wanted) in [("parent", &query.parent), ("status", &query.status)] {
        if let Some(wanted) = wanted {
            text += &format!(" AND {column} = ?");
            values.push(Sql::Text(wanted.clone()));
        }
    }
    (text, values)
}

fn order(query: &Query) -> (&'static str, &'static str) {
    let column = match query.sort {
        SortBy::Created => "created",
        SortBy::Updated => "updated",
        SortBy::Id => "id",
        SortBy::Status => "status",
    };
    (column, if query.descending { "DESC" } else { "ASC" })
}

fn page(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<Record>> {
    let (mut condition, mut values) = conditions(query);
    let (column, direction) = order(query);
    if let Some(after) = &query.after {
        let beyond = if query.descending { "<" } else { ">" };
        condition += &format!(" AND ({column}, id) {beyond} (?, ?)");
        values.push(match query.sort {
            SortBy::Created => Sql::Integer(after.created),
            SortBy::Updated => Sql::Integer(after.updated),
            SortBy::Id => Sql::Text(after.id.clone()),
            SortBy::Status => Sql::Text(after.status.clone()),
        });
        values.push(Sql::Text(after.id.clone()));
    }
    let statement = format!(
        "SELECT {COLUMNS} FROM server_records WHERE {condition} ORDER BY {column} {direction}, id {direction}"
    );
    let mut statement = connection.prepare_cached(&statement)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut found, mut left_out) = (Vec::new(), 0);
    while found.len() < query.limit {
        let Some(row) = rows.next()? else { break };
        let record = record(row)?;
        if query.selects(&record) {
            left_out += 1;
            if left_out > query.offset {
                found.push(record);
            }
        }
    }
    Ok(found)
}

/// Adds or replaces a record, if it has the version that it names. Returns how many rows were changed.
fn put(connection: &Connection, record: &Record) -> rusqlite::Result<usize> {
    let Record { kind, id, parent, status, created, updated, version, data } = record;
    let (kind, version, data) = (kind.as_str(), signed(*version), data.to_string());
    if version == 0 {
        let insert = "INSERT INTO server_records (kind, id, parent, status, created, updated, version, data) \
                      VALUES (?, ?, ?, ?, ?, ?, 1, ?) ON CONFLICT DO NOTHING";
        let values = params![kind, id, parent, status, created, updated, data];
        return connection.prepare_cached(insert)?.execute(values);
    }
    // SQLite writes each index with a column that a statement sets, also where its value stays. Parent and
    // creation seldom change.
    let usual = format!(
        "UPDATE server_records SET status = ?1, updated = ?2, data = ?3, version = version + 1 \
         WHERE kind = '{kind}' AND id = ?4 AND version = ?5 AND parent = ?6 AND created = ?7"
    );
    let values = params![status, updated, data, id, version, parent, created];
    match connection.prepare_cached(&usual)?.execute(values)? {
        0 => {
            let whole = format!(
                "UPDATE server_records SET status = ?1, updated = ?2, data = ?3, version = version + 1, \
                 parent = ?6, created = ?7 WHERE kind = '{kind}' AND id = ?4 AND version = ?5"
            );
            connection.prepare_cached(&whole)?.execute(values)
        }
        changed => Ok(changed),
    }
}

#[async_trait::async_trait]
impl Records for SqliteRecords {
    async fn put(&self, records: Vec<Record>) -> Result<bool, RecordError> {
        self.on(move |connection| {
            let transaction = connection.transaction()?;
            for record in &records {
                if put(&transaction, record)? == 0 {
                    return Ok(false);
                }
            }
            transaction.commit().map(|()| true)
        })
        .await
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError> {
        let id = id.to_owned();
        self.on(move |connection| {
            let kind = kind.as_str();
            let statement = format!("SELECT {COLUMNS} FROM server_records WHERE kind = '{kind}' AND id = ?");
            connection.prepare_cached(&statement)?.query_row([id], record).optional()
        })
        .await
    }

    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError> {
        let id = id.to_owned();
        self.on(move |connection| {
            let statement = format!("DELETE FROM server_records WHERE kind = '{}' AND id = ?", kind.as_str());
            Ok(connection.prepare_cached(&statement)?.execute([id])? == 1)
        })
        .await
    }

    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        let query = query.clone();
        self.on(move |connection| page(connection, &query)).await
    }

    async fn count(&self, query: &Query) -> Result<usize, RecordError> {
        let query = Query { offset: 0, limit: usize::MAX, after: None, ..query.clone() };
        self.on(move |connection| {
            if query.metadata.is_empty() && query.ids.is_none() {
                let (condition, values) = conditions(&query);
                let statement = format!("SELECT count(*) FROM server_records WHERE {condition}");
                let mut statement = connection.prepare_cached(&statement)?;
                let count: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
                return Ok(usize::try_from(count).unwrap_or(0));
            }
            Ok(page(connection, &query)?.len())
        })
        .await
    }

    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError> {
        let log = log.to_owned();
        self.on(move |connection| {
            let transaction = connection.transaction()?;
            for entry in entries {
                let statement =
                    "INSERT INTO server_logs (log, seq, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
                transaction.prepare_cached(statement)?.execute(params![
                    log,
                    signed(entry.seq),
                    entry.text
                ])?;
            }
            transaction.commit()
        })
        .await
    }

    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError> {
        let log = log.to_owned();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.on(move |connection| {
            let statement =
                "SELECT seq, text FROM server_logs WHERE log = ? AND seq > ? ORDER BY seq LIMIT ?";
            let mut statement = connection.prepare_cached(statement)?;
            let entries = statement.query_map(params![log, after.map_or(-1, signed), limit], |row| {
                Ok(LogEntry { seq: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0), text: row.get(1)? })
            })?;
            entries.collect()
        })
        .await
    }

    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError> {
        let log = log.to_owned();
        self.on(move |connection| {
            let statement = "SELECT max(seq) FROM server_logs WHERE log = ?";
            let last: Option<i64> =
                connection.prepare_cached(statement)?.query_row([log], |row| row.get(0))?;
            Ok(last.and_then(|last| u64::try_from(last).ok()))
        })
        .await
    }

    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError> {
        let log = log.to_owned();
        self.on(move |connection| {
            let statement = "DELETE FROM server_logs WHERE log = ? AND seq < ?";
            connection.prepare_cached(statement)?.execute(params![log, signed(before)]).map(drop)
        })
        .await
    }

    async fn forget(&self, log: &str) -> Result<(), RecordError> {
        let log = log.to_owned();
        self.on(move |connection| {
            connection.execute("DELETE FROM server_logs WHERE log = ?", [log]).map(drop)
        })
        .await
    }
}
