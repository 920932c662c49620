//! What the engine does about a slow or failing node: timeouts and retries.
//!
//! Every attempt is a fresh call of the node against the same snapshot. A node that waits for an answer is not failing:
//! no second attempt starts while a request of its task is open.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::error::{BoxError, Terminal, caused_by};
use crate::extract::Task;
use crate::layer::NodeCall;
use crate::node::{ErasedNode, NodeFuture, NodeResult};
use crate::services::Services;
use crate::state::State;

/// How often, when and for which errors a node is tried again.
///
/// The wait before attempt n + 1 is `initial * factor^(n-1)`, at most `max`, and then a random part of up to half of it
/// is taken off, so that nodes that failed together do not come back together.
///
/// ```
/// use agentgraph::RetryPolicy;
/// use std::time::Duration;
/// let policy = RetryPolicy::attempts(4).initial(Duration::from_millis(200)).retry_on(|error| error.is::<std::io::Error>());
/// assert_eq!(policy.max_attempts(), 4);
/// ```
#[derive(Clone)]
pub struct RetryPolicy {
    attempts: u32,
    initial: Duration,
    factor: f64,
    max: Duration,
    retry_on: Option<Arc<ErrorTest>>,
}

/// Says whether an error is worth another attempt.
type ErrorTest = dyn Fn(&BoxError) -> bool + Send + Sync;

impl RetryPolicy {
    /// At most that many attempts, the first included (so 1 means no retry). Waits 0.5 s at first, twice as long each
    /// time, 30 s at most. Retries every error that is not [`Terminal`] and every timeout; a panic is not retried.
    pub fn attempts(attempts: u32) -> Self {
        RetryPolicy {
            attempts: attempts.max(1),
            initial: Duration::from_millis(500),
            factor: 2.0,
            max: Duration::from_secs(30),
            retry_on: None,
        }
    }

    /// The wait before the second attempt.
    #[must_use]
    pub fn initial(mut self, wait: Duration) -> Self {
        self.initial = wait;
        self
    }

    /// How much longer each wait is than the one before; values under 1 count as 1.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// The longest wait.
    #[must_use]
    pub fn max(mut self, wait: Duration) -> Self {
        self.max = wait;
        self
    }

    /// Retries only the errors for which `test` is true; terminal ones never.
    #[must_use]
    pub fn retry_on(mut self, test: impl Fn(&BoxError) -> bool + Send + Sync + 'static) -> Self {
        self.retry_on = Some(Arc::new(test));
        self
    }

    /// The number of attempts.
    pub fn max_attempts(&self) -> u32 {
        self.attempts
    }

    fn retries(&self, attempt: u32, error: &BoxError) -> bool {
        attempt < self.attempts
            && caused_by::<Terminal>(&**error).is_none()
            && caused_by::<NodePanic>(&**error).is_none()
            && self.retry_on.as_ref().is_none_or(|test| test(error))
    }

    /// The wait after `attempt`; `random` chooses within its upper half.
    fn wait(&self, attempt: u32, random: u64) -> Duration {
        let grown = self.initial.as_secs_f64() * self.factor.powi(attempt.saturating_sub(1).min(1000) as i32);
        let capped = grown.min(self.max.as_secs_f64());
        let share = 1.0 - 0.5 * (random as f64 / u64::MAX as f64);
        Duration::try_from_secs_f64(capped * share).unwrap_or(self.max)
    }
}

impl std::fmt::Debug for RetryPolicy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RetryPolicy")
            .field("attempts", &self.attempts)
            .field("initial", &self.initial)
            .field("factor", &self.factor)
            .field("max", &self.max)
            .field("retry_on", &self.retry_on.is_some())
            .finish()
    }
}

/// An attempt took longer than the node's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no result after {limit:?}: raise the node's timeout, or make it faster")]
pub struct Timeout {
    /// The timeout that was set.
    pub limit: Duration,
}

/// What becomes of the other tasks of a superstep when one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Siblings {
    /// What has started is finished and stored, then the run fails. The default.
    #[default]
    Drain,
    /// What has started is dropped at its next await. It runs again when the run goes on.
    Cancel,
}

