//! What is measured: our server; the floor, a bare handler that sends the bytes that ours sent; and a bare
//! handler that runs the graph, with checkpoints in memory, and keeps nothing else.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentgraph::PostgresSaver;
use agentgraph::prelude::*;
use agentgraph_server::Server;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Json;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::{MethodRouter, get, post};
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
    Ok(server.graph("agent", graph()?).serve(("127.0.0.1", port)).await?)
}

fn graph() -> Result<CompiledGraph<Steps>, Problem> {
    let graph = StateGraph::new().node("first", first).node("second", second);
    Ok(graph.edge(START, "first").edge("first", "second").compile()?)
}

/// Serves the bytes of a thread and of a stream, which are in a file.
pub(crate) async fn floor(recorded: &str, port: u16) -> Result<(), Problem> {
    let recorded: Value = serde_json::from_slice(&std::fs::read(recorded)?)?;
    let thread = Bytes::from(recorded["thread"].to_string());
    let events = recorded["events"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let events: Arc<[Bytes]> = events.map(|event| Bytes::from(event.to_owned())).collect();
    let streamed = move |_: Json<Value>| {
        let events = Arc::clone(&events);
        async move {
            let next = (0..events.len()).map(move |at| Ok::<_, Infallible>(events[at].clone()));
            (HEADS, Body::from_stream(stream::iter(next)))
        }
    };
    bare(thread, post(streamed), port).await
}

/// Runs the graph in the handler, and sends the values after each step.
pub(crate) async fn engine(recorded: &str, port: u16) -> Result<(), Problem> {
    let recorded: Value = serde_json::from_slice(&std::fs::read(recorded)?)?;
    let graph = graph()?.checkpointer(MemorySaver::new());
    // All threads of a bare handler have one id, and a thread has one run at a time.
    let runs = Arc::new(AtomicU64::new(0));
    let streamed = move |Json(body): Json<Value>| {
        let thread = runs.fetch_add(1, Ordering::Relaxed).to_string();
        let text = body["input"]["text"].as_str().unwrap_or_default().to_owned();
        let events = graph.invoke(Steps::update().text(text)).thread(thread).abandon().views([View::Values]).stream();
        let frames = events.filter_map(async |event| {
            let event = event.to_json().ok()?;
            let values = event.get("values")?;
            Some(Ok::<_, Infallible>(Bytes::from(format!("event: values\r\ndata: {values}\r\n\r\n"))))
        });
        async move { (HEADS, Body::from_stream(frames)) }
    };
    bare(Bytes::from(recorded["thread"].to_string()), post(streamed), port).await
}

const HEADS: [(HeaderName, &str); 2] = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];

/// Serves the bytes of a thread, streams that only beat, and runs.
async fn bare(thread: Bytes, runs: MethodRouter, port: u16) -> Result<(), Problem> {
    let open = async move || {
        let beats = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b": heartbeat\r\n\r\n")), ()))
        });
        (HEADS, Body::from_stream(beats.boxed()))
    };
    let made = async move |_: Json<Value>| ([(CONTENT_TYPE, "application/json")], thread.clone());
    let routes = Router::new()
        .route("/ok", get(async || "ok"))
        .route("/threads", post(made))
        .route("/threads/{id}/runs/stream", runs)
        .route("/threads/{id}/stream", get(open));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}
