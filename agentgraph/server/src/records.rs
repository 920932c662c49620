//! [`Records`]: what the server keeps beside the checkpoints: assistants, threads, runs, and logs of events.
//!
//! A record is a JSON document with a few indexed columns; the store knows nothing of what is in it but its
//! `metadata`. Changes name the version that they change, so several processes may share one store; pages go
//! by key, so that a list of many threads costs what is shown of it.

pub mod conformance;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod shared;
mod sqlite;

pub use memory::MemoryRecords;
#[cfg(feature = "postgres")]
pub use postgres::PostgresRecords;
pub use shared::{Admission, Admitted, Next, SharedRecords, Signal, Stop};
pub use sqlite::SqliteRecords;

use serde_json::{Map, Value};

use crate::error::RecordError;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// An assistant: a graph with a configuration.
    Assistant,
    /// A thread.
    Thread,
    /// A run of a thread.
    Run,
}

impl Kind {
    /// The kind as one word.
    ///
    /// ```
    /// assert_eq!(agentgraph_server::records::Kind::Thread.as_str(), "thread");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Assistant => "assistant",
            Kind::Thread => "thread",
            Kind::Run => "run",
        }
    }
}

/// A document with its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Its id, unique among those of its kind.
    pub id: String,
    /// What it belongs to: a run to its thread, an assistant to its graph; empty for a thread.
    pub parent: String,
    /// One word.
    pub status: String,
    /// When it was made, in microseconds since 1970.
    pub created: i64,
    /// When it was last changed.
    pub updated: i64,
    /// 0 for a record that is new; the store counts it up.
    pub version: u64,
    /// The document, a JSON object. Its field `metadata` is what queries look into.
    pub data: Value,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortBy {
    /// By the time of creation.
    #[default]
    Created,
    /// By the time of the last change.
    Updated,
    /// By id.
    Id,
    /// By status.
    Status,
}

/// Which records of a kind, in which order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Query {
    /// The kind.
    pub kind: Kind,
    /// Only those that belong to this.
    pub parent: Option<String>,
    /// Only those with this status.
    pub status: Option<String>,
    /// Only those with these ids.
    pub ids: Option<Vec<String>>,
    /// Only those whose metadata [contain](contains) this.
    pub metadata: Map<String, Value>,
    /// The order; records that are equal in it are ordered by id.
    pub sort: SortBy,
    /// Whether the order is reversed.
    pub descending: bool,
    /// Only those after this record in the order: the last one of the page before.
    pub after: Option<Record>,
    /// How many to leave out first.
    pub offset: usize,
    /// How many to return.
    pub limit: usize,
}

impl Query {
    /// All records of a kind, the oldest first.
    ///
    /// ```
    /// use agentgraph_server::records::{Kind, MemoryRecords, Query, Records};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agentgraph_server::RecordError> {
    /// let records = MemoryRecords::default();
    /// assert!(records.page(&Query::all(Kind::Thread)).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(kind: Kind) -> Self {
        Query {
            kind,
            parent: None,
            status: None,
            ids: None,
            metadata: Map::new(),
            sort: SortBy::Created,
            descending: false,
            after: None,
            offset: 0,
            limit: usize::MAX,
        }
    }

    fn selects(&self, record: &Record) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        record.kind == self.kind
            && is(&self.parent, &record.parent)
            && is(&self.status, &record.status)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&record.id))
            && self.metadata.iter().all(|(name, value)| {
                record.data["metadata"].get(name).is_some_and(|found| contains(found, value))
            })
    }

    /// The order of two records.
    fn compare(&self, one: &Record, other: &Record) -> std::cmp::Ordering {
        let order = match self.sort {
            SortBy::Created => one.created.cmp(&other.created),
            SortBy::Updated => one.updated.cmp(&other.updated),
            SortBy::Id => std::cmp::Ordering::Equal,
            SortBy::Status => one.status.cmp(&other.status),
        };
        let order = order.then_with(|| one.id.cmp(&other.id));
        if self.descending { order.reverse() } else { order }
    }
}

/// Whether a JSON value contains another one: an object its fields, a list its items, as `@>` of PostgreSQL.
///
/// ```
/// use agentgraph_server::records::contains;
/// use serde_json::json;
///
/// assert!(contains(&json!({ "a": { "b": 1, "c": [1, 2] } }), &json!({ "a": { "c": [2] } })));
/// assert!(!contains(&json!({ "a": 1 }), &json!({ "a": "1" })));
/// ```
pub fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(fields), Value::Object(parts)) => {
            parts.iter().all(|(name, part)| fields.get(name).is_some_and(|field| contains(field, part)))
        }
        (Value::Array(items), Value::Array(parts)) => {
            parts.iter().all(|part| items.iter().any(|item| contains(item, part)))
        }
        _ => value == part,
    }
}

/// An entry of a log: an event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its number: they grow, and no two of a log are alike.
    pub seq: u64,
    /// Its text.
    pub text: String,
}

/// A store of records. [`conformance::check`] tests one.
#[async_trait::async_trait]
pub trait Records: Send + Sync + 'static {
    /// Adds the records whose version is 0 and replaces the others, if the store has them in the version that
    /// they name, and counts their versions up: all of them, or none. `false` if the id of a new record is
    /// taken, or a record to be replaced has another version or is missing; then nothing changes.
    async fn put(&self, records: Vec<Record>) -> Result<bool, RecordError>;

    /// Reads a record.
    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError>;

    /// Removes a record. `false` if it is not there.
    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError>;

    /// A page of records.
    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError>;

    /// How many records a query selects, without its page.
    async fn count(&self, query: &Query) -> Result<usize, RecordError>;

    /// Adds entries to a log. Entries whose numbers it has are left as they are.
    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError>;

    /// Reads the entries of a log after a number, in order, at most so many.
    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError>;

    /// The largest number of a log.
    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError>;

    /// Removes the entries of a log before a number.
    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError>;

    /// Removes a log.
    async fn forget(&self, log: &str) -> Result<(), RecordError>;

    /// What several servers on the store need; `None` for a store of one server.
    fn shared(&self) -> Option<&dyn SharedRecords> {
        None
    }
}
