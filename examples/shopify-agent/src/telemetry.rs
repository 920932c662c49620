//! Traces: a span for each node, model call and tool, sent over OTLP if the standard variables name a
//! collector.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer};

/// The variables that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The exporter of this process. Its last spans are sent when it is shut down.
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Logs warnings to the standard error stream, and sends spans if a collector is named. Address and
    /// headers come from `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// # Errors
    /// If a variable cannot be used.
    pub fn install() -> Result<Self, ExporterBuildError> {
        let log_filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_filter(log_filter);
        let is_named = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
        if !ENDPOINTS.iter().any(is_named) {
            // An error means that a test has installed its own.
            let _ = tracing_subscriber::registry().with(log).try_init();
            return Ok(Traces(None));
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpJson).build()?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("shopify-agent").build())
            .build();
        // The exporter's own HTTP client is silent, so that its spans are not exported in turn.
        let filter = EnvFilter::new("off,agentgraph=info,agentgraph_llm=info,shopify_agent=info");
        let spans =
            tracing_opentelemetry::layer().with_tracer(provider.tracer("shopify-agent")).with_filter(filter);
        let _ = tracing_subscriber::registry().with(log).with(spans).try_init();
        Ok(Traces(Some(provider)))
    }

    /// Sends what is left. Blocks, so it is called outside of the runtime.
    pub fn shut_down(self) {
        if let Some(Err(error)) = self.0.map(|provider| provider.shutdown()) {
            eprintln!("The last spans were not sent: {error}");
        }
    }
}
