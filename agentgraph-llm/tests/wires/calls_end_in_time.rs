//! Timeouts, against a server that falls silent. The tests do not measure time: a call that does not end
//! hangs the test. Where an event must come before a timeout, the test tries longer timeouts until it does.

use std::sync::Arc;
use std::time::Duration;

use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use tokio::sync::Notify;

use super::wire::{Settings, WIRES, Wire, text};
use crate::server::{Reply, Server, Step};

const SHORT: Duration = Duration::from_millis(60);

/// The beginning of a stream, with its first piece of text.
fn begun(wire: &dyn Wire) -> String {
    text(wire, "Once upon")[..=wire.hidden()].concat()
}

fn rest(wire: &dyn Wire) -> String {
    text(wire, "Once upon")[wire.hidden() + 1..].concat()
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_is_retried() {
    for wire in WIRES {
        let server = Server::start((0..3).map(|_| Reply::default().and_hang())).await;
        let settings = Settings { timeout: Some(SHORT), ..Settings::of(&server) };
        let error = wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
        assert!(error.is_timeout() && error.is_retryable(), "{}: {error}", wire.name());
        assert!(error.message().contains("60ms") && error.message().contains("timeout("), "{error}");
        assert_eq!(settings.waits.millis(), [500, 1000]);
    }
}

#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    for wire in WIRES {
        for status in ["200 OK", "500 Broken"] {
            let half = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"content\":"
            );
            let server = Server::start([Reply::say(half).and_hang()]).await;
            let settings = Settings { timeout: Some(SHORT), max_retries: 0, ..Settings::of(&server) };
            let error = wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
            assert!(error.is_timeout(), "{}: {error}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_half_open_stream_times_out_after_its_events() {
    for wire in WIRES {
        let (mut stream, server) = begin_half_open(*wire).await;
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(error.is_timeout() && error.message().contains("idle_timeout("), "{}: {error}", wire.name());
        assert!(stream.next().await.is_none());
        assert_eq!(server.requests().len(), 1);
    }
}

/// A stream after its first piece of text, and its server, which sends nothing more.
async fn begin_half_open(wire: &dyn Wire) -> (ChatStream, Server) {
    let mut short = SHORT;
    loop {
        let server = Server::start([Reply::stream(begun(wire)).and_hang()]).await;
        let settings = Settings { idle_timeout: Some(short), max_retries: 0, ..Settings::of(&server) };
        let model = wire.model(&settings).unwrap();
        if let Ok(mut stream) = model.stream(ChatRequest::user("hi")).await {
            assert!(matches!(stream.next().await, Some(Ok(ChatEvent::TextDelta { .. }))), "{}", wire.name());
            return (stream, server);
        }
        short *= 2;
    }
}

#[tokio::test]
async fn a_stream_that_is_silent_from_the_start_is_retried() {
    for wire in WIRES {
        let start = text(*wire, "done")[..wire.hidden()].concat();
        let done = Reply::stream(text(*wire, "done").concat());
        let server = Server::start([Reply::stream(start).and_hang(), done]).await;
        let settings = Settings { idle_timeout: Some(SHORT), ..Settings::of(&server) };
        let response = wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await.unwrap();
        assert_eq!(
            (response.message.text().as_str(), server.requests().len()),
            ("done", 2),
            "{}",
            wire.name()
        );
    }
}

#[tokio::test]
async fn a_stream_may_last_longer_than_the_timeout_of_the_call() {
    for wire in WIRES {
        let gate = Arc::new(Notify::new());
        let reply = Reply::stream(begun(*wire)).then(Step::Gate(gate.clone()));
        let server = Server::start([reply.then(Step::Send(rest(*wire).into()))]).await;
        let settings = Settings { timeout: Some(Duration::from_secs(900)), ..Settings::of(&server) };
        let mut stream = wire.model(&settings).unwrap().stream(ChatRequest::user("hi")).await.unwrap();
        assert!(stream.next().await.unwrap().is_ok());
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(901)).await;
        tokio::time::resume();
        gate.notify_one();
        let response = stream.into_response().await.unwrap();
        assert_eq!(response.message.text(), "Once upon", "{}", wire.name());
    }
}

#[tokio::test]
async fn a_ping_ends_the_silence() {
    for wire in WIRES {
        let ping = wire.ping().unwrap_or(": ping\n\n");
        let mut short = SHORT;
        loop {
            // The pings take twice as long as the stream may be silent.
            let pings = Step::Drip(ping.into(), 10, short / 5);
            let reply = Reply::stream(begun(*wire)).then(pings).then(Step::Send(rest(*wire).into()));
            let server = Server::start([reply]).await;
            let settings = Settings { idle_timeout: Some(short), max_retries: 0, ..Settings::of(&server) };
            match wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await {
                Ok(response) => break assert_eq!(response.message.text(), "Once upon", "{}", wire.name()),
                Err(error) => assert!(error.is_timeout() && short < 100 * SHORT, "{}: {error}", wire.name()),
            }
            short *= 2;
        }
    }
}

#[tokio::test]
async fn a_dropped_stream_closes_its_connection() {
    for wire in WIRES {
        let next = Reply::stream(text(*wire, "next").concat());
        let server = Server::start([Reply::stream(begun(*wire)).and_hang(), next]).await;
        let model = wire.model(&Settings::of(&server)).unwrap();
        let mut stream = model.stream(ChatRequest::user("hi")).await.unwrap();
        assert!(stream.next().await.is_some());
        drop(stream);
        assert_eq!(
            model.chat(ChatRequest::user("hi")).await.unwrap().message.text(),
            "next",
            "{}",
            wire.name()
        );
    }
}

#[tokio::test]
async fn a_timeout_of_the_users_own_client_is_named() {
    for wire in WIRES {
        let replies = [Reply::default().and_hang(), Reply::stream(begun(*wire)).and_hang()];
        let server = Server::start(replies).await;
        let client = agentgraph_llm::http_client_builder().timeout(SHORT).build().unwrap();
        let settings = Settings { client: Some(client), max_retries: 0, ..Settings::of(&server) };
        let model = wire.model(&settings).unwrap();
        for _ in 0..2 {
            let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
            assert!(
                error.is_timeout() && error.message().contains("http_client("),
                "{}: {error}",
                wire.name()
            );
        }
    }
}
