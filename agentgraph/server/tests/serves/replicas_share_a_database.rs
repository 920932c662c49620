//! Several servers on one database: each answers for all of them, and the runs of one that ends go on.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use agentgraph::PostgresSaver;
use agentgraph::checkpoint::{PostgresSaverBuilder, Services, SystemServices};
use agentgraph::prelude::*;
use agentgraph_server::Server;
use agentgraph_server::records::{PostgresRecords, conformance};
use futures_util::future::join_all;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::a_killed_server_leaves_no_ghost_runs::{Count, CountUpdate, Folder, counting, process};
use crate::common::{ALL_CHANNELS, Event, Served, Steps, StepsUpdate, events_of, names, steps};
use crate::postgres_server::PostgresServer;

fn builder(url: &str, schema: &str) -> PostgresSaverBuilder {
    PostgresSaver::builder(url).schema(schema).connections(6)
}

async fn saver(url: &str, schema: &str) -> PostgresSaver {
    builder(url, schema).connect().await.unwrap()
}

/// More than a socket and the buffers before it hold.
async fn flood(ctx: Ctx) -> StepsUpdate {
    for _ in 0..64 {
        ctx.emit("x".repeat(128 * 1024)).await;
    }
    Steps::update().text("flooded".to_owned())
}

fn flooding() -> CompiledGraph<Steps> {
    StateGraph::new().node("flood", flood).edge(START, "flood").compile().unwrap()
}

pub(crate) async fn replica(url: &str, schema: &str) -> Server {
    replica_on(saver(url, schema).await)
}

fn replica_on(saver: PostgresSaver) -> Server {
    let server = Server::new().postgres(saver).lease(Duration::from_secs(4));
    server.graph("count", counting()).graph("steps", steps()).graph("flood", flooding())
}

/// Two servers on tables of their own.
async fn pair() -> (Served, Served) {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    (Served::of(replica(&url, &schema).await).await, Served::of(replica(&url, &schema).await).await)
}

/// Polls until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let polls = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let is_in_time = tokio::time::timeout(Duration::from_secs(120), polls).await.is_ok();
    assert!(is_in_time, "it does not come: {what}");
}

fn counts(folder: &Folder, to: u64, waits_at: u64) -> Value {
    json!({
        "assistant_id": "count", "stream_mode": ["updates"], "stream_resumable": true,
        "input": { "to": to, "waits_at": waits_at, "file": folder.0.join("go"), "given": [1] },
    })
}

fn go(folder: &Folder) {
    std::fs::write(folder.0.join("go"), "").unwrap();
}

/// Which steps each thread has begun, in order.
fn begun(folder: &Folder) -> BTreeMap<String, Vec<u64>> {
    let mut begun: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in std::fs::read_to_string(folder.0.join("go.steps")).unwrap_or_default().lines() {
        let (thread, step) = line.split_once(' ').unwrap();
        begun.entry(thread.to_owned()).or_default().push(step.parse().unwrap());
    }
    begun
}

async fn started(served: &Served, body: &Value) -> (String, String) {
    let thread = served.thread().await;
    let run = served.post(&format!("/threads/{thread}/runs"), body).await;
    (thread, run["run_id"].as_str().unwrap().to_owned())
}

