//! Timeouts, against a server that falls silent. The tests do not measure time: a call that does not end
//! hangs the test. Where an event must come before a timeout, the test tries longer timeouts until it
//! does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use agentgraph_llm::AnthropicModelBuilder;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use support::{Reply, START, Server, delta, stream_bytes};

const SHORT: Duration = Duration::from_millis(60);

#[tokio::test]
async fn a_call_without_a_response_times_out_and_is_retried() {
    let server = Server::start((0..3).map(|_| Reply::SayAndHang(Vec::new()))).await;
    let (builder, waits) = server.model();
    let model = builder.timeout(SHORT).build().unwrap();
    let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
    assert!(error.is_timeout() && error.is_retryable(), "{error}");
    assert!(error.message().contains("60ms") && error.message().contains("timeout("), "{error}");
    assert_eq!(waits.millis(), [500, 1000]);
}

#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"content\":".to_vec();
    let server = Server::start([Reply::SayAndHang(half)]).await;
    let model = server.model().0.timeout(SHORT).max_retries(0).build().unwrap();
    assert!(model.chat(ChatRequest::user("hi")).await.unwrap_err().is_timeout());
}

/// Returns a stream after its first piece of text, and its server, which sends nothing more.
async fn begin_stream(
    settings: impl Fn(AnthropicModelBuilder, Duration) -> AnthropicModelBuilder,
) -> (ChatStream, Server) {
    let mut short = SHORT;
    loop {
        let server =
            Server::start([Reply::SayAndHang(stream_bytes(&format!("{START}{}", delta("Once "))))]).await;
        let model = settings(server.model().0.max_retries(0), short).build().unwrap();
        if let Ok(mut stream) = model.stream(ChatRequest::user("hi")).await {
            assert!(matches!(stream.next().await, Some(Ok(ChatEvent::TextDelta { .. }))));
            return (stream, server);
        }
        short *= 2;
    }
}

#[tokio::test]
async fn a_silent_stream_times_out_after_its_events() {
    let idle = begin_stream(|builder, short| builder.idle_timeout(short)).await;
    let total = begin_stream(|builder, short| builder.timeout(short)).await;
    for ((mut stream, server), named) in [(idle, "idle_timeout("), (total, " `timeout(")] {
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(error.is_timeout() && error.message().contains(named), "{error}");
        assert!(stream.next().await.is_none());
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_stream_that_is_silent_from_the_start_is_retried() {
    let server =
        Server::start([Reply::SayAndHang(stream_bytes(START)), Reply::stream(&support::events("done"))])
            .await;
    let model = server.model().0.idle_timeout(SHORT).build().unwrap();
    let response = model.stream(ChatRequest::user("hi")).await.unwrap().into_response().await.unwrap();
    assert_eq!((response.message.text().as_str(), server.requests().len()), ("done", 2));
}

#[tokio::test]
async fn a_dropped_stream_closes_its_connection() {
    let begun = stream_bytes(&format!("{START}{}", delta("Once ")));
    let server = Server::start([Reply::SayAndHang(begun), Reply::answer("next")]).await;
    let model = server.model().0.build().unwrap();
    let mut stream = model.stream(ChatRequest::user("hi")).await.unwrap();
    assert!(stream.next().await.is_some());
    drop(stream);
    assert_eq!(model.chat(ChatRequest::user("hi")).await.unwrap().message.text(), "next");
}
