//! A store of records that fails as a run ends: the run is driven again, and all of its readers get its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentgraph_server::records::{Kind, LogEntry, MemoryRecords, Query, Record, Records};
use agentgraph_server::{RecordError, Server};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

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
    /// Every new run takes one before it is stored.
    permits: Arc<Semaphore>,
    inner: MemoryRecords,
}

impl Failing {
    fn new(at: At, left: &Arc<AtomicUsize>) -> Self {
        let permits = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        Failing { at, left: Arc::clone(left), permits, inner: MemoryRecords::default() }
    }

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
    async fn put(&self, records: Vec<Record>) -> Result<bool, RecordError> {
        let has = |status: &str| records.iter().any(|one| one.kind == Kind::Run && one.status == status);
        self.check(self.at == At::Status && has("success"))?;
        self.check(self.at == At::Cancel && has("interrupted"))?;
        if records.iter().any(|one| one.kind == Kind::Run && one.version == 0) {
            self.permits.acquire().await.unwrap().forget();
        }
        self.inner.put(records).await
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
        let records = Failing::new(at, &left);
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
    let records = Failing::new(At::Cancel, &left);
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

#[tokio::test]
async fn a_run_whose_client_leaves_while_it_is_stored_is_driven() {
    let permits = Arc::new(Semaphore::new(0));
    let records = Failing { permits: Arc::clone(&permits), ..Failing::new(At::Status, &Arc::default()) };
    let server = Served::of(Server::new().records(records).graph("steps", steps())).await;
    let thread = server.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let body = |text: &str| json!({ "assistant_id": "steps", "input": { "text": text } });
    let stream = server.request(Method::POST, &format!("{runs}/stream")).json(&body("a"));
    let client = tokio::spawn(stream.send());
    let until_open = async |streams: usize| {
        let wanted = format!("agentgraph_open_streams {streams}");
        let shown = async || server.request(Method::GET, "/metrics").send().await.unwrap().text().await;
        while !shown().await.unwrap().contains(&wanted) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    until_open(1).await;
    client.abort();
    until_open(0).await;
    // One for each try: the run after it may see the thread change.
    permits.add_permits(10);
    let wait = format!("{runs}/wait");
    let next = body("b");
    let after: Value =
        tokio::time::timeout(Duration::from_secs(60), server.post(&wait, &next)).await.unwrap();
    assert_eq!(after["seen"], json!(["first a", "second", "first b", "second"]));
}
