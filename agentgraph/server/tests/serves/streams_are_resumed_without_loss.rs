//! Streams that break off and go on: by the id of the last event, from the start, by other readers.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::common::{Event, Served, events_of, names};

async fn joined(server: &Served, path: &str, last: Option<&str>) -> Vec<Event> {
    let mut request = server.request(Method::GET, path);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    events_of(&response.text().await.unwrap())
}

#[tokio::test]
async fn a_stream_goes_on_after_any_of_its_events() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({
        "assistant_id": "steps", "input": { "text": "a" }, "stream_mode": ["values", "updates"],
        "stream_resumable": true,
    });
    let events = server.stream(&format!("/threads/{thread}/runs/stream"), &body).await;
    let ids: Vec<u64> = events.iter().map(|event| event.id.as_ref().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "no id repeats: {ids:?}");
    let run = events[0].data["run_id"].as_str().unwrap();
    let path = format!("/threads/{thread}/runs/{run}/stream");
    assert_eq!(joined(&server, &path, Some("-1")).await, events);
    for (at, event) in events.iter().enumerate() {
        assert_eq!(joined(&server, &path, event.id.as_deref()).await, events[at + 1..], "after {at}");
    }
    let only = joined(&server, &format!("{path}?stream_mode=updates"), None).await;
    assert_eq!(names(&only), ["metadata", "updates", "updates", "end"]);
}

#[tokio::test]
async fn a_run_in_the_background_is_joined_from_its_start() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    let run = server.post(&format!("/threads/{thread}/runs"), &body).await;
    let path = format!("/threads/{thread}/runs/{}/stream", run["run_id"].as_str().unwrap());
    let events = joined(&server, &path, None).await;
    assert_eq!(names(&events), ["metadata", "values", "values", "values", "end"]);
}

#[tokio::test]
async fn a_thread_is_followed_over_several_runs() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let mut followed =
        server.request(Method::GET, &format!("/threads/{thread}/stream")).send().await.unwrap();
    let mut last = String::new();
    for run in 0..2 {
        let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
        server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
        let mut read = String::new();
        while !read.contains("event: end") {
            read += &String::from_utf8_lossy(&followed.chunk().await.unwrap().unwrap());
        }
        let events = events_of(&read);
        assert_eq!(names(&events), ["metadata", "values", "values", "values", "end"], "run {run}");
        let id = events[4].id.clone().unwrap();
        assert_ne!(id, last, "ids of two runs differ");
        last = id;
    }
}

/// Reads a thread, after an event or from now on, until so many runs have ended.
async fn until_ended(mut followed: Response, runs: usize) -> Vec<Event> {
    let mut read = String::new();
    while read.matches("event: end\r\n").count() < runs || !read.ends_with("\r\n\r\n") {
        let chunk = tokio::time::timeout(Duration::from_secs(60), followed.chunk()).await;
        read += &String::from_utf8_lossy(&chunk.expect("more runs come").unwrap().unwrap());
    }
    events_of(&read)
}

#[tokio::test]
async fn a_reader_of_a_thread_that_is_behind_gets_each_run_once() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let (runs, path) = (format!("/threads/{thread}/runs"), format!("/threads/{thread}/stream"));
    let body = |wait_ms| {
        json!({
            "assistant_id": "steps", "input": { "wait_ms": wait_ms }, "multitask_strategy": "enqueue",
            "stream_resumable": true, "stream_mode": "tasks",
        })
    };
    let mut ids = vec![server.post(&runs, &body(3_600_000)).await["run_id"].clone()];
    let followed = server.request(Method::GET, &path).send().await.unwrap();
    // More than a reader is told of one by one, and more than are kept in memory when they have ended.
    for _ in 0..140 {
        ids.push(server.post(&runs, &body(0)).await["run_id"].clone());
    }
    let run = |id: &Value| id.as_str().unwrap().to_owned();
    server.post(&format!("{runs}/{}/cancel", run(&ids[0])), &json!({})).await;
    server.get(&format!("{runs}/{}/join", run(&ids[140]))).await;
    ids.push(server.post(&runs, &body(0)).await["run_id"].clone());
    let begun = |events: &[Event]| -> Vec<Value> {
        let begun = events.iter().filter(|event| event.name == "metadata");
        begun.map(|event| event.data["run_id"].clone()).collect()
    };
    let events = until_ended(followed, 142).await;
    assert_eq!(begun(&events), ids);
    // One that comes back has what it missed.
    let third = events.iter().position(|event| event.data["run_id"] == ids[3]).unwrap();
    let back = server.request(Method::GET, &path).header("last-event-id", events[third].id.as_ref().unwrap());
    let missed = until_ended(back.send().await.unwrap(), 142 - 3).await;
    assert_eq!(missed, events[third + 1..]);
}

#[tokio::test]
async fn a_stream_that_waits_sends_heartbeats() {
    let server = agentgraph_server::Server::new().in_memory().heartbeat(Duration::from_millis(5));
    let server = Served::of(crate::common::all_graphs(server)).await;
    let body =
        json!({ "assistant_id": "steps", "input": { "wait_ms": 3_600_000 }, "on_disconnect": "cancel" });
    let mut stream = server.request(Method::POST, "/runs/stream").json(&body).send().await.unwrap();
    let mut read = String::new();
    while !read.contains(": heartbeat\r\n\r\n") {
        read += &String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap());
    }
}
