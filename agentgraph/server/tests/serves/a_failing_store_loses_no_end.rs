//! A store of records that fails as a run ends: the run is driven again, and all of its readers get its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph_server::records::{Kind, LogEntry, MemoryRecords, Query, Record, Records};
use agentgraph_server::{RecordError, Server};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::common::{ALL_CHANNELS, Event, Served, names, steps};

/// Where the store fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// The status of the run.
    Status,
    /// The status of a run that is cancelled.
    Cancel,
    /// The last event of the thread's log.
    Log,
    /// The values of the graph in that log.
    Values,
}

/// Fails so many times at one place.
struct Failing {
    at: At,
    left: Arc<AtomicUsize>,
    inner: MemoryRecords,
}

impl Failing {
    fn check(&self, is_here: bool) -> Result<(), RecordError> {
        let count = |left: usize| left.checked_sub(1);
        match is_here && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok() {
            true => Err(RecordError::new("the disk is full")),
            false => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Records for Failing {
    async fn insert(&self, record: Record) -> Result<bool, RecordError> {
        self.inner.insert(record).await
    }
    async fn replace(&self, record: Record) -> Result<bool, RecordError> {
        self.check(self.at == At::Status && record.kind == Kind::Run && record.status == "success")?;
        self.check(self.at == At::Cancel && record.kind == Kind::Run && record.status == "interrupted")?;
        self.inner.replace(record).await
    }
    async fn get(&self, kind: Kind, id: &str) -> Result<Option<Record>, RecordError> {
        self.inner.get(kind, id).await
    }
    async fn remove(&self, kind: Kind, id: &str) -> Result<bool, RecordError> {
        self.inner.remove(kind, id).await
    }
    async fn page(&self, query: &Query) -> Result<Vec<Record>, RecordError> {
        self.inner.page(query).await
    }
    async fn count(&self, query: &Query) -> Result<usize, RecordError> {
        self.inner.count(query).await
    }
    async fn append(&self, log: &str, entries: Vec<LogEntry>) -> Result<(), RecordError> {
        let has = |what: &str| entries.iter().any(|entry| entry.text.contains(what));
        self.check(self.at == At::Log && has("lc||completed"))?;
        self.check(self.at == At::Values && has("first a"))?;
        self.inner.append(log, entries).await
    }
    async fn read(&self, log: &str, after: Option<u64>, limit: usize) -> Result<Vec<LogEntry>, RecordError> {
        self.inner.read(log, after, limit).await
    }
    async fn last(&self, log: &str) -> Result<Option<u64>, RecordError> {
        self.inner.last(log).await
    }
    async fn trim(&self, log: &str, before: u64) -> Result<(), RecordError> {
        self.inner.trim(log, before).await
    }
    async fn forget(&self, log: &str) -> Result<(), RecordError> {
        self.inner.forget(log).await
    }
}

#[tokio::test]
async fn every_reader_gets_the_end_of_a_run_once() {
    for at in [At::Status, At::Log, At::Values] {
        // Values that could not be stored are told as the last ones when the run is driven again.
        let left = Arc::new(AtomicUsize::new(if at == At::Values { 1 } else { 3 }));
        let records = Failing { at, left: Arc::clone(&left), inner: MemoryRecords::default() };
        let server = Served::of(Server::new().records(records).graph("steps", steps())).await;
        let thread = server.thread().await;
        let mut log = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
        let body = json!({ "assistant_id": "steps", "input": { "text": "a" }, "stream_mode": "values" });
        let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
        let ends = names(&events).iter().filter(|name| **name == "end").count();
        assert_eq!((left.load(Ordering::SeqCst), ends), (0, 1), "{at:?}: {events:?}");
        let [.., values, end] = &*events else { panic!("{events:?}") };
        assert_eq!((&*values.name, &*end.name), ("values", "end"), "{at:?}");
        assert_eq!(values.data["seen"], json!(["first a", "second"]), "{at:?}");
        let is_end = |event: &Event| event.data["params"]["data"]["event"] == "completed";
        let told = log.until(is_end).await;
        let again = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await.until(is_end).await;
        assert_eq!(again, told, "{at:?}: the end is the first of its kind");
        let state = server.get(&format!("/threads/{thread}/state")).await;
        assert_eq!(state["values"]["seen"], json!(["first a", "second"]), "{at:?}: no node runs again");
        let runs = server.get(&format!("/threads/{thread}/runs")).await;
        assert_eq!(runs[0]["status"], "success", "{at:?}");
        assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "idle", "{at:?}");
    }
}

#[tokio::test]
async fn a_run_whose_cancel_could_not_be_stored_ends_when_its_turn_comes() {
    let left = Arc::new(AtomicUsize::new(1));
    let records = Failing { at: At::Cancel, left: Arc::clone(&left), inner: MemoryRecords::default() };
    let server = Served::of(Server::new().records(records).graph("steps", steps())).await;
    let thread = server.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let body = |text: &str, wait_ms: u64| json!({ "assistant_id": "steps", "input": { "text": text, "wait_ms": wait_ms } });
    let slow = server.post(&runs, &body("slow", 3_600_000)).await;
    let waiting = server.post(&runs, &body("waits", 0)).await;
    let place = |run: &serde_json::Value| format!("{runs}/{}", run["run_id"].as_str().unwrap());
    let cancel = format!("{}/cancel", place(&waiting));
    let (status, _) = server.send(Method::POST, &cancel, Some(&json!({}))).await;
    assert_eq!((status, left.load(Ordering::SeqCst)), (StatusCode::INTERNAL_SERVER_ERROR, 0));
    assert_eq!(server.get(&place(&waiting)).await["status"], "pending");
    server.post(&format!("{}/cancel?wait=true", place(&slow)), &json!({})).await;
    let join = format!("{}/join", place(&waiting));
    tokio::time::timeout(Duration::from_secs(60), server.get(&join)).await.expect("it ends");
    assert_eq!(server.get(&place(&waiting)).await["status"], "interrupted");
    assert_eq!(server.get(&format!("/threads/{thread}/state")).await["values"]["seen"], json!([]));
}
