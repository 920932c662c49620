//! [`PostgresRecords`]: records in a Postgres database, beside the checkpoints of a `PostgresSaver` and on
//! its connections. Several servers may share them: `shared.rs` has what they need for it.

mod shared;

use std::sync::Arc;

use agentgraph::PostgresSaver;
use agentgraph_checkpoint::tables::{Fault, FromSql, Row, Tables, Value};
use futures_util::FutureExt;
use serde_json::{Map, Value as Json};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use self::shared::hear;
use super::{Kind, LogEntry, Query, Record, Records, SharedRecords, Signal, SortBy};
use crate::error::RecordError;

/// Records in a Postgres database, in the schema of a saver's checkpoints with the ending `_server`. A clone
/// is another handle.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentgraph::PostgresSaver;
/// use agentgraph_server::records::{Kind, PostgresRecords, Records};
///
/// let saver = PostgresSaver::connect("postgres://agent@localhost/agents").await?;
/// let records = PostgresRecords::beside(&saver).await?;
/// assert_eq!(records.get(Kind::Thread, "t-1").await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresRecords {
    tables: Tables,
    /// Marks the notifications of this handle, which it ignores.
    name: String,
    signals: broadcast::Sender<Signal>,
    _heard: Arc<AbortOnDropHandle<()>>,
}

/// Texts are sorted by their bytes, as elsewhere. `data` is text, since JSON of Postgres has no NUL;
/// `metadata` is a copy for searches, in which NUL is written otherwise. `stop` is 0, 1 for an interrupt or 2
/// for a rollback. `fleeting` is the time of an entry that may be removed.
const MIGRATIONS: &[&str] = &["
CREATE TABLE @record (
    kind TEXT COLLATE \"C\" NOT NULL, id TEXT COLLATE \"C\" NOT NULL, parent TEXT COLLATE \"C\" NOT NULL,
    status TEXT COLLATE \"C\" NOT NULL, created BIGINT NOT NULL, updated BIGINT NOT NULL, version BIGINT NOT NULL,
    data TEXT NOT NULL, metadata JSONB NOT NULL, stop SMALLINT NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, id)
);
CREATE INDEX by_creation ON @record (kind, created, id);
CREATE INDEX by_change ON @record (kind, updated, id);
CREATE INDEX by_status ON @record (kind, status, id);
CREATE INDEX by_parent ON @record (kind, parent, created);
CREATE INDEX open ON @record (parent, created, id) WHERE kind = 'run' AND status IN ('pending', 'running');
CREATE INDEX stopping ON @record (parent)
    WHERE stop <> 0 AND kind = 'run' AND status IN ('pending', 'running');
CREATE INDEX by_metadata ON @record USING gin (metadata jsonb_path_ops);
CREATE TABLE @log (
    log TEXT COLLATE \"C\" NOT NULL, seq BIGINT NOT NULL, text TEXT NOT NULL, fleeting BIGINT,
    PRIMARY KEY (log, seq)
);
CREATE INDEX by_age ON @log (fleeting) WHERE fleeting IS NOT NULL;
CREATE TABLE @replica (id TEXT COLLATE \"C\" PRIMARY KEY, until BIGINT NOT NULL);
CREATE TABLE @claim (
    thread TEXT COLLATE \"C\" PRIMARY KEY, replica TEXT COLLATE \"C\" NOT NULL, graph TEXT COLLATE \"C\" NOT NULL
);
CREATE INDEX by_replica ON @claim (replica);
"];

const COLUMNS: &str = "kind, id, parent, status, created, updated, version, data";

type Values = Vec<Box<dyn Value + Send>>;

impl PostgresRecords {
    /// The records beside the checkpoints of a saver. Creates the tables or updates them.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not allow tables to be created.
    pub async fn beside(saver: &PostgresSaver) -> Result<Self, RecordError> {
        let tables = Tables::beside(saver, "server", MIGRATIONS).await.map_err(RecordError::new)?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let signals = broadcast::Sender::new(4096);
        let heard = Arc::new(hear(&tables, &name, &signals));
        Ok(PostgresRecords { tables, name, signals, _heard: heard })
    }

    /// Runs one statement, and returns its rows.
    async fn query(&self, sql: impl Into<String>, values: Values) -> Result<Vec<Row>, RecordError> {
        let given = Arc::new((sql.into(), values));
        let done = self.tables.call(move |connection| {
            let given = Arc::clone(&given);
            async move { connection.query(&given.0, &borrowed(&given.1)).await }.boxed()
        });
        done.await.map_err(RecordError::new)
    }

    /// Runs one statement that returns a row for each record that it changes. Whether it changed one.
    async fn changes(&self, sql: &str, values: Values) -> Result<bool, RecordError> {
        Ok(!self.query(sql, values).await?.is_empty())
    }
}

fn borrowed(values: &Values) -> Vec<&dyn Value> {
    values.iter().map(|value| &**value as &dyn Value).collect()
}

fn boxed(value: impl Value + Send + 'static) -> Box<dyn Value + Send> {
    Box::new(value)
}

macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(crate::records::postgres::boxed($value)),*] };
}
use values;

