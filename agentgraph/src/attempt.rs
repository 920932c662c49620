//! Attempts of a task: the calls of its node, under its policies.

mod cached;
mod elsewhere;
mod panic;
mod span;

use cached::Entry;
use elsewhere::attempt_elsewhere;
pub(crate) use panic::{CatchPanic, guarded};
pub(crate) use span::{attempt_span, in_agent_span, invoke_in_span, record_attempt};

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use crate::context::edits::Edits;
use crate::context::{RunShared, TaskRequest, is_final};
use crate::erased::layer::NodeCall;
use crate::erased::{AnyNode, NodeFuture, NodeResult};
use crate::extract::Task;
use crate::policy::{Cache, Policies, within};
use crate::state::State;
use crate::step::Step;
use crate::typed::AnyState;
use crate::words::Timeouts;

/// Calls a node with policies: one attempt after the other, each under the timeouts, and in a span of its own
/// if the call is traced.
pub(crate) fn call_with_policies(
    node: Arc<dyn AnyNode>,
    policies: Arc<Policies>,
    task: &Task<'_, AnyState>,
    traced: bool,
) -> NodeFuture<AnyState> {
    let call = NodeCall::of(task);
    Box::pin(async move {
        let mut attempt = 1;
        loop {
            let EndedAttempt { result, waits, next_in } =
                attempt_once(&node, &policies, &call, attempt, traced).await;
            let Err(error) = result else { return result };
            let task = call.task();
            let request = TaskRequest { attempt, ..task.request };
            if let Some(sink) =
                task.shared.audience.sink.as_ref().filter(|_| !waits && !policies.retry.is_empty())
            {
                sink.attempt_failed(request, &error, next_in);
            }
            let Some(wait) = next_in else { return Err(error) };
            task.shared.services.sleep(wait).await;
            attempt += 1;
            task.shared.control.note_attempts(task.request.index, attempt);
            if let Some(sink) = &task.shared.audience.sink {
                sink.attempt_started(TaskRequest { attempt, ..request });
            }
        }
    })
}

/// The end of an attempt.
pub(crate) struct EndedAttempt {
    pub(crate) result: NodeResult<AnyState>,
    /// Whether the task waits for an answer: then it has not failed.
    pub(crate) waits: bool,
    /// The wait before the next attempt, if the policies want one.
    pub(crate) next_in: Option<Duration>,
}

/// Makes one attempt under the timeouts, and judges its failure.
pub(crate) async fn attempt_once(
    node: &Arc<dyn AnyNode>,
    policies: &Policies,
    call: &NodeCall<AnyState>,
    attempt: u32,
    traced: bool,
) -> EndedAttempt {
    let result = if traced {
        Box::pin(attempt_in_span(node, call, attempt, policies)).await
    } else {
        one_attempt(node, call, attempt, policies).await
    };
    let task = call.task();
    let shared = task.shared;
    let result = make_edits(shared, TaskRequest { attempt, ..task.request }, result);
    let Err(error) = &result else {
        if shared.control.in_use() {
            shared.control.keep_edits_of(task.request.index, attempt);
        }
        return EndedAttempt { result, waits: false, next_in: None };
    };
    let waits = shared.control.is_closed(task.request.index);
    let mut retry = policies.retry.iter().filter(|_| !waits);
    let policy = retry.find(|policy| policy.retries(attempt, error) && !is_final(error));
    let next_in = policy.map(|policy| policy.wait(attempt, shared.services.random()));
    EndedAttempt { result, waits, next_in }
}

/// Calls a node so that chat models inside it are streamed if the caller asked for messages.
#[inline]
pub(crate) fn invoke(node: &dyn AnyNode, task: &Task<'_, AnyState>) -> NodeFuture<AnyState> {
    match task.shared.audience.messages {
        false => node.call(task),
        true => task.ctx().scope(node.call(task)),
    }
}

