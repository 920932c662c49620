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

use crate::checkpoint::format::Source;
use crate::context::{CheckpointId, RunId, Sink, TaskId, TaskRequest};
use crate::error::{Code, Error};
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
    /// The task it belongs to; none for what belongs to the run.
    pub task: Option<TaskRef>,
    /// What happened.
    pub kind: EventKind<S>,
}

/// The task that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRef {
    /// Its id; the same in every process, and part of the ids of its interrupts.
    pub id: TaskId,
    /// Its place in the task order of its superstep.
    pub index: u32,
    /// The attempt under the node's retry policy, counted from 1; 1 for what is said of the task as a whole.
    pub attempt: u32,
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
    /// View *tasks*: a task has begun. A handler of a failed task begins in its place.
    TaskStarted {
        /// Its node.
        node: String,
        /// The input of a dispatch, as JSON; null if that cannot show it.
        input: Option<serde_json::Value>,
    },
    /// View *tasks*: a task has ended. Tasks that are dropped, by a cancelled run or a failed sibling, do not end.
    TaskEnded {
        /// Its node.
        node: String,
        /// How.
        end: TaskEnd,
    },
    /// View *checkpoints*: a checkpoint was committed, or handed over to be by [`Durability::Async`](crate::Durability::Async).
    Checkpoint {
        /// Which one.
        id: CheckpointId,
        /// Why it was written.
        source: Source,
        /// The nodes that run next.
        next: Vec<String>,
    },
    /// View *messages*: a piece of what a chat model says within a node. Whoever makes models gives them with
    /// [`Ctx::message`](crate::Ctx::message); those of `agentgraph-llm` do, and the value is their `ChatEvent`.
    Message {
        /// The node.
        node: String,
        /// The piece.
        piece: serde_json::Value,
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

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEnd {
    /// It is done.
    Done,
    /// It failed, with that code and text.
    Failed(Code, String),
    /// It waits for an answer.
    Interrupted,
    /// A run inside it was stopped, and goes on from there with the run around it.
    Stopped,
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
            EventKind::TaskStarted { node, input } => {
                out.debug_struct("TaskStarted").field("node", node).field("input", input).finish()
            }
            EventKind::TaskEnded { node, end } => {
                out.debug_struct("TaskEnded").field("node", node).field("end", end).finish()
            }
            EventKind::Checkpoint { id, source, next } => {
                let mut parts = out.debug_struct("Checkpoint");
                parts.field("id", id).field("source", source).field("next", next).finish()
            }
            EventKind::Message { node, piece } => {
                out.debug_struct("Message").field("node", node).field("piece", piece).finish()
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
    /// When tasks begin and how they end.
    Tasks,
    /// The checkpoints that are committed.
    Checkpoints,
    /// What chat models say within nodes, piece by piece.
    Messages,
    /// What one wants to see to find out what a run does: tasks and checkpoints.
    Debug,
}

/// Which views are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Views {
    pub(crate) values: bool,
    pub(crate) updates: bool,
    pub(crate) custom: bool,
    pub(crate) tasks: bool,
    pub(crate) checkpoints: bool,
    pub(crate) messages: bool,
}

impl Views {
    pub(crate) fn of(views: impl IntoIterator<Item = View>) -> Self {
        let mut chosen = Views::default();
        for view in views {
            match view {
                View::Values => chosen.values = true,
                View::Updates => chosen.updates = true,
                View::Custom => chosen.custom = true,
                View::Tasks => chosen.tasks = true,
                View::Checkpoints => chosen.checkpoints = true,
                View::Messages => chosen.messages = true,
                View::Debug => (chosen.tasks, chosen.checkpoints) = (true, true),
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
    /// The ids of the tasks of the superstep that runs, in task order.
    tasks: Vec<TaskId>,
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
            tasks: Vec::new(),
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

    /// Says which superstep begins, and who its tasks are.
    pub(crate) fn begin_step(&self, step: u64, tasks: Vec<TaskId>) {
        let mut inner = self.inner();
        (inner.step, inner.tasks) = (step, tasks);
    }

    /// Says that a handler stands in the place of a failed task.
    pub(crate) fn hand_over(&self, index: u32, handler: TaskId) {
        if let Some(task) = self.inner().tasks.get_mut(index as usize) {
            *task = handler;
        }
    }

    /// Adds what belongs to the run.
    pub(crate) fn push(&self, step: u64, kind: EventKind<S>) {
        self.add(step, None, kind);
    }

    /// Adds what belongs to a task.
    pub(crate) fn push_of(&self, task: TaskRequest, kind: EventKind<S>) {
        self.add(task.step, Some(task), kind);
    }

    fn add(&self, step: u64, task: Option<TaskRequest>, kind: EventKind<S>) {
        let run = self.run.get().copied().unwrap_or(RunId::from_u128(0));
        let mut inner = self.inner();
        if inner.ended {
            return;
        }
        // A context that outlived its superstep has no task there any more.
        let task = task.filter(|task| task.step == inner.step).and_then(|task| {
            let id = *inner.tasks.get(task.index as usize)?;
            Some(TaskRef { id, index: task.index, attempt: task.attempt })
        });
        let seq = inner.next;
        inner.next += 1;
        inner.step = inner.step.max(step);
        inner.ended = matches!(kind, EventKind::Ended(_));
        inner.events.push_back(Event { seq, run, step, task, kind });
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
        poll_fn(|cx| self.poll_at_most(events, cx)).await;
    }

    fn poll_at_most(&self, events: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner();
        if inner.events.len() <= events || inner.ended {
            return Poll::Ready(());
        }
        inner.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn node(&self, request: TaskRequest) -> String {
        self.names.get(request.node as usize).map_or_else(String::new, |name| name.to_string())
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
impl<S: State> Sink for EventQueue<S> {
    async fn emit(&self, request: TaskRequest, value: serde_json::Value) {
        self.room().await;
        let node = self.node(request);
        self.push_of(request, EventKind::Custom { node, value });
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at_most(self.capacity - 1, cx)
    }

    fn message(&self, request: TaskRequest, piece: serde_json::Value) {
        let node = self.node(request);
        self.push_of(request, EventKind::Message { node, piece });
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

    /// How many events were made and not read yet.
    pub fn unread(&self) -> usize {
        self.queue.inner().events.len()
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
