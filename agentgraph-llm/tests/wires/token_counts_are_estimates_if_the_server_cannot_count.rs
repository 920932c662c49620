//! A server without an endpoint for token counts gives an estimate, and says so. Other failures are errors.

use std::sync::Arc;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, TokenCount};

use crate::wires::server::{Reply, Server};
use crate::wires::wire::{Failure, MODEL, Settings, WIRES, Wire};

/// The wires that ask their server, with a model whose server says this.
async fn counting(
    reply: impl Fn(&dyn Wire) -> Reply,
) -> Vec<(&'static dyn Wire, Arc<dyn ChatModel>, Server)> {
    let mut all = Vec::new();
    for wire in WIRES {
        let server = Server::start([reply(*wire)]).await;
        let model = wire.model(&Settings::of(&server)).unwrap();
        if model.info().capabilities.token_count {
            all.push((*wire, model, server));
        }
    }
    assert!(all.len() >= 3);
    all
}

#[tokio::test]
async fn a_server_without_the_endpoint_gives_an_estimate_at_once() {
    let request = ChatRequest::user("How many tokens are in this sentence?");
    for status in [404, 405, 501] {
        for body in [
            "",
            "404 page not found",
            "{}",
            "{\"error\":{\"message\":\"File Not Found\",\"type\":\"not_found_error\"}}",
        ] {
            for (wire, model, server) in counting(|_| Reply::json(status, "", body)).await {
                let count = model.count_tokens(&request).await.unwrap();
                assert_eq!(count, TokenCount::estimate(&request), "{}: {status} {body}", wire.name());
                assert!(!count.is_exact);
                assert_eq!(server.requests().len(), 1, "{}: {status} is not tried again", wire.name());
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_model_and_a_wrong_key_are_errors() {
    let message = format!("The model `{MODEL}` does not exist");
    for (status, failure, code) in [
        (404, Failure::NotFound, Code::NotFound),
        (401, Failure::Auth, Code::Auth),
        (400, Failure::BadRequest, Code::BadRequest),
    ] {
        for (wire, model, _server) in
            counting(|wire| Reply::json(status, "", &wire.error_body(failure, &message))).await
        {
            let error = model.count_tokens(&ChatRequest::user("hi")).await.unwrap_err();
            assert_eq!(error.code(), code, "{}: {error}", wire.name());
        }
    }
}
