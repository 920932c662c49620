//! What is measured: our server, and the floor, a bare handler that sends the bytes that ours sent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::PostgresSaver;
use agentgraph::prelude::*;
use agentgraph_server::Server;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Json;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::Problem;

#[derive(State, JsonSchema, Clone, Debug, Default)]
struct Steps {
    text: String,
    step: u32,
}

async fn first() -> StepsUpdate {
    Steps::update().step(1)
}

async fn second() -> StepsUpdate {
    Steps::update().step(2)
}

/// Serves a graph of two nodes that do nothing. `place` is a file or a database.
pub(crate) async fn ours(kind: &str, place: &str, port: u16) -> Result<(), Problem> {
    let server = match kind {
        "memory" => Server::new().in_memory(),
        "sqlite" => Server::new().sqlite(place),
        _ => Server::new().postgres(PostgresSaver::builder(place).schema("server_cost").connect().await?),
    };
    let graph = StateGraph::new().node("first", first).node("second", second);
    let graph = graph.edge(START, "first").edge("first", "second").compile()?;
    Ok(server.graph("agent", graph).serve(("127.0.0.1", port)).await?)
}

/// Serves the bytes of a thread and of a stream, which are in a file, to whoever asks.
pub(crate) async fn floor(recorded: &str, port: u16) -> Result<(), Problem> {
    let recorded: Value = serde_json::from_slice(&std::fs::read(recorded)?)?;
    let thread = Bytes::from(recorded["thread"].to_string());
    let events = recorded["events"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let events: Arc<[Bytes]> = events.map(|event| Bytes::from(event.to_owned())).collect();
    let heads = || [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    let streamed = move |_: Json<Value>| {
        let events = Arc::clone(&events);
        async move {
            let next = (0..events.len()).map(move |at| Ok::<_, Infallible>(events[at].clone()));
            (heads(), Body::from_stream(stream::iter(next)))
        }
    };
    let open = async move || {
        let beats = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b": heartbeat\r\n\r\n")), ()))
        });
        (heads(), Body::from_stream(beats.boxed()))
    };
    let made = async move |_: Json<Value>| ([(CONTENT_TYPE, "application/json")], thread.clone());
    let routes = Router::new()
        .route("/ok", get(async || "ok"))
        .route("/threads", post(made))
        .route("/threads/{id}/runs/stream", post(streamed))
        .route("/threads/{id}/stream", get(open));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}
