//! [`EventQueue`]: the one ordered source of events.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::child_events::ChildEvents;
use super::{Event, EventKind, TaskRef};
use crate::context::{Audience, NewQuestions, Sink, TaskRequest};
use crate::error::BoxError;
use crate::graph::node_names::NodeNames;
use crate::node::error_code::{code_of, message_of};
use crate::typed::{AnySchema, AnyState};
use crate::words::{DurableStepRef, EditError, Replaced, StepEvent, Views};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::{RunId, TaskId};

/// The queue between a run and its stream.
pub(crate) struct EventQueue {
    /// Known once the run has read its thread.
    run: OnceLock<RunId>,
    views: Views,
    capacity: usize,
    names: Arc<NodeNames>,
    pub(super) schema: AnySchema,
    /// The receiver of the events, in a subgraph.
    inside: Option<ChildEvents>,
    inner: Lock<Inner>,
}

struct Inner {
    events: VecDeque<Event<AnyState>>,
    next: u64,
    step: u64,
    /// The ids of the current superstep's tasks, in task order.
    tasks: Vec<TaskId>,
    /// Running tasks without a superstep, by the index of their request: their id, and their place in task
    /// order.
    running: HashMap<u32, (TaskId, u32)>,
    /// The nodes of those tasks, if they are temporary.
    nodes: HashMap<u32, Arc<str>>,
    waiting: Vec<Waker>,
    /// The reader of the stream, while it waits for an event. A task spawned by a node may emit while the run
    /// is not polled.
    reader: Option<Waker>,
    /// Whether the last event was added: a context that outlives its run adds nothing after it.
    ended: bool,
}

impl Inner {
    /// The id and place of a task; `None` for a context that outlived its task.
    fn task(&self, task: TaskRequest) -> Option<(TaskId, u32)> {
        if let Some(running) = self.running.get(&task.index) {
            return Some(*running);
        }
        let of_superstep = self.tasks.get(task.index as usize).filter(|_| task.step == self.step);
        of_superstep.map(|id| (*id, task.index))
    }
}

impl EventQueue {
    /// The views of the stream.
    #[inline]
    pub(crate) fn views(&self) -> Views {
        self.views
    }

