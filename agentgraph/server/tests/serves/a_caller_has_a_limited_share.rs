//! Limits of runs and streams hold for each caller alone, and say when to try again.

use agentgraph_server::{Caller, Server};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::common::{Served, all_graphs};

async fn two(limit: impl Fn(Server) -> Server) -> (Served, Served) {
    let server = Server::new().in_memory().caller_key("key-of-ada", Caller::named("ada"));
    let server =
        Served::of(all_graphs(limit(server).caller_key("key-of-grace", Caller::named("grace")))).await;
    (server.with_key("key-of-ada"), server.with_key("key-of-grace"))
}

async fn assert_refused(answer: Response, code: &str) {
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.headers()["retry-after"], "1");
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["code"], code);
    assert!(body["detail"].as_str().unwrap().contains("at most 2"), "{body}");
}

#[tokio::test]
async fn runs_that_wait_or_are_under_way_count() {
    let (ada, grace) = two(|server| server.max_runs_per_caller(2)).await;
    let thread = ada.thread().await;
    let path = format!("/threads/{thread}/runs");
    let long = json!({ "assistant_id": "steps", "input": { "wait_ms": 600_000 } });
    let run = ada.post(&path, &long).await["run_id"].as_str().unwrap().to_owned();
    ada.post(&path, &long).await;
    for path in [&path, "/runs", "/runs/wait", "/runs/stream"] {
        let refused = ada.request(Method::POST, path).json(&long).send().await.unwrap();
        assert_refused(refused, "too_many_runs").await;
    }
    // A refused run leaves no record.
    assert_eq!(ada.get(&path).await.as_array().unwrap().len(), 2);
    let answer = ada.command(&thread, "run.start", json!({ "assistant_id": "steps" })).await;
    assert!(answer["message"].as_str().unwrap().starts_with("429: "), "{answer}");
    let short = json!({ "assistant_id": "steps", "input": {} });
    assert_eq!(grace.post("/runs/wait", &short).await["seen"], json!(["first ", "second"]));
    ada.post(&format!("{path}/{run}/cancel?wait=true"), &json!({})).await;
    // The place is free as soon as the end is known.
    let other = ada.thread().await;
    ada.post(&format!("/threads/{other}/runs/wait"), &short).await;
}

#[tokio::test]
async fn streams_sockets_and_waits_count_until_they_end() {
    let (ada, grace) = two(|server| server.max_streams_per_caller(2)).await;
    let thread = ada.thread().await;
    let events = format!("/threads/{thread}/stream/events");
    let all = json!({ "channels": ["values"] });
    let stream = ada.request(Method::POST, &events).json(&all).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let socket = || {
        let mut request = format!("{}{events}", ada.url.replace("http", "ws")).into_client_request().unwrap();
        request.headers_mut().insert("x-api-key", "key-of-ada".parse().unwrap());
        connect_async(request)
    };
    let (mut open, _) = socket().await.unwrap();
    let body = json!({ "assistant_id": "steps", "input": {} });
    for path in ["/runs/wait", "/runs/stream"] {
        let refused = ada.request(Method::POST, path).json(&body).send().await.unwrap();
        assert_refused(refused, "too_many_streams").await;
    }
    let Err(Error::Http(refused)) = socket().await else { panic!("a third one") };
    assert_eq!(refused.status(), 429);
    assert_eq!(ada.get("/info").await["flags"]["assistants"], true, "other requests go on");
    grace.post("/runs/wait", &body).await;
    // When a connection has gone is seen a moment later.
    open.close(None).await.unwrap();
    while let Some(Ok(message)) = futures_util::StreamExt::next(&mut open).await {
        assert!(matches!(message, Message::Close(_)), "{message:?}");
    }
    drop((open, stream));
    for _ in 0..2 {
        while ada.send(Method::POST, "/runs/wait", Some(&body)).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    }
    // A stream that has ended is one no longer.
    for _ in 0..5 {
        while ada.request(Method::POST, "/runs/stream").json(&body).send().await.unwrap().status() != 200 {
            tokio::task::yield_now().await;
        }
    }
}
