//! Spans and metrics with the OpenTelemetry GenAI names. They contain sizes, ids and reasons, and content
//! only where a program has [asked for it](ContentCapture).
//!
//! A metric is an event whose field is named after its kind and its name, `histogram.gen_ai...`: the form
//! that the metrics layer of `tracing-opentelemetry` takes.
//!
//! `tracing` wants static span names, so the readable one (`chat claude-...`) is in `otel.name`, which the
//! OpenTelemetry bridge takes as the span's name.

mod capture;
mod content;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tracing::field::{Empty, display};
use tracing::{Level, Span};

use crate::error::Error;
use crate::message::ToolUse;
use crate::model::{ChatEvent, ChatRequest, ChatResponse, ModelInfo};
use crate::sent_key::SentKey;
use crate::tool::{ToolError, ToolOutput};
use content::Content;

pub use capture::ContentCapture;

/// The target of the events that are metrics.
const METRICS: &str = "agentgraph_llm::metrics";

/// The span and the metrics of one model call.
pub(crate) struct ChatTrace {
    span: Span,
    info: ModelInfo,
    begun: Instant,
    capture: Option<Arc<ContentCapture>>,
    /// The key of the newest attempt.
    key: Mutex<Option<SentKey>>,
}

impl ChatTrace {
    pub(crate) fn begin(info: ModelInfo, request: &ChatRequest) -> Self {
        let span = chat_span(&info, request);
        let capture = capture_for(&span);
        ChatTrace { span, info, begun: Instant::now(), capture, key: Mutex::new(None) }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Records that the request is about to be sent with this key. Of several attempts the first counts.
    pub(crate) fn record_request(&self, request: &ChatRequest, key: &SentKey) {
        let earlier = self.key.lock().unwrap_or_else(PoisonError::into_inner).replace(key.clone());
        let Some(content) = self.content().filter(|_| earlier.is_none()) else { return };
        if let Some(system) = &request.system {
            record_json(&self.span, "gen_ai.system_instructions", &content.system(system));
        }
        record_json(&self.span, "gen_ai.input.messages", &content.input(request));
    }

    fn content(&self) -> Option<Content> {
        let key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key.as_ref().and_then(SentKey::searched);
        self.capture.as_ref().map(|capture| capture.content(key))
    }

    /// Records an event of the response, or the error that ends it.
    pub(crate) fn record(&self, event: Result<&ChatEvent, &Error>) {
        match event {
            Ok(ChatEvent::Finished(response)) => self.end(Ok(response)),
            Ok(_) => {}
            Err(error) => self.end(Err(error)),
        }
    }

    /// Records the end of the call.
    pub(crate) fn end(&self, result: Result<&ChatResponse, &Error>) {
        match result {
            Ok(response) => {
                record_response(&self.span, response);
                if let Some(content) = self.content() {
                    record_json(&self.span, "gen_ai.output.messages", &content.output(response));
                }
                self.count_tokens("input", response.usage.input_total, response);
                self.count_tokens("output", response.usage.output_total, response);
            }
            Err(error) => record_error(&self.span, error.code().as_str()),
        }
        tracing::event!(
            target: METRICS,
            parent: &self.span,
            Level::TRACE,
            histogram.gen_ai.client.operation.duration = self.begun.elapsed().as_secs_f64(),
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = &*self.info.provider,
            gen_ai.request.model = self.info.model.as_str(),
            "error.type" = result.err().map(|error| error.code().as_str()),
        );
    }

    /// Records that the response began.
    pub(crate) fn record_first_piece(&self) {
        let waited = self.begun.elapsed().as_secs_f64();
        self.span.record("gen_ai.response.time_to_first_chunk", waited);
        tracing::event!(
            target: METRICS,
            parent: &self.span,
            Level::TRACE,
            histogram.gen_ai.client.operation.time_to_first_chunk = waited,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = &*self.info.provider,
            gen_ai.request.model = self.info.model.as_str(),
        );
    }

    fn count_tokens(&self, kind: &str, tokens: u64, response: &ChatResponse) {
        tracing::event!(
            target: METRICS,
            parent: &self.span,
            Level::TRACE,
            histogram.gen_ai.client.token.usage = tokens,
            "gen_ai.token.type" = kind,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = &*self.info.provider,
            gen_ai.request.model = self.info.model.as_str(),
            gen_ai.response.model = response.model.as_str(),
        );
    }
}

fn chat_span(info: &ModelInfo, request: &ChatRequest) -> Span {
    let model = info.model.as_str();
    let span = tracing::info_span!(
        "chat",
        otel.name = format_args!("chat {model}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = &*info.provider,
        gen_ai.request.model = model,
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = Empty,
        gen_ai.request.temperature = Empty,
        gen_ai.request.top_p = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gen_ai.system_instructions = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        "error.type" = Empty,
    );
    if let Some(tokens) = request.max_tokens {
        span.record("gen_ai.request.max_tokens", tokens);
    }
    if let Some(temperature) = request.temperature {
        span.record("gen_ai.request.temperature", f64::from(temperature));
    }
    if let Some(share) = request.top_p {
        span.record("gen_ai.request.top_p", f64::from(share));
    }
    span
}

fn record_response(span: &Span, response: &ChatResponse) {
    let usage = &response.usage;
    span.record("gen_ai.response.id", response.id.as_str());
    span.record("gen_ai.response.model", response.model.as_str());
    span.record("gen_ai.response.finish_reasons", response.stop.as_str());
    span.record("gen_ai.usage.input_tokens", usage.input_total);
    span.record("gen_ai.usage.output_tokens", usage.output_total);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.input_cached_read);
    span.record("gen_ai.usage.cache_creation.input_tokens", usage.input_cache_write);
    span.record("gen_ai.usage.reasoning.output_tokens", usage.output_reasoning);
}

fn record_error(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// What is captured in the span; `None` if it is disabled.
fn capture_for(span: &Span) -> Option<Arc<ContentCapture>> {
    if span.is_disabled() { None } else { ContentCapture::installed() }
}

fn record_json(span: &Span, field: &str, value: &Value) {
    span.record(field, display(value));
}

/// The span of one tool call.
pub(crate) struct ToolTrace {
    span: Span,
    content: Option<Content>,
}

impl ToolTrace {
    pub(crate) fn begin(call: &ToolUse) -> Self {
        let span = tool_span(call);
        let content = capture_for(&span).map(|capture| capture.content(None));
        if let Some(arguments) = content.as_ref().and_then(|content| content.arguments(call)) {
            record_json(&span, "gen_ai.tool.call.arguments", &arguments);
        }
        ToolTrace { span, content }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Records the end of the call.
    pub(crate) fn end(&self, outcome: Result<&ToolOutput, &ToolError>) {
        match (outcome, &self.content) {
            (Ok(output), Some(content)) => {
                record_json(&self.span, "gen_ai.tool.call.result", &content.result(output));
            }
            (Ok(_), None) => {}
            (Err(error), _) => record_error(&self.span, tool_error_type(error)),
        }
    }
}

fn tool_span(call: &ToolUse) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {}", call.name),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        "gen_ai.tool.type" = "function",
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        "error.type" = Empty,
    )
}

fn tool_error_type(error: &ToolError) -> &'static str {
    match error {
        ToolError::InvalidArguments(_) => "invalid_arguments",
        ToolError::Failed(_) => "failed",
        ToolError::Fatal(_) => "fatal",
    }
}
