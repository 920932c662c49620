//! Forwards the output of models within a node to the stream of the node's run.
//!
//! A [`ChatStream`](crate::ChatStream) forwards its events as they are read. A whole response is forwarded at
//! its end, unless its events were forwarded already. Nodes need no code for it, and without a listener
//! nothing happens.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use agentgraph::Ctx;

use crate::error::Result;
use crate::model::stream::events_of;
use crate::model::{ChatEvent, ChatResponse};

tokio::task_local! {
    /// Whether the current model call has forwarded its output already.
    static REPORTED: Arc<AtomicBool>;
}

thread_local! {
    /// Whether an outer stream is being read, which forwards the events of the inner ones.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the run has a listener, so that a streamed response is better than a whole one.
pub(crate) fn has_listener() -> bool {
    Ctx::of_messages().is_some()
}

/// Forwards a response as a whole, unless its events were forwarded already.
pub(crate) async fn report_whole(chat: impl Future<Output = Result<ChatResponse>>) -> Result<ChatResponse> {
    let Some(listener) = Ctx::of_messages() else { return chat.await };
    let reported = Arc::new(AtomicBool::new(false));
    let response = REPORTED.scope(Arc::clone(&reported), chat).await?;
    if !reported.load(Ordering::Relaxed) {
        events_of(&response).iter().for_each(|event| listener.message(event));
    }
    mark_reported();
    Ok(response)
}

/// Reads the next event of a stream with `next` and forwards it.
pub(crate) fn poll_event(
    cx: &mut Context<'_>,
    next: impl FnOnce(&mut Context<'_>) -> Poll<Result<ChatEvent>>,
) -> Poll<Result<ChatEvent>> {
    let Some(listener) = Ctx::of_messages().filter(|_| !READING.get()) else { return next(cx) };
    ready!(listener.poll_room(cx));
    let reading = Reading::begin();
    let event = ready!(next(cx));
    drop(reading);
    if let Ok(event) = &event {
        listener.message(event);
        mark_reported();
    }
    Poll::Ready(event)
}

fn mark_reported() {
    // Outside of a call there is no flag to set.
    let _ = REPORTED.try_with(|reported| reported.store(true, Ordering::Relaxed));
}

/// Ends on drop, also after a panic.
struct Reading;

impl Reading {
    fn begin() -> Self {
        READING.set(true);
        Reading
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READING.set(false);
    }
}
