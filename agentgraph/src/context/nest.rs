//! Runs inside tasks: the data of the parent run, and the data that a run shares with inner runs.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::{Memories, RunShared, TaskRequest};
use crate::policy::Places;
use crate::record::header::StoredStuck;
use crate::words::{Durability, GraphEdit, Memory, namespace};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, TaskId};

/// The task around a run.
pub(crate) struct Outer {
    /// Its run.
    pub(crate) shared: Arc<RunShared>,
    pub(crate) request: TaskRequest,
    /// The run that the caller sees.
    pub(crate) root: Arc<RunShared>,
    pub(crate) memory: Memory,
    /// The number of subgraphs around the tasks of the inner run, its own included.
    pub(crate) depth: u32,
    /// Whether the inner run's tasks run on the host of the task's run.
    pub(crate) inherits_host: bool,
    /// The id of the task, or of that whose call it continues, if it is known.
    task: Option<TaskId>,
    names: OnceLock<CallNames>,
}

/// What a run inside a task is called. Derived when it is asked for: few runs that store nothing need it.
struct CallNames {
    task: TaskId,
    /// The id of the task, in place of the thread in the task ids of an inner run that stores nothing.
    thread: String,
    namespace: Arc<str>,
}

impl Outer {
    pub(crate) fn new(
        shared: Arc<RunShared>,
        request: TaskRequest,
        memory: Memory,
        task: Option<TaskId>,
        inherits_host: bool,
    ) -> Self {
        let root = shared.outer.as_ref().map_or(&shared, |further| &further.root);
        Outer {
            root: Arc::clone(root),
            depth: 1 + shared.subgraphs_around(),
            shared,
            request,
            memory,
            inherits_host,
            task,
            names: OnceLock::new(),
        }
    }

    /// The id of the task, or of that whose call it continues.
    pub(crate) fn task(&self) -> TaskId {
        self.task.unwrap_or_else(|| self.names().task)
    }

    /// The namespace of the inner run, also in events and interrupts.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.names().namespace
    }

    fn names(&self) -> &CallNames {
        // Those around it come first, from the outside in: else the stack would grow with the depth.
        let mut unnamed = Vec::new();
        let mut around = self.shared.outer.as_deref().filter(|_| self.names.get().is_none());
        while let Some(outer) = around.filter(|outer| outer.names.get().is_none()) {
            unnamed.push(outer);
            around = outer.shared.outer.as_deref();
        }
        while let Some(outer) = unnamed.pop() {
            outer.names.get_or_init(|| outer.derive_names());
        }
        self.names.get_or_init(|| self.derive_names())
    }

    fn derive_names(&self) -> CallNames {
        let task = self.task.unwrap_or_else(|| self.shared.task_id(self.request));
        let node = self.shared.name_of(self.request.node);
        let namespace = namespace(self.shared.namespace(), &node, self.memory, task).into();
        CallNames { task, thread: task.to_string(), namespace }
    }
}

/// The data that a run shares with the runs inside its tasks. Only runs of graphs with subgraphs have it.
pub(crate) struct Nest {
    /// The checkpointer of the run itself.
    pub(crate) saver: Option<Arc<dyn Checkpointer>>,
    pub(crate) durability: Durability,
    /// The host of the run's tasks, which runs inside these tasks inherit.
    pub(crate) host: Option<Arc<dyn Host>>,
    /// The concurrency limit of the whole call.
    pub(crate) places: Places,
    /// The queue for the events of subgraphs, if they are streamed. The room of events knows its type.
    pub(crate) hears: Option<Arc<dyn Any + Send + Sync>>,
    /// The caller's request to stop at the next boundary.
    pub(crate) drain: Option<CancellationToken>,
    /// The tasks of the first superstep may have been started by an earlier call.
    pub(crate) resumed: bool,
    step: Lock<RunningStep>,
    /// Pending writes were stored on the head without the journal.
    wrote: AtomicBool,
    /// Serializes writes, so that the newest one is stored last.
    writing: tokio::sync::Mutex<()>,
    /// The memories that the run names; shared with its journal.
    pub(crate) memories: Arc<Memories>,
    /// Joins that were still waiting when an inner run ended, by superstep, task, and whether a handler
    /// called it.
    stuck: Lock<BTreeMap<CallKey, Vec<StoredStuck>>>,
}

