//! The one ordered source of events, and the stream over it.
//!
//! Nothing is spawned: the stream owns the run and polls it, so dropping the stream drops the run, and a run goes no
//! further ahead of its reader than the stream's capacity.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;

use crate::context::{CustomSink, RunId, TaskRequest};
use crate::error::Error;
use crate::extract::Snapshot;
use crate::run::{Outcome, RunFuture};
use crate::state::State;

/// Something that happened in a run, in the order in which it happened.
#[non_exhaustive]
pub struct Event<S: State> {
    /// 0, 1, 2, .. without gaps.
    pub seq: u64,
    /// The run; all zero in the last event of a call that failed before it had one.
    pub run: RunId,
    /// The superstep, counted from 1 within the call; 0 for the input.
    pub step: u64,
    /// What happened.
    pub kind: EventKind<S>,
}

/// What can happen.
#[non_exhaustive]
pub enum EventKind<S: State> {
    /// View *values*: the state after the input and after every superstep.
    Values(Snapshot<S>),
    /// View *updates*: a task finished. Comes at completion, so in whatever order the tasks of a superstep finish.
    Update {
        /// Its node.
        node: String,
        /// What it returned; `None` if it changed nothing. [`CompiledGraph::update_json`](crate::CompiledGraph::update_json)
        /// shows it.
        update: Option<S::Update>,
    },
    /// View *custom*: a node called [`Ctx::emit`](crate::Ctx::emit).
    Custom {
        /// The node.
        node: String,
        /// What it emitted.
        value: serde_json::Value,
    },
    /// The call is over: exactly one, the last event, whatever the views.
    Ended(Result<Outcome<S>, Error>),
}

impl<S: State + fmt::Debug> fmt::Debug for Event<S>
where
    S::Update: fmt::Debug,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{} {:?}", self.seq, self.step, self.kind)
    }
}

impl<S: State + fmt::Debug> fmt::Debug for EventKind<S>
where
    S::Update: fmt::Debug,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Values(state) => out.debug_tuple("Values").field(&**state).finish(),
            EventKind::Update { node, update } => {
                out.debug_struct("Update").field("node", node).field("update", update).finish()
            }
            EventKind::Custom { node, value } => {
                out.debug_struct("Custom").field("node", node).field("value", value).finish()
            }
            EventKind::Ended(outcome) => out.debug_tuple("Ended").field(outcome).finish(),
        }
    }
}

/// A kind of event that a stream can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// The state after every superstep. A snapshot that is not dropped yet, kept by its reader or still unread, costs
    /// the next superstep a clone of the state; with a
    /// [`stream_capacity`](crate::RunBuilder::stream_capacity) of 1 none is unread.
    Values,
    /// What each task returned.
    Updates,
    /// What nodes emit.
    Custom,
}

/// Which views are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views {
    pub(crate) values: bool,
    pub(crate) updates: bool,
    pub(crate) custom: bool,
}

impl Views {
    pub(crate) fn of(views: impl IntoIterator<Item = View>) -> Self {
        let mut chosen = Views { values: false, updates: false, custom: false };
        for view in views {
            match view {
                View::Values => chosen.values = true,
                View::Updates => chosen.updates = true,
                View::Custom => chosen.custom = true,
            }
        }
        chosen
    }
}

/// The queue between a run and its stream.
pub(crate) struct EventQueue<S: State> {
    /// Known once the run has looked at its thread.
    run: OnceLock<RunId>,
    pub(crate) views: Views,
    capacity: usize,
    names: Arc<[Arc<str>]>,
    inner: Mutex<Inner<S>>,
}

struct Inner<S: State> {
    events: VecDeque<Event<S>>,
    next: u64,
    step: u64,
    waiting: Vec<Waker>,
    /// The stream's reader, while it waits for an event. A task that a node spawned emits when nobody polls the run.
    reader: Option<Waker>,
    /// The last event is in: a context that outlives its run adds nothing after it.
    ended: bool,
}

impl<S: State> EventQueue<S> {
    pub(crate) fn new(views: Views, capacity: usize, names: &[Arc<str>]) -> Self {
        let inner = Inner {
            events: VecDeque::new(),
            next: 0,
            step: 0,
            waiting: Vec::new(),
            reader: None,
            ended: false,
        };
        EventQueue {
            run: OnceLock::new(),
            views,
            capacity: capacity.max(1),
            names: names.into(),
            inner: Mutex::new(inner),
        }
    }

    pub(crate) fn begin(&self, run: RunId) {
        let _ = self.run.set(run);
    }

    pub(crate) fn push(&self, step: u64, kind: EventKind<S>) {
        let run = self.run.get().copied().unwrap_or(RunId::from_u128(0));
        let mut inner = self.inner();
        if inner.ended {
            return;
        }
        let seq = inner.next;
        inner.next += 1;
        inner.step = inner.step.max(step);
        inner.ended = matches!(kind, EventKind::Ended(_));
        inner.events.push_back(Event { seq, run, step, kind });
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
    }

    /// Nobody reads any more: whoever waits for room goes on, and what is added is dropped.
    fn close(&self) {
        let mut inner = self.inner();
        inner.ended = true;
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    /// Whether the reader has taken enough.
    pub(crate) fn has_room(&self) -> bool {
        let inner = self.inner();
        inner.events.len() < self.capacity || inner.ended
    }

    /// Waits until the reader has taken enough.
    pub(crate) async fn room(&self) {
        self.at_most(self.capacity - 1).await;
    }

    /// Waits until the reader has taken everything.
    pub(crate) async fn read(&self) {
        self.at_most(0).await;
    }

    async fn at_most(&self, events: usize) {
        poll_fn(|cx| {
            let mut inner = self.inner();
            if inner.events.len() <= events || inner.ended {
                return Poll::Ready(());
            }
            inner.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The next event; if there is none, `reader` is woken by the one that comes.
    fn pop(&self, reader: &Waker) -> Option<Event<S>> {
        let mut inner = self.inner();
        let event = inner.events.pop_front();
        inner.reader = event.is_none().then(|| reader.clone());
        if inner.events.len() < self.capacity {
            inner.waiting.drain(..).for_each(Waker::wake);
        }
        event
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl<S: State> CustomSink for EventQueue<S> {
    async fn emit(&self, request: TaskRequest, value: serde_json::Value) {
        self.room().await;
        let node = self.names.get(request.node as usize).map_or_else(String::new, |name| name.to_string());
        self.push(request.step, EventKind::Custom { node, value });
    }
}

/// The events of a run. The run makes progress while the stream is polled and is cancelled when it is dropped.
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
                    return Err(Error::new(crate::Code::NothingToResume, problem));
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
            let step = self.queue.inner().step;
            self.queue.push(step, EventKind::Ended(outcome));
        }
        match self.queue.pop(cx.waker()) {
            Some(event) => Poll::Ready(Some(event)),
            None if self.run.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
