//! The span of one attempt of a task, and that of an agent in it.

use std::sync::Arc;

use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::attempt::{CatchPanic, invoke};
use crate::context::{Control, TaskRequest};
use crate::erased::{AnyNode, NodeFuture};
use crate::error::BoxError;
use crate::extract::Task;
use crate::node::error_code::code_of;
use crate::spans::record_end;
use crate::state::State;
use crate::typed::AnyState;

/// The span of an attempt, inside the current span, which is that of the node.
pub(crate) fn attempt_span(attempt: u32) -> Span {
    tracing::info_span!(
        target: "agentgraph",
        "attempt",
        attempt,
        status = Empty,
        error.type = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Calls a node without policies, which has one attempt, in the span of that attempt.
pub(crate) fn invoke_in_span(node: &dyn AnyNode, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
    let request = task.request;
    let span = attempt_span(request.attempt);
    if span.is_disabled() {
        return invoke(node, task);
    }
    let shared = Arc::clone(task.shared);
    let call = span.in_scope(|| CatchPanic::new(|| invoke(node, task)));
    Box::pin(async move {
        let result = call.instrument(span.clone()).await;
        record_attempt(&span, &shared.control, request, result.as_ref().err());
        result
    })
}

/// Runs an agent that is a node, in a span of its own. Its name is that of a run of the agent by itself.
#[cold]
pub(crate) fn in_agent_span<S: State>(agent: &str, task: &Task<'_, S>, call: NodeFuture<S>) -> NodeFuture<S> {
    let (request, shared) = (task.request, Arc::clone(task.shared));
    let span = tracing::info_span!(
        target: "agentgraph",
        "agent",
        otel.name = format_args!("invoke_agent {agent}"),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = shared.thread.as_deref(),
        status = Empty,
        error.type = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    Box::pin(async move {
        let result = call.instrument(span.clone()).await;
        record_attempt(&span, &shared.control, request, result.as_ref().err());
        result
    })
}

/// Records how an attempt ended. A task that waits has not failed, whatever its node made of the error.
pub(crate) fn record_attempt(span: &Span, control: &Control, task: TaskRequest, error: Option<&BoxError>) {
    if span.is_disabled() {
        return;
    }
    let waits = if control.in_use() { control.span_end(task.index) } else { None };
    record_end(span, waits.unwrap_or_else(|| error.map_or(Ok("done"), |error| Err(code_of(error)))));
}
