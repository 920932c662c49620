//! [`MemoryRecords`]: records that end with their process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Kind, LogEntry, Query, Record, Records};
use crate::error::RecordError;

/// Records in memory.
///
/// ```
/// use agentgraph_server::records::{Kind, MemoryRecords, Records};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_server::RecordError> {
/// assert_eq!(MemoryRecords::default().get(Kind::Thread, "t-1").await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryRecords(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<(Kind, String), Record>,
    logs: BTreeMap<String, BTreeMap<u64, String>>,
}

impl MemoryRecords {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Records for MemoryRecords {
    async fn put(&self, records: Vec<Record>) -> Result<bool, RecordError> {
        let mut kept = self.kept();
        let keyed = records.into_iter().map(|record| ((record.kind, record.id.clone()), record));
        let keyed: Vec<_> = keyed.collect();
        let version = |key| kept.records.get(key).map_or(0, |found| found.version);
        if keyed.iter().any(|(key, record)| version(key) != record.version) {
            return Ok(false);
        }
        for (key, mut record) in keyed {
            record.version += 1;
            kept.records.insert(key, record);
        }
        Ok(true)
    }

    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError> {
        Ok(self.kept().records.get(&(kind, id.to_owned())).cloned())
    }

    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError> {
        Ok(self.kept().records.remove(&(kind, id.to_owned())).is_some())
    }

    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        let kept = self.kept();
        let mut found: Vec<&Record> = kept.records.values().filter(|record| query.selects(record)).collect();
        found.sort_by(|one, other| query.compare(one, other));
        let is_after =
            |record: &&Record| query.after.as_ref().is_none_or(|after| query.compare(record, after).is_gt());
        let page = found.into_iter().filter(is_after).skip(query.offset).take(query.limit);
        Ok(page.cloned().collect())
    }

    async fn count(&self, query: &Query) -> Result<usize, RecordError> {
        Ok(self.kept().records.values().filter(|record| query.selects(record)).count())
    }

    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError> {
        let mut kept = self.kept();
        let log = kept.logs.entry(log.to_owned()).or_default();
        for entry in entries {
            log.entry(entry.seq).or_insert(entry.text);
        }
        Ok(())
    }

    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError> {
        let kept = self.kept();
        let Some(log) = kept.logs.get(log) else { return Ok(Vec::new()) };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = log.range((from, Bound::Unbounded)).take(limit);
        Ok(entries.map(|(seq, text)| LogEntry { seq: *seq, text: text.clone() }).collect())
    }

    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError> {
        Ok(self.kept().logs.get(log).and_then(|log| log.keys().next_back().copied()))
    }

    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError> {
        if let Some(log) = self.kept().logs.get_mut(log) {
            *log = log.split_off(&before);
        }
        Ok(())
    }

    async fn forget(&self, log: &str) -> Result<(), RecordError> {
        self.kept().logs.remove(log);
        Ok(())
    }
}
