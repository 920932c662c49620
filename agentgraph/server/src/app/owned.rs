//! [`OwnedRecords`]: the records that one caller has. Every read, list and change of a request goes through
//! it, so no route can leave the check out. It does not look at logs, which are read by the ids of what is in
//! the records.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::error::RecordError;
use crate::records::{Kind, LogEntry, Query, Record, Records, SharedRecords};

/// The name in the metadata of a record that says whose it is.
pub(crate) const OWNER: &str = "owner";

/// The owner of a record.
pub(crate) fn owner_of(record: &Record) -> Option<&str> {
    record.data["metadata"][OWNER].as_str()
}

pub(super) struct OwnedRecords {
    pub(super) all: Arc<dyn Records>,
    pub(super) owner: String,
}

impl OwnedRecords {
    fn has(&self, record: &Record) -> bool {
        owner_of(record) == Some(&self.owner)
    }

    /// Assistants without an owner, such as those of the graphs, are there for everyone to use.
    fn sees(&self, record: &Record) -> bool {
        self.has(record) || (record.kind == Kind::Assistant && record.data["metadata"].get(OWNER).is_none())
    }

    /// The query among the records of the owner; `None` if it asks for those of others.
    fn narrowed(&self, query: &Query) -> Option<Query> {
        let owner = Value::from(&*self.owner);
        if query.metadata.get(OWNER).is_some_and(|asked| *asked != owner) {
            return None;
        }
        let mut metadata = query.metadata.clone();
        metadata.insert(OWNER.to_owned(), owner);
        Some(Query { metadata, ..query.clone() })
    }

    /// The assistants of a query. They are few, and "of the owner or of no one" is no query of a store.
    async fn assistants(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        let mut found = self.all.page(&Query { offset: 0, limit: usize::MAX, ..query.clone() }).await?;
        found.retain(|assistant| self.sees(assistant));
        Ok(found)
    }
}

#[async_trait]
impl Records for OwnedRecords {
    async fn put(&self, mut records: Vec<Record>) -> Result<bool, RecordError> {
        for record in &mut records {
            let is_new = record.version == 0;
            let found = if is_new { None } else { self.all.get(record.kind, &record.id).await? };
            match found {
                None if !is_new => return Ok(false),
                // Not `false`: the change would begin again, without an end.
                Some(found) if !self.has(&found) => {
                    return Err(RecordError::new("a caller cannot change a record that it does not own"));
                }
                _ => {}
            }
            let owner = Map::from_iter([(OWNER.to_owned(), Value::from(&*self.owner))]);
            super::merge(&mut record.data["metadata"], &owner);
        }
        self.all.put(records).await
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError> {
        Ok(self.all.get(kind, id).await?.filter(|found| self.sees(found)))
    }

    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError> {
        let found = self.all.get(kind, id).await?;
        Ok(found.is_some_and(|found| self.has(&found)) && self.all.remove(kind, id).await?)
    }

    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        if query.kind == Kind::Assistant {
            let found = self.assistants(query).await?;
            return Ok(found.into_iter().skip(query.offset).take(query.limit).collect());
        }
        match self.narrowed(query) {
            Some(query) => self.all.page(&query).await,
            None => Ok(Vec::new()),
        }
    }

    async fn count(&self, query: &Query) -> Result<usize, RecordError> {
        if query.kind == Kind::Assistant {
            return Ok(self.assistants(query).await?.len());
        }
        match self.narrowed(query) {
            Some(query) => self.all.count(&query).await,
            None => Ok(0),
        }
    }

    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError> {
        self.all.append(log, entries).await
    }

    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError> {
        self.all.read(log, after, limit).await
    }

    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError> {
        self.all.last(log).await
    }

    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError> {
        self.all.trim(log, before).await
    }

    async fn forget(&self, log: &str) -> Result<(), RecordError> {
        self.all.forget(log).await
    }

    /// Runs and threads are looked up before they are named there.
    fn shared(&self) -> Option<&dyn SharedRecords> {
        self.all.shared()
    }
}
