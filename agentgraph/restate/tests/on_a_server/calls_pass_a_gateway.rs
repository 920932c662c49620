//! A gateway before the server asks for headers: clients and workers send them as HTTP headers.

use std::net::SocketAddr;

use agentgraph::Code;
use agentgraph::prelude::*;
use agentgraph_restate::{Headers, RestateClient, RestateWorker, ServeError};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::common::server;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    text: String,
}

/// Passes requests on that have the key of the gateway, as it is now.
async fn gateway(to: &str) -> String {
    async fn pass(Shared(to): Shared<String>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        if header("authorization") != Some("Bearer of-this-minute") || header("x-project") != Some("notes") {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let request = server::http().request(parts.method.clone(), format!("{to}{path}"));
        let answer = request.headers(parts.headers.clone()).body(body).send().await.unwrap();
        let status = answer.status();
        (status, Body::from(answer.bytes().await.unwrap())).into_response()
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().fallback(pass).with_state(to.to_owned());
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{addr}")
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn key() -> Result<String, agentgraph::BoxError> {
    Ok("of-this-minute".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_and_the_registration_have_the_headers_of_the_gateway() {
    async fn tell(headers: CallContext<Headers>) -> NoteUpdate {
        Note::update().text(format!("{:?} {:?}", headers.get("x-user"), headers.get("authorization")))
    }
    let server = server::shared().await;
    let (ingress, admin) = (gateway(&server.ingress).await, gateway(&server.admin).await);
    let worker = || {
        let graph = StateGraph::new().node("tell", tell).edge(START, "tell").compile().unwrap();
        let worker = RestateWorker::new().graph("gated", graph).register(&admin);
        worker.context_from(|headers, _| Ok(headers.clone())).patience(std::time::Duration::ZERO)
    };
    let refused = worker().start(loopback()).await.unwrap_err();
    assert!(matches!(&refused, ServeError::Register { problem, .. } if problem.contains("401")), "{refused}");
    let _worker = worker().header("x-project", "notes").key_provider(key).start(loopback()).await.unwrap();

    let stranger = RestateClient::connect(&ingress).unwrap().graph::<Note>("gated");
    assert!(stranger.state("t").await.unwrap_err().message().contains("401"));
    let client = RestateClient::builder().header("x-project", "notes").key_provider(key);
    let graph = client.connect(&ingress).unwrap().graph::<Note>("gated");
    let note = graph.invoke(Note::update()).thread("t").header("x-user", "ada").finish().await.unwrap();
    // The gateway's key is none of the caller's headers.
    assert_eq!(note.text, "Some(\"ada\") None");
    assert_eq!(graph.state("t").await.unwrap().unwrap().values, note);
    assert!(!graph.drain("t").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_of_a_call_that_looks_like_a_credential_needs_keys() {
    let client = RestateClient::connect("http://127.0.0.1:1").unwrap();
    for name in ["Authorization", "x-api-key"] {
        let call = client.graph::<Note>("gated").invoke(Note::update()).thread("t").header(name, "hunter2");
        let refused = call.await.unwrap_err();
        assert_eq!(refused.code(), Code::SecretNeedsKey);
        assert!(refused.message().contains(".encryption(keys)"), "{refused}");
    }
}