async fn joined(served: &Served, thread: &str, run: &str) -> Response {
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let response = served.request(Method::GET, &path).header("last-event-id", "-1").send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

fn steps_of(events: &[Event]) -> Vec<u64> {
    let updates = events.iter().filter(|event| event.name == "updates");
    updates.map(|event| event.data["count"]["steps"][0].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn records_in_postgres_keep_their_contract() {
    let server = PostgresServer::get();
    let saver = saver(&server.url(), &server.fresh_schema()).await;
    let one = PostgresRecords::beside(&saver).await.unwrap();
    assert_eq!(conformance::check(&one).await.unwrap(), Vec::<String>::new());
    let other = PostgresRecords::beside(&saver).await.unwrap();
    assert_eq!(conformance::check_shared(&one, &other).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn replicas_may_start_at_once() {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    let replicas = join_all((0..4).map(async |_| Served::of(replica(&url, &schema).await).await)).await;
    let graphs = replicas[3].post("/assistants/search", &json!({})).await;
    assert_eq!(graphs.as_array().unwrap().len(), 3, "each graph has one assistant: {graphs}");
    for served in &replicas {
        let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
        assert_eq!(served.post("/runs/wait", &body).await["seen"], json!(["first a", "second"]));
    }
}

#[tokio::test]
async fn a_run_is_read_on_any_replica() {
    let folder = Folder::new("any-replica");
    let (one, other) = pair().await;
    let (thread, run) = started(&one, &counts(&folder, 4, 3)).await;
    let place = format!("/threads/{thread}/runs/{run}");
    assert_eq!(other.get(&format!("/threads/{thread}")).await["status"], "busy");
    let here = joined(&one, &thread, &run).await;
    let there = joined(&other, &thread, &run).await;
    let (status, _) = other
        .send(
            Method::POST,
            &format!("/threads/{thread}/runs"),
            Some(&json!({
                "assistant_id": "count", "input": {}, "multitask_strategy": "reject",
            })),
        )
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (status, _) = other.send(Method::DELETE, &place, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "it is under way");
    let join = format!("{place}/join");
    let waits = other.get(&join);
    go(&folder);
    assert_eq!(waits.await["steps"], json!([1, 2, 3, 4]));
    let here = events_of(&here.text().await.unwrap());
    let there = events_of(&there.text().await.unwrap());
    assert_eq!(names(&there), ["metadata", "updates", "updates", "updates", "updates", "end"]);
    assert_eq!(here, there);
    let again = events_of(&joined(&other, &thread, &run).await.text().await.unwrap());
    assert_eq!(again, here, "and after its end");
    for served in [&one, &other] {
        assert_eq!(served.get(&place).await["status"], "success");
        assert_eq!(served.get(&format!("/threads/{thread}")).await["status"], "idle");
    }
}

const HOUR: u64 = 3_600_000;

/// A run that waits in its first node until it is stopped.
async fn waiting(served: &Served) -> (String, String) {
    let body = json!({ "assistant_id": "steps", "input": { "text": "slow", "wait_ms": HOUR }, "stream_mode": "custom" });
    let (thread, run) = started(served, &body).await;
    let mut events = joined(served, &thread, &run).await;
    let mut read = String::new();
    while !read.contains("event: custom") {
        read += &String::from_utf8_lossy(&events.chunk().await.unwrap().unwrap());
    }
    (thread, run)
}

#[tokio::test]
async fn strategies_and_cancels_reach_runs_of_other_replicas() {
    let (one, other) = pair().await;
    let quick = |strategy: &str| json!({ "assistant_id": "steps", "input": { "text": "quick", "wait_ms": 0 }, "multitask_strategy": strategy });
    for strategy in ["interrupt", "rollback"] {
        let (thread, run) = waiting(&one).await;
        let after = other.post(&format!("/threads/{thread}/runs/wait"), &quick(strategy)).await;
        assert_eq!(after["seen"], json!(["first quick", "second"]), "{strategy}");
        let (status, old) = other.send(Method::GET, &format!("/threads/{thread}/runs/{run}"), None).await;
        match strategy {
            "interrupt" => assert_eq!(old["status"], "interrupted"),
            _ => assert_eq!(status, StatusCode::NOT_FOUND, "the run is gone: {old}"),
        }
        until("the thread is idle", async || {
            one.get(&format!("/threads/{thread}")).await["status"] == "idle"
        })
        .await;
    }
    let (thread, run) = waiting(&one).await;
    let runs = format!("/threads/{thread}/runs");
    let next = other.post(&runs, &quick("enqueue")).await;
    assert_eq!(next["status"], "pending");
    let cancelled = other.post(&format!("{runs}/{run}/cancel?wait=true"), &json!({})).await;
    assert_eq!(cancelled, json!({}));
    let joined = other.get(&format!("{runs}/{}/join", next["run_id"].as_str().unwrap())).await;
    assert_eq!(joined["text"], "quick");
    let (status, _) = other.send(Method::POST, &format!("{runs}/{run}/cancel"), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing is left to cancel");
    let (thread, _) = waiting(&one).await;
    let (status, _) = other.send(Method::DELETE, &format!("/threads/{thread}"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "a thread is removed with its run");
}

#[tokio::test]
async fn a_run_ends_with_its_reader_on_another_replica() {
    let (one, other) = pair().await;
    let (thread, run) = waiting(&one).await;
    let path = format!("/threads/{thread}/runs/{run}/stream?cancel_on_disconnect=true");
    let reader = other.request(Method::GET, &path).send().await.unwrap();
    drop(reader);
    let place = format!("/threads/{thread}/runs/{run}");
    until("the run ends", async || one.get(&place).await["status"] == "interrupted").await;
}

#[tokio::test]
async fn the_log_of_a_thread_is_one_on_all_replicas() {
    let (one, other) = pair().await;
    let thread = uuid::Uuid::now_v7().to_string();
    let mut follower = other.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let is_end = |event: &Event| event.data["params"]["data"]["event"] == "completed";
    let mut followed = Vec::new();
    for served in [&one, &other, &one] {
        served.start(&thread, "steps", json!({ "text": "a" })).await;
        followed.extend(follower.until(is_end).await);
        let idle = async || served.get(&format!("/threads/{thread}")).await["status"] == "idle";
        until("the run has ended", idle).await;
    }
    let numbers = followed.iter().map(|event| event.data["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=followed.len() as u64), "without gaps: {followed:?}");
    let times = followed.iter().map(|event| event.data["params"]["timestamp"].as_i64().unwrap());
    assert!(times.is_sorted(), "one clock");
    let mut whole = one.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let mut replayed = Vec::new();
    for _ in 0..3 {
        replayed.extend(whole.until(is_end).await);
    }
    assert_eq!(replayed, followed);
}

/// A machine whose clock is an hour ahead.
struct Ahead;

#[async_trait::async_trait]
impl Services for Ahead {
    fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        SystemServices.random()
    }
}

#[tokio::test]
async fn no_event_is_older_than_the_state_before_it() {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    let ahead = replica(&url, &schema).await.graph("clocks", steps().services(Ahead));
    let (ahead, other) = (Served::of(ahead).await, replica(&url, &schema).await.graph("clocks", steps()));
    let other = Served::of(other).await;
    let body = json!({ "assistant_id": "clocks", "input": { "text": "a" } });
    let thread = ahead.thread().await;
    ahead.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    let state = other.get(&format!("/threads/{thread}/state")).await;
    let made: jiff::Timestamp = state["created_at"].as_str().unwrap().parse().unwrap();
    let mut follower = other.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    other.start(&thread, "clocks", json!({ "text": "b" })).await;
    let is_end = |event: &Event| event.data["params"]["data"]["event"] == "completed";
    for event in follower.until(is_end).await {
        let time = event.data["params"]["timestamp"].as_i64().unwrap();
        assert!(time >= made.as_millisecond(), "clients would leave it out: {event:?}");
    }
}

#[tokio::test]
async fn a_thread_that_gets_its_first_reader_elsewhere_is_told_from_then_on() {
    let folder = Folder::new("late-reader");
    let (one, other) = pair().await;
    let (thread, run) = started(&one, &counts(&folder, 4, 3)).await;
    until("two steps", async || begun(&folder).get(&thread).is_some_and(|steps| steps.contains(&3))).await;
    let mut follower = other.follow(&thread, json!({ "channels": ["lifecycle", "updates"] })).await;
    let mut stream = other.request(Method::GET, &format!("/threads/{thread}/stream")).send().await.unwrap();
    go(&folder);
    follower.until(|event| event.data["params"]["data"]["event"] == "completed").await;
    let mut read = String::new();
    while !read.contains("event: end") {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
    assert_eq!(
        steps_of(&events_of(&read)),
        [1, 2, 3, 4],
        "the stream of the thread has the run from its start"
    );
    let next = one.post(&format!("/threads/{thread}/runs"), &counts(&folder, 4, 0)).await;
    let next = next["run_id"].as_str().unwrap();
    assert_ne!(next, run);
    let mut read = String::new();
    while !read.contains(next) {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn without_notifications_replicas_look_by_themselves() {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    let behind_a_pooler = async || {
        let saver = builder(&url, &schema).pooled().connect().await.unwrap();
        Served::of(replica_on(saver)).await
    };
    let (one, other) = (behind_a_pooler().await, behind_a_pooler().await);
    let folder = Folder::new("pooled");
    let thread = uuid::Uuid::now_v7().to_string();
    let mut follower = other.follow(&thread, json!({ "channels": ["lifecycle", "updates"] })).await;
    one.post("/threads", &json!({ "thread_id": thread })).await;
    let run = one.post(&format!("/threads/{thread}/runs"), &counts(&folder, 4, 3)).await;
    let run = run["run_id"].as_str().unwrap();
    let reader = joined(&other, &thread, run).await;
    go(&folder);
    assert_eq!(steps_of(&events_of(&reader.text().await.unwrap())), [1, 2, 3, 4]);
    follower.until(|event| event.data["params"]["data"]["event"] == "completed").await;
    let (thread, run) = waiting(&one).await;
    let place = format!("/threads/{thread}/runs/{run}");
    assert_eq!(other.post(&format!("{place}/cancel?wait=true"), &json!({})).await, json!({}));
    assert_eq!(one.get(&place).await["status"], "interrupted");
}

/// 200 runs under way on three servers, one of which is killed.
#[tokio::test]
async fn no_run_of_a_killed_replica_is_lost() {
    const RUNS: usize = 200;
    let server = PostgresServer::get();
    let folder = Folder::new("killed-replica");
    let place = format!("{} {}", server.url(), server.fresh_schema());
    let mut processes = join_all((0..3).map(|_| process(&place))).await;
    let served: Vec<Served> = processes.iter().map(|(_, url)| Served::at(url)).collect();
    let mut runs = Vec::new();
    for number in 0..RUNS {
        // Some wait at one of their steps, the others end soon.
        let waits_at = [1, 2, 3, 9][number % 4];
        let (thread, run) = started(&served[number % 3], &counts(&folder, 4, waits_at)).await;
        // Read on a server that is not killed, of runs on all of them.
        let mut reader = None;
        if number < 24 {
            reader = Some((joined(&served[1 + number % 2], &thread, &run).await, String::new()));
        }
        runs.push((thread, run, waits_at, reader));
    }
    let waits = |runs: &BTreeMap<String, Vec<u64>>, thread: &str, at: u64| {
        runs.get(thread).is_some_and(|steps| steps.contains(&at.min(4)))
    };
    until("all wait", async || {
        let begun = begun(&folder);
        runs.iter().all(|(thread, _, at, _)| waits(&begun, thread, *at))
    })
    .await;
    // An event is stored after its checkpoint: a kill in between takes it.
    for (_, _, waits_at, reader) in &mut runs {
        let Some((reader, read)) = reader else { continue };
        let ended = usize::try_from(*waits_at).unwrap().min(5) - 1;
        while read.matches("event: updates").count() < ended {
            *read += &String::from_utf8_lossy(&reader.chunk().await.unwrap().unwrap());
        }
    }
    processes[0].0.kill().await.unwrap();
    go(&folder);
    for (number, (thread, run, waits_at, reader)) in runs.into_iter().enumerate() {
        let (one, other) = (&served[1 + number % 2], &served[2 - number % 2]);
        let values = one.get(&format!("/threads/{thread}/runs/{run}/join")).await;
        assert_eq!(values["steps"], json!([1, 2, 3, 4]), "run {number}");
        assert_eq!(values["given"], json!([1]), "run {number} takes its input once");
        assert_eq!(other.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "success");
        let mut steps = begun(&folder).remove(&thread).unwrap();
        if waits_at <= 4 && number % 3 == 0 {
            let at = steps.iter().position(|step| *step == waits_at).unwrap();
            steps.remove(at);
            assert!(steps.contains(&waits_at), "the task under way is begun again: {number} {steps:?}");
        }
        steps.dedup();
        assert_eq!(steps, [1, 2, 3, 4], "run {number}: no finished task is repeated");
        if let Some((reader, read)) = reader {
            let events = events_of(&(read + &reader.text().await.unwrap()));
            assert_eq!(events.last().unwrap().name, "end", "run {number}");
            assert_eq!(steps_of(&events), [1, 2, 3, 4], "run {number}: {events:?}");
        }
        assert_eq!(one.get(&format!("/threads/{thread}")).await["status"], "idle");
    }
}

fn signal(process: &tokio::process::Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_raw(process.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(id, signal).unwrap();
}

#[tokio::test]
async fn a_suspended_replica_changes_nothing_when_it_wakes_up() {
    const RUNS: usize = 6;
    let server = PostgresServer::get();
    let folder = Folder::new("suspended-replica");
    let place = format!("{} {}", server.url(), server.fresh_schema());
    let mut processes = join_all((0..2).map(|_| process(&place))).await;
    let served: Vec<Served> = processes.iter().map(|(_, url)| Served::at(url)).collect();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let (thread, run) = started(&served[0], &counts(&folder, 4, 3)).await;
        let readers = [joined(&served[0], &thread, &run).await, joined(&served[1], &thread, &run).await];
        runs.push((thread, run, readers));
    }
    let wait = async || begun(&folder).values().filter(|steps| steps.contains(&3)).count() == RUNS;
    until("all wait", wait).await;
    signal(&processes[0].0, rustix::process::Signal::STOP);
    let id = processes[0].0.id().unwrap().to_string();
    until("it is suspended", async || {
        let state = Command::new("ps").args(["-o", "stat=", "-p", &id]).output().await.unwrap();
        state.stdout.starts_with(b"T")
    })
    .await;
    go(&folder);
    for (thread, run, _) in &runs {
        let values = served[1].get(&format!("/threads/{thread}/runs/{run}/join")).await;
        assert_eq!(values["steps"], json!([1, 2, 3, 4]));
    }
    signal(&processes[0].0, rustix::process::Signal::CONT);
    for (thread, run, readers) in runs {
        for reader in readers {
            let events = events_of(&reader.text().await.unwrap());
            assert_eq!(events.last().unwrap().name, "end");
            assert_eq!(steps_of(&events), [1, 2, 3, 4], "{events:?}");
        }
        for served in &served {
            assert_eq!(served.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "success");
            assert_eq!(
                served.get(&format!("/threads/{thread}/state")).await["values"]["steps"],
                json!([1, 2, 3, 4])
            );
        }
    }
    // It is a replica again.
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    assert_eq!(served[0].post("/runs/wait", &body).await["seen"], json!(["first a", "second"]));
    for (process, _) in &mut processes {
        process.kill().await.unwrap();
    }
}

/// A newer version of the graph: one more node.
fn newer() -> CompiledGraph<Count> {
    async fn check() -> CountUpdate {
        Count::update().steps([100])
    }
    async fn count(count: Snapshot<Count>) -> CountUpdate {
        Count::update().steps([count.steps.len() as u64 + 1])
    }
    let next = |count: &Count| if (count.steps.len() as u64) < count.to { "count" } else { "check" };
    let graph = StateGraph::new().node("count", count).node("check", check).edge(START, "count");
    graph.edge("check", END).branch("count", next, ["count", "check"]).compile().unwrap()
}

#[tokio::test]
async fn runs_go_on_with_the_next_version_of_their_graph() {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    let folder = Folder::new("deploy");
    // Only its end in good order gives its runs away in time.
    let old = Served::of(replica(&url, &schema).await.lease(Duration::from_secs(3600))).await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(started(&old, &counts(&folder, 4, 3)).await);
    }
    until("all wait", async || begun(&folder).values().filter(|steps| steps.contains(&3)).count() == 8).await;
    let only_other = Server::new().postgres(saver(&url, &schema).await).lease(Duration::from_secs(4));
    let only_other = Served::of(only_other.graph("steps", steps())).await;
    let new = Server::new().postgres(saver(&url, &schema).await).lease(Duration::from_secs(4));
    let new = Served::of(new.graph("count", newer())).await;
    let (thread, run) = &runs[0];
    let reader = joined(&new, thread, run).await;
    let drained = old.drain();
    go(&folder);
    drained.await;
    for (thread, run) in &runs {
        let values = new.get(&format!("/threads/{thread}/runs/{run}/join")).await;
        assert_eq!(values["steps"], json!([1, 2, 3, 4, 100]), "the rest runs in the new version");
        assert_eq!(only_other.get(&format!("/threads/{thread}")).await["status"], "idle");
    }
    let events = events_of(&reader.text().await.unwrap());
    assert_eq!(names(&events).last(), Some(&"end"));
}

#[tokio::test]
async fn runs_go_on_after_a_restart_of_the_database() {
    let server = PostgresServer::get();
    let database = server.fresh_database().await;
    let url = server.url_of(&database);
    let folder = Folder::new("restart");
    let one = Served::of(replica(&url, "replicas").await).await;
    let other = Served::of(replica(&url, "replicas").await).await;
    let mut runs = Vec::new();
    for number in 0..10 {
        runs.push(started(if number % 2 == 0 { &one } else { &other }, &counts(&folder, 4, 3)).await);
    }
    let readers = [joined(&one, &runs[1].0, &runs[1].1).await, joined(&other, &runs[0].0, &runs[0].1).await];
    until("all wait", async || begun(&folder).values().filter(|steps| steps.contains(&3)).count() == 10)
        .await;
    // As clients see a restart: all connections end, and for a time none is accepted.
    let ends = format!(
        "ALTER DATABASE {database} ALLOW_CONNECTIONS false; \
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    );
    server.sql(&ends).await;
    go(&folder);
    until("the store fails", async || {
        one.send(Method::GET, &format!("/threads/{}", runs[0].0), None).await.0.is_server_error()
    })
    .await;
    server.sql(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS true")).await;
    for (thread, run) in &runs {
        let path = format!("/threads/{thread}/runs/{run}");
        until("the run ends", async || one.send(Method::GET, &path, None).await.1["status"] == "success")
            .await;
        assert_eq!(other.get(&format!("{path}/join")).await["steps"], json!([1, 2, 3, 4]));
    }
    for reader in readers {
        let events = events_of(&reader.text().await.unwrap());
        assert_eq!(events.last().unwrap().name, "end");
        assert_eq!(events.first().unwrap().name, "metadata");
    }
}

#[tokio::test]
async fn runs_wait_while_the_disk_of_the_database_is_full() {
    let server = PostgresServer::get();
    let (url, schema) = (server.url(), server.fresh_schema());
    let folder = Folder::new("full-disk");
    let served = Served::of(replica(&url, &schema).await).await;
    let (thread, run) = started(&served, &counts(&folder, 4, 3)).await;
    let reader = joined(&served, &thread, &run).await;
    until("it waits", async || begun(&folder).get(&thread).is_some_and(|steps| steps.contains(&3))).await;
    // Checkpoints cannot be stored, while all else can. A sequence counts what fails.
    let full = format!(
        "SET search_path TO \"{schema}\"; CREATE SEQUENCE failures; \
         CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         PERFORM nextval('\"{schema}\".failures'); RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON checkpoint FOR EACH ROW EXECUTE FUNCTION fails()"
    );
    server.sql(&full).await;
    go(&folder);
    let failures = format!("SELECT last_value FROM \"{schema}\".failures");
    until("it has failed again", async || server.sql(&failures).await.parse::<u64>().unwrap() > 2).await;
    assert_eq!(served.get(&format!("/threads/{thread}/runs/{run}")).await["status"], "running");
    server.sql(&format!("DROP TRIGGER full_disk ON \"{schema}\".checkpoint")).await;
    let values = served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    assert_eq!(values["steps"], json!([1, 2, 3, 4]));
    assert_eq!(values["given"], json!([1]));
    let events = events_of(&reader.text().await.unwrap());
    // What a task did is told when it ends, and again when its superstep is repeated.
    let mut steps = steps_of(&events);
    steps.dedup();
    assert_eq!(steps, [1, 2, 3, 4]);
    assert_eq!(names(&events).last(), Some(&"end"));
}

#[tokio::test]
async fn a_reader_that_never_reads_holds_up_no_one() {
    let (one, other) = pair().await;
    let body = json!({ "assistant_id": "flood", "input": {}, "stream_mode": "custom" });
    let thread = one.thread().await;
    let mut sockets = Vec::new();
    for served in [&one, &other] {
        let address = served.url.strip_prefix("http://").unwrap();
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let ask = format!("GET /threads/{thread}/stream HTTP/1.1\r\nhost: {address}\r\n\r\n");
        socket.write_all(ask.as_bytes()).await.unwrap();
        socket.readable().await.unwrap();
        sockets.push(socket);
    }
    let run = one.post(&format!("/threads/{thread}/runs"), &body).await;
    let run = run["run_id"].as_str().unwrap();
    let events = events_of(&joined(&other, &thread, run).await.text().await.unwrap());
    assert_eq!(events.iter().filter(|event| event.name == "custom").count(), 64);
    assert_eq!(one.get(&format!("/threads/{thread}/runs/{run}/join")).await["text"], "flooded");
    drop(sockets);
}
