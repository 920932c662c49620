//! An answer that ends with neither text nor call is asked for once more, on every wire.

use agentgraph_llm::Code;
use agentgraph_llm::prelude::*;

use super::wire::{Settings, WIRES, text};
use crate::server::{Reply, Server};

#[tokio::test]
async fn the_second_answer_counts_and_both_are_paid() {
    for wire in WIRES {
        let replies =
            [Reply::stream(wire.text(&[]).concat()), Reply::stream(text(*wire, "Hello there").concat())];
        let server = Server::start(replies).await;
        let model = wire.model(&Settings { max_retries: 0, ..Settings::of(&server) }).unwrap();
        let response = model.chat(ChatRequest::user("hi")).await.unwrap();
        assert_eq!(response.message.text(), "Hello there", "{}", wire.name());
        assert_eq!((response.usage.input_total, response.usage.output_total), (6, 4), "{}", wire.name());
        let requests = server.requests();
        assert_eq!((requests.len(), &requests[0].body), (2, &requests[1].body), "{}", wire.name());
    }
}

#[tokio::test]
async fn a_second_empty_answer_is_an_error() {
    for wire in WIRES {
        let empty = || Reply::stream(wire.text(&[]).concat());
        let server = Server::start([empty(), empty(), Reply::stream(text(*wire, "never").concat())]).await;
        let model = wire.model(&Settings::of(&server)).unwrap();
        let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (Code::EmptyAnswer, false), "{}", wire.name());
        assert_eq!((server.requests().len(), error.usage().total()), (2, 10), "{}", wire.name());
    }
}
