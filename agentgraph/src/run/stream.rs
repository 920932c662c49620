//! [`EventStream`]: the events of a run, and the run itself.
//!
//! Nothing is spawned: the stream owns the run and polls it, so dropping the stream drops the run, and a run
//! goes no further ahead of its reader than the stream's capacity.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::event::{Event, EventKind, EventQueue};
use crate::error::{Code, Error};
use crate::run::RunFuture;
use crate::state::State;
use crate::words::Outcome;

/// The events of a run. The run makes progress while the stream is polled and is cancelled when it is
/// dropped.
///
/// A run is ahead of its reader by up to [`stream_capacity`](crate::RunBuilder::stream_capacity) events. So a
/// stream that is dropped after an event may have run nodes, and stored checkpoints, whose events were never
/// read. With a capacity of 1 the run goes one event at a time. To end a run at a certain point, let it stop
/// there: with `max_supersteps`, a drain, or `interrupt_after`.
///
/// While nobody polls it, the run stands still. Its lease is renewed all the same, and the stores of this
/// crate keep nothing for it then that others wait for.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
/// # struct Words { #[reduce(append)] seen: Vec<String> }
/// use futures_util::StreamExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// async fn hello(ctx: Ctx) -> WordsUpdate {
///     ctx.emit("working").await;
///     Words::update().seen(["hello"])
/// }
/// let graph = StateGraph::new().node("hello", hello).edge(START, "hello").compile()?;
/// let mut events = graph.invoke(Words::update()).stream();
/// let mut seen = Vec::new();
/// while let Some(event) = events.next().await {
///     seen.push(match event.kind {
///         EventKind::Custom { value, .. } => value.to_string(),
///         EventKind::Update { node, .. } => node,
///         EventKind::Ended(outcome) => format!("{:?}", outcome?.output().seen),
///         _ => continue,
///     });
/// }
/// assert_eq!(seen, ["\"working\"", "hello", "[\"hello\"]"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a run makes progress only while its stream is polled"]
pub struct EventStream<S: State> {
    run: Option<RunFuture<S>>,
    queue: Arc<EventQueue<S>>,
}

impl<S: State> EventStream<S> {
    pub(crate) fn new(run: RunFuture<S>, queue: Arc<EventQueue<S>>) -> Self {
        EventStream { run: Some(run), queue }
    }

    /// How many events were made and not read yet.
    pub fn unread(&self) -> usize {
        self.queue.unread()
    }

    /// Lets the run go to its end and gives its outcome; the events are dropped.
    ///
    /// # Errors
    /// What the run failed with.
    pub async fn outcome(mut self) -> Result<Outcome<S>, Error> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await {
                Some(Event { kind: EventKind::Ended(outcome), .. }) => return outcome,
                Some(_) => {}
                None => {
                    let problem = "the stream was read to its end before its outcome was asked for";
                    return Err(Error::new(Code::NothingToResume, problem));
                }
            }
        }
    }
}

/// A context that a spawned task still holds must not wait for a reader that is gone.
impl<S: State> Drop for EventStream<S> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl<S: State> Stream for EventStream<S> {
    type Item = Event<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<S>>> {
        if let Some(run) = &mut self.run
            && let Poll::Ready(outcome) = run.as_mut().poll(cx)
        {
            self.run = None;
            let step = self.queue.step();
            self.queue.push(step, EventKind::Ended(outcome));
        }
        match self.queue.pop(cx.waker()) {
            Some(event) => Poll::Ready(Some(event)),
            None if self.run.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
