//! An agent with tools in a collector for OpenTelemetry: the run, the agent, each call of its model and of
//! its tools, and the metrics of the model calls.
//!
//! ```sh
//! docker run --rm -p 3000:3000 -p 4318:4318 grafana/otel-lgtm    # then open http://localhost:3000
//! cargo run -p tracing-example --bin 16_tracing_agent
//! ```
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` names another collector, and `--model anthropic:claude-...` a model in the
//! place of the script.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Aggregation, Instrument, SdkMeterProvider, Stream};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use serde_json::json;
use tracing_opentelemetry::MetricsLayer;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer};

/// The weather of a city today.
#[tool]
async fn weather(city: String) -> Result<String, ToolError> {
    Ok(format!("snow in {city}"))
}

/// The trains to a city.
#[tool]
async fn trains(city: String) -> Result<String, ToolError> {
    Err(ToolError::failed(format!("no train goes to {city}")))
}

/// Calls both tools, then answers.
fn script() -> Arc<dyn ChatModel> {
    Arc::new(ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::tool_call("weather", json!({"city": "Oslo"}))
            .and_tool_call("trains", json!({"city": "Oslo"}))
            .with_usage(agentgraph_llm::Usage::new(20, 10)),
        _ => Reply::text("Take a coat, and the bus.").with_usage(agentgraph_llm::Usage::new(40, 5)),
    }))
}

/// A workflow whose node is the agent.
fn graph(model: Arc<dyn ChatModel>) -> Result<CompiledGraph<AgentState>> {
    let guide = Agent::new(model).name("guide").tool(weather()).tool(trains()).compile()?;
    Ok(StateGraph::new().node("guide", guide).edge(START, "guide").compile()?)
}

/// What is sent, in batches, on threads of its own.
struct Telemetry {
    spans: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Telemetry {
    fn new(spans: SpanExporter, metrics: MetricExporter) -> Self {
        let resource = Resource::builder().with_service_name("trip-advisor").build();
        // A long queue, since spans that do not fit are dropped.
        let queue = BatchConfigBuilder::default().with_max_queue_size(10_000).build();
        let spans = BatchSpanProcessor::builder(spans).with_batch_config(queue).build();
        Telemetry {
            spans: SdkTracerProvider::builder()
                .with_span_processor(spans)
                .with_resource(resource.clone())
                .build(),
            metrics: SdkMeterProvider::builder()
                .with_periodic_exporter(metrics)
                .with_view(histogram)
                .with_resource(resource)
                .build(),
        }
    }

    fn subscriber(&self) -> impl tracing_subscriber::util::SubscriberInitExt + tracing::Subscriber + use<> {
        // The exporter's own HTTP client is silent, so that its spans are not exported in turn.
        let spans = tracing_opentelemetry::layer().with_tracer(self.spans.tracer("agentgraph"));
        let metrics = MetricsLayer::new(self.metrics.clone());
        tracing_subscriber::registry()
            .with(spans.with_filter(EnvFilter::new("off,agentgraph=info,agentgraph_llm=info")))
            .with(metrics.with_filter(EnvFilter::new("off,agentgraph_llm::metrics=trace")))
    }

    /// Sends what is left. Without a collector the run is none the worse.
    fn end(&self) {
        let ends = [("spans", self.spans.shutdown()), ("metrics", self.metrics.shutdown())];
        for (what, end) in ends {
            if let Err(error) = end {
                println!("The {what} were not sent: {error}");
            }
        }
    }
}

/// The units and bounds of the GenAI conventions; a `tracing` event has neither.
fn histogram(instrument: &Instrument) -> Option<Stream> {
    let (unit, boundaries) = match instrument.name() {
        "gen_ai.client.token.usage" => ("{token}", (0..14).map(|power| 4_f64.powi(power)).collect()),
        "gen_ai.client.operation.duration" => ("s", doubling(0.01)),
        "gen_ai.client.operation.time_to_first_chunk" => ("s", doubling(0.001)),
        _ => return None,
    };
    let aggregation = Aggregation::ExplicitBucketHistogram { boundaries, record_min_max: true };
    Stream::builder().with_unit(unit).with_aggregation(aggregation).build().ok()
}

fn doubling(first: f64) -> Vec<f64> {
    (0..14).map(|power| first * 2_f64.powi(power)).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let spans = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson).build()?;
    let metrics = MetricExporter::builder().with_http().with_protocol(Protocol::HttpJson).build()?;
    let telemetry = Telemetry::new(spans, metrics);
    telemetry.subscriber().init();
    // `ContentCapture::new().install()` here would send what is asked and answered, too.

    let named = example_model::from_args()?;
    let is_script = named.is_none();
    let talk = graph(named.unwrap_or_else(script))?.invoke("How do I get to Oslo?").finish().await?;
    let answer = talk.messages.last().map(Message::text).unwrap_or_default();
    println!("{answer}");
    assert!(!is_script || answer == "Take a coat, and the bus.");
    telemetry.end();
    Ok(())
}

#[cfg(test)]
#[path = "../collector.rs"]
#[allow(dead_code)]
mod collector;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use tokio::task::JoinSet;

    use super::collector::{Collector, attribute, list, tree};
    use super::*;

    /// The tree of a run. The calls of the tools run at the same time.
    const TREE: [&str; 20] = [
        "invoke_workflow",
        "  superstep",
        "    guide",
        "      attempt",
        "        invoke_agent guide",
        "          superstep",
        "            model",
        "              attempt",
        "                chat scripted",
        "          superstep",
        "            tools",
        "              attempt",
        "                execute_tool weather",
        "            tools",
        "              attempt",
        "                execute_tool trains ERROR",
        "          superstep",
        "            model",
        "              attempt",
        "                chat scripted",
    ];

    fn telemetry(collector: &Collector) -> Telemetry {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let spans = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson);
        let metrics = MetricExporter::builder().with_http().with_protocol(Protocol::HttpJson);
        Telemetry::new(
            spans.with_endpoint(collector.endpoint("traces")).build().unwrap(),
            metrics.with_endpoint(collector.endpoint("metrics")).build().unwrap(),
        )
    }

    /// Runs the workflow so many times at once, and returns what the collector has received.
    async fn runs(number: usize) -> Collector {
        let collector = Collector::start();
        let telemetry = telemetry(&collector);
        let guard = tracing::subscriber::set_default(telemetry.subscriber());
        let graph = graph(script()).unwrap();
        let mut runs = JoinSet::new();
        for _ in 0..number {
            let graph = graph.clone();
            runs.spawn(async move {
                graph.invoke("How do I get to Oslo?").await.unwrap().into_finished().unwrap()
            });
        }
        assert_eq!(runs.join_all().await.len(), number);
        drop(guard);
        telemetry.spans.shutdown().unwrap();
        telemetry.metrics.shutdown().unwrap();
        collector
    }

    fn lines(spans: &[Value]) -> Vec<String> {
        let mut lines = Vec::new();
        tree(spans, "", 0, &mut lines);
        lines
    }

    #[tokio::test]
    async fn a_collector_receives_a_run_with_its_agent_its_models_and_its_tools() {
        let collector = runs(1).await;
        let spans = collector.spans();
        assert_eq!(lines(&spans), TREE);
        let span = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
        assert_eq!(attribute(span("invoke_agent guide"), "gen_ai.agent.name"), "guide");
        let chat = span("chat scripted");
        assert_eq!(chat["kind"], 3, "a client");
        assert_eq!(attribute(chat, "gen_ai.provider.name"), "scripted");
        let tool = span("execute_tool weather");
        assert_eq!(attribute(tool, "gen_ai.tool.name"), "weather");
        assert_eq!(attribute(span("execute_tool trains"), "error.type"), "failed");
        let all = format!("{:?}{:?}", spans, collector.received("metrics"));
        assert!(!all.contains("Oslo") && !all.contains("coat"), "no content leaves the program");
    }

    #[tokio::test]
    async fn a_hundred_runs_at_once_are_a_hundred_trees() {
        let mut traces: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for span in runs(100).await.spans() {
            traces.entry(span["traceId"].as_str().unwrap().to_owned()).or_default().push(span);
        }
        assert_eq!(traces.len(), 100);
        for spans in traces.values() {
            let mut expected = TREE.to_vec();
            let mut lines = lines(spans);
            // Spans that begin together may be in any order.
            expected.sort_unstable();
            lines.sort_unstable();
            assert_eq!(lines, expected);
        }
    }

    #[tokio::test]
    async fn a_collector_receives_the_metrics_of_the_model_calls() {
        let collector = runs(3).await;
        let requests = collector.received("metrics");
        let metrics: Vec<_> = requests
            .iter()
            .flat_map(|request| list(&request["resourceMetrics"]))
            .flat_map(|resource| list(&resource["scopeMetrics"]))
            .flat_map(|scope| list(&scope["metrics"]))
            .collect();
        let points = |name: &str, unit: &str| {
            let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
            assert_eq!(metric["unit"], unit, "{name}");
            list(&metric["histogram"]["dataPoints"])
        };
        let tokens = points("gen_ai.client.token.usage", "{token}");
        for (kind, sum) in [("input", 180.0), ("output", 45.0)] {
            let of = tokens.iter().find(|point| attribute(point, "gen_ai.token.type") == kind).unwrap();
            assert_eq!((of["sum"].as_f64(), &of["count"]), (Some(sum), &json!("6")), "{kind}: {of:#}");
            assert_eq!(list(&of["explicitBounds"]).len(), 14);
        }
        let times = points("gen_ai.client.operation.duration", "s");
        assert_eq!((times.len(), &times[0]["count"]), (1, &json!("6")));
        assert_eq!(attribute(&times[0], "gen_ai.request.model"), "scripted");
        let waits = points("gen_ai.client.operation.time_to_first_chunk", "s");
        assert_eq!((waits.len(), &waits[0]["count"]), (1, &json!("6")));
    }
}
