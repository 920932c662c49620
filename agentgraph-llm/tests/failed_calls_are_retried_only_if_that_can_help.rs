//! Retries over a real socket: the retried calls, the waits, and the calls that are not retried.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use futures_util::StreamExt;
use support::{Reply, START, STOP, Server, delta, events, stream_bytes};

/// Calls a server that replies with these failures and then with "done". Returns the result and the waits.
async fn call(failures: impl IntoIterator<Item = Reply>) -> (Result<String, Error>, Vec<u128>) {
    let server = Server::start(failures.into_iter().chain([Reply::answer("done")])).await;
    let (builder, waits) = server.model();
    let result = builder.build().unwrap().chat(ChatRequest::user("hi")).await;
    (result.map(|response| response.message.text()), waits.millis())
}

#[tokio::test]
async fn a_reasonable_retry_after_of_a_429_is_kept() {
    for (header, expected) in [
        ("retry-after: 2\r\n", 2000),
        ("retry-after: 0.5\r\n", 500),
        ("retry-after-ms: 70\r\nretry-after: 9\r\n", 70),
        ("retry-after: Sun, 06 Nov 1994 08:49:49 GMT\r\n", 12_000),
        ("retry-after: 3600\r\n", 500),
        ("retry-after: nonsense\r\n", 500),
    ] {
        let (result, waits) = call([Reply::error(429, header, "rate_limit_error")]).await;
        assert_eq!((result.unwrap().as_str(), waits), ("done", vec![expected]), "{header}");
    }
}

#[tokio::test]
async fn server_failures_are_retried_twice_with_growing_waits() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let failure = || Reply::error(status, "", "api_error");
        let (result, waits) = call([failure(), failure()]).await;
        assert_eq!((result.unwrap().as_str(), waits), ("done", vec![500, 1000]), "{status}");

        let (result, waits) = call([failure(), failure(), failure()]).await;
        let error = result.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert_eq!((error.status(), error.request_id(), waits.len()), (Some(status), Some("req_7"), 2));
    }
}

#[tokio::test]
async fn errors_of_the_caller_are_not_retried() {
    for (status, kind, code) in [
        (400, "invalid_request_error", Code::BadRequest),
        (401, "authentication_error", Code::Auth),
        (402, "billing_error", Code::Billing),
        (403, "permission_error", Code::Permission),
        (404, "not_found_error", Code::NotFound),
        (413, "request_too_large", Code::TooLarge),
        (422, "", Code::BadRequest),
        (302, "", Code::BadRequest),
    ] {
        let (result, waits) = call([Reply::error(status, "location: http://127.0.0.1:1/\r\n", kind)]).await;
        let error = result.unwrap_err();
        assert_eq!((error.code(), waits.len(), error.is_retryable()), (code, 0, false), "{error}");
        assert!(error.to_string().starts_with(code.as_str()), "{error}");
        let terminal = std::error::Error::source(&error).unwrap();
        assert!(terminal.is::<agentgraph::Terminal>(), "a node's retry policy does not retry it either");
    }
}

#[tokio::test]
async fn billing_errors_are_not_retried_even_if_the_server_asks_for_it() {
    for (status, message) in [
        (429, "This request would exceed your organization's monthly spend limit."),
        (400, "Your credit balance is too low to access the API."),
        (400, "You have reached your specified API usage limits."),
    ] {
        let body =
            serde_json::json!({"type": "error", "error": {"type": "rate_limit_error", "message": message}});
        for headers in ["", "x-should-retry: true\r\n"] {
            let (result, waits) = call([Reply::json(status, headers, &body.to_string())]).await;
            let error = result.unwrap_err();
            assert!(error.is_billing() && !error.is_retryable() && waits.is_empty(), "{error}");
        }
    }
}

#[tokio::test]
async fn x_should_retry_overrides_the_status() {
    let (result, waits) = call([Reply::error(529, "x-should-retry: false\r\n", "overloaded_error")]).await;
    let error = result.unwrap_err();
    assert!(error.is_overloaded() && !error.is_retryable() && waits.is_empty(), "{error}");

    let (result, waits) =
        call([Reply::error(400, "x-should-retry: true\r\n", "invalid_request_error")]).await;
    assert_eq!((result.unwrap().as_str(), waits.len()), ("done", 1));
}

