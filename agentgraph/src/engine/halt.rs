//! Stopping a call from outside its nodes: by a token, a request to the lease of its run, a deadline, a
//! request to drain, or the timeout of a superstep.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::persistence::stop::StopRequest;
use crate::words::StopReason;
use agentgraph_checkpoint::services::Services;

/// The caller's tokens and time limits.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) drain: Option<CancellationToken>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) step_timeout: Option<Duration>,
    /// Where the supersteps of the call are counted for its caller.
    pub(crate) steps: Option<Arc<AtomicU64>>,
}

/// The reason why work was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cutoff {
    Stop(StopReason),
    StepTimeout(Duration),
}

/// Watches over one call. Exists only if the caller set a limit or the run has a lease.
pub(crate) struct Halt {
    /// The request that reaches the run through its lease.
    request: Option<Arc<StopRequest>>,
    cancel: Option<CancellationToken>,
    drain: Option<CancellationToken>,
    /// The stops that cut work off, each until it has fired.
    stops: Vec<(StopReason, BoxFuture<'static, ()>)>,
    /// The stop that fired.
    stopped: Option<StopReason>,
    step_timeout: Option<Duration>,
    step_timer: Option<BoxFuture<'static, ()>>,
    steps: Option<Arc<AtomicU64>>,
    services: Arc<dyn Services>,
}

impl Halt {
    /// `None` if there is nothing to watch. `budget` is its remaining time.
    pub(crate) fn of(
        limits: Limits,
        request: Option<Arc<StopRequest>>,
        budget: Option<Duration>,
        services: &Arc<dyn Services>,
    ) -> Option<Box<Self>> {
        let Limits { cancel, drain, deadline, step_timeout, steps } = limits;
        let mut stops = Vec::new();
        if let Some(cancel) = cancel.clone() {
            stops.push((StopReason::Cancelled, cancel.cancelled_owned().boxed()));
        }
        for (reason, limit) in [(StopReason::Deadline, deadline), (StopReason::Budget, budget)] {
            stops.extend(limit.map(|limit| (reason, sleep(services, limit))));
        }
        if stops.is_empty() && drain.is_none() && step_timeout.is_none() && request.is_none() {
            return None;
        }
        let services = Arc::clone(services);
        Some(Box::new(Halt {
            request,
            cancel,
            drain,
            stops,
            stopped: None,
            step_timeout,
            step_timer: None,
            steps,
            services,
        }))
    }

    /// The reason to end the call between two supersteps, if there is one.
    pub(super) fn at_boundary(&mut self) -> Option<StopReason> {
        let is_cancelled =
            |token: &Option<CancellationToken>| token.as_ref().is_some_and(CancellationToken::is_cancelled);
        let is_requested = self.request.as_ref().is_some_and(|request| request.is_asked());
        if is_requested || is_cancelled(&self.cancel) {
            return Some(StopReason::Cancelled);
        }
        let stopped = match (&self.stops[..], self.stopped) {
            ([], stopped) => stopped,
            // A look with a waker that does nothing. `until` polls the same futures again, with the waker of
            // the run.
            _ => poll_fn(|cx| Poll::Ready(self.poll_stops(cx))).now_or_never().flatten(),
        };
        stopped.or_else(|| is_cancelled(&self.drain).then_some(StopReason::Drained))
    }

    /// The time limit of one task in a run without supersteps.
    pub(super) fn step_timeout(&self) -> Option<Duration> {
        self.step_timeout
    }

    /// Reports the number of supersteps of the call, including the one that begins.
    pub(super) fn report_steps(&self, steps: u64) {
        if let Some(counter) = &self.steps {
            counter.store(steps, Ordering::Release);
        }
    }

    /// Starts the timer of a superstep.
    pub(super) fn begin_step(&mut self) {
        self.step_timer = self.step_timeout.map(|limit| sleep(&self.services, limit));
    }

    /// Awaits `work` until it is done or cut off.
    pub(super) async fn until<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Cutoff> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // A stop comes before the work, so that work which is always ready cannot outrun a deadline. A
            // request through the lease only cuts off pending work; `at_boundary` sees it after finished
            // work.
            if let Some(reason) = self.poll_stops(cx) {
                return Poll::Ready(Err(Cutoff::Stop(reason)));
            }
            if let (Some(limit), Some(timer)) = (self.step_timeout, &mut self.step_timer)
                && timer.as_mut().poll(cx).is_ready()
            {
                self.step_timer = None;
                return Poll::Ready(Err(Cutoff::StepTimeout(limit)));
            }
            match work.as_mut().poll(cx) {
                Poll::Pending if self.request.as_ref().is_some_and(|request| request.poll(cx)) => {
                    Poll::Ready(Err(Cutoff::Stop(StopReason::Cancelled)))
                }
                polled => polled.map(Ok),
            }
        })
        .await
    }

    fn poll_stops(&mut self, cx: &mut Context<'_>) -> Option<StopReason> {
        if self.stopped.is_none() {
            let fired = self
                .stops
                .iter_mut()
                .find_map(|(reason, stop)| stop.as_mut().poll(cx).is_ready().then_some(*reason));
            self.stopped = fired;
        }
        self.stopped
    }
}

pub(super) fn sleep(services: &Arc<dyn Services>, limit: Duration) -> BoxFuture<'static, ()> {
    let services = Arc::clone(services);
    async move { services.sleep(limit).await }.boxed()
}
