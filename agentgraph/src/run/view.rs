//! Reading a thread: its newest state, and its history.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::channel_uses::keep_overwrites;
use crate::engine::driver::Driver;
use crate::engine::left_over::{Leftovers, TaskRemains};
use crate::engine::load::{
    Replay, apply_row, fill_references, graph_changed, read_remains, replay, restore, shown_step,
};
use crate::engine::stored::{OF_RUN, StoredStep};
use crate::engine::task_output::TaskOutput;
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore, GraphTopology};
use crate::persistence::Persistence;
use crate::run::CompiledGraph;
use crate::run::open::{OpenTask, done, failure_of_all, interrupts, open_work_inside, tasks};
use crate::state::{ShownState, State, StateError};
use crate::step::Step;
use crate::words::{DoneStep, GraphEdit, Interrupt, OpenChild};
use agentgraph_checkpoint::engine::{TaskPlace, page};
use agentgraph_checkpoint::{
    CheckpointId, ListQuery, PendingWrite, Place, RowKind, RunId, Source, Tail, TaskId,
};

/// A checkpoint, as a reader sees it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Checkpoint<S> {
    /// The id.
    pub id: CheckpointId,
    /// The checkpoint before it, or the one that its branch started from. `None` for the first of a thread.
    pub parent: Option<CheckpointId>,
    /// The run that wrote it.
    pub run: RunId,
    /// The reason for the checkpoint.
    pub source: Source,
    /// The time of its creation, by the clock of the run's services.
    pub created: SystemTime,
    /// The state.
    pub values: S,
    /// The nodes that run next, in task order; empty for a finished run. A node appears once for each of its
    /// dispatches.
    pub next: Vec<String>,
    /// Deferred nodes that were reached and wait until nothing else can run.
    pub deferred: Vec<String>,
    /// The interrupts that wait for answers, in task order, including those in subgraphs; only for the newest
    /// checkpoint.
    pub interrupts: Vec<Interrupt>,
    /// The failures of tasks that are still to run, from their last calls, in task order; failures in
    /// subgraphs follow the task that called them. A failure of the superstep as a whole (two nodes wrote one
    /// field, say) comes last; its node is empty unless one node caused it. The next commit removes failures;
    /// in an eager graph, a failure is removed when its task is done or runs again.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::Code;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Trip { city: String }
    /// async fn book() -> Result<()> {
    ///     Err("no seat".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Trip>::new().node("book", book).edge(START, "book").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// assert!(graph.invoke(Trip::update()).thread("t-1").await.is_err());
    ///
    /// // Later, perhaps in another process.
    /// let failures = graph.state("t-1").await?.unwrap().failures;
    /// let failure = &failures[0];
    /// assert_eq!((failure.node(), failure.code(), failure.attempt()), ("book", Code::NodeFailed, 1));
    /// assert_eq!(failure.message(), "no seat");
    /// # Ok(())
    /// # }
    /// ```
    pub failures: Vec<Failure>,
    /// The durable steps of tasks that are still to run which have results, by task and in the order in which
    /// the results came; steps in subgraphs follow the task that called them. The commit of the task removes
    /// them. See [`Ctx::once`](crate::Ctx::once).
    pub steps: Vec<DoneStep>,
    /// Subgraphs that have started and not ended, at any depth; only for the newest checkpoint.
    pub children: Vec<OpenChild>,
    /// The run that was given up when this one started.
    pub abandoned: Option<RunId>,
    /// The temporary edits in effect, in order; of skips only those that are [still to
    /// come](Checkpoint::skips).
    pub edits: Vec<GraphEdit>,
    /// Nodes that are skipped when they are reached next.
    pub skips: Vec<String>,
    /// The checkpoint that each memory of the thread continues from, by its
    /// [namespace](CompiledGraph::namespace): see [`Memory::PerThread`](crate::Memory::PerThread).
    pub memories: BTreeMap<String, CheckpointId>,
}

impl<S: State + fmt::Debug> fmt::Debug for Checkpoint<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { id, parent, run, source, created, values, next, deferred, .. } = self;
        let Checkpoint { interrupts, failures, steps, children, abandoned, edits, skips, memories, .. } =
            self;
        let mut parts = out.debug_struct("Checkpoint");
        parts.field("id", id).field("parent", parent).field("run", run).field("source", source);
        parts.field("created", created).field("values", &ShownState(values)).field("next", next);
        parts.field("deferred", deferred).field("interrupts", interrupts).field("failures", failures);
        parts.field("steps", steps).field("children", children);
        parts
            .field("abandoned", abandoned)
            .field("edits", edits)
            .field("skips", skips)
            .field("memories", memories)
            .finish()
    }
}

