//! Streams that break off and go on: by the id of the last event, from the start, by other readers.

use reqwest::Method;
use serde_json::json;

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

#[tokio::test]
async fn a_stream_that_waits_sends_heartbeats() {
    use std::time::Duration;
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
