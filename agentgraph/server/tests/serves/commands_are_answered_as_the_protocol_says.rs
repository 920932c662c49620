//! Commands and requests for events: what is refused, with which status and code, and what is not served.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::Served;

#[tokio::test]
async fn what_is_no_command_is_a_bad_request() {
    let server = Served::new().await;
    let path = format!("/threads/{}/commands", uuid::Uuid::now_v7());
    let hostile = [
        json!([]),
        json!(1),
        json!(null),
        json!({}),
        json!({ "id": 1 }),
        json!({ "method": "run.start" }),
        json!({ "id": "1", "method": "run.start" }),
        json!({ "id": 1.5, "method": "run.start" }),
        json!({ "id": 1, "method": ["run.start"] }),
        json!({ "id": u64::MAX, "method": "run.start" }),
    ];
    for body in hostile {
        let (status, answer) = server.send(Method::POST, &path, Some(&body)).await;
        assert_eq!(
            (status, &answer["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_argument")),
            "{body}"
        );
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in ["", "{", "\u{0}", &deep] {
        let response = server.request(Method::POST, &path).body(text.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert!(response.json::<Value>().await.unwrap()["detail"].is_string());
    }
}

#[tokio::test]
async fn a_command_that_fails_says_why_by_a_code() {
    let server = Served::new().await;
    let new = uuid::Uuid::now_v7().to_string();
    let cases = [
        ("run.start", json!(null), "invalid_argument"),
        ("run.start", json!([]), "invalid_argument"),
        ("run.start", json!({ "assistant_id": 5 }), "invalid_argument"),
        ("run.start", json!({ "assistant_id": "none", "input": {} }), "unknown_error"),
        ("run.start", json!({ "assistant_id": "steps", "input": { "text": 5 } }), "unknown_error"),
        ("run.start", json!({ "assistant_id": "steps", "config": 5 }), "unknown_error"),
        ("run.start", json!({ "assistant_id": "steps", "multitask_strategy": "x" }), "unknown_error"),
        ("input.respond", json!({}), "invalid_argument"),
        ("input.respond", json!({ "interrupt_id": 5 }), "invalid_argument"),
        ("input.respond", json!({ "responses": [] }), "invalid_argument"),
        ("input.respond", json!({ "responses": [{}] }), "invalid_argument"),
        ("input.respond", json!({ "interrupt_id": "x", "response": 1 }), "no_such_run"),
        ("agent.getTree", json!({}), "no_such_run"),
        ("state.get", json!({ "namespace": [] }), "unknown_command"),
        ("subscription.subscribe", json!({ "channels": ["values"] }), "not_supported"),
        ("\u{0}", json!({}), "unknown_command"),
    ];
    for (method, params, code) in cases {
        let answer = server.command(&new, method, params.clone()).await;
        assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!(code)), "{method} {params}");
        assert_eq!((&answer["id"], answer["message"].is_string()), (&json!(1), true));
    }
    let (status, _) = server.send(Method::GET, &format!("/threads/{new}"), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "a command that fails makes no thread");
    let answer =
        server.command("no-uuid", "run.start", json!({ "assistant_id": "steps", "input": {} })).await;
    assert_eq!(answer["type"], "error");
}

#[tokio::test]
async fn a_busy_thread_refuses_a_run_that_does_not_wait() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let run = server.start(&thread, "steps", json!({ "wait_ms": 3_600_000 })).await;
    let params = json!({ "assistant_id": "steps", "input": {}, "multitask_strategy": "reject" });
    let answer = server.command(&thread, "run.start", params).await;
    assert_eq!(answer["error"], "unknown_error");
    assert!(answer["message"].as_str().unwrap().starts_with("409"), "{answer}");
    let tree = server.command(&thread, "agent.getTree", json!({})).await;
    let expected = json!({ "namespace": [], "status": "running", "graph_name": "steps" });
    assert_eq!(tree["result"]["tree"], expected);
    server.send(Method::POST, &format!("/threads/{thread}/runs/{run}/cancel?wait=true"), None).await;
    let tree = server.command(&thread, "agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "interrupted");
}

#[tokio::test]
async fn a_request_for_events_names_channels_that_there_are() {
    let server = Served::new().await;
    let path = format!("/threads/{}/stream/events", uuid::Uuid::now_v7());
    let hostile = [
        json!([]),
        json!("values"),
        json!({}),
        json!({ "channels": [] }),
        json!({ "channels": "values" }),
        json!({ "channels": ["debug"] }),
        json!({ "channels": [5] }),
        json!({ "channels": ["custom:"] }),
        json!({ "channels": ["values"], "namespaces": "x" }),
        json!({ "channels": ["values"], "namespaces": ["x"] }),
        json!({ "channels": ["values"], "depth": -1 }),
        json!({ "channels": ["values"], "since": "x" }),
        json!({ "channels": ["values"], "since": -1 }),
    ];
    for body in hostile {
        let (status, answer) = server.send(Method::POST, &path, Some(&body)).await;
        assert_eq!((status, answer["detail"].is_string()), (StatusCode::BAD_REQUEST, true), "{body}");
    }
    let channels = json!({ "channels": ["values"] });
    let (status, _) = server.send(Method::POST, "/threads/no-uuid/stream/events", Some(&channels)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let body = json!({ "channels": ["values", "custom:progress"], "since": u64::MAX, "depth": u64::MAX });
    let response = server.request(Method::POST, &path).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200, "an event that is far away is waited for");
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
}

#[tokio::test]
async fn keys_protect_commands_and_events() {
    let server = agentgraph_server::Server::new().in_memory().bearer_keys(["secret"]);
    let server = Served::of(crate::common::all_graphs(server)).await;
    for path in ["commands", "stream/events"] {
        let path = format!("/threads/{}/{path}", uuid::Uuid::now_v7());
        let (status, _) = server.send(Method::POST, &path, Some(&json!({ "channels": ["values"] }))).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
}