/// An integer of Postgres, which has no unsigned ones.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A text without NUL, which Postgres cannot hold. Different texts stay different.
fn escaped(text: &str) -> String {
    if !text.contains(['\0', '\u{e000}']) {
        return text.to_owned();
    }
    text.replace('\u{e000}', "\u{e000}1").replace('\0', "\u{e000}0")
}

/// Metadata as JSON without NUL.
fn searchable(metadata: &Map<String, Json>) -> String {
    fn part(value: &Json) -> Json {
        match value {
            Json::String(text) => escaped(text).into(),
            Json::Array(items) => items.iter().map(part).collect(),
            Json::Object(fields) => fields.iter().map(|(name, field)| (escaped(name), part(field))).collect(),
            other => other.clone(),
        }
    }
    part(&Json::Object(metadata.clone())).to_string()
}

fn record(row: &Row) -> Result<Record, Fault> {
    let kind = match row.try_get::<_, &str>(0)? {
        "assistant" => Kind::Assistant,
        "run" => Kind::Run,
        _ => Kind::Thread,
    };
    Ok(Record {
        kind,
        id: row.try_get(1)?,
        parent: row.try_get(2)?,
        status: row.try_get(3)?,
        created: row.try_get(4)?,
        updated: row.try_get(5)?,
        version: u64::try_from(row.try_get::<_, i64>(6)?).unwrap_or(0),
        // Only this program writes it; a document that cannot be read is empty.
        data: serde_json::from_str(row.try_get(7)?).unwrap_or_default(),
    })
}

fn records(rows: &[Row]) -> Result<Vec<Record>, RecordError> {
    rows.iter().map(record).collect::<Result<_, _>>().map_err(unreadable)
}

fn unreadable(fault: Fault) -> RecordError {
    RecordError::new(format!("a row cannot be read: {fault:?}"))
}

fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, RecordError> {
    row.try_get(at).map_err(|error| unreadable(error.into()))
}

/// What is stored of a record's metadata for searches.
fn metadata_of(record: &Record) -> String {
    searchable(&record.data["metadata"].as_object().cloned().unwrap_or_default())
}

/// The statement that adds or replaces a record, if it has the version that it names, and its values.
fn write_of(record: Record) -> (&'static str, Values) {
    let metadata = metadata_of(&record);
    let Record { kind, id, parent, status, created, updated, version, data } = record;
    let (kind, data) = (kind.as_str(), data.to_string());
    if version == 0 {
        let insert = "INSERT INTO @record (kind, id, parent, status, created, updated, version, data, metadata) \
                      VALUES ($1, $2, $3, $4, $5, $6, 1, $7, ($8::text)::jsonb) ON CONFLICT DO NOTHING";
        return (insert, values![kind, id, parent, status, created, updated, data, metadata]);
    }
    let update = "UPDATE @record SET parent = $3, status = $4, created = $5, updated = $6, data = $7, \
                  metadata = ($8::text)::jsonb, version = version + 1 \
                  WHERE kind = $1 AND id = $2 AND version = $9";
    (update, values![kind, id, parent, status, created, updated, data, metadata, signed(version)])
}

/// A query as conditions with their values.
struct Conditions {
    text: String,
    values: Values,
}

impl Conditions {
    fn of(query: &Query) -> Self {
        let mut conditions =
            Conditions { text: "kind = $1".to_owned(), values: values![query.kind.as_str()] };
        for (column, wanted) in [("parent", &query.parent), ("status", &query.status)] {
            if let Some(wanted) = wanted {
                conditions.add(&format!("{column} = $"), escaped(wanted), "");
            }
        }
        if let Some(ids) = &query.ids {
            let ids: Vec<String> = ids.iter().map(|id| escaped(id)).collect();
            conditions.add("id = ANY($", ids, ")");
        }
        if !query.metadata.is_empty() {
            conditions.add("metadata @> ($", searchable(&query.metadata), "::text)::jsonb");
        }
        conditions
    }

    /// Adds a condition whose value stands between two texts.
    fn add(&mut self, before: &str, value: impl Value + Send + 'static, after: &str) {
        self.values.push(Box::new(value));
        self.text += &format!(" AND {before}{}{after}", self.values.len());
    }

