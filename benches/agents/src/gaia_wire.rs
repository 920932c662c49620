//! A server of the wire of Chat Completions, which calls the calculator in every round but the last.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use agentgraph_benches::on;
use agentgraph_llm::OpenAiChatModel;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::gaia::ROUNDS;
use crate::server::Caller;

/// A model over HTTP, on loopback.
pub(super) struct HttpModel {
    address: SocketAddr,
    /// The bodies of the first question.
    seen: Arc<Mutex<Vec<Bytes>>>,
}

/// Starts the server. It works while its runtime does.
pub(super) async fn over_http() -> HttpModel {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::default();
    let app = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, app).await });
    HttpModel { address, seen }
}

async fn answer(State(seen): State<Arc<Mutex<Vec<Bytes>>>>, body: Bytes) -> impl IntoResponse {
    let asked = body.windows(13).filter(|part| part == b"\"role\":\"tool\"").count() as u64;
    let mut seen = seen.lock().expect("no panic");
    if (seen.len() as u64) < ROUNDS {
        seen.push(body);
    }
    ([(CONTENT_TYPE, "text/event-stream")], events(asked + 1))
}

/// The answer of a round.
fn events(round: u64) -> String {
    let (delta, stop) = if round == ROUNDS {
        (json!({ "content": "FINAL ANSWER: 42" }), "stop")
    } else {
        let arguments = json!({ "expression": format!("6 * {round}") }).to_string();
        let function = json!({ "name": "calculator", "arguments": arguments });
        let id = format!("call-{round}");
        (
            json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] }),
            "tool_calls",
        )
    };
    let event = |choices: serde_json::Value, usage: serde_json::Value| {
        let event = json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": choices, "usage": usage });
        format!("data: {event}\n\n")
    };
    let choice = |delta, stop: Option<&str>| json!([{ "index": 0, "delta": delta, "finish_reason": stop }]);
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    [
        event(choice(json!({ "role": "assistant", "content": null }), None), json!(null)),
        event(choice(delta, None), json!(null)),
        event(choice(json!({}), Some(stop)), json!(null)),
        event(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

impl HttpModel {
    pub(super) fn client(&self) -> OpenAiChatModel {
        let builder = OpenAiChatModel::builder().api_key("bench").model("bench");
        builder.base_url(format!("http://{}/v1", self.address)).build().expect("the settings are right")
    }
}

/// Sends the bodies that the server has seen, over a kept connection, and reads the answers as bytes.
pub(super) fn replayed(runtime: &Rc<Runtime>, model: &HttpModel) -> impl FnMut(u64) + use<> {
    let request = |body: &Bytes| {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        head + &String::from_utf8_lossy(body)
    };
    let requests: Rc<Vec<String>> =
        Rc::new(model.seen.lock().expect("no panic").iter().map(request).collect());
    assert_eq!(requests.len() as u64, ROUNDS);
    let caller = runtime.block_on(Caller::new(model.address)).expect("a connection");
    let caller = Rc::new(tokio::sync::Mutex::new(caller));
    on(runtime, move || {
        let (requests, caller) = (Rc::clone(&requests), Rc::clone(&caller));
        async move {
            let mut caller = caller.lock().await;
            for request in &*requests {
                caller.call(request).await.expect("an answer");
            }
        }
    })
}
