//! The spans of a run in a collector for OpenTelemetry, such as Jaeger: the run, its supersteps, their nodes,
//! the attempts of a retried node, and the call of a model.
//!
//! ```sh
//! docker run --rm -p 16686:16686 -p 4318:4318 jaegertracing/jaeger    # then open http://localhost:16686
//! cargo run -p tracing-example --bin 16_tracing
//! ```
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names another collector, and `--model anthropic:claude-...` a model in the
//! place of the script.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer};

#[derive(State, Clone, Debug, Default)]
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

async fn advise(trip: Snapshot<Trip>, model: Dep<Arc<dyn ChatModel>>) -> Result<TripUpdate> {
    let answer = model.chat(ChatRequest::user(format!("It is {}. What do I need?", trip.weather))).await?;
    Ok(Trip::update().advice(answer.message.text()))
}

fn script() -> Arc<dyn ChatModel> {
    Arc::new(ScriptedModel::new(["A coat."]))
}

fn graph(model: Arc<dyn ChatModel>) -> Result<CompiledGraph<Trip>> {
    let retry = RetryPolicy::attempts(3).initial(Duration::from_millis(10));
    let graph = StateGraph::new()
        .node("look_up", look_up.retry(retry))
        .node("advise", advise)
        .edge(START, "look_up")
        .edge("look_up", "advise")
        .dep(model)
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

    let named = example_model::from_args()?;
    let is_script = named.is_none();
    let graph = graph(named.unwrap_or_else(script))?;
    let trip = graph.invoke(Trip::update().city("Oslo")).thread("ada").finish().await?;
    println!("{}", trip.advice);
    assert!(!is_script || trip.advice == "A coat.");

    // Sends what is left. Without a collector the run is none the worse.
    if let Err(error) = provider.shutdown() {
        println!("The spans were not sent: {error}");
    }
    Ok(())
}

#[cfg(test)]
#[path = "../collector.rs"]
#[allow(dead_code)]
mod collector;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::collector::{Collector, attribute, tree};
    use super::*;

    #[tokio::test]
    async fn a_collector_receives_the_tree_of_a_run() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let collector = Collector::start();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson);
        let provider = send_spans(exporter.with_endpoint(collector.endpoint("traces")).build().unwrap());

        let outcome =
            graph(script()).unwrap().invoke(Trip::update().city("Oslo")).thread("ada").await.unwrap();
        provider.shutdown().unwrap();

        let requests = collector.received("traces");
        assert_eq!(attribute(&requests[0]["resourceSpans"][0]["resource"], "service.name"), "trip-advisor");
        let spans = collector.spans();
        let mut lines = Vec::new();
        tree(&spans, "", 0, &mut lines);
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
        assert!(!requests[0].to_string().contains("Oslo"), "no content leaves the program");
    }
}
