//! What a client gets that asks for something wrong.

use agentgraph_server::Server;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::{Served, all_graphs};

const UNKNOWN: &str = "0190a0a0-0000-7000-8000-00000000beef";

#[tokio::test]
async fn each_error_is_a_detail_with_its_status() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let id = |path: &str| path.replace("{thread}", &thread).replace("{unknown}", UNKNOWN);
    let run = |fields: Value| {
        let mut body = json!({ "assistant_id": "steps" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Some(body)
    };
    let cases = [
        (404, "GET", "/nothing", None),
        (405, "DELETE", "/threads", None),
        (404, "GET", "/threads/{unknown}", None),
        (422, "GET", "/threads/no-uuid", None),
        (422, "POST", "/threads", Some(json!({ "thread_id": "no-uuid" }))),
        (409, "POST", "/threads", Some(json!({ "thread_id": thread }))),
        (404, "GET", "/threads/{unknown}/state", None),
        (404, "GET", "/threads/{thread}/state/{unknown}", None),
        (422, "GET", "/assistants/steps", None),
        (404, "GET", "/assistants/{unknown}", None),
        (422, "POST", "/assistants", Some(json!({}))),
        (422, "POST", "/threads/{thread}/runs", Some(json!({ "assistant_id": "nothing" }))),
        (404, "POST", "/threads/{thread}/runs", Some(json!({ "assistant_id": uuid::Uuid::nil() }))),
        (422, "POST", "/threads/{thread}/runs", Some(json!({}))),
        (404, "POST", "/threads/{unknown}/runs/wait", run(json!({}))),
        (404, "GET", "/threads/{thread}/runs/{unknown}", None),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "input": { "seen": 7 } }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "input": { "unknown": 7 } }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "input": [] }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "stream_mode": "events" }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "multitask_strategy": "none" }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "checkpoint_id": "no-uuid" }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "after_seconds": -1 }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "command": { "goto": { "input": {} } } }))),
        (422, "POST", "/threads/{thread}/runs", run(json!({ "config": { "recursion_limit": 0 } }))),
        (422, "POST", "/threads/search", Some(json!({ "limit": 1_000_000 }))),
        (422, "POST", "/threads/search", Some(json!({ "extract": { "a": "status" } }))),
        (422, "POST", "/runs/batch", Some(json!([{ "assistant_id": "steps", "input": {} }, {}]))),
        (422, "POST", "/threads/search", Some(json!({ "status": "'; DROP TABLE" }))),
        (404, "POST", "/threads/{thread}/runs/{unknown}/cancel", None),
    ];
    for (status, method, path, body) in cases {
        let (found, answer) = server.send(method.parse().unwrap(), &id(path), body.as_ref()).await;
        assert_eq!(found.as_u16(), status, "{method} {path} {body:?}: {answer}");
        assert!(answer["detail"].is_string(), "{method} {path}: {answer}");
    }
    assert_eq!(server.get(&id("/threads/{thread}/runs")).await, json!([]), "nothing of it has run");
    let lenient = server.post("/threads", &json!({ "thread_id": thread, "if_exists": "do_nothing" })).await;
    assert_eq!(lenient["thread_id"], json!(thread));
}

/// The reference answers both with status 500.
#[tokio::test]
async fn searches_and_histories_that_the_reference_fails_at_are_answered() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let found = server.post("/threads/search", &json!({ "values": { "text": "a" } })).await;
    assert_eq!(found, json!([]), "a thread without values has no such value");
    let body = json!({ "assistant_id": "steps", "input": { "text": "a" } });
    server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    let found = server.post("/threads/search", &json!({ "values": { "text": "a" } })).await;
    assert_eq!(found[0]["thread_id"], json!(thread));
    let head = server.get(&format!("/threads/{thread}/state")).await;
    let before = json!({ "before": head["checkpoint"] });
    let earlier = server.post(&format!("/threads/{thread}/history"), &before).await;
    assert_eq!(earlier.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn only_callers_with_a_key_are_let_in() {
    let server = Served::of(all_graphs(Server::new().in_memory().bearer_keys(["right"]))).await;
    let send = async |name: &str, value: &str| {
        server.request(Method::GET, "/info").header(name, value).send().await.unwrap().status()
    };
    assert_eq!(send("authorization", "Bearer right").await, StatusCode::OK);
    assert_eq!(send("x-api-key", "right").await, StatusCode::OK);
    for (name, value) in [("x-api-key", "wrong"), ("authorization", "right"), ("accept", "*/*")] {
        assert_eq!(send(name, value).await, StatusCode::UNAUTHORIZED, "{name}: {value}");
    }
    assert_eq!(server.get("/ok").await, json!({ "ok": true }), "a probe needs no key");
}

#[tokio::test]
async fn browsers_may_call_and_read_the_headers_they_need() {
    let server = Served::of(all_graphs(Server::new().in_memory().bearer_keys(["right"]))).await;
    let asked = server
        .request(Method::OPTIONS, "/threads")
        .header("origin", "https://studio.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-api-key,content-type")
        .header("access-control-request-private-network", "true");
    let allowed = asked.send().await.unwrap();
    assert_eq!(allowed.status(), StatusCode::OK, "a preflight has no key");
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://studio.example");
    assert_eq!(allowed.headers()["access-control-allow-headers"], "x-api-key,content-type");
    assert_eq!(allowed.headers()["access-control-allow-private-network"], "true");
    let answer =
        server.request(Method::GET, "/ok").header("origin", "https://page.example").send().await.unwrap();
    let exposed = answer.headers()["access-control-expose-headers"].to_str().unwrap();
    assert_eq!(exposed, "content-location,location,retry-after,x-pagination-total,x-pagination-next");
}