/// One attempt in its span. The edits of a command are made in it, too: making them again changes nothing.
async fn attempt_in_span(
    node: &Arc<dyn AnyNode>,
    call: &NodeCall<AnyState>,
    attempt: u32,
    policies: &Policies,
) -> NodeResult<AnyState> {
    let span = attempt_span(attempt);
    let result = one_attempt(node, call, attempt, policies).instrument(span.clone()).await;
    let task = call.task();
    let request = TaskRequest { attempt, ..task.request };
    let result = make_edits(task.shared, request, result);
    record_attempt(&span, &task.shared.control, request, result.as_ref().err());
    result
}

async fn one_attempt(
    node: &Arc<dyn AnyNode>,
    call: &NodeCall<AnyState>,
    attempt: u32,
    policies: &Policies,
) -> NodeResult<AnyState> {
    let mut task = call.task();
    task.request.attempt = attempt;
    match &policies.cache {
        None => admitted_attempt(node, &task, policies).await,
        Some(cache) => Box::pin(cached_attempt(cache, node, &task, policies)).await,
    }
}

async fn cached_attempt(
    cache: &Cache,
    node: &Arc<dyn AnyNode>,
    task: &Task<'_, AnyState>,
    policies: &Policies,
) -> NodeResult<AnyState> {
    let entry = Entry::of(cache, task)?;
    let control = &task.shared.control;
    if let Some(step) = entry.find().await {
        control.note_cached(task.request.index);
        return Ok(step);
    }
    let result = admitted_attempt(node, task, policies).await;
    if control.is_reusable(task.request.index) {
        entry.keep(&result).await;
    }
    result
}

/// Makes an attempt once the node's breaker and limit allow it.
async fn admitted_attempt(
    node: &Arc<dyn AnyNode>,
    task: &Task<'_, AnyState>,
    policies: &Policies,
) -> NodeResult<AnyState> {
    let services = &*task.shared.services;
    let breaker = policies.breaker.as_ref();
    // Before waiting for a place: fail fast while the service is down.
    breaker.map(|breaker| breaker.check(services)).transpose()?;
    let _place = match &policies.limit {
        None => None,
        Some(limit) => limit.enter(services).await,
    };
    // Again after the wait: earlier attempts may have failed meanwhile.
    let admitted = breaker.map(|breaker| breaker.admit(services)).transpose()?;
    let result = timed_attempt(node, task, policies).await;
    match (admitted, &result) {
        (Some(admitted), Ok(_)) => admitted.succeeded(),
        (Some(admitted), Err(error)) => {
            if !is_final(error) && !task.shared.control.is_closed(task.request.index) {
                admitted.failed(services);
            }
        }
        (None, _) => {}
    }
    result
}

async fn timed_attempt(
    node: &Arc<dyn AnyNode>,
    task: &Task<'_, AnyState>,
    policies: &Policies,
) -> NodeResult<AnyState> {
    let shared = task.shared;
    let run = match policies.elsewhere {
        None => CatchPanic::new(|| invoke(&**node, task)),
        Some(place) => {
            CatchPanic::of(Box::pin(attempt_elsewhere(place, Arc::clone(node), NodeCall::of(task))))
        }
    };
    match policies.timeouts {
        Timeouts { run: None, idle: None } => run.await,
        limited => {
            let stops = policies.elsewhere.is_none();
            let at = (task.request.step, task.request.index);
            // Boxed: few nodes have a time limit, and the future of every attempt would have room for it.
            Box::pin(within(limited, stops, at, &shared.bounds.beats, &*shared.services, run)).await
        }
    }
}

/// Makes the edits of the command that a node returned. A refused edit fails the node.
pub(crate) fn make_edits<S: State>(
    shared: &Arc<RunShared>,
    request: TaskRequest,
    result: NodeResult<S>,
) -> NodeResult<S> {
    let Ok(Step::Command(mut command)) = result else { return result };
    if !command.edits.is_empty() {
        let edits = Edits::new(Arc::clone(shared), request);
        for edit in std::mem::take(&mut command.edits) {
            edit(&edits)?;
        }
    }
    Ok(Step::Command(command))
}