    pub(crate) fn new(views: Views, capacity: usize, names: &Arc<NodeNames>, schema: AnySchema) -> Self {
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
            names: Arc::clone(names),
            schema,
            inside: None,
            inner: Lock::new(inner),
        }
    }

    /// The listeners to the nodes of a run whose events go to this queue.
    pub(crate) fn audience(events: Option<&Arc<Self>>) -> Audience {
        let Some(events) = events else { return Audience::default() };
        let Views { custom, messages, .. } = events.views;
        let sink = events.views.reach_nodes().then(|| Arc::clone(events) as Arc<dyn Sink>);
        Audience { sink, custom, messages }
    }

    /// The queue of a subgraph. It stores nothing: events go at once to the stream of the parent graph.
    pub(crate) fn inside(inside: ChildEvents, names: &Arc<NodeNames>) -> Self {
        let queue = EventQueue::new(inside.to.views, inside.to.capacity, names, inside.schema.clone());
        EventQueue { inside: Some(inside), ..queue }
    }

    pub(crate) fn begin(&self, run: RunId) {
        let _ = self.run.set(run);
    }

    /// Sets the superstep that starts, and the ids of its tasks.
    pub(crate) fn begin_step(&self, step: u64, tasks: impl IntoIterator<Item = TaskId>) {
        let mut inner = self.inner.lock();
        inner.step = step;
        inner.tasks.clear();
        inner.tasks.extend(tasks);
    }

    /// Sets the id of a started task without a superstep, or of the handler that replaces it.
    pub(crate) fn enter(&self, request: TaskRequest, id: TaskId, place: u32) {
        self.inner.lock().running.insert(request.index, (id, place));
    }

    /// Removes such a task when it has ended.
    pub(crate) fn leave(&self, request_index: u32) {
        let mut inner = self.inner.lock();
        inner.running.remove(&request_index);
        inner.nodes.remove(&request_index);
    }

    /// Sets the node of such a task, if the node is temporary.
    pub(crate) fn name(&self, request: TaskRequest, node: Arc<str>) {
        self.inner.lock().nodes.insert(request.index, node);
    }

    /// Replaces the id of a failed task by that of its handler.
    pub(crate) fn hand_over(&self, index: u32, handler: TaskId) {
        if let Some(task) = self.inner.lock().tasks.get_mut(index as usize) {
            *task = handler;
        }
    }

    /// Adds an event of the run.
    pub(crate) fn push(&self, step: u64, kind: EventKind<AnyState>) {
        self.add(step, None, kind);
    }

    /// Adds an event of a task.
    pub(crate) fn push_of(&self, task: TaskRequest, kind: EventKind<AnyState>) {
        self.add(task.step, Some(task), kind);
    }

    /// Adds an event for each answer that a task has voided by its questions.
    pub(crate) fn push_voided(&self, task: TaskRequest, node: &str, asks: &NewQuestions) {
        let Some((id, _)) = self.inner.lock().task(task) else { return };
        for request in &asks.requests {
            let replaced = request.replaces.as_ref().filter(|replaced| asks.voided.contains(&replaced.n));
            let Some(replaced) = replaced else { continue };
            let question = Replaced::of(id, replaced.clone());
            let node = node.to_owned();
            let asks = request.value.clone();
            self.push_of(task, EventKind::AnswerVoided { node, question, asks });
        }
    }

    fn add(&self, step: u64, task: Option<TaskRequest>, kind: EventKind<AnyState>) {
        let run = self.run.get().copied().unwrap_or_default();
        let mut inner = self.inner.lock();
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
            inside.send(run, step, task, kind);
            return;
        }
        self.append(
            inner,
            Event { seq: 0, run, namespace: Arc::default(), step, task, kind, schema: self.schema.clone() },
        );
    }

    /// Adds an event of a subgraph.
    pub(super) fn push_from_inside(&self, event: Event<AnyState>) {
        let inner = self.inner.lock();
        if !inner.ended {
            self.append(inner, event);
        }
    }

    fn append(&self, mut inner: MutexGuard<'_, Inner>, mut event: Event<AnyState>) {
        event.seq = inner.next;
        inner.next += 1;
        inner.ended = matches!(event.kind, EventKind::Ended(_));
        inner.events.push_back(event);
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
    }

    /// Closes the queue without a reader: runs that wait for room continue, and further events are dropped.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.ended = true;
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    /// Whether fewer events are unread than the capacity.
    pub(crate) fn has_room(&self) -> bool {
        if let Some(inside) = &self.inside {
            return inside.to.has_room();
        }
        let inner = self.inner.lock();
        inner.events.len() < self.capacity || inner.ended
    }

    /// The current superstep.
    pub(crate) fn step(&self) -> u64 {
        self.inner.lock().step
    }

    /// The number of unread events.
    pub(crate) fn unread(&self) -> usize {
        self.inner.lock().events.len()
    }

    /// Waits until the queue has room.
    pub(crate) async fn room(&self) {
        self.at_most(self.capacity - 1).await;
    }

    /// Waits until the reader has taken every event.
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
        let mut inner = self.inner.lock();
        if inner.events.len() <= events || inner.ended {
            return Poll::Ready(());
        }
        inner.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn node(&self, request: TaskRequest) -> String {
        let begun = || self.inner.lock().nodes.get(&request.index).cloned();
        let name = self.names.get(request.node as usize).cloned().or_else(begun);
        name.map_or_else(String::new, |name| name.to_string())
    }

    /// The next event. If there is none, the next one that is added wakes `reader`.
    pub(crate) fn pop(&self, reader: &Waker) -> Option<Event<AnyState>> {
        let mut inner = self.inner.lock();
        let event = inner.events.pop_front();
        inner.reader = event.is_none().then(|| reader.clone());
        if inner.events.len() < self.capacity {
            inner.waiting.drain(..).for_each(Waker::wake);
        }
        event
    }
}

#[async_trait::async_trait]
impl Sink for EventQueue {
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

    fn step(&self, request: TaskRequest, step: DurableStepRef, event: StepEvent) {
        if self.views.tasks {
            let node = self.node(request);
            self.push_of(request, EventKind::Step { node, step, event });
        }
    }

    fn task_started(&self, request: TaskRequest, input: Option<serde_json::Value>) {
        if self.views.tasks {
            let node = self.node(request);
            self.push_of(request, EventKind::TaskStarted { node, input });
        }
    }

    fn attempt_started(&self, request: TaskRequest) {
        if self.views.tasks {
            let node = self.node(request);
            self.push_of(request, EventKind::AttemptStarted { node });
        }
    }

    fn attempt_failed(&self, request: TaskRequest, error: &BoxError, next_in: Option<Duration>) {
        if self.views.tasks {
            let node = self.node(request);
            let (code, message) = (code_of(error), message_of(error));
            self.push_of(request, EventKind::AttemptFailed { node, code, message, next_in });
        }
    }

    fn message(&self, request: TaskRequest, piece: serde_json::Value) {
        let node = self.node(request);
        self.push_of(request, EventKind::Message { node, piece });
    }
}
