//! The spans of a run in a collector for OpenTelemetry, such as Jaeger: the run, its supersteps, their nodes,
//! the attempts of a retried node, and the call of a model.
//!
//! ```sh
//! docker run --rm -p 16686:16686 -p 4318:4318 jaegertracing/jaeger    # then open http://localhost:16686
//! cargo run -p tracing-example --bin 16_tracing
//! ```
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names another collector.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::{Deserialize, Serialize};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Trip {
    city: String,
    weather: String,
    advice: String,
}

/// A service that is busy at first.
async fn look_up(ctx: Ctx, trip: Snapshot<Trip>) -> Result<TripUpdate> {
    if ctx.attempt() == 1 {
        return Err("the weather service is busy".into());
    }
    Ok(Trip::update().weather(format!("snow in {}", trip.city)))
}

async fn advise(trip: Snapshot<Trip>, model: Dep<ScriptedModel>) -> Result<TripUpdate> {
    let answer = model.chat(ChatRequest::user(format!("It is {}. What do I need?", trip.weather))).await?;
    Ok(Trip::update().advice(answer.message.text()))
}

fn graph() -> Result<CompiledGraph<Trip>> {
    let retry = RetryPolicy::attempts(3).initial(Duration::from_millis(10));
    let graph = StateGraph::new()
        .node("look_up", look_up.retry(retry))
        .node("advise", advise)
        .edge(START, "look_up")
        .edge("look_up", "advise")
        .dep(ScriptedModel::new(["A coat."]))
        .compile()?;
    Ok(graph.checkpointer(MemorySaver::new()))
}

/// Sends the spans of this program to a collector, in batches, on a thread of its own.
fn send_spans(exporter: SpanExporter) -> SdkTracerProvider {
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("trip-advisor").build())
        .build();
    // The exporter's own HTTP client is silent, so that its spans are not exported in turn.
    let filter = EnvFilter::new("off,agentgraph=info,agentgraph_llm=info");
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("agentgraph"));
    tracing_subscriber::registry().with(spans.with_filter(filter)).init();
    provider
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson).build()?;
    let provider = send_spans(exporter);

    let trip = graph()?.invoke(Trip::update().city("Oslo")).thread("ada").await?.into_finished()?;
    println!("{}", trip.advice);
    assert_eq!(trip.advice, "A coat.");

    // Sends what is left. Without a collector the run is none the worse.
    if let Err(error) = provider.shutdown() {
        println!("The spans were not sent: {error}");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use serde_json::Value;

    use super::*;

    /// A collector that takes one request over HTTP and returns its body.
    fn collector() -> (String, thread::JoinHandle<Value>) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let receives = thread::spawn(move || {
            let (connection, _) = socket.accept().unwrap();
            let mut reader = BufReader::new(&connection);
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                head.push(line.trim().to_ascii_lowercase());
            }
            assert_eq!(head[0], "post /v1/traces http/1.1");
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
            (&connection).write_all(answer.as_bytes()).unwrap();
            serde_json::from_slice(&body).unwrap()
        });
        (format!("http://{address}/v1/traces"), receives)
    }

    /// The spans below one, as lines: name, status and code of the error.
    fn tree(spans: &[Value], parent: &str, depth: usize, lines: &mut Vec<String>) {
        let mut children: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"] == parent).collect();
        children.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap());
        for span in children {
            let error = if span["status"]["code"] == 2 {
                format!(" ERROR {}", span["status"]["message"].as_str().unwrap())
            } else {
                String::new()
            };
            lines.push(format!("{}{}{error}", "  ".repeat(depth), span["name"].as_str().unwrap()));
            tree(spans, span["spanId"].as_str().unwrap(), depth + 1, lines);
        }
    }

    fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
        let attributes = span["attributes"].as_array().unwrap();
        let found = attributes.iter().find(|attribute| attribute["key"] == key);
        &found.unwrap_or_else(|| panic!("no {key} in {span:#}"))["value"]["stringValue"]
    }

    #[tokio::test]
    async fn a_collector_receives_the_tree_of_a_run() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (endpoint, receives) = collector();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson);
        let provider = send_spans(exporter.with_endpoint(endpoint).build().unwrap());

        let outcome = graph().unwrap().invoke(Trip::update().city("Oslo")).thread("ada").await.unwrap();
        provider.shutdown().unwrap();

        let request = receives.join().unwrap();
        let sent = &request["resourceSpans"][0];
        assert_eq!(attribute(&sent["resource"], "service.name"), "trip-advisor");
        let spans = sent["scopeSpans"][0]["spans"].as_array().unwrap();
        let mut lines = Vec::new();
        tree(spans, "", 0, &mut lines);
        assert_eq!(
            lines,
            [
                "invoke_workflow",
                "  superstep",
                "    look_up",
                "      attempt ERROR E_NODE_FAILED",
                "      attempt",
                "  superstep",
                "    advise",
                "      attempt",
                "        chat scripted",
            ]
        );
        let run = spans.iter().find(|span| span["name"] == "invoke_workflow").unwrap();
        assert_eq!(attribute(run, "run"), &outcome.run().to_string());
        assert_eq!(attribute(run, "gen_ai.conversation.id"), "ada");
        assert_eq!(attribute(run, "status"), "finished");
        assert!(!request.to_string().contains("Oslo"), "no content leaves the program");
    }
}
