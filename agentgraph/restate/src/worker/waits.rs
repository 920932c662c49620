//! [`Waits`]: what an invocation waits for at one time, calls of tasks and timers, in the order of the
//! asking.
//!
//! The runtime says which of them is over first, and says the same on each replay. No other order of events
//! reaches the run.

use std::time::Duration;

use agentgraph::host::NeedId;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use restate_sdk::context::{CallFuture, DurableFuture, RequestTarget};
use restate_sdk::errors::TerminalError;

use super::sdk::{Handle, Journal, handle_of};

/// The name of the signal that asks for a drain.
pub(super) const DRAIN: &str = "drain";

pub(super) struct Waits<'a> {
    ctx: &'a Journal,
    open: Vec<(NeedId, Box<dyn Wait<'a> + 'a>)>,
    /// The signal for a drain; `None` once it has come.
    drain: Option<Handle>,
    /// A timer that is over and never taken, so that a look for signals does not wait.
    over: Option<Handle>,
}

/// How a wait ended.
pub(super) enum Over {
    Task(Result<Bytes, TerminalError>),
    Timer,
}

/// A signal that was there.
pub(super) enum Look {
    Nothing,
    Drain,
}

trait Wait<'a>: Send {
    fn handle(&self) -> Handle;

    /// The end of a wait that is over.
    fn take(self: Box<Self>) -> BoxFuture<'a, Over>;

    /// Ends the wait.
    fn withdraw(self: Box<Self>) -> BoxFuture<'a, ()>;
}

struct Called<F>(F);
struct Timed<F>(F);

impl<'a, F: CallFuture<Response = Bytes> + Send + 'a> Wait<'a> for Called<F> {
    fn handle(&self) -> Handle {
        handle_of(&self.0)
    }

    fn take(self: Box<Self>) -> BoxFuture<'a, Over> {
        Box::pin(async move { Over::Task(self.0.await) })
    }

    fn withdraw(self: Box<Self>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(handle) = self.0.invocation_handle().await {
                handle.cancel();
            }
        })
    }
}

impl<'a, F: DurableFuture<Output = Result<(), TerminalError>> + Send + 'a> Wait<'a> for Timed<F> {
    fn handle(&self) -> Handle {
        handle_of(&self.0)
    }

    fn take(self: Box<Self>) -> BoxFuture<'a, Over> {
        Box::pin(async move {
            // A timer does not fail; a cancellation is seen by the wait for all.
            let _ = self.0.await;
            Over::Timer
        })
    }

    fn withdraw(self: Box<Self>) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl<'a> Waits<'a> {
    pub(super) fn new(ctx: &'a Journal) -> Self {
        Waits { ctx, open: Vec::new(), drain: Some(ctx.signal(DRAIN)), over: None }
    }

    /// The signal for a drain, if it has not come.
    pub(super) fn drain(&self) -> Option<Handle> {
        self.drain
    }

    /// Looks for signals without waiting for them. It finds those that came before the end of the last step,
    /// in the order of the journal, so a replay finds the same. The first look costs a timer.
    ///
    /// # Errors
    /// The invocation was cancelled.
    pub(super) async fn look(&mut self) -> Result<Look, TerminalError> {
        let over = *self.over.get_or_insert_with(|| handle_of(&self.ctx.sleep(Duration::ZERO)));
        let handles = self.drain.into_iter().chain([over]).collect();
        let first = self.ctx.select(handles).await?;
        if self.drain.is_none() || first > 0 {
            return Ok(Look::Nothing);
        }
        self.drain = None;
        Ok(Look::Drain)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Calls a service, and waits for its answer.
    pub(super) fn call(&mut self, need: NeedId, target: RequestTarget, request: Bytes) {
        let call = self.ctx.call(target, request);
        self.open.push((need, Box::new(Called(call))));
    }

    pub(super) fn sleep(&mut self, need: NeedId, time: Duration) {
        self.open.push((need, Box::new(Timed(self.ctx.sleep(time)))));
    }

    pub(super) async fn withdraw(&mut self, need: NeedId) {
        let at = self.open.iter().position(|(open, _)| *open == need);
        if let Some((_, wait)) = at.map(|at| self.open.remove(at)) {
            wait.withdraw().await;
        }
    }

    /// The next one that is over; `None` for the signal that asks for a drain, which comes once.
    ///
    /// # Errors
    /// The invocation was cancelled.
    pub(super) async fn next(&mut self) -> Result<Option<(NeedId, Over)>, TerminalError> {
        let waits = self.open.iter().map(|(_, wait)| wait.handle());
        let handles = waits.chain(self.drain).collect();
        let at = self.ctx.select(handles).await?;
        if at == self.open.len() {
            self.drain = None;
            return Ok(None);
        }
        let (need, wait) = self.open.remove(at);
        Ok(Some((need, wait.take().await)))
    }
}
