//! [`EventStream`]: the events of a run, and the run itself.
//!
//! Nothing is spawned: the stream owns the run and polls it, so dropping the stream drops the run. A run is
//! never further ahead of its reader than the capacity of the stream.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::error::{Code, Error};
use crate::event::{Event, EventKind, EventQueue};
use crate::run::future::AnyRun;
use crate::state::State;
use crate::typed::AnyState;
use crate::words::Outcome;

/// The events of a run. The run progresses while the stream is polled, and is cancelled when it is dropped.
///
/// A run is ahead of its reader by up to [`stream_capacity`](crate::RunBuilder::stream_capacity) events. So a
/// stream that is dropped after an event may have run nodes and stored checkpoints whose events were never
/// read. With a capacity of 1 the run progresses one event at a time. To end a run at a certain point, stop
/// it there: with `max_supersteps`, a drain, or `interrupt_after`.
///
/// A stream that is not polled does not progress. Its lease is still renewed, and the stores of this crate
/// then hold no resource for it that others wait for.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
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
    run: Option<AnyRun>,
    queue: Arc<EventQueue>,
    state: PhantomData<fn() -> S>,
}

impl<S: State> EventStream<S> {
    pub(super) fn new(run: AnyRun, queue: Arc<EventQueue>) -> Self {
        EventStream { run: Some(run), queue, state: PhantomData }
    }

    /// The number of unread events.
    pub fn unread(&self) -> usize {
        self.queue.unread()
    }

    /// Runs to the end and returns the outcome; the events are dropped.
    ///
    /// # Errors
    /// The error of the run.
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

/// A context in a spawned task must not wait for a dropped reader.
impl<S: State> Drop for EventStream<S> {
    fn drop(&mut self) {
        // Contexts may outlive the run: they no longer wait for room, and what they emit is dropped.
        self.queue.close();
    }
}

impl<S: State> Stream for EventStream<S> {
    type Item = Event<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<S>>> {
        let this = &mut *self;
        poll_event(&mut this.run, &this.queue, cx).map(|event| event.map(Event::typed))
    }
}

/// Polls the run, then takes the next event.
fn poll_event(
    run: &mut Option<AnyRun>,
    queue: &EventQueue,
    cx: &mut Context<'_>,
) -> Poll<Option<Event<AnyState>>> {
    // The run first: only its stream polls it. Its end is queued behind everything that it has pushed.
    if let Some(running) = run
        && let Poll::Ready(outcome) = running.as_mut().poll(cx)
    {
        *run = None;
        queue.push(queue.step(), EventKind::Ended(outcome));
    }
    match queue.pop(cx.waker()) {
        Some(event) => Poll::Ready(Some(event)),
        None if run.is_none() => Poll::Ready(None),
        None => Poll::Pending,
    }
}
