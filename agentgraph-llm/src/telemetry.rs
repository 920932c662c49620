//! Spans with the OpenTelemetry GenAI names. They contain sizes, ids and reasons, never content.
//!
//! `tracing` wants static span names, so the readable one (`chat claude-...`) is in `otel.name`, which the
//! OpenTelemetry bridge takes as the span's name.

use tracing::Span;
use tracing::field::Empty;

use crate::error::Error;
use crate::message::ToolUse;
use crate::model::{ChatRequest, ChatResponse, ModelInfo};
use crate::tool::ToolError;

/// The span of one model call.
pub(crate) fn chat_span(info: &ModelInfo, request: &ChatRequest) -> Span {
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
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        "error.type" = Empty,
    );
    if let Some(tokens) = request.max_tokens {
        span.record("gen_ai.request.max_tokens", tokens);
    }
    if let Some(temperature) = request.temperature {
        span.record("gen_ai.request.temperature", f64::from(temperature));
    }
    span
}

/// Records the end of a model call.
pub(crate) fn record_chat(span: &Span, result: Result<&ChatResponse, &Error>) {
    match result {
        Ok(response) => record_response(span, response),
        Err(error) => record_error(span, error.code().as_str()),
    }
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

/// The span of one tool call.
pub(crate) fn tool_span(call: &ToolUse) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {}", call.name),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
    )
}

/// Records the error of a tool call.
pub(crate) fn record_tool_error(span: &Span, error: &ToolError) {
    let kind = match error {
        ToolError::InvalidArguments(_) => "invalid_arguments",
        ToolError::Failed(_) => "failed",
        ToolError::Fatal(_) => "fatal",
    };
    record_error(span, kind);
}
