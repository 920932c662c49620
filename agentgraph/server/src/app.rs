//! [`App`]: the graphs, the records and the runs of a server, and records as clients see them.

mod assistants;
mod events;
mod owned;
mod states;
mod threads;

pub(crate) use assistants::{assistant_json, version_of};
pub(crate) use events::NewEvent;
pub(crate) use owned::{OWNER, owner_of};
pub(crate) use states::{checkpoint_inside, checkpoint_json, empty_state, interrupts_json};
pub(crate) use threads::{left_by_run, named_back, rename, seen_as, undone};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::Store;
use serde_json::{Map, Value};

use self::owned::OwnedRecords;
use crate::access::Caller;
use crate::error::{ApiError, RecordError};
use crate::graph::ServedGraph;
use crate::ids;
use crate::live::Live;
use crate::meters::Meters;
use crate::records::{Kind, Record, Records};

/// What happens at the start of a server with runs that a killed process has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnRestart {
    /// They go on from their last stored task.
    #[default]
    Continue,
    /// They are marked as failed; their threads can be continued by hand.
    Mark,
}

pub(crate) struct Settings {
    pub(crate) on_restart: OnRestart,
    pub(crate) heartbeat: Duration,
    pub(crate) max_body: usize,
    /// Runs that wait or are under way, of one caller.
    pub(crate) max_runs: usize,
    /// Requests that stay open, of one caller.
    pub(crate) max_streams: usize,
    /// How long a replica is alive without a sign of it.
    pub(crate) lease: Duration,
    /// By model: money for a million tokens in and out.
    pub(crate) prices: BTreeMap<String, [f64; 2]>,
    /// By graph: a file of findings, or a folder of them.
    pub(crate) findings: BTreeMap<String, PathBuf>,
}

/// The server as one caller sees it.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) graphs: Arc<BTreeMap<String, Arc<dyn ServedGraph>>>,
    /// Those of the caller.
    pub(crate) records: Arc<dyn Records>,
    all_records: Arc<dyn Records>,
    pub(crate) caller: Caller,
    /// What graphs and clients remember beyond threads.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) live: Arc<Live>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) settings: Arc<Settings>,
}

impl App {
    /// The server as an operator sees it, who sees everything.
    pub(crate) fn new(
        graphs: BTreeMap<String, Arc<dyn ServedGraph>>,
        records: Arc<dyn Records>,
        store: Arc<dyn Store>,
        settings: Settings,
    ) -> Self {
        App {
            graphs: Arc::new(graphs),
            all_records: Arc::clone(&records),
            records,
            caller: Caller::operator(),
            store,
            live: Arc::new(Live::new()),
            meters: Arc::new(Meters::new()),
            settings: Arc::new(settings),
        }
    }

    /// The server as a caller sees it.
    pub(crate) fn seen_by(self: &Arc<Self>, caller: &Caller) -> Arc<Self> {
        if self.caller == *caller {
            return Arc::clone(self);
        }
        let all = Arc::clone(&self.all_records);
        let records: Arc<dyn Records> = match caller.name() {
            None => Arc::clone(&all),
            Some(name) => Arc::new(OwnedRecords { all: Arc::clone(&all), owner: name.to_owned() }),
        };
        Arc::new(App { records, caller: caller.clone(), ..App::clone(self) })
    }

    /// The whole server, for what goes on after a request.
    pub(crate) fn whole(self: &Arc<Self>) -> Arc<Self> {
        self.seen_by(&Caller::operator())
    }

    /// Metadata of what the caller makes, with the owner that only an operator can choose.
    pub(crate) fn owned(&self, mut metadata: Map<String, Value>) -> Map<String, Value> {
        if let Some(name) = self.caller.name() {
            metadata.insert(OWNER.to_owned(), name.into());
        }
        metadata
    }

    /// Whether something belongs to the caller, or the caller is an operator.
    pub(crate) fn has(&self, owner: Option<&str>) -> bool {
        self.caller.name().is_none_or(|name| owner == Some(name))
    }

