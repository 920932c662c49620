//! [`RunningStep`]: a durable step under way, and its access to its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use serde::Serialize;

use super::results::{OnceStorage, Produced};
use super::{OnceError, place_of};
use crate::context::{RunShared, TaskRequest};
use crate::record::once::OnceKey;
use crate::words::StepEvent;
use agentgraph_checkpoint::delta::encode;

/// A step under way. Dropping it lets a later call run the step.
pub(super) struct RunningStep {
    reporter: StepReporter,
    /// The call of the node's function that it belongs to.
    call: u64,
}

/// Reports the attempts of a step to the stream of its run.
#[derive(Clone)]
pub(super) struct StepReporter {
    pub(super) shared: Arc<RunShared>,
    pub(super) request: TaskRequest,
    key: Arc<OnceKey>,
    /// The running attempt, counted from 1.
    attempt: Arc<AtomicU32>,
}

impl StepReporter {
    pub(super) fn report(&self, event: StepEvent) {
        if let Some(sink) = &self.shared.audience.sink {
            sink.step(self.request, self.key.shown(self.attempt()), event);
        }
    }

    pub(super) fn attempt(&self) -> u32 {
        self.attempt.load(Ordering::Relaxed)
    }

    /// The next attempt starts.
    pub(super) fn begin_attempt(&self) {
        self.attempt.fetch_add(1, Ordering::Relaxed);
        self.report(StepEvent::Started);
    }
}

impl RunningStep {
    pub(super) fn new(shared: &Arc<RunShared>, request: TaskRequest, key: OnceKey, call: u64) -> Self {
        let attempt = Arc::new(AtomicU32::new(1));
        let reporter = StepReporter { shared: Arc::clone(shared), request, key: Arc::new(key), attempt };
        RunningStep { reporter, call }
    }

    pub(super) fn reporter(&self) -> StepReporter {
        self.reporter.clone()
    }

    pub(super) fn name(&self) -> &str {
        &self.reporter.key.name
    }

    pub(super) fn place(&self) -> (usize, u32) {
        place_of(&self.reporter.shared, self.reporter.request)
    }

    pub(super) fn report(&self, event: StepEvent) {
        self.reporter.report(event);
    }

    /// Reports the failure of the last attempt, unless the task waits for an answer.
    pub(super) fn report_failure(&self, why: impl FnOnce() -> String) {
        let StepReporter { shared, request, .. } = &self.reporter;
        if shared.audience.sink.is_some() && !shared.control.is_closed(request.index) {
            self.report(StepEvent::Failed(why()));
        }
    }

    /// Puts the result where the loop finds it.
    pub(super) fn put<T: Serialize>(&self, value: &T, cx: &mut Context<'_>) -> Result<(), OnceError> {
        let StepReporter { shared, request, key, .. } = &self.reporter;
        let mut bytes = Vec::new();
        encode(&mut bytes, value)
            .map_err(|error| OnceError::NotStorable { name: key.name.clone(), problem: error.to_string() })?;
        shared.beat(*request);
        let is_kept = shared.control.once_storage() == OnceStorage::Kept;
        if !is_kept {
            shared.control.warn_of_once(&key.name);
        }
        let value = Arc::from(bytes);
        let produced = Produced { value, attempts: self.reporter.attempt(), is_stored: !is_kept };
        let put = shared.control.once(*request, |results| {
            let is_current = results.call == self.call;
            if is_current {
                results.put(key, produced, cx.waker());
            }
            is_current
        });
        if put != Some(true) {
            return Err(OnceError::TooLate);
        }
        if is_kept {
            shared.control.note_unstored(*request, Arc::clone(key));
        }
        Ok(())
    }

    pub(super) fn poll_stored(&self, cx: &mut Context<'_>) -> Poll<()> {
        let StepReporter { shared, request, key, .. } = &self.reporter;
        let polled = shared.control.once(*request, |results| results.poll_stored(key, cx));
        // A task that has ended waits for nothing.
        polled.unwrap_or(Poll::Pending)
    }
}

impl Drop for RunningStep {
    fn drop(&mut self) {
        let StepReporter { shared, request, key, .. } = &self.reporter;
        shared.control.leave_once(*request, |results| {
            if results.call == self.call {
                results.leave(key);
            }
        });
    }
}
