//! Panics of nodes, as errors.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::erased::{NodeFuture, NodeResult};
use crate::panic::{NodePanic, panic_of};
use crate::typed::AnyState;

/// Runs `work`. A panic is an error of the node until the guard is lifted, and propagates after that.
///
/// The result of a task is judged and merged in the same closure that polls it: returning it from
/// `catch_unwind` first would move it twice, which costs more than everything else in here.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce(&mut Guard) -> T) -> Result<T, NodePanic> {
    let mut guard = Guard { lifted: false };
    match catch_unwind(AssertUnwindSafe(|| work(&mut guard))) {
        Ok(done) => Ok(done),
        Err(payload) if guard.lifted => resume_unwind(payload),
        Err(payload) => Err(panic_of(&*payload)),
    }
}

/// Decides which panics are caught; see [`guarded`].
pub(crate) struct Guard {
    lifted: bool,
}

impl Guard {
    /// The node is done: later panics propagate.
    #[inline]
    pub(crate) fn lift(&mut self) {
        self.lifted = true;
    }

    /// The next node starts: its panics are caught.
    #[inline]
    pub(crate) fn lower(&mut self) {
        self.lifted = false;
    }
}

/// A node's future whose panics are errors. It is not polled again after a panic.
pub(crate) struct CatchPanic(Option<NodeFuture<AnyState>>);

impl CatchPanic {
    /// `call` makes the future. Extractors, and the first lines of a hand-written future, run inside it and
    /// may panic.
    pub(crate) fn new(call: impl FnOnce() -> NodeFuture<AnyState>) -> Self {
        let future = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
            let panicked = panic_of(&*payload);
            Box::pin(std::future::ready(Err(panicked.into())))
        });
        CatchPanic(Some(future))
    }

    /// A future that exists already.
    pub(crate) fn of(future: NodeFuture<AnyState>) -> Self {
        CatchPanic(Some(future))
    }
}

impl Future for CatchPanic {
    type Output = NodeResult<AnyState>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<AnyState>> {
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
