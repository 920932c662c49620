//! Messages on the wire: every form that clients send, and none lost on the way back and forth.

use serde_json::{Value, json};

use crate::common::Served;

/// Sends messages to the chat, and returns what the state then has of them.
async fn kept(server: &Served, messages: Value) -> Vec<Value> {
    let thread = server.thread().await;
    let body =
        json!({ "assistant_id": "chat", "input": { "messages": messages }, "interrupt_before": ["reply"] });
    let values = server.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    values["messages"].as_array().unwrap_or_else(|| panic!("{values}")).clone()
}

#[tokio::test]
async fn a_message_may_be_written_in_many_ways() {
    let server = Served::new().await;
    let ways = [
        json!([{ "type": "human", "content": "hi" }]),
        json!([{ "role": "user", "content": "hi" }]),
        json!([["user", "hi"]]),
        json!(["hi"]),
        json!("hi"),
        json!({ "type": "human", "content": "hi" }),
        json!([{ "type": "human", "content": [{ "type": "text", "text": "hi" }] }]),
        json!([{
            "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"],
            "kwargs": { "content": "hi" },
        }]),
    ];
    for way in ways {
        let messages = kept(&server, way.clone()).await;
        assert_eq!(messages.len(), 1, "{way}");
        assert_eq!((&messages[0]["type"], &messages[0]["content"]), (&json!("human"), &json!("hi")), "{way}");
        assert!(messages[0]["id"].is_string());
    }
}

#[tokio::test]
async fn what_a_client_sends_is_what_it_reads_again() {
    let server = Served::new().await;
    let sent = json!([
        { "type": "system", "id": "s", "content": "be kind" },
        { "type": "human", "id": "h", "content": [
            { "type": "text", "text": "what is this?" },
            { "type": "image", "source_type": "base64", "mime_type": "image/png", "data": "AAAA" },
            { "type": "image", "source_type": "url", "url": "https://pictures.example/1" },
        ] },
        { "type": "ai", "id": "a", "content": "let me see", "tool_calls": [
            { "type": "tool_call", "id": "c1", "name": "look", "args": { "at": 1 } },
            { "type": "tool_call", "id": "c2", "name": "look", "args": {} },
        ] },
        { "type": "tool", "id": "t~1", "tool_call_id": "c1", "content": "a cat", "status": "success" },
        { "type": "tool", "id": "t~2", "tool_call_id": "c2", "content": "nothing", "status": "error" },
        { "type": "ai", "id": "b", "content": [
            { "type": "thinking", "thinking": "hm", "signature": "s" },
            { "type": "text", "text": "a cat" },
        ] },
    ]);
    let kept = kept(&server, sent.clone()).await;
    assert_eq!(kept.len(), 6);
    for (sent, kept) in sent.as_array().unwrap().iter().zip(&kept) {
        for (field, value) in sent.as_object().unwrap() {
            assert_eq!(kept[field], *value, "{field} of {sent}");
        }
    }
}

#[tokio::test]
async fn a_message_is_replaced_and_removed_by_its_id() {
    let server = Served::new().await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let body = |messages: Value| json!({ "assistant_id": "chat", "input": { "messages": messages } });
    server.post(&wait, &body(json!([{ "type": "human", "id": "h", "content": "hello" }]))).await;
    let state = server.get(&format!("/threads/{thread}/state")).await;
    let answer = state["values"]["messages"][1].clone();
    let changed = json!([
        { "type": "human", "id": "h", "content": "good day" },
        { "type": "remove", "id": answer["id"] },
    ]);
    server.post(&format!("/threads/{thread}/state"), &json!({ "values": { "messages": changed } })).await;
    let state = server.get(&format!("/threads/{thread}/state")).await;
    let messages = state["values"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["content"], "good day");
}
