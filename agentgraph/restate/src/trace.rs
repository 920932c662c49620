//! One trace from a caller over the server to the nodes, in the W3C headers `traceparent` and `tracestate`.
//!
//! The server continues the trace of a request and keeps it with the invocation, so each attempt, on
//! whichever worker, is sent with the headers of that attempt's parent. Without the feature
//! `opentelemetry` there are spans, but no trace connects them.

#[cfg(feature = "opentelemetry")]
use std::collections::HashMap;

use hyper::Request;
#[cfg(feature = "opentelemetry")]
use opentelemetry::propagation::TextMapPropagator;
#[cfg(feature = "opentelemetry")]
use opentelemetry_sdk::propagation::TraceContextPropagator;
use reqwest::header::HeaderMap;
use tracing::Span;
#[cfg(feature = "opentelemetry")]
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Adds the current span to the headers of a request.
#[cfg(feature = "opentelemetry")]
pub(crate) fn inject(headers: &mut HeaderMap) {
    let mut sent = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut sent);
    for (name, value) in sent {
        if let (Ok(name), Ok(value)) = (reqwest::header::HeaderName::try_from(name), value.parse()) {
            headers.insert(name, value);
        }
    }
}

#[cfg(not(feature = "opentelemetry"))]
pub(crate) fn inject(_: &mut HeaderMap) {}

/// The span of one attempt of an invocation, below the server's; disabled for other requests of the server.
pub(crate) fn of_attempt<B>(request: &Request<B>) -> Span {
    let Some(handler) = request.uri().path().split_once("/invoke/").map(|(_, handler)| handler) else {
        return Span::none();
    };
    let invocation = request.headers().get("x-restate-invocation-id").and_then(|id| id.to_str().ok());
    let span = tracing::info_span!(
        target: "agentgraph",
        parent: None,
        "handler",
        otel.name = handler,
        otel.kind = "server",
        handler,
        invocation,
    );
    continue_trace(&span, request.headers());
    span
}

#[cfg(feature = "opentelemetry")]
fn continue_trace(span: &Span, headers: &HeaderMap) {
    let values =
        headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let context = TraceContextPropagator::new().extract(&values.collect::<HashMap<_, _>>());
    // Fails where no subscriber sends spans anywhere.
    let _ = span.set_parent(context);
}

#[cfg(not(feature = "opentelemetry"))]
fn continue_trace(_: &Span, _: &HeaderMap) {}