pub(super) fn no_checkpointer() -> Error {
    Error::new(
        Code::NoCheckpointer,
        "the graph keeps no threads: add `.checkpointer(..)` to the compiled graph",
    )
}

pub(crate) async fn state<S: State>(
    graph: &CompiledGraph<S>,
    thread: &str,
) -> Result<Option<Checkpoint<S>>, Error> {
    let persistence = graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
    persistence.settle(thread).await;
    let place = persistence.place(thread);
    let Some(tail) = persistence.saver.get(place, None).await? else { return Ok(None) };
    let replayed = replay(persistence, place, &tail).await?;
    let mut checkpoint = checkpoint(graph, persistence, place, &replayed)?;
    let in_a_pass = graph.driver.is_some() && !checkpoint.next.is_empty();
    if !tail.writes.is_empty()
        || graph.core.has_graphs
        || graph.core.discipline == Discipline::Eager
        || in_a_pass
    {
        add_left_over(graph, persistence, place, &replayed, &tail, &mut checkpoint).await?;
    }
    Ok(Some(checkpoint))
}

pub(crate) async fn state_at<S: State>(
    graph: &CompiledGraph<S>,
    thread: &str,
    id: CheckpointId,
) -> Result<Option<Checkpoint<S>>, Error> {
    let persistence = graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
    persistence.settle(thread).await;
    let place = persistence.place(thread);
    let Some(tail) = persistence.saver.get(place, Some(id)).await? else { return Ok(None) };
    let replayed = replay(persistence, place, &tail).await?;
    let mut found = checkpoint(graph, persistence, place, &replayed)?;
    (found.failures, found.steps) =
        failures_and_steps(graph, persistence, place, &replayed, &tail.writes).await?;
    Ok(Some(found))
}

pub(crate) async fn topology_at<S: State>(
    graph: &CompiledGraph<S>,
    thread: &str,
    id: CheckpointId,
) -> Result<Option<GraphTopology>, Error> {
    let persistence = graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
    persistence.settle(thread).await;
    let place = persistence.place(thread);
    let Some(tail) = persistence.saver.get(place, Some(id)).await? else { return Ok(None) };
    let header = replay(persistence, place, &tail).await?.header;
    let mut gone = Vec::new();
    let edited = RunGraph::restore(&graph.core, &header, &mut gone);
    if gone.is_empty() { Ok(Some(GraphTopology::of(&edited))) } else { Err(graph_changed(place, gone)) }
}

fn parent(replayed: &Replay) -> Option<CheckpointId> {
    let CheckpointId { branch, step, .. } = replayed.id;
    let before = step.checked_sub(1)?;
    let began = replayed.header.parent.filter(|(_, parent)| *parent == before);
    let (branch, step) = began.unwrap_or((branch, before));
    Some(CheckpointId::new(branch, step))
}

fn checkpoint<S: State>(
    graph: &CompiledGraph<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    replayed: &Replay,
) -> Result<Checkpoint<S>, Error> {
    let header = &replayed.header;
    let values = restore(&graph.core, persistence, place, replayed)?.state;
    let (edits, skips) = match &graph.driver {
        Some(driver) => driver.edits(&values),
        None => (header.overlay.clone(), header.skips.clone()),
    };
    let memories = header.memories.iter();
    let memories =
        memories.map(|(memory, (branch, step))| (memory.clone(), CheckpointId::new(*branch, *step)));
    Ok(Checkpoint {
        id: replayed.id,
        parent: parent(replayed),
        run: header.run,
        source: header.source,
        created: header.time(),
        values,
        next: header.next.iter().map(|activation| activation.node.clone()).collect(),
        deferred: header.deferred.clone(),
        interrupts: Vec::new(),
        failures: Vec::new(),
        steps: Vec::new(),
        children: Vec::new(),
        abandoned: header.abandoned,
        edits,
        skips,
        memories: memories.collect(),
    })
}

