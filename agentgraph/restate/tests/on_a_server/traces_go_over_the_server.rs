//! One trace from the client over the server to the nodes: all three send their spans to one collector.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_restate::{RestateClient, RestateWorker};
use axum::extract::State as Shared;
use axum::{Json, Router};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::Instrument;
use tracing_subscriber::prelude::*;

use crate::common::server::Server;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Note {
    text: String,
}

/// Set in the process of [`one_trace_reaches_the_node`].
const ALONE: &str = "AGENTGRAPH_TRACES_ALONE";

/// The spans that were received, by their ids: trace, parent and name.
type Spans = Arc<Mutex<BTreeMap<String, [String; 3]>>>;

/// A collector of OpenTelemetry, and the address of its signal `traces`.
async fn collector() -> (Spans, String) {
    async fn receive(Shared(spans): Shared<Spans>, Json(request): Json<Value>) -> Json<Value> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let resources = list(&request["resourceSpans"]).into_iter();
        let scopes = resources.flat_map(|resource| list(&resource["scopeSpans"]));
        for span in scopes.flat_map(|scope| list(&scope["spans"])) {
            let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
            let about = [text("traceId"), text("parentSpanId"), text("name")];
            spans.lock().unwrap().insert(text("spanId"), about);
        }
        Json(serde_json::json!({}))
    }
    let spans = Spans::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router =
        Router::new().route("/v1/traces", axum::routing::post(receive)).with_state(Arc::clone(&spans));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (spans, format!("{addr}/v1/traces"))
}

/// The names of the spans from the root of its trace down to a span of this name; `None` if one is missing.
fn path_to(spans: &Spans, name: &str) -> Option<Vec<String>> {
    let spans = spans.lock().unwrap();
    let mut span = spans.values().find(|[_, _, found]| found == name)?;
    let mut path = vec![name.to_owned()];
    while !span[1].is_empty() {
        span = spans.get(&span[1]).filter(|parent| parent[0] == span[0])?;
        path.push(span[2].clone());
    }
    path.reverse();
    Some(path)
}

// A process of its own: whether a span is on is decided when it is first opened, and kept for the whole
// process. Beside other tests, one of them may open it first, without a subscriber.
#[test]
fn a_node_on_a_worker_is_in_the_trace_of_the_client() {
    let name = "traces_go_over_the_server::one_trace_reaches_the_node";
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let ended = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

#[tokio::test]
async fn one_trace_reaches_the_node() {
    async fn far() -> NoteUpdate {
        Note::update().text("far")
    }
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let (spans, traces) = collector().await;
    // Each wait suspends the invocation: what comes after it is another attempt, of the same trace.
    let server = Server::that_traces_to(&format!("otlp+http+json://{traces}")).await;
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson);
    let exporter = exporter.with_endpoint(format!("http://{traces}")).build().unwrap();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let ours = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let ours = ours.with_filter(
        tracing_subscriber::filter::Targets::new().with_target("agentgraph", tracing::Level::INFO),
    );
    let _ours = tracing::subscriber::set_default(tracing_subscriber::registry().with(ours));

    let graph = StateGraph::new().node("far", far.remote()).edge(START, "far").compile().unwrap();
    let worker = RestateWorker::new().graph("traced", graph).build("b").register(&server.admin);
    let _worker = worker.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let graph = RestateClient::connect(&server.ingress).unwrap().graph::<Note>("traced");
    let asks = tracing::info_span!(target: "agentgraph", "asks");
    let call = graph.invoke(Note::update()).thread("t-1").finish();
    assert_eq!(call.instrument(asks).await.unwrap().text, "far");

    let begun = std::time::Instant::now();
    let path = loop {
        let flushed = provider.clone();
        tokio::task::spawn_blocking(move || flushed.force_flush()).await.unwrap().unwrap();
        match path_to(&spans, "attempt") {
            Some(path) => break path,
            None => assert!(begun.elapsed() < Duration::from_secs(60), "{:#?}", spans.lock().unwrap()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let expected = [
        "asks",
        "ingress traced/{key}/call",
        "invocation-start traced/{key}/call",
        "invocation-attempt traced/{key}/call",
        "invocation-start traced.tasks.b/run",
        "invocation-attempt traced.tasks.b/run",
        "traced.tasks.b/run",
        "far",
        "attempt",
    ];
    assert_eq!(path, expected);
}
