//! What a response has beside its message: ids, origin, limits, and the usage as it was written.

use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Origin, Quota, RateLimits};

use super::wire::{MODEL, Settings, WIRES, Wire, text};
use crate::server::{Reply, Server};

async fn ask(wire: &dyn Wire, reply: Reply) -> ChatResponse {
    let server = Server::start([reply]).await;
    wire.model(&Settings::of(&server)).unwrap().chat(ChatRequest::user("hi")).await.unwrap()
}

/// The same answer, as a stream and as a whole.
fn replies(wire: &dyn Wire, headers: &str) -> [Reply; 2] {
    let stream = Reply::stream_with(headers, text(wire, "done").concat());
    [stream, Reply::json(200, headers, &wire.whole("done"))]
}

#[tokio::test]
async fn the_request_id_and_the_rate_limits_are_in_the_response() {
    for wire in WIRES {
        let limits = wire.limits();
        let headers = format!("{}: req_9\r\n{}", wire.request_id(), limits.unwrap_or_default());
        for reply in replies(*wire, &headers) {
            let response = ask(*wire, reply).await;
            assert_eq!(response.request_id.as_deref(), Some("req_9"), "{}", wire.name());
            let expected = limits.map(|_| {
                let requests = Quota::new(Some(50), Some(49), Some(Duration::from_secs(7)));
                RateLimits::new(Some(requests), Some(Quota::new(Some(1000), Some(900), None)))
            });
            assert_eq!(response.limits, expected, "{}", wire.name());
        }
        for reply in replies(*wire, "") {
            let response = ask(*wire, reply).await;
            assert_eq!((response.request_id, response.limits), (None, None), "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn the_usage_is_counted_and_kept_as_it_was_written() {
    for wire in WIRES {
        for reply in replies(*wire, "") {
            let response = ask(*wire, reply).await;
            assert_eq!((response.usage.input_total, response.usage.output_total), (3, 2), "{}", wire.name());
            let raw: serde_json::Value = response.raw_usage.unwrap().parse().unwrap();
            assert!(raw.is_object(), "{}: {raw}", wire.name());
        }
    }
}

#[tokio::test]
async fn the_message_has_our_id_and_the_model_that_was_asked() {
    for wire in WIRES {
        let server = Server::start(replies(*wire, "")).await;
        let model = wire.model(&Settings::of(&server)).unwrap();
        for id in ["m-1", "m-2"] {
            let message = model.chat(ChatRequest::user("hi")).await.unwrap().message;
            assert_eq!(message.id, id, "{}: a server may repeat its ids", wire.name());
            let origin = Origin::new(model.info().provider, MODEL);
            assert_eq!(message.origin, Some(origin), "{}", wire.name());
        }
    }
}
