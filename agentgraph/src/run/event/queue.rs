//! [`EventQueue`]: the one ordered source of events.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use super::child_events::ChildEvents;
use super::{Event, EventKind, TaskRef};
use crate::context::{ChildEvent, ChildListener};
use crate::context::{NewQuestions, Sink, TaskRequest};
use crate::state::State;
use crate::words::{EditError, Replaced, Views};
use agentgraph_checkpoint::{RunId, TaskId};

/// The queue between a run and its stream.
pub(crate) struct EventQueue<S: State> {
    /// Known once the run has looked at its thread.
    run: OnceLock<RunId>,
    pub(in crate::run) views: Views,
    capacity: usize,
    names: Arc<[Arc<str>]>,
    /// In a subgraph: who hears its events.
    inside: Option<ChildEvents<S>>,
    inner: Mutex<Inner<S>>,
}

struct Inner<S: State> {
    events: VecDeque<Event<S>>,
    next: u64,
    step: u64,
    /// The ids of the tasks of the superstep that runs, in task order.
    tasks: Vec<TaskId>,
    /// The tasks that run and are of no superstep, by the index of their requests: id, and place in task
    /// order.
    running: HashMap<u32, (TaskId, u32)>,
    /// The nodes of those, where they are not the graph's own.
    nodes: HashMap<u32, Arc<str>>,
    waiting: Vec<Waker>,
    /// The stream's reader, while it waits for an event. A task that a node spawned emits when nobody polls
    /// the run.
    reader: Option<Waker>,
    /// The last event is in: a context that outlives its run adds nothing after it.
    ended: bool,
}

impl<S: State> Inner<S> {
    /// The id of a task and its place. A context that outlived its task has none any more.
    fn task(&self, task: TaskRequest) -> Option<(TaskId, u32)> {
        if let Some(running) = self.running.get(&task.index) {
            return Some(*running);
        }
        let of_superstep = self.tasks.get(task.index as usize).filter(|_| task.step == self.step);
        of_superstep.map(|id| (*id, task.index))
    }
}

impl<S: State> EventQueue<S> {
    /// What the stream shows.
    #[inline]
    pub(crate) fn views(&self) -> Views {
        self.views
    }

    pub(crate) fn new(views: Views, capacity: usize, names: &[Arc<str>]) -> Self {
        let inner = Inner {
            events: VecDeque::new(),
            next: 0,
            step: 0,
            tasks: Vec::new(),
            running: HashMap::new(),
            nodes: HashMap::new(),
            waiting: Vec::new(),
            reader: None,
            ended: false,
        };
        EventQueue {
            run: OnceLock::new(),
            views,
            capacity: capacity.max(1),
            names: names.into(),
            inside: None,
            inner: Mutex::new(inner),
        }
    }

    /// The queue of a subgraph, which keeps nothing: whoever streams the graph around hears it at once.
    pub(crate) fn inside(inside: ChildEvents<S>, names: &[Arc<str>]) -> Self {
        let to = &inside.to;
        EventQueue { inside: Some(inside.clone()), ..EventQueue::new(to.views(), to.capacity(), names) }
    }

    pub(crate) fn begin(&self, run: RunId) {
        let _ = self.run.set(run);
    }

    /// Says which superstep begins, and who its tasks are.
    pub(crate) fn begin_step(&self, step: u64, tasks: Vec<TaskId>) {
        let mut inner = self.inner();
        (inner.step, inner.tasks) = (step, tasks);
    }

    /// Says that a task begins that is of no superstep, or who stands in its place now.
    pub(crate) fn enter(&self, request: TaskRequest, id: TaskId, place: u32) {
        self.inner().running.insert(request.index, (id, place));
    }

    /// Says that such a task has ended.
    pub(crate) fn leave(&self, request_index: u32) {
        let mut inner = self.inner();
        inner.running.remove(&request_index);
        inner.nodes.remove(&request_index);
    }

