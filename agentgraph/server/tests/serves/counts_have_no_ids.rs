//! `/metrics` counts runs, streams and requests under labels that are few.

use agentgraph_server::{Caller, Server};
use reqwest::Method;
use serde_json::json;

use crate::common::{ALL_CHANNELS, Served, all_graphs};

/// The value of a line that starts so.
fn value(text: &str, start: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok())
}

async fn metrics(server: &Served) -> String {
    let answer = server.request(Method::GET, "/metrics").send().await.unwrap();
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    answer.text().await.unwrap()
}

#[tokio::test]
async fn runs_and_streams_are_counted_by_state_graph_and_end() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs");
    let long = json!({ "assistant_id": "steps", "input": { "wait_ms": 600_000 } });
    let mut stream = server.follow(&thread, json!({ "channels": ALL_CHANNELS })).await;
    let first = server.post(&path, &long).await["run_id"].as_str().unwrap().to_owned();
    stream.until(|event| event.name == "tasks").await;
    let second = server.post(&path, &long).await["run_id"].as_str().unwrap().to_owned();
    let text = metrics(&server).await;
    assert_eq!(value(&text, r#"agentgraph_runs{state="running"}"#), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"agentgraph_runs{state="waiting"}"#), Some(1.0), "{text}");
    assert_eq!(value(&text, "agentgraph_open_streams"), Some(1.0), "{text}");
    // The one that waits ends after the one before it.
    server.post(&format!("{path}/{second}/cancel"), &json!({})).await;
    server.post(&format!("{path}/{first}/cancel?wait=true"), &json!({})).await;
    server.get(&format!("{path}/{second}/join")).await;
    server.post("/runs/wait", &json!({ "assistant_id": "steps", "input": { "fails": "ValueError" } })).await;
    server.post("/runs/wait", &json!({ "assistant_id": "ask", "input": {} })).await;
    let text = metrics(&server).await;
    assert_eq!(value(&text, r#"agentgraph_runs{state="running"}"#), Some(0.0), "{text}");
    let ended = "agentgraph_run_duration_seconds_count";
    for (labels, count) in [
        (r#"{graph="steps",status="interrupted"}"#, 2.0),
        (r#"{graph="steps",status="error"}"#, 1.0),
        (r#"{graph="ask",status="success"}"#, 1.0),
    ] {
        assert_eq!(value(&text, &format!("{ended}{labels}")), Some(count), "{labels} in {text}");
    }
    // The run that was cancelled while it waited has not begun.
    assert_eq!(value(&text, r#"agentgraph_run_wait_seconds_count{graph="steps"}"#), Some(2.0), "{text}");
    let begun =
        r#"agentgraph_request_duration_seconds_count{method="POST",route="/threads/{id}/runs",status="200"}"#;
    assert_eq!(value(&text, begun), Some(2.0), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn labels_hold_no_ids_and_no_words_of_clients() {
    let server = Server::new().in_memory().bearer_keys(["root"]).caller_key("a", Caller::named("ada"));
    let server = Served::of(all_graphs(server)).await;
    let (root, ada) = (server.with_key("root"), server.with_key("a"));
    let thread = ada.thread().await;
    let body = json!({ "assistant_id": "steps", "input": {}, "metadata": { "a": "hostile" } });
    ada.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    ada.send(Method::GET, "/hostile", None).await;
    ada.send(Method::GET, "/threads/hostile?hostile=1", None).await;
    ada.send(Method::from_bytes(b"HOSTILE").unwrap(), "/threads", None).await;
    let failing = json!({ "assistant_id": "steps", "input": { "fails": "HostileError" } });
    ada.post("/runs/wait", &failing).await;
    let text = metrics(&root).await;
    for word in [&thread, "hostile", "HOSTILE", "HostileError", "ada"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    // They are of all callers together.
    assert_eq!(ada.send(Method::GET, "/metrics", None).await.0, 403);
}
