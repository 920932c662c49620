//! Retries: the failures that lead to one, the waits between them, and when a call gives up.

use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error, ModelName, Provider};
use futures_util::StreamExt;

use super::wire::{Failure, Settings, WIRES, Wire, text};
use crate::server::{Reply, Server};

fn fail(wire: &dyn Wire, status: u16, headers: &str, failure: Failure) -> Reply {
    let headers = format!("{}: req_7\r\n{headers}", wire.request_id());
    Reply::json(status, &headers, &wire.error_body(failure, "said so"))
}

/// Calls a server that replies with these failures and then with "done". Returns the result and the waits.
async fn call(
    wire: &dyn Wire,
    failures: impl IntoIterator<Item = Reply>,
) -> (Result<String, Error>, Vec<u128>) {
    call_with(wire, failures, |settings| settings).await
}

async fn call_with(
    wire: &dyn Wire,
    failures: impl IntoIterator<Item = Reply>,
    change: impl Fn(Settings) -> Settings,
) -> (Result<String, Error>, Vec<u128>) {
    let done = Reply::stream(text(wire, "done").concat());
    let server = Server::start(failures.into_iter().chain([done])).await;
    let settings = change(Settings::of(&server));
    let result = wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await;
    (result.map(|response| response.message.text()), settings.waits.millis())
}

#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_kept() {
    for wire in WIRES {
        for (header, expected) in [
            ("retry-after: 2\r\n", 2000),
            ("retry-after: 60\r\n", 60_000),
            ("retry-after: 0.5\r\n", 500),
            ("retry-after-ms: 70\r\nretry-after: 9\r\n", 70),
            ("retry-after: Sun, 06 Nov 1994 08:49:49 GMT\r\n", 12_000),
            ("retry-after: Sun, 06 Nov 1994 08:49:00 GMT\r\n", 500),
            ("retry-after: nonsense\r\n", 500),
            ("retry-after: 0\r\n", 500),
            ("", 500),
        ] {
            let (result, waits) = call(*wire, [fail(*wire, 429, header, Failure::RateLimited)]).await;
            assert_eq!(
                (result.unwrap().as_str(), waits),
                ("done", vec![expected]),
                "{}: {header}",
                wire.name()
            );
        }
    }
}

#[tokio::test]
async fn a_call_is_never_tried_earlier_than_the_server_asks() {
    for wire in WIRES {
        for header in
            ["retry-after: 61\r\n", "retry-after: 3600\r\n", "retry-after: Mon, 07 Nov 1994 08:49:37 GMT\r\n"]
        {
            for failure in [Failure::RateLimited, Failure::Overloaded] {
                let status = if failure == Failure::RateLimited { 429 } else { wire.overloaded_status() };
                let (result, waits) = call(*wire, [fail(*wire, status, header, failure)]).await;
                let error = result.unwrap_err();
                assert!(waits.is_empty() && error.is_retryable(), "{}: {error}", wire.name());
                assert!(error.retry_after().unwrap() > Duration::from_secs(60));
                assert!(error.message().contains("longest_wait("), "{error}");
            }
        }
        let reply = || fail(*wire, 429, "retry-after: 3600\r\n", Failure::RateLimited);
        let patient = |settings| Settings { longest_wait: Some(Duration::from_secs(3600)), ..settings };
        let (result, waits) = call_with(*wire, [reply()], patient).await;
        assert_eq!((result.unwrap().as_str(), waits), ("done", vec![3_600_000]), "{}", wire.name());
        let hasty = |settings| Settings { longest_wait: Some(Duration::from_secs(3599)), ..settings };
        assert!(call_with(*wire, [reply()], hasty).await.0.unwrap_err().message().contains("3600s"));
    }
}

#[tokio::test]
async fn server_failures_are_retried_twice_with_growing_waits() {
    for wire in WIRES {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            let failure = || fail(*wire, status, "", Failure::Server);
            let (result, waits) = call(*wire, [failure(), failure()]).await;
            assert_eq!(
                (result.unwrap().as_str(), waits),
                ("done", vec![500, 1000]),
                "{} {status}",
                wire.name()
            );

            let (result, waits) = call(*wire, [failure(), failure(), failure()]).await;
            let error = result.unwrap_err();
            assert!(error.is_retryable(), "{}: {error}", wire.name());
            assert_eq!((error.status(), error.request_id(), waits.len()), (Some(status), Some("req_7"), 2));
        }
    }
}

