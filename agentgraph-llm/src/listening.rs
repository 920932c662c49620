//! What models say within a node of a graph, for whoever streams the messages of its run.
//!
//! A [`ChatStream`](crate::ChatStream) tells its events as it is read; a whole answer that nothing was reported
//! of is reported at its end. Nodes do nothing about it, and without a listener nothing is done.

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
    /// Whether the call of a model that is under way was reported already.
    static REPORTED: Arc<AtomicBool>;
}

thread_local! {
    /// A stream is being read that tells for what it is made of.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Whether anybody listens to models here, so that an answer is better had piece by piece.
pub(crate) fn has_listener() -> bool {
    Ctx::of_messages().is_some()
}

/// Tells an answer as a whole, unless it was reported while it came.
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

/// Reads the next event of a stream by `next` and tells it.
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
    // Outside of a call there is nobody to tell.
    let _ = REPORTED.try_with(|reported| reported.store(true, Ordering::Relaxed));
}

/// Ends with its drop, also by a panic.
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