    /// Says which node such a task is of, if that is a temporary one.
    pub(crate) fn name(&self, request: TaskRequest, node: Arc<str>) {
        self.inner().nodes.insert(request.index, node);
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

    /// Adds which answers a task has voided by what it asks.
    pub(crate) fn push_voided(&self, task: TaskRequest, node: &str, asks: &NewQuestions) {
        let Some((id, _)) = self.inner().task(task) else { return };
        for request in &asks.requests {
            let replaced = request.replaces.as_ref().filter(|replaced| asks.voided.contains(&replaced.n));
            let Some(replaced) = replaced else { continue };
            let question = Replaced::of(id, replaced.clone());
            let (node, asks) = (node.to_owned(), request.value.clone());
            self.push_of(task, EventKind::AnswerVoided { node, question, asks });
        }
    }

    fn add(&self, step: u64, task: Option<TaskRequest>, kind: EventKind<S>) {
        let run = self.run.get().copied().unwrap_or(RunId::from_u128(0));
        let mut inner = self.inner();
        if inner.ended {
            return;
        }
        let task = task.and_then(|task| {
            let (id, index) = inner.task(task)?;
            Some(TaskRef { id, index, attempt: task.attempt })
        });
        inner.step = inner.step.max(step);
        if let Some(inside) = &self.inside {
            drop(inner);
            inside.tell(run, step, task, kind);
            return;
        }
        self.append(inner, Event { seq: 0, run, namespace: Arc::from(""), step, task, kind });
    }

    fn append(&self, mut inner: MutexGuard<'_, Inner<S>>, mut event: Event<S>) {
        event.seq = inner.next;
        inner.next += 1;
        inner.ended = matches!(event.kind, EventKind::Ended(_));
        inner.events.push_back(event);
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
    }

    /// Nobody reads any more: whoever waits for room goes on, and what is added is dropped.
    pub(crate) fn close(&self) {
        let mut inner = self.inner();
        inner.ended = true;
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    /// Whether the reader has taken enough.
    pub(crate) fn has_room(&self) -> bool {
        if let Some(inside) = &self.inside {
            return inside.to.has_room();
        }
        let inner = self.inner();
        inner.events.len() < self.capacity || inner.ended
    }

    /// The superstep that runs.
    pub(crate) fn step(&self) -> u64 {
        self.inner().step
    }

    /// How many events were made and not read yet.
    pub(crate) fn unread(&self) -> usize {
        self.inner().events.len()
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
        if let Some(inside) = &self.inside {
            return inside.to.poll_at_most(events, cx);
        }
        let mut inner = self.inner();
        if inner.events.len() <= events || inner.ended {
            return Poll::Ready(());
        }
        inner.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn node(&self, request: TaskRequest) -> String {
        let begun = || self.inner().nodes.get(&request.index).cloned();
        let name = self.names.get(request.node as usize).cloned().or_else(begun);
        name.map_or_else(String::new, |name| name.to_string())
    }

    /// The next event; if there is none, `reader` is woken by the one that comes.
    pub(crate) fn pop(&self, reader: &Waker) -> Option<Event<S>> {
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

    fn refused(&self, request: TaskRequest, by: String, why: EditError) {
        if self.views.edits {
            self.push_of(request, EventKind::EditRejected { by, why });
        }
    }

    fn message(&self, request: TaskRequest, piece: serde_json::Value) {
        let node = self.node(request);
        self.push_of(request, EventKind::Message { node, piece });
    }
}

impl<S: State> ChildListener for EventQueue<S> {
    fn hear(&self, heard: ChildEvent) {
        let ChildEvent { run, namespace, step, task, kind } = heard;
        let inner = self.inner();
        if !inner.ended {
            self.append(inner, Event { seq: 0, run, namespace, step, task, kind: kind.into_kind() });
        }
    }

    fn views(&self) -> Views {
        self.views
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn has_room(&self) -> bool {
        EventQueue::has_room(self)
    }

    fn poll_at_most(&self, events: usize, cx: &mut Context<'_>) -> Poll<()> {
        EventQueue::poll_at_most(self, events, cx)
    }
}
