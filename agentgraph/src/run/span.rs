//! The span of a call: its thread, its run, and how it ended.

use tracing::Span;
use tracing::field::{Empty, display};

use crate::error::Error;
use crate::spans::record_end;
use crate::words::Outcome;
use agentgraph_checkpoint::RunId;

/// The span of a call on a thread. Its run is recorded when it is known.
pub(super) fn run_span(thread: Option<&str>, agent: Option<&str>) -> Span {
    let operation = if agent.is_some() { "invoke_agent" } else { "invoke_workflow" };
    let name = agent.map_or_else(|| operation.to_owned(), |agent| format!("{operation} {agent}"));
    tracing::info_span!(
        target: "agentgraph",
        "run",
        otel.name = name,
        gen_ai.operation.name = operation,
        gen_ai.agent.name = agent,
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
