//! The span of a call: its thread, its run, and how it ended.

use tracing::Span;
use tracing::field::{Empty, display};

use crate::error::Error;
use crate::spans::record_end;
use crate::words::Outcome;
use agentgraph_checkpoint::RunId;

/// The span of a call on a thread. Its run is recorded when it is known.
pub(super) fn run_span(thread: Option<&str>) -> Span {
    tracing::info_span!(
        target: "agentgraph",
        "run",
        otel.name = "invoke_workflow",
        gen_ai.operation.name = "invoke_workflow",
        gen_ai.conversation.id = thread,
        thread,
        run = Empty,
        status = Empty,
        reason = Empty,
        error.type = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Records the run of a call.
pub(super) fn record_run(span: &Span, run: RunId) {
    if !span.is_disabled() {
        span.record("run", display(run));
    }
}

/// Records how a call ended.
pub(super) fn record_outcome<O>(span: &Span, outcome: &Result<Outcome<O>, Error>) {
    if span.is_disabled() {
        return;
    }
    if let Ok(Outcome::Stopped { reason, .. }) = outcome {
        span.record("reason", reason.as_str());
    }
    record_end(span, outcome.as_ref().map(Outcome::status).map_err(Error::code));
}