#[tokio::test]
async fn an_overloaded_server_is_named() {
    for wire in WIRES {
        let failure = || fail(*wire, wire.overloaded_status(), "", Failure::Overloaded);
        let (result, waits) = call(*wire, [failure(), failure(), failure()]).await;
        assert_eq!((result.unwrap_err().code(), waits.len()), (Code::Overloaded, 2), "{}", wire.name());
    }
}

#[tokio::test]
async fn errors_of_the_caller_are_not_retried() {
    for wire in WIRES {
        for (status, failure, code) in [
            (400, Failure::BadRequest, Code::BadRequest),
            (401, Failure::Auth, Code::Auth),
            (402, Failure::Money, Code::Billing),
            (403, Failure::Permission, Code::Permission),
            (404, Failure::NotFound, Code::NotFound),
            (413, Failure::TooLarge, Code::TooLarge),
            (422, Failure::BadRequest, Code::BadRequest),
            (302, Failure::BadRequest, Code::BadRequest),
        ] {
            let reply = fail(*wire, status, "location: http://127.0.0.1:1/\r\n", failure);
            let (result, waits) = call(*wire, [reply]).await;
            let error = result.unwrap_err();
            let got = (error.code(), waits.len(), error.is_retryable());
            assert_eq!(got, (code, 0, false), "{}: {error}", wire.name());
            assert_eq!((error.status(), error.request_id()), (Some(status), Some("req_7")));
            let terminal = std::error::Error::source(&error).unwrap();
            assert!(terminal.is::<agentgraph::Terminal>(), "a node's retry policy does not retry it either");
        }
    }
}

#[tokio::test]
async fn money_is_tried_once_even_if_the_server_asks_for_more() {
    for wire in WIRES {
        for headers in ["", "retry-after: 1\r\n", "x-should-retry: true\r\n"] {
            let (result, waits) = call(*wire, [fail(*wire, 429, headers, Failure::Money)]).await;
            let error = result.unwrap_err();
            assert!(
                error.is_billing() && !error.is_retryable() && waits.is_empty(),
                "{}: {error}",
                wire.name()
            );
        }
        let event = wire.error_event(Failure::Money, "no more");
        let (result, waits) = call(*wire, [Reply::stream(event)]).await;
        assert!(result.unwrap_err().is_billing() && waits.is_empty(), "{}", wire.name());
    }
}

#[tokio::test]
async fn x_should_retry_overrides_the_status() {
    for wire in WIRES {
        let reply = fail(*wire, wire.overloaded_status(), "x-should-retry: false\r\n", Failure::Overloaded);
        let (result, waits) = call(*wire, [reply]).await;
        let error = result.unwrap_err();
        assert!(
            error.is_overloaded() && !error.is_retryable() && waits.is_empty(),
            "{}: {error}",
            wire.name()
        );

        let reply = fail(*wire, 400, "x-should-retry: true\r\n", Failure::BadRequest);
        let (result, waits) = call(*wire, [reply]).await;
        assert_eq!((result.unwrap().as_str(), waits.len()), ("done", 1), "{}", wire.name());
    }
}

#[tokio::test]
async fn errors_without_json_are_handled_by_their_status() {
    let page = "<html>413 Request Entity Too Large</html>";
    for wire in WIRES {
        let (result, _) = call(*wire, [Reply::json(413, "", page)]).await;
        assert_eq!(result.unwrap_err().code(), Code::TooLarge, "{}", wire.name());
        let (result, waits) = call(*wire, [Reply::json(502, "", page)]).await;
        assert_eq!((result.unwrap().as_str(), waits.len()), ("done", 1), "{}", wire.name());
        let compressed = Reply::json(503, "content-encoding: br\r\n", "\u{1}\u{2}");
        let (result, waits) = call(*wire, [compressed]).await;
        assert_eq!((result.unwrap().as_str(), waits.len()), ("done", 1), "{}", wire.name());
    }
}