/// A node panicked; the text is the panic's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
pub struct NodePanic {
    /// What it panicked with.
    pub message: String,
}

/// Calls a node that has a policy: attempt after attempt, each under the timeout.
pub(crate) fn call_with_policy<S: State>(
    node: Arc<dyn ErasedNode<S>>,
    retry: Option<RetryPolicy>,
    timeout: Option<Duration>,
    task: &Task<'_, S>,
) -> NodeFuture<S> {
    let call = NodeCall::of(task);
    Box::pin(async move {
        let mut attempt = 1;
        loop {
            let result = one_attempt(&node, &call, attempt, timeout).await;
            let Err(error) = result else { return result };
            let task = call.task();
            let waits = task.shared.control.standing(task.request.index).is_some();
            let Some(policy) = retry.as_ref().filter(|policy| !waits && policy.retries(attempt, &error))
            else {
                return Err(error);
            };
            let services = &task.shared.graph.services;
            services.sleep(policy.wait(attempt, services.random())).await;
            attempt += 1;
        }
    })
}

async fn one_attempt<S: State>(
    node: &Arc<dyn ErasedNode<S>>,
    call: &NodeCall<S>,
    attempt: u32,
    timeout: Option<Duration>,
) -> NodeResult<S> {
    let mut task = call.task();
    task.request.attempt = attempt;
    let run = CatchPanic::new(|| node.call(&task));
    match timeout {
        None => run.await,
        Some(limit) => within(limit, &*task.shared.graph.services, run).await,
    }
}

async fn within<S: State>(
    limit: Duration,
    services: &dyn Services,
    run: impl Future<Output = NodeResult<S>>,
) -> NodeResult<S> {
    match select(pin!(run), pin!(services.sleep(limit))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(Timeout { limit }.into()),
    }
}

/// Does `work`, in which a panic is the node's until the guard is lifted, and anybody's after that.
///
/// The result of a task is judged and merged in the same closure that polls it: handing it out of the unwinding first
/// would move it twice, which costs more than everything else in here.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce(&mut Guard) -> T) -> Result<T, NodePanic> {
    let mut guard = Guard { lifted: false };
    match catch_unwind(AssertUnwindSafe(|| work(&mut guard))) {
        Ok(done) => Ok(done),
        Err(payload) if guard.lifted => resume_unwind(payload),
        Err(payload) => Err(panic_of(&*payload)),
    }
}

/// Whose panics are caught; see [`guarded`].
pub(crate) struct Guard {
    lifted: bool,
}

impl Guard {
    /// The node is done.
    #[inline]
    pub(crate) fn lift(&mut self) {
        self.lifted = true;
    }
}

/// A node's future whose panics are errors. It is not polled again after one.
pub(crate) struct CatchPanic<S: State>(Option<NodeFuture<S>>);

impl<S: State> CatchPanic<S> {
    /// `call` makes the future; extractors and the first lines of a hand-written future run, and may panic, in it.
    pub(crate) fn new(call: impl FnOnce() -> NodeFuture<S>) -> Self {
        let future = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
            let panicked = panic_of(&*payload);
            Box::pin(std::future::ready(Err(panicked.into())))
        });
        CatchPanic(Some(future))
    }

    /// A future that was made already.
    pub(crate) fn of(future: NodeFuture<S>) -> Self {
        CatchPanic(Some(future))
    }
}

impl<S: State> Future for CatchPanic<S> {
    type Output = NodeResult<S>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<S>> {
        let Some(future) = &mut self.0 else {
            let panicked = NodePanic { message: "polled after its end".into() };
            return Poll::Ready(Err(panicked.into()));
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(payload) => {
                self.0 = None;
                Poll::Ready(Err(panic_of(&*payload).into()))
            }
        }
    }
}

pub(crate) fn panic_of(payload: &(dyn std::any::Any + Send)) -> NodePanic {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    NodePanic { message: message.unwrap_or_else(|| "(no message)".into()) }
}
