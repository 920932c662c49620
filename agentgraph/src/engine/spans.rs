//! [`Spans`]: the spans of supersteps and nodes in one call.
//!
//! A call has them if a subscriber may listen when it begins. A call without them does not look at a span
//! again.

use std::sync::Arc;

use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::attempt::{CatchPanic, attempt_span, record_attempt};
use crate::context::{RunShared, TaskRequest};
use crate::engine::executor::NoOutput;
use crate::engine::host::TaskRunner;
use crate::erased::NodeFuture;
use crate::error::{BoxError, Code};
use crate::extract::Task;
use crate::graph::run_graph::RunGraph;
use crate::spans::{SpanEnd, may_be_heard, record_end, record_error};
use crate::typed::AnyState;
use agentgraph_checkpoint::engine::Lock;

/// The open spans of a call, below that of the run. Dropping it closes them.
pub(crate) struct Spans {
    /// The superstep under way; disabled between supersteps, and in runs without.
    step: Span,
    returned: Returned,
}

/// The spans of nodes that have returned and are not judged yet, by the index of their task. The span of a
/// running task is in its future, so dropping the task closes it.
type Returned = Arc<Lock<Vec<(u32, Span)>>>;

impl Spans {
    /// The spans of a call that begins, if a subscriber may listen.
    pub(crate) fn of_call() -> Option<Box<Self>> {
        may_be_heard().then(|| Box::new(Spans { step: Span::none(), returned: Returned::default() }))
    }

    /// Opens the span of a superstep.
    #[cold]
    pub(super) fn begin_step(&mut self, step: u64) {
        self.step = tracing::info_span!(
            target: "agentgraph",
            "superstep",
            step,
            error.type = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
        );
    }

    /// Closes the span of the superstep. `failed`: the superstep was not committed because of this error.
    #[cold]
    pub(super) fn end_step(&mut self, failed: Option<Code>) {
        let step = std::mem::replace(&mut self.step, Span::none());
        if let Some(code) = failed {
            record_error(&step, code);
        }
    }

    /// Calls a task in the span of its node.
    #[cold]
    pub(super) fn call(
        &self,
        runner: &TaskRunner,
        core: &RunGraph,
        task: &Task<'_, AnyState>,
    ) -> NodeFuture<AnyState> {
        self.in_node(core.name(task.request.node), task.request, || runner.call(core, task, true))
    }

    /// Calls a node in its span.
    #[cold]
    pub(super) fn in_node(
        &self,
        node: &str,
        task: TaskRequest,
        call: impl FnOnce() -> NodeFuture<AnyState>,
    ) -> NodeFuture<AnyState> {
        let span = self.node(node, task);
        if span.is_disabled() {
            return call();
        }
        let returned = Arc::clone(&self.returned);
        let call = span.in_scope(|| CatchPanic::new(call));
        Box::pin(async move {
            let result = call.instrument(span.clone()).await;
            returned.lock().push((task.index, span));
            result
        })
    }

    /// Awaits an attempt of a task in the span of its node.
    pub(crate) async fn around<T>(
        &self,
        node: &str,
        task: TaskRequest,
        attempt: impl Future<Output = T>,
    ) -> T {
        let span = self.node(node, task);
        let ended = attempt.instrument(span.clone()).await;
        self.returned.lock().push((task.index, span));
        ended
    }

    /// Calls a synchronous node in its span, and in that of its only attempt.
    pub(super) fn call_now<T>(
        &self,
        node: &str,
        task: TaskRequest,
        shared: &RunShared,
        call: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let span = self.node(node, task);
        let result = span.in_scope(|| {
            let attempt = attempt_span(task.attempt);
            let result = attempt.in_scope(call);
            record_attempt(&attempt, &shared.control, task, result.as_ref().err());
            result
        });
        self.returned.lock().push((task.index, span));
        result
    }

    /// The span of a node, inside that of its superstep. Without one, inside the current span.
    fn node(&self, node: &str, task: TaskRequest) -> Span {
        let TaskRequest { step, index, .. } = task;
        self.step.in_scope(|| {
            tracing::info_span!(
                target: "agentgraph",
                "node",
                otel.name = node,
                node,
                step,
                index,
                status = Empty,
                error.type = Empty,
                otel.status_code = Empty,
                otel.status_description = Empty,
            )
        })
    }

    /// Closes the span of a task that was judged.
    #[cold]
    pub(crate) fn end_task(&self, index: u32, end: SpanEnd) {
        let mut returned = self.returned.lock();
        let at = returned.iter().position(|(other, _)| *other == index);
        let span = at.map(|at| returned.swap_remove(at).1);
        // A subscriber may do anything when a span closes.
        drop(returned);
        if let Some(span) = span {
            record_end(&span, end);
        }
    }
}

impl NoOutput {
    /// The end of its task, as its span shows it.
    pub(in crate::engine) fn span_end(&self) -> SpanEnd {
        match self {
            NoOutput::Waits(_) => Ok("interrupted"),
            NoOutput::Refused(_) => Err(Code::BadAnswer),
            NoOutput::Failed(error) => Err(error.code()),
            NoOutput::Inside(pause) => pause.span_end(),
            NoOutput::Leaves(_) => Ok("done"),
        }
    }
}
