//! Attempts polled by another thread.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::task::AtomicWaker;
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::attempt::{CatchPanic, invoke};
use crate::context::{RunShared, TaskRequest};
use crate::erased::layer::NodeCall;
use crate::erased::{AnyNode, NodeResult};
use crate::error::{Code, Error, OwnError};
use crate::policy::Elsewhere;
use crate::typed::AnyState;

/// Makes an attempt on another thread. Dropping this future ends the attempt at its next `.await`.
pub(super) async fn attempt_elsewhere(
    place: Elsewhere,
    node: Arc<dyn AnyNode>,
    call: NodeCall<AnyState>,
) -> NodeResult<AnyState> {
    let (shared, request) = (Arc::clone(call.task().shared), call.task().request);
    let services = Arc::clone(&shared.services);
    let run = Arc::new(AtomicWaker::new());
    let waiting = Arc::clone(&run);
    let attempt = async move {
        let mut attempt = CatchPanic::new(|| invoke(&*node, &call.task()));
        poll_fn(|cx| {
            let polled = Pin::new(&mut attempt).poll(cx);
            // The run stores results of durable steps, but checks for them only when its task is woken.
            if polled.is_pending() && call.task().shared.control.has_unstored() {
                run.wake();
            }
            polled
        })
        .await
    };
    let (attempt, abort) = abortable(attempt.in_current_span());
    let mut stop = Stop { abort, shared, attempt: Some(request) };
    let (end, ended) = oneshot::channel();
    // `map` drops the attempt, and with it the snapshot, before the result is sent: while a snapshot exists,
    // the merge has to clone the state.
    let work = attempt.map(|result| {
        if let Ok(result) = result {
            drop(end.send(result));
        }
    });
    match place {
        Elsewhere::Spawned => services.spawn(work.boxed()),
        Elsewhere::Blocking => services.spawn_blocking(Box::new(|| block_on(work))),
    }
    let mut ended = pin!(ended);
    let result = poll_fn(|cx| {
        // Registered before the result is checked, so that no wake is lost.
        waiting.register(cx.waker());
        match ended.as_mut().poll(cx) {
            Poll::Ready(Ok(result)) => Poll::Ready(result),
            Poll::Ready(Err(_)) => Poll::Ready(Err(OwnError(dropped()).into())),
            Poll::Pending => Poll::Pending,
        }
    });
    let result = result.await;
    stop.attempt = None;
    result
}

fn dropped() -> Error {
    let problem = "the runtime dropped the attempt before its end: keep it running until the run has ended";
    Error::new(Code::NodeFailed, problem)
}

/// Polls a future to completion on this thread. Unlike in the `block_on` of an executor, code inside the
/// future may itself block on futures.
fn block_on(work: impl Future<Output = ()>) {
    let here = Arc::new(ThisThread { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&here));
    let mut cx = Context::from_waker(&waker);
    let mut work = pin!(work);
    while work.as_mut().poll(&mut cx).is_pending() {
        // Code inside the future may also park this thread and consume the unpark token; the flag remains.
        while !here.is_woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

struct ThisThread {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for ThisThread {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Stops the attempt when the run gives it up.
struct Stop {
    abort: AbortHandle,
    shared: Arc<RunShared>,
    /// `None` once it has ended.
    attempt: Option<TaskRequest>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt {
            self.shared.control.abandon(attempt);
        }
        self.abort.abort();
    }
}
