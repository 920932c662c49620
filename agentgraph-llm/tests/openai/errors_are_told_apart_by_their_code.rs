//! Errors of OpenAI by their code, and what the headers of an answer say.

use std::time::Duration;

use agentgraph_llm::openai::{OpenAiChatModel, Profile};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Quota, RateLimits};
use serde_json::json;

use crate::server::{Reply, Server, Waits};
use crate::talk::{KEY, chat_model, hear, sse_done};

fn refusal(status: u16, code: &str) -> Reply {
    let body =
        json!({"error": {"message": format!("said so of {KEY}"), "type": code, "param": null, "code": code}});
    Reply::json(status, "x-request-id: req_7\r\n", &body.to_string())
}

#[tokio::test]
async fn an_account_without_credit_is_asked_once_and_a_rate_limit_again() {
    for (code, expected, requests) in
        [("insufficient_quota", Code::Billing, 1), ("rate_limit_exceeded", Code::RateLimited, 3)]
    {
        let server = Server::start([refusal(429, code), refusal(429, code), refusal(429, code)]).await;
        let builder = OpenAiChatModel::builder().api_key(KEY).model("m").base_url(&server.url);
        let model = builder.clock(Waits::default()).build().unwrap();
        let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
        assert_eq!(error.code(), expected);
        assert_eq!(server.requests().len(), requests, "{code}");
        assert_eq!(error.request_id(), Some("req_7"));
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn the_headers_give_the_request_and_the_limits() {
    let headers = "x-request-id: req_7\r\nx-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: 59\r\n\
        x-ratelimit-reset-requests: 1s\r\nx-ratelimit-limit-tokens: 150000\r\nx-ratelimit-remaining-tokens: 149984\r\n\
        x-ratelimit-reset-tokens: 6m0s\r\n";
    let stream =
        sse_done(&[json!({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]})]);
    let (model, server) = chat_model(Profile::openai(), Reply::stream_with(headers, stream)).await;
    let response = hear(&model).await.response();
    assert_eq!(response.request_id.as_deref(), Some("req_7"));
    let requests = Quota::new(Some(60), Some(59), Some(Duration::from_secs(1)));
    let tokens = Quota::new(Some(150_000), Some(149_984), Some(Duration::from_secs(360)));
    assert_eq!(response.limits, Some(RateLimits::new(Some(requests), Some(tokens))));
    let request = &server.requests()[0];
    assert!(request.head.starts_with("post /v1/chat/completions "), "{}", request.head);
    assert!(request.head.contains(&format!("authorization: bearer {KEY}")), "{}", request.head);
}

#[tokio::test]
async fn a_local_server_needs_no_key() {
    let stream =
        sse_done(&[json!({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]})]);
    let server = Server::start([Reply::stream(stream)]).await;
    let builder = OpenAiChatModel::builder().profile(Profile::ollama()).model("m").base_url(&server.url);
    let response = builder.build().unwrap().chat(ChatRequest::user("hi")).await.unwrap();
    assert_eq!(response.message.origin.as_ref().unwrap().provider, "ollama");
    assert!(!server.requests()[0].head.contains("authorization"));
    let error = OpenAiChatModel::builder().model("m").build().unwrap_err();
    assert_eq!(error.code(), Code::Config);
}