#[tokio::test]
async fn errors_without_json_are_handled_by_their_status() {
    let page = "<html>413 Request Entity Too Large</html>";
    let (result, _) = call([Reply::json(413, "", page)]).await;
    assert_eq!(result.unwrap_err().code(), Code::TooLarge);
    let (result, waits) = call([Reply::json(502, "", page)]).await;
    assert_eq!((result.unwrap().as_str(), waits.len()), ("done", 1));
}

#[tokio::test]
async fn a_broken_connection_is_retried() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"content\":";
    for bytes in ["", "HTTP/1.1 200 OK\r\nconte", head] {
        let (result, waits) = call([Reply::Say(bytes.into())]).await;
        assert_eq!((result.unwrap().as_str(), waits), ("done", vec![500]), "after {bytes:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_retried_and_the_error_names_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let waits = support::Waits::default();
    let builder =
        AnthropicModel::builder().api_key(support::KEY).model("m").base_url(url).clock(waits.clone());
    let error = builder.build().unwrap().chat(ChatRequest::user("hi")).await.unwrap_err();
    assert_eq!((error.code(), waits.millis()), (Code::Connection, vec![500, 1000]), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn the_number_of_retries_can_be_set() {
    let server = Server::start((0..9).map(|_| Reply::error(500, "", "api_error"))).await;
    let model = server.model().0.max_retries(0).build().unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
    let model = server.model().0.max_retries(4).build().unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap_err();
    assert_eq!(server.requests().len(), 1 + 5);
}

/// Streams from a server with these replies. Returns the texts, the end, and the number of requests.
async fn stream(replies: impl IntoIterator<Item = Reply>) -> (Vec<String>, Result<String, Error>, usize) {
    let server = Server::start(replies).await;
    let model = server.model().0.build().unwrap();
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
    (texts, end, server.requests().len())
}

#[tokio::test]
async fn a_stream_is_retried_until_its_first_event() {
    let overloaded =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let failures = [
        Reply::error(529, "", "overloaded_error"),
        Reply::stream(""),
        Reply::stream(START),
        Reply::stream(overloaded),
        Reply::stream(&format!("{START}{overloaded}")),
        Reply::Say(Vec::new()),
    ];
    for failure in failures {
        let (texts, end, requests) = stream([failure, Reply::stream(&events("well done"))]).await;
        assert_eq!(
            (texts.join("|").as_str(), end.unwrap().as_str(), requests),
            ("well |done", "well done", 2)
        );
    }
}

#[tokio::test]
async fn a_stream_is_not_retried_after_its_first_event() {
    let cut = stream_bytes(&format!("{START}{}", delta("Once ")));
    let chunked = [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1000\r\n"
            .to_vec(),
        format!("{START}{}", delta("Once ")).into_bytes(),
    ];
    for bytes in [cut, chunked.concat()] {
        let (texts, end, requests) = stream([Reply::Say(bytes), Reply::stream(&events("never seen"))]).await;
        let error = end.unwrap_err();
        assert_eq!(
            (error.code(), texts.join("|").as_str(), requests),
            (Code::Truncated, "Once ", 1),
            "{error}"
        );
        assert!(error.is_retryable(), "the caller may start again");
    }
    let late =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let reply = Reply::stream(&format!("{START}{}{late}{STOP}", delta("Once ")));
    let (texts, end, requests) = stream([reply, Reply::stream(&events("never seen"))]).await;
    assert!(end.unwrap_err().is_overloaded());
    assert_eq!((texts.join("|").as_str(), requests), ("Once ", 1));
}

#[tokio::test]
async fn a_response_that_is_no_stream_is_an_error_without_a_retry() {
    for reply in [
        Reply::answer("not streamed"),
        Reply::Say(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>".to_vec()),
    ] {
        let (_, end, requests) = stream([reply]).await;
        let error = end.unwrap_err();
        assert_eq!((error.code(), requests), (Code::Decode, 1));
        assert!(error.message().contains("instead of a stream"), "{error}");
    }
}