#[tokio::test]
async fn a_broken_connection_is_retried() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"content\":";
    for wire in WIRES {
        for bytes in ["", "HTTP/1.1 200 OK\r\nconte", head] {
            let (result, waits) = call(*wire, [Reply::say(bytes)]).await;
            assert_eq!((result.unwrap().as_str(), waits), ("done", vec![500]), "{}: {bytes:?}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_retried_and_the_error_names_it() {
    for wire in WIRES {
        let server = Server::start([]).await;
        // Held without listening, so that no other test gets the port.
        let closed = tokio::net::TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", closed.local_addr().unwrap());
        let settings = Settings { url, ..Settings::of(&server) };
        let error = wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
        let got = (error.code(), settings.waits.millis());
        assert_eq!(got, (Code::Connection, vec![500, 1000]), "{}: {error}", wire.name());
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn the_number_of_retries_can_be_set() {
    for wire in WIRES {
        for max_retries in [0, 4] {
            let failures = (0..9).map(|_| fail(*wire, 500, "", Failure::Server));
            let set = |settings| Settings { max_retries, ..settings };
            let (result, waits) = call_with(*wire, failures, set).await;
            assert_eq!((result.is_err(), waits.len()), (true, max_retries as usize), "{}", wire.name());
        }
    }
}

/// Streams from a server with these replies. Returns the texts, the end, and the number of requests.
async fn stream(
    wire: &dyn Wire,
    replies: impl IntoIterator<Item = Reply>,
) -> (String, Result<String, Error>, usize) {
    let server = Server::start(replies).await;
    let model = wire.model(&Settings::of(&server)).unwrap();
    let mut texts = Vec::new();
    let mut end = Err(Error::new(Code::Truncated, "no event"));
    match model.stream(ChatRequest::user("hi")).await {
        Err(error) => end = Err(error),
        Ok(mut events) => {
            while let Some(event) = events.next().await {
                match event {
                    Ok(ChatEvent::TextDelta { text, .. }) => texts.push(text),
                    Ok(ChatEvent::Finished(response)) => end = Ok(response.message.text()),
                    Ok(_) => {}
                    Err(error) => end = Err(error),
                }
            }
        }
    }
    (texts.join("|"), end, server.requests().len())
}

#[tokio::test]
async fn a_stream_is_retried_until_its_first_event() {
    for wire in WIRES {
        let start = text(*wire, "well done")[..wire.hidden()].concat();
        let overloaded = wire.error_event(Failure::Overloaded, "Overloaded");
        for failure in [
            fail(*wire, wire.overloaded_status(), "", Failure::Overloaded),
            Reply::stream(""),
            Reply::stream(&start),
            Reply::stream(&overloaded),
            Reply::stream(format!("{start}{overloaded}")),
            Reply::json(200, "", &wire.error_body(Failure::Overloaded, "Overloaded")),
            Reply::default(),
        ] {
            let done = Reply::stream(text(*wire, "well done").concat());
            let (texts, end, requests) = stream(*wire, [failure, done]).await;
            let got = (texts.as_str(), end.unwrap(), requests);
            assert_eq!(got, ("well |done", "well done".to_owned(), 2), "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_stream_is_not_retried_after_its_first_event() {
    for wire in WIRES {
        let never = || Reply::stream(text(*wire, "never seen").concat());
        let cut = text(*wire, "Once upon")[..=wire.hidden()].concat();
        let unfinished = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1000\r\n{cut}"
        );
        for reply in [Reply::stream(&cut), Reply::say(unfinished)] {
            let (texts, end, requests) = stream(*wire, [reply, never()]).await;
            let error = end.unwrap_err();
            let got = (error.code(), texts.as_str(), requests);
            assert_eq!(got, (Code::Truncated, "Once ", 1), "{}: {error}", wire.name());
            assert!(error.is_retryable(), "the caller may start again");
        }
        let late = format!("{cut}{}", wire.error_event(Failure::Overloaded, "Overloaded"));
        let (texts, end, requests) = stream(*wire, [Reply::stream(late), never()]).await;
        assert!(end.unwrap_err().is_overloaded(), "{}", wire.name());
        assert_eq!((texts.as_str(), requests), ("Once ", 1));
    }
}

#[tokio::test]
async fn a_model_that_is_known_by_name_may_have_no_retries() {
    for provider in Provider::ALL {
        let down = || Reply::json(503, "", r#"{"error":{"message":"down"}}"#);
        let server = Server::start([down(), down(), down()]).await;
        let named = ModelName::new(*provider, "m").settings().api_key("not-a-real-key").base_url(&server.url);
        let error = named.max_retries(0).build().unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
        assert_eq!((error.status(), server.requests().len()), (Some(503), 1), "{provider}");
    }
}
