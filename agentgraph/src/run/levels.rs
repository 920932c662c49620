//! How many runs lie on the stack of a thread, and the calls of subgraphs that run beside their run instead.
//!
//! A subgraph is polled by its task, which is polled by the run around it: each level takes stack, in a build
//! for development some 100 KB. Below the first levels a call is therefore handed to the run that the caller
//! polls. That run polls it directly, and its task waits for the end.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tracing::{Instrument, Span};

use crate::error::{BoxError, Code, Error};
use crate::run::nested::ChildEnd;
use crate::spans::may_be_heard;
use agentgraph_checkpoint::engine::Lock;

/// Levels that are polled on the stack.
const ON_STACK: u32 = 4;

/// Levels on the stack at which no further run starts. Only runs that a node calls by itself come that far:
/// they cannot be handed over, since a node may block its thread until they end.
const MOST: u32 = 8;

thread_local! {
    /// The runs that are being polled on this thread, each by a node of the one before.
    static LEVELS: Cell<u32> = const { Cell::new(0) };
    /// The calls handed to the innermost run that a caller polls, and not taken yet; `None` outside runs, as
    /// in a task that a layer has spawned.
    static HANDED: RefCell<Option<Vec<Arc<DeepCall>>>> = const { RefCell::new(None) };
    /// The calls that are still to be dropped, while one is being dropped.
    static DROPPED: RefCell<Option<Vec<Call>>> = const { RefCell::new(None) };
}

type Call = BoxFuture<'static, Result<ChildEnd, BoxError>>;

/// Drives a run that a caller polls, with the calls that it is handed.
///
/// # Errors
/// [`Code::Depth`] if too many runs are being polled already, each by a node of the one before.
pub(super) async fn drive<T>(run: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if LEVELS.get() >= MOST {
        return Err(too_many_runs());
    }
    let mut run = pin!(run);
    let mut calls = None;
    poll_fn(|cx| {
        let _level = Level::below();
        let _outer = Outer(HANDED.replace(Some(Vec::new())));
        let polled = run.as_mut().poll(cx);
        poll_handed(&mut calls, cx);
        polled
    })
    .await
}

/// Polls the calls that were handed over, and those that they hand over in turn.
fn poll_handed(calls: &mut Option<FuturesUnordered<BoxFuture<'static, ()>>>, cx: &mut Context<'_>) {
    loop {
        let handed = HANDED.replace(Some(Vec::new())).unwrap_or_default();
        if !handed.is_empty() {
            let polled = handed.into_iter().map(|call| Box::pin(poll_fn(move |cx| call.poll(cx))) as _);
            calls.get_or_insert_default().extend(polled);
        }
        let Some(calls) = calls else { return };
        let has_ended = matches!(calls.poll_next_unpin(cx), Poll::Ready(Some(())));
        if !has_ended && HANDED.with_borrow(|handed| handed.as_ref().is_none_or(Vec::is_empty)) {
            return;
        }
    }
}

fn too_many_runs() -> Error {
    let problem = format!(
        "{MOST} runs are under way on one stack, each started by a node of the one before: add the inner graph \
         as a node, or run it in a task of its own with `tokio::spawn`"
    );
    Error::new(Code::Depth, problem)
}

/// A level on the stack of this thread, until it is dropped.
struct Level(u32);

impl Level {
    fn below() -> Self {
        let above = LEVELS.get();
        LEVELS.set(above + 1);
        Level(above)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(self.0);
    }
}

/// The calls that were handed to the run around this one, until it is dropped.
struct Outer(Option<Vec<Arc<DeepCall>>>);

impl Drop for Outer {
    fn drop(&mut self) {
        HANDED.set(self.0.take());
    }
}

/// The call of a subgraph, as its task awaits it. Dropping it drops the call.
pub(crate) enum ChildFuture {
    OnStack(Call),
    Deep(Arc<DeepCall>),
}

impl Future for ChildFuture {
    type Output = Result<ChildEnd, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            ChildFuture::OnStack(call) => {
                let is_deep = LEVELS.get() >= ON_STACK && HANDED.with_borrow(Option::is_some);
                if !is_deep {
                    let _level = Level::below();
                    return call.as_mut().poll(cx);
                }
                let nothing: Call = Box::pin(std::future::pending());
                let call = Arc::new(DeepCall::new(std::mem::replace(call, nothing), cx.waker()));
                HANDED.with_borrow_mut(|handed| handed.get_or_insert_default().push(Arc::clone(&call)));
                *self = ChildFuture::Deep(call);
                Poll::Pending
            }
            ChildFuture::Deep(call) => call.end(cx.waker()),
        }
    }
}

impl Drop for ChildFuture {
    fn drop(&mut self) {
        if let ChildFuture::Deep(deep) = self {
            let mut state = deep.0.lock();
            state.task = None;
            let call = state.call.take();
            drop(state);
            if let Some(call) = call {
                drop_flat(call);
            }
        }
    }
}

/// Drops a call after those around it, so that the stack does not grow with their depth.
fn drop_flat(call: Call) {
    let queue = |dropped: &RefCell<Option<Vec<Call>>>| match &mut *dropped.borrow_mut() {
        Some(waiting) => {
            waiting.push(call);
            false
        }
        none => {
            *none = Some(vec![call]);
            true
        }
    };
    // The locals of a thread that ends may be gone; the closure has dropped the call then.
    if DROPPED.try_with(queue) == Ok(true) {
        let _queue = Queue;
        while let Some(call) = DROPPED.with_borrow_mut(|dropped| dropped.as_mut().and_then(Vec::pop)) {
            drop(call);
        }
    }
}

/// The queue of [`drop_flat`], which is gone with it, also after a panic.
struct Queue;

impl Drop for Queue {
    fn drop(&mut self) {
        drop(DROPPED.take());
    }
}

/// A call that runs beside its task.
pub(crate) struct DeepCall(Lock<DeepState>);

struct DeepState {
    /// Gone after its end, or when its task was dropped.
    call: Option<Call>,
    /// The result, or the payload of a panic.
    end: Option<Result<<Call as Future>::Output, Box<dyn Any + Send>>>,
    /// Wakes its task; `None` if that was dropped.
    task: Option<Waker>,
}

impl DeepCall {
    fn new(call: Call, task: &Waker) -> Self {
        // The spans inside it stay below that of its task.
        let call = if may_be_heard() { Box::pin(call.instrument(Span::current())) } else { call };
        DeepCall(Lock::new(DeepState { call: Some(call), end: None, task: Some(task.clone()) }))
    }

    /// Polls the call, for the run that it was handed to.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Not polled under the lock: the call may drop its own task.
        let Some(mut call) = self.0.lock().call.take() else { return Poll::Ready(()) };
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)));
        let mut state = self.0.lock();
        let Some(task) = state.task.clone() else { return Poll::Ready(()) };
        state.end = match polled {
            Ok(Poll::Pending) => {
                state.call = Some(call);
                return Poll::Pending;
            }
            Ok(Poll::Ready(end)) => Some(Ok(end)),
            Err(panicked) => Some(Err(panicked)),
        };
        drop(state);
        task.wake();
        Poll::Ready(())
    }

    fn end(&self, task: &Waker) -> Poll<<Call as Future>::Output> {
        let mut state = self.0.lock();
        match state.end.take() {
            Some(Ok(end)) => Poll::Ready(end),
            Some(Err(panicked)) => {
                drop(state);
                resume_unwind(panicked)
            }
            None => {
                state.task = Some(task.clone());
                Poll::Pending
            }
        }
    }
}
