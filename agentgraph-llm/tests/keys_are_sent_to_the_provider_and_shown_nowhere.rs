//! The headers and the body of a call, and the places where the key must not appear.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentgraph_llm::MessageIds;
use agentgraph_llm::prelude::*;
use support::{KEY, Reply, Server, events};

#[tokio::test]
async fn a_call_is_one_post_with_key_version_and_body() {
    let server = Server::start([Reply::answer("Hello"), Reply::stream(&events("Hello"))]).await;
    let model = server
        .model()
        .0
        .beta("a-1")
        .beta("b-2")
        .temperature(0.5)
        .max_tokens(9)
        .message_ids(MessageIds::sequence("m"))
        .build()
        .unwrap();

    let response = model.chat(ChatRequest::user("hi")).await.unwrap();
    assert_eq!((response.message.text().as_str(), response.id.as_str()), ("Hello", "msg_1"));
    assert_eq!((response.usage, response.model.as_str()), (Usage::new(3, 2), "claude-test"));
    let streamed = model.stream(ChatRequest::user("hi").with_temperature(0.0)).await.unwrap();
    let streamed = streamed.into_response().await.unwrap();
    assert_eq!(
        (streamed.message.text(), streamed.usage, streamed.stop),
        ("Hello".into(), response.usage, response.stop)
    );
    let ids = (response.message.id.as_str(), streamed.message.id.as_str());
    assert_eq!(ids, ("m-1", "m-2"), "ids are our own, because a server may repeat its ids");

    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let head = &requests[0].head;
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for line in ["anthropic-version: 2023-06-01", "anthropic-beta: a-1,b-2", "content-type: application/json"]
    {
        assert!(head.lines().any(|got| got == line), "{line} in {head}");
    }
    assert!(head.contains(&format!("x-api-key: {KEY}")));
    let turns = r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#;
    assert_eq!(
        requests[0].body,
        format!(r#"{{"model":"claude-test","max_tokens":9,{turns},"temperature":0.5}}"#)
    );
    assert_eq!(
        requests[1].body,
        format!(r#"{{"model":"claude-test","max_tokens":9,{turns},"temperature":0.0,"stream":true}}"#)
    );
}

/// Returns an error response that repeats the key in every possible place.
fn echo_key(status: u16) -> Reply {
    let body = serde_json::json!({"type": "error", "error": {"type": "authentication_error",
        "message": format!("invalid x-api-key {KEY}")}, "request_id": format!("req_{KEY}")});
    Reply::json(status, &format!("request-id: req_{KEY}\r\n"), &body.to_string())
}

#[tokio::test]
async fn the_key_is_in_no_error_and_no_debug_text() {
    let event = format!(
        "data: {{\"type\":\"error\",\"error\":{{\"type\":\"authentication_error\",\"message\":\"{KEY}\"}}}}\n\n"
    );
    let server = Server::start([echo_key(401), echo_key(500), Reply::stream(&event)]).await;
    let builder = server.model().0.max_retries(0);
    assert!(!format!("{builder:?}").contains("hunter2"));
    let model = builder.build().unwrap();
    assert!(!format!("{model:?} {model:#?}").contains("hunter2"));
    let mut errors = Vec::new();
    for _ in 0..2 {
        errors.push(model.chat(ChatRequest::user("hi")).await.unwrap_err());
    }
    errors.push(model.stream(ChatRequest::user("hi")).await.unwrap_err());
    for error in errors {
        let shown = format!("{error} {error:?} {error:#?}");
        assert!(!shown.contains("hunter2") && shown.contains("[redacted]"), "{shown}");
    }
}