    /// A new record, stored.
    pub(crate) async fn insert(
        &self,
        (kind, id, parent): (Kind, &str, &str),
        status: &str,
        data: Value,
    ) -> Result<Option<Record>, RecordError> {
        let now = ids::now();
        let record = Record {
            kind,
            id: id.to_owned(),
            parent: parent.to_owned(),
            status: status.to_owned(),
            created: now,
            updated: now,
            version: 0,
            data,
        };
        let added = self.records.put(vec![record.clone()]).await?;
        Ok(added.then_some(Record { version: 1, ..record }))
    }

    /// Changes a record. Another change at the same time makes it begin again, with what that one has left.
    /// `None` if the record is not there.
    pub(crate) async fn change(
        &self,
        kind: Kind,
        id: &str,
        mut change: impl FnMut(&mut Record) + Send,
    ) -> Result<Option<Record>, RecordError> {
        let mut changed = None;
        let found = self.records.get(kind, id).await?;
        let noting = |record: &mut Record| {
            change(record);
            changed = Some(Record { version: record.version + 1, ..record.clone() });
        };
        let is_there = self.change_known(found.into_iter().collect(), noting).await?;
        Ok(changed.filter(|_| is_there))
    }

    /// Changes records that were read earlier, in one transaction. They are read again only if one of them
    /// has changed since; deleted ones are left out. `false` if all were deleted.
    pub(crate) async fn change_known(
        &self,
        mut records: Vec<Record>,
        mut change: impl FnMut(&mut Record) + Send,
    ) -> Result<bool, RecordError> {
        while !records.is_empty() {
            let now = ids::now();
            for record in &mut records {
                record.updated = now;
                change(record);
            }
            let known: Vec<_> = records.iter().map(|record| (record.kind, record.id.clone())).collect();
            if self.records.put(records).await? {
                return Ok(true);
            }
            records = Vec::new();
            for (kind, id) in known {
                records.extend(self.records.get(kind, &id).await?);
            }
        }
        Ok(false)
    }

    /// The graph of a thread: that of its metadata, which the first run writes.
    pub(crate) fn graph_of(&self, thread: &Record) -> Option<&Arc<dyn ServedGraph>> {
        self.graphs.get(thread.data["metadata"]["graph_id"].as_str()?)
    }

    pub(crate) async fn thread(&self, id: &str) -> Result<Record, ApiError> {
        let id = ids::parse_uuid("thread_id", id)?;
        let found = self.records.get(Kind::Thread, &id).await?;
        found.ok_or_else(|| ApiError::unknown("Thread", &id))
    }

    /// A run of a thread. The thread is empty for a run that was made without one.
    pub(crate) async fn run(&self, thread: &str, id: &str) -> Result<Record, ApiError> {
        let thread = ids::parse_uuid("thread_id", thread)?;
        let id = ids::parse_uuid("run_id", id)?;
        let found = self.records.get(Kind::Run, &id).await?.filter(|run| run.parent == thread);
        found.ok_or_else(|| ApiError::unknown("Run", &id))
    }
}

/// The fields of an object; none of a value that is none.
pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// An object of these fields. `json!` would copy each of them.
pub(crate) fn object_of<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect())
}

/// Adds the fields of one object to another.
pub(crate) fn merge(into: &mut Value, fields: &Map<String, Value>) {
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    if let Value::Object(into) = into {
        into.extend(fields.clone());
    }
}

/// The metadata of what a run reports and leaves.
pub(crate) fn about_run(run: &Record) -> Map<String, Value> {
    let mut about = object(&run.data["metadata"]);
    about.insert("run_id".to_owned(), run.id.clone().into());
    about.insert("thread_id".to_owned(), run.parent.clone().into());
    about.insert("run_attempt".to_owned(), 1.into());
    about
}

/// A run as clients see it.
pub(crate) fn run_json(run: &Record) -> Value {
    serde_json::json!({
        "run_id": run.id,
        "thread_id": run.parent,
        "assistant_id": run.data["assistant_id"],
        "created_at": ids::time(run.created),
        "updated_at": ids::time(run.updated),
        "status": run.status,
        "metadata": run.data["metadata"],
        "kwargs": run.data["kwargs"],
        "multitask_strategy": run.data["multitask_strategy"],
    })
}