    /// The condition of the records after one in an order.
    fn after(&mut self, query: &Query, after: &Record, column: &str) {
        let beyond = if query.descending { "<" } else { ">" };
        match query.sort {
            SortBy::Created => self.values.push(Box::new(after.created)),
            SortBy::Updated => self.values.push(Box::new(after.updated)),
            SortBy::Id => self.values.push(Box::new(after.id.clone())),
            SortBy::Status => self.values.push(Box::new(after.status.clone())),
        }
        self.values.push(Box::new(after.id.clone()));
        let last = self.values.len();
        self.text += &format!(" AND ({column}, id) {beyond} (${}, ${last})", last - 1);
    }
}

#[async_trait::async_trait]
impl Records for PostgresRecords {
    async fn put(&self, records: Vec<Record>) -> Result<bool, RecordError> {
        let writes: Arc<[(&str, Values)]> = records.into_iter().map(write_of).collect();
        let done = self.tables.call(move |connection| {
            let writes = Arc::clone(&writes);
            async move {
                if let [(sql, values)] = &*writes {
                    return Ok(connection.execute(sql, &borrowed(values)).await? == 1);
                }
                let transaction = connection.begin().await?;
                for (sql, values) in &*writes {
                    // A transaction that is dropped is rolled back.
                    if transaction.execute(sql, &borrowed(values)).await? == 0 {
                        return Ok(false);
                    }
                }
                transaction.commit().await.map(|()| true)
            }
            .boxed()
        });
        done.await.map_err(RecordError::new)
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError> {
        let statement = format!("SELECT {COLUMNS} FROM @record WHERE kind = $1 AND id = $2");
        let rows = self.query(statement, values![kind.as_str(), escaped(id)]).await?;
        Ok(records(&rows)?.pop())
    }

    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError> {
        let statement = "DELETE FROM @record WHERE kind = $1 AND id = $2 RETURNING 1";
        self.changes(statement, values![kind.as_str(), escaped(id)]).await
    }

    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        let mut conditions = Conditions::of(query);
        let column = match query.sort {
            SortBy::Created => "created",
            SortBy::Updated => "updated",
            SortBy::Id => "id",
            SortBy::Status => "status",
        };
        if let Some(after) = &query.after {
            conditions.after(query, after, column);
        }
        let Conditions { text, mut values } = conditions;
        let direction = if query.descending { "DESC" } else { "ASC" };
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        values.extend(values![number(query.limit), number(query.offset)]);
        let last = values.len();
        let statement = format!(
            "SELECT {COLUMNS} FROM @record WHERE {text} ORDER BY {column} {direction}, id {direction} \
             LIMIT ${} OFFSET ${last}",
            last - 1
        );
        records(&self.query(statement, values).await?)
    }

    async fn count(&self, query: &Query) -> Result<usize, RecordError> {
        let Conditions { text, values } = Conditions::of(query);
        let rows = self.query(format!("SELECT count(*) FROM @record WHERE {text}"), values).await?;
        let count = rows.first().map(|row| column::<i64>(row, 0)).transpose()?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError> {
        let statement = "INSERT INTO @log (log, seq, text) \
                         SELECT $1::text, seq, text FROM unnest($2::bigint[], $3::text[]) AS entry (seq, text) \
                         ON CONFLICT DO NOTHING";
        let (numbers, texts) = columns_of(entries);
        self.query(statement, values![log.to_owned(), numbers, texts]).await.map(drop)
    }

    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError> {
        let statement = "SELECT seq, text FROM @log WHERE log = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.query(statement, values![log.to_owned(), after.map_or(-1, signed), limit]).await?;
        let entry = |row: &Row| {
            let seq = u64::try_from(column::<i64>(row, 0)?).unwrap_or(0);
            Ok(LogEntry { seq, text: column(row, 1)? })
        };
        rows.iter().map(entry).collect()
    }

    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError> {
        let rows = self.query("SELECT max(seq) FROM @log WHERE log = $1", values![log.to_owned()]).await?;
        let last = rows.first().map(|row| column::<Option<i64>>(row, 0)).transpose()?.flatten();
        Ok(last.and_then(|last| u64::try_from(last).ok()))
    }

    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError> {
        let statement = "DELETE FROM @log WHERE log = $1 AND seq < $2";
        self.query(statement, values![log.to_owned(), signed(before)]).await.map(drop)
    }

    async fn forget(&self, log: &str) -> Result<(), RecordError> {
        self.query("DELETE FROM @log WHERE log = $1", values![log.to_owned()]).await.map(drop)
    }

    fn shared(&self) -> Option<&dyn SharedRecords> {
        Some(self)
    }
}

/// Entries as one array for each column.
fn columns_of(entries: Vec<LogEntry>) -> (Vec<i64>, Vec<String>) {
    entries.into_iter().map(|entry| (signed(entry.seq), entry.text)).unzip()
}