/// Adds the updates of finished siblings, the questions of waiting ones, and the open work inside tasks.
async fn add_left_over<S: State>(
    graph: &CompiledGraph<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    replayed: &Replay,
    tail: &Tail,
    checkpoint: &mut Checkpoint<S>,
) -> Result<(), Error> {
    let header = &replayed.header;
    let left = read_remains(&graph.core, place, (replayed.id, header), &tail.writes)?.tasks;
    if let Some(driver) = &graph.driver {
        return add_pass(graph, persistence, place, Arc::clone(driver), &left, checkpoint);
    }
    let core = &RunGraph::restore(&graph.core, header, &mut Vec::new());
    let finished = done(core, place, header, replayed.id, &left).map(|result| {
        let (step, _) = shown_step(core, &persistence.codec, place.thread, result)?;
        Ok(Some(TaskOutput { update: update_of(step), routing: None }))
    });
    let mut finished: Vec<_> = finished.collect::<Result<_, Error>>()?;
    keep_overwrites(core, &mut finished);
    for mut update in finished.into_iter().flatten().filter_map(|done| done.update) {
        // A sum of parallel writes may not fit: the superstep cannot be merged, but its thread can be read.
        match checkpoint.values.peek(&core.schema, &mut update, |_| ()) {
            Ok(()) => checkpoint.values.apply(&core.schema, update)?,
            Err(StateError::BadValue { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    checkpoint.next.clear();
    for task in tasks(core, place, header, replayed.id, &left) {
        checkpoint.failures.extend(task.failure(place));
        checkpoint.steps.extend(task.steps(place));
        if task.left.is_some_and(TaskRemains::waits) {
            checkpoint.interrupts.extend(interrupts(place, &task));
        } else if core.has_graphs {
            let inside = open_work_inside(core, &*persistence.saver, place, &task).await?;
            checkpoint.interrupts.extend(inside.requests.into_iter().map(|request| request.interrupt));
            checkpoint.children.extend(inside.children);
            checkpoint.failures.extend(inside.failures);
            checkpoint.steps.extend(inside.steps);
        }
        checkpoint.next.push(task.node);
    }
    checkpoint.failures.extend(failure_of_all(place, &left));
    Ok(())
}

/// The failures and the durable steps of a checkpoint's open tasks.
async fn failures_and_steps<S: State>(
    graph: &CompiledGraph<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    replayed: &Replay,
    writes: &[PendingWrite],
) -> Result<(Vec<Failure>, Vec<DoneStep>), Error> {
    let header = &replayed.header;
    if header.next.is_empty() {
        return Ok(Default::default());
    }
    let left = read_remains(&graph.core, place, (replayed.id, header), writes)?.tasks;
    if graph.driver.is_some() {
        let steps = steps_of_pass(&graph.core, place, (header.run, replayed.id), &[], &left);
        return Ok((failures_of_pass(&graph.core, place, &left), steps));
    }
    let core = &RunGraph::restore(&graph.core, header, &mut Vec::new());
    let (mut failures, mut steps) = (Vec::new(), Vec::new());
    for task in tasks(core, place, header, replayed.id, &left) {
        failures.extend(task.failure(place));
        steps.extend(task.steps(place));
        if core.has_graphs && !task.left.is_some_and(TaskRemains::waits) {
            let inside = open_work_inside(core, &*persistence.saver, place, &task).await?;
            failures.extend(inside.failures);
            steps.extend(inside.steps);
        }
    }
    failures.extend(failure_of_all(place, &left));
    Ok((failures, steps))
}

/// The failures of a pass, in the order in which the nodes are declared.
fn failures_of_pass<S: State>(core: &GraphCore<S>, place: Place<'_>, left: &Leftovers) -> Vec<Failure> {
    let tasks = left.iter().filter(|(task, _)| **task != OF_RUN);
    let mut found: Vec<Failure> = tasks.filter_map(|(_, left)| left.failed().cloned()).collect();
    let at = |failure: &Failure| core.by_name.get(failure.node()).copied().unwrap_or(u32::MAX);
    found.sort_by(|a, b| (at(a), a.node()).cmp(&(at(b), b.node())));
    found.extend(failure_of_all(place, left));
    found
}

/// The durable steps of a pass, in the order in which the nodes are declared; `more` names temporary nodes.
fn steps_of_pass<S: State>(
    core: &GraphCore<S>,
    place: Place<'_>,
    (run, id): (RunId, CheckpointId),
    more: &[String],
    left: &Leftovers,
) -> Vec<DoneStep> {
    if left.values().all(|left| !left.has_steps()) {
        return Vec::new();
    }
    let declared = core.names.iter().map(|name| &**name);
    let temporary = more.iter().map(|name| &**name).filter(|name| !core.by_name.contains_key(*name));
    let steps = declared.chain(temporary).flat_map(|node| {
        let Place { thread, namespace } = place;
        let CheckpointId { branch, step: parent, .. } = id;
        let task =
            TaskId::derive(&TaskPlace { thread, run, namespace, branch, parent, node, dispatch: None });
        OpenTask { id: task, node: node.to_owned(), left: left.get(&task) }.steps(place)
    });
    steps.collect()
}

/// Adds the results of an unfinished pass.
fn add_pass<S: State>(
    graph: &CompiledGraph<S>,
    persistence: &Persistence<S>,
    place: Place<'_>,
    driver: Arc<dyn Driver<S>>,
    left: &Leftovers,
    checkpoint: &mut Checkpoint<S>,
) -> Result<(), Error> {
    let core = &graph.core;
    let results = left.values().filter_map(|left| left.result.as_deref());
    let done = results.filter_map(|result| {
        let turn = match StoredStep::from_bytes(result) {
            Ok(step) => step.turn?,
            Err(error) => return Some(Err(error.on_thread(Some(place.thread)))),
        };
        let step = shown_step(core, &persistence.codec, place.thread, result);
        Some(step.map(|(step, _)| (turn, update_of(step))))
    });
    let mut done = done.collect::<Result<Vec<_>, Error>>()?;
    done.sort_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
    let asked = left.values().filter_map(TaskRemains::asked_by).collect();
    checkpoint.next = Arc::clone(&driver).upcoming(place.thread, &mut checkpoint.values, done, &asked)?;
    (checkpoint.edits, checkpoint.skips) = driver.edits(&checkpoint.values);
    for (task, left) in left {
        let Some((_, request)) = left.open().next() else { continue };
        let task = OpenTask { id: *task, node: request.node.clone(), left: Some(left) };
        checkpoint.interrupts.extend(interrupts(place, &task));
    }
    let at = |interrupt: &Interrupt| core.by_name.get(&*interrupt.node).copied().unwrap_or(u32::MAX);
    checkpoint.interrupts.sort_by_key(|interrupt| (at(interrupt), interrupt.id));
    checkpoint.failures = failures_of_pass(core, place, left);
    checkpoint.steps = steps_of_pass(core, place, (checkpoint.run, checkpoint.id), &checkpoint.next, left);
    Ok(())
}

fn update_of<S: State>(step: Step<S>) -> Option<S::Update> {
    match step {
        Step::None => None,
        Step::Update(update) => Some(update),
        Step::Command(command) => command.update,
    }
}

/// A query of a thread's history: `graph.history("t-1").limit(10).await?`. It starts at the newest checkpoint
/// and goes back over the branches that its branch started from.
#[must_use = "a question does nothing until it is awaited"]
pub struct History<S: State> {
    graph: CompiledGraph<S>,
    thread: String,
    branch: Option<u32>,
    before: Option<CheckpointId>,
    limit: Option<usize>,
    tests: Vec<CheckpointTest<S>>,
}

/// A filter of checkpoints.
type CheckpointTest<S> = Box<dyn Fn(&Checkpoint<S>) -> bool + Send + Sync>;

/// Number of rows read at a time if some may be filtered out.
const PAGE: usize = 256;

impl<S: State> History<S> {
    pub(crate) fn new(graph: CompiledGraph<S>, thread: String) -> Self {
        History { graph, thread, branch: None, before: None, limit: None, tests: Vec::new() }
    }

    /// Starts at the newest checkpoint of that branch instead of the newest branch.
    pub fn branch(mut self, branch: u32) -> Self {
        self.branch = Some(branch);
        self
    }

    /// Selects checkpoints before that one, on its branch and those it started from.
    pub fn before(mut self, checkpoint: CheckpointId) -> Self {
        self.before = Some(checkpoint);
        self
    }

    /// Limits the number of checkpoints; the newest ones are returned.
    pub fn limit(mut self, checkpoints: usize) -> Self {
        self.limit = Some(checkpoints);
        self
    }

    /// Selects checkpoints that were written for that reason.
    pub fn source(self, source: Source) -> Self {
        self.filter(move |checkpoint| checkpoint.source == source)
    }

    /// Selects checkpoints for which `test` is true.
    pub fn filter(mut self, test: impl Fn(&Checkpoint<S>) -> bool + Send + Sync + 'static) -> Self {
        self.tests.push(Box::new(test));
        self
    }

    async fn read(self) -> Result<Vec<Checkpoint<S>>, Error> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let (mut branch, mut before) = match self.before {
            None => (self.branch, None),
            Some(id) => self.older_than(id).await?,
        };
        // Only the last checkpoint of a branch has pending writes.
        let mut may_be_last = self.before.is_none_or(|id| branch != Some(id.branch));
        while found.len() < limit {
            let page = if self.tests.is_empty() { limit - found.len() } else { PAGE };
            let mut query = ListQuery::default();
            (query.branch, query.before, query.limit) = (branch, before, Some(page));
            let read = self.page(query, may_be_last).await?;
            let Some(oldest) = read.last() else { break };
            let next = oldest.parent;
            let last_branch = oldest.id.branch;
            found.extend(read.into_iter().filter(|one| self.tests.iter().all(|test| test(one))));
            let Some(next) = next else { break };
            may_be_last = next.branch != last_branch;
            (branch, before) = (Some(next.branch), next.step.checked_add(1));
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The position of checkpoints older than this one, which need not be readable: on its branch, or on the
    /// one that its branch started from.
    async fn older_than(&self, id: CheckpointId) -> Result<(Option<u32>, Option<u64>), Error> {
        let persistence = self.graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
        let on_branch = (Some(id.branch), Some(id.step));
        let before = CheckpointId::new(id.branch, id.step.saturating_sub(1));
        if id.branch == 0 || persistence.saver.row(persistence.place(&self.thread), before).await?.is_some() {
            return Ok(on_branch);
        }
        let first = state_at(&self.graph, &self.thread, id).await?;
        let parent = first.and_then(|first| first.parent);
        Ok(parent.map_or(on_branch, |parent| (Some(parent.branch), parent.step.checked_add(1))))
    }

    /// The checkpoints of one branch, newest first.
    async fn page(&self, query: ListQuery, may_be_last: bool) -> Result<Vec<Checkpoint<S>>, Error> {
        let persistence = self.graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
        persistence.settle(&self.thread).await;
        let place = persistence.place(&self.thread);
        let mut rows: VecDeque<_> =
            page(&*persistence.saver, place, query).await?.into_iter().rev().collect();
        let Some(first) = rows.pop_front() else { return Ok(Vec::new()) };
        // The oldest one is read as a checkpoint; the others follow from it row by row.
        let tail = persistence.saver.get(place, Some(first.id)).await?.unwrap_or_default();
        let mut replayed = replay(persistence, place, &tail).await?;
        let mut found = vec![self.checkpoint(persistence, place, &replayed)?];
        for row in rows {
            apply_row(&mut replayed, row.id, row.kind, &row.record)
                .map_err(|error| agentgraph_checkpoint::engine::unreadable(place, row.id, error))?;
            replayed.read_header(place)?;
            if row.kind == RowKind::Full {
                fill_references(persistence, place, &mut replayed).await?;
            }
            found.push(self.checkpoint(persistence, place, &replayed)?);
        }
        if let Some(newest) = found.last_mut().filter(|newest| may_be_last && !newest.next.is_empty()) {
            let tail = persistence.saver.get(place, Some(newest.id)).await?.unwrap_or_default();
            (newest.failures, newest.steps) =
                failures_and_steps(&self.graph, persistence, place, &replayed, &tail.writes).await?;
        }
        found.reverse();
        Ok(found)
    }

    /// Reads one checkpoint, with the failures in its own record.
    fn checkpoint(
        &self,
        persistence: &Persistence<S>,
        place: Place<'_>,
        replayed: &Replay,
    ) -> Result<Checkpoint<S>, Error> {
        let mut found = checkpoint(&self.graph, persistence, place, replayed)?;
        if self.graph.core.discipline == Discipline::Eager {
            let left = read_remains(&self.graph.core, place, (replayed.id, &replayed.header), &[])?.tasks;
            let core = &RunGraph::restore(&self.graph.core, &replayed.header, &mut Vec::new());
            let tasks = tasks(core, place, &replayed.header, replayed.id, &left);
            found.failures = tasks.filter_map(|task| task.failure(place)).collect();
        }
        Ok(found)
    }
}

impl<S: State> IntoFuture for History<S> {
    type Output = Result<Vec<Checkpoint<S>>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.read())
    }
}
