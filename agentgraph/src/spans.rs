//! How the work of a span ended: the fields that every span of the engine has in common.
//!
//! A span holds names, numbers and codes. The message of an error is the node's own text, which may quote the
//! state, so only its code is recorded. A span without a status was dropped before its work ended.

use tracing::level_filters::LevelFilter;
use tracing::{Level, Span};

use crate::error::Code;

/// The end of a span's work: its status, or the code of its error.
pub(crate) type SpanEnd = Result<&'static str, Code>;

/// Whether a subscriber may listen to spans. One load, so calls ask it once and not in every step.
pub(crate) fn may_be_heard() -> bool {
    LevelFilter::current() >= Level::INFO
}

/// Records how the work of a span ended.
pub(crate) fn record_end(span: &Span, end: SpanEnd) {
    match end {
        Ok(status) => {
            span.record("status", status);
        }
        Err(code) => {
            span.record("status", "failed");
            record_error(span, code);
        }
    }
}

/// Marks a span as failed.
pub(crate) fn record_error(span: &Span, code: Code) {
    span.record("error.type", code.as_str());
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", code.as_str());
}
