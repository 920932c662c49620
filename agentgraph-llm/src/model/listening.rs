//! Forwards the output of models within a node to the stream of the node's run.
//!
//! A [`ChatStream`](crate::ChatStream) forwards its events as they are read. Nodes need no code for it, and
//! without a listener nothing happens. A stream that reads another one forwards what it gives itself, and the
//! inner one is silent.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use agentgraph::Ctx;

use crate::error::Result;
use crate::model::ChatEvent;

// Two places, for two lives: the listener belongs to the task of a node and is the engine's task-local value,
// which follows the future to any thread. Silence belongs to one poll: it is set when a poll begins and is
// gone when it returns, so a thread-local is enough, and nothing is allocated for it.
thread_local! {
    /// Whether the streams that are read now are silent.
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Reads the next event of a stream with `next` and forwards it.
pub(crate) fn poll_event(
    cx: &mut Context<'_>,
    next: impl FnOnce(&mut Context<'_>) -> Poll<Result<ChatEvent>>,
) -> Poll<Result<ChatEvent>> {
    let Some(listener) = Ctx::of_messages().filter(|_| !SILENT.get()) else { return next(cx) };
    ready!(listener.poll_room(cx));
    let silence = Silence::begin();
    let event = ready!(next(cx));
    drop(silence);
    if let Ok(event) = &event {
        listener.message(event);
    }
    Poll::Ready(event)
}

/// Whether the streams that are read now have a listener.
pub(crate) fn is_heard() -> bool {
    !SILENT.get() && Ctx::of_messages().is_some()
}

/// Keeps the streams silent that `work` reads, because its result is what counts.
///
/// In a box: an `async fn` has room for its argument and for what it waits for, which is twice this one.
pub(crate) fn silently<F: Future + ?Sized>(mut work: Pin<Box<F>>) -> impl Future<Output = F::Output> {
    poll_fn(move |cx| {
        let _silence = Silence::begin();
        work.as_mut().poll(cx)
    })
}

/// Ends on drop, also after a panic.
struct Silence {
    was_silent: bool,
}

impl Silence {
    fn begin() -> Self {
        Silence { was_silent: SILENT.replace(true) }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        SILENT.set(self.was_silent);
    }
}