/// The superstep, the index of the task, and whether it handles a failure.
type CallKey = (u64, u32, bool);

/// The running superstep.
#[derive(Default)]
struct RunningStep {
    head: Option<CheckpointId>,
    calls: BTreeMap<(u32, bool), SubgraphCall>,
}

/// A task of the superstep that calls a subgraph.
#[derive(Clone, Copy)]
pub(crate) struct SubgraphCall {
    /// The id of the task, or of that whose call it continues; `None` if nothing is stored.
    pub(crate) task: Option<TaskId>,
    /// It was called before, so an earlier call may be continued.
    pub(crate) again: bool,
    /// Another task of the superstep calls the same memory.
    pub(crate) shares_memory: bool,
}

impl Nest {
    pub(crate) fn new(
        saver: Option<Arc<dyn Checkpointer>>,
        durability: Durability,
        places: Places,
        drain: Option<CancellationToken>,
        resumed: bool,
        memories: Arc<Memories>,
    ) -> Self {
        Nest {
            saver,
            durability,
            host: None,
            places,
            hears: None,
            drain,
            resumed,
            step: Lock::default(),
            wrote: AtomicBool::new(false),
            writing: tokio::sync::Mutex::default(),
            memories,
            stuck: Lock::default(),
        }
    }

    /// Records the superstep that starts, and which of its tasks call subgraphs.
    pub(crate) fn begin_step(&self, head: Option<CheckpointId>, calls: BTreeMap<(u32, bool), SubgraphCall>) {
        *self.step.lock() = RunningStep { head, calls };
    }

    /// Records the start of a task that belongs to no superstep, and whether it calls a subgraph.
    pub(crate) fn enter(
        &self,
        head: Option<CheckpointId>,
        index: u32,
        handles: bool,
        call: Option<SubgraphCall>,
    ) {
        let mut step = self.step.lock();
        step.head = head;
        if let Some(call) = call {
            step.calls.insert((index, handles), call);
        }
    }

    /// Records the end of such a task.
    pub(crate) fn leave(&self, index: u32) {
        let mut step = self.step.lock();
        step.calls.remove(&(index, false));
        step.calls.remove(&(index, true));
    }

    /// Records the new head checkpoint.
    pub(crate) fn set_head(&self, head: Option<CheckpointId>) {
        self.step.lock().head = head;
    }

    /// Returns a call and marks it as called.
    pub(crate) fn call(&self, request: TaskRequest) -> Option<SubgraphCall> {
        let mut step = self.step.lock();
        let call = step.calls.get_mut(&(request.index, request.handles))?;
        Some(SubgraphCall { again: std::mem::replace(&mut call.again, true), ..*call })
    }

    /// The head checkpoint.
    pub(crate) fn head(&self) -> Option<CheckpointId> {
        self.step.lock().head
    }

    /// Locks the head: until the guard is dropped, no other task stores data of the whole run on it, or
    /// moves it.
    pub(crate) async fn lock_head(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Records that data was stored on the head without the journal.
    pub(crate) fn note_write(&self) {
        self.wrote.store(true, Ordering::Release);
    }

    /// Records the joins that were still waiting when the run inside a task ended. Those of an earlier
    /// attempt are dropped.
    pub(crate) fn put_stuck(&self, call: CallKey, joins: Vec<StoredStuck>) {
        let mut stuck = self.stuck.lock();
        if joins.is_empty() { drop(stuck.remove(&call)) } else { drop(stuck.insert(call, joins)) }
    }

    /// Takes the joins of all supersteps up to this one, in task order.
    pub(crate) fn take_stuck(&self, step: u64) -> Vec<StoredStuck> {
        let mut stuck = self.stuck.lock();
        let later = stuck.split_off(&(step.saturating_add(1), 0, false));
        std::mem::replace(&mut *stuck, later).into_values().flatten().collect()
    }

    /// Takes the joins of one task.
    pub(crate) fn take_stuck_of(&self, index: u32) -> Vec<StoredStuck> {
        let mut stuck = self.stuck.lock();
        let of_task: Vec<CallKey> = stuck.keys().filter(|(_, at, _)| *at == index).copied().collect();
        of_task.iter().filter_map(|call| stuck.remove(call)).flatten().collect()
    }

    /// Whether data was stored on the head since the last call.
    pub(crate) fn take_wrote(&self) -> bool {
        self.wrote.swap(false, Ordering::AcqRel)
    }
}

impl RunShared {
    /// The joins that were still waiting when the run inside a task of this superstep ended.
    pub(crate) fn stuck_inside(&self, index: u32, handles: bool) -> Vec<StoredStuck> {
        let Some(nest) = &self.nest else { return Vec::new() };
        nest.stuck.lock().get(&(self.control.step(), index, handles)).cloned().unwrap_or_default()
    }

    /// Until the guard is dropped, no inner run stores data that belongs to this run.
    pub(crate) async fn lock_head(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match &self.nest {
            Some(nest) => Some(nest.lock_head().await),
            None => None,
        }
    }

    /// The run that the caller sees.
    pub(crate) fn root(&self) -> &RunShared {
        self.outer.as_ref().map_or(self, |outer| &outer.root)
    }

    /// The innermost streamed run around this one, and its task around the given one: this run, if
    /// subgraphs are streamed too, otherwise the caller's run.
    pub(super) fn streamed_run(&self, mut request: TaskRequest) -> (&RunShared, TaskRequest) {
        let mut shared = self;
        while let (None, Some(outer)) = (&shared.audience.sink, &shared.outer) {
            (shared, request) = (&outer.shared, outer.request);
        }
        (shared, request)
    }

    /// A sign of life of a task, and of all tasks around it.
    pub(crate) fn beat(&self, request: TaskRequest) {
        self.bounds.beats.beat((request.step, request.index));
        if let Some(outer) = &self.outer {
            outer.shared.beat(outer.request);
        }
    }

    /// What task ids are derived from instead of a thread, if this run stores nothing.
    pub(crate) fn unstored_thread(&self) -> &str {
        self.outer.as_ref().map_or("", |outer| &outer.names().thread)
    }

    /// The task around this run, if its graph has the host of this run's tasks.
    fn outer_on_host(&self) -> Option<&Outer> {
        self.outer.as_deref().filter(|outer| outer.inherits_host)
    }

    /// The graph nodes from the graph that has the host down to the one of this run.
    pub(super) fn path(&self) -> Vec<String> {
        let Some(outer) = self.outer_on_host() else { return Vec::new() };
        let mut path = outer.shared.path();
        path.push(outer.shared.name_of(outer.request.node).to_string());
        path
    }

    /// The nodes of [`path`](Self::path) that are temporary: their positions, and the edits that added them.
    pub(crate) fn added_on_path(&self) -> Vec<(u32, GraphEdit)> {
        let Some(outer) = self.outer_on_host() else { return Vec::new() };
        let mut added = outer.shared.added_on_path();
        let overlay = outer.shared.visible().overlay;
        let node = overlay.as_ref().and_then(|overlay| overlay.node(outer.request.node));
        if let Some(edit) = node.and_then(|node| node.made_by.as_deref()) {
            added.push((outer.shared.depth(), edit.clone()));
        }
        added
    }

    /// The length of the path.
    fn depth(&self) -> u32 {
        self.outer_on_host().map_or(0, |outer| 1 + outer.shared.depth())
    }

    /// The number of subgraphs around the tasks of this run.
    pub(crate) fn subgraphs_around(&self) -> u32 {
        self.outer.as_ref().map_or(0, |outer| outer.depth)
    }

    /// The namespace of this run.
    pub(crate) fn namespace(&self) -> &str {
        self.outer.as_ref().map_or("", |outer| outer.namespace())
    }
}
