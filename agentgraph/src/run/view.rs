//! Reading a checkpoint of a thread: its state, and its open work.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::channel_uses::keep_overwrites;
use crate::engine::driver::Driver;
use crate::engine::left_over::Leftovers;
use crate::engine::load::{Replay, finished, graph_changed, read_remains, replay, restore};
use crate::engine::stored::OF_RUN;
use crate::engine::task_output::TaskOutput;
use crate::engine::unknown_fields::{Misfit, unknown_in_open_work};
use crate::error::Error;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphTopology};
use crate::persistence::Persistence;
use crate::run::attached::Attached;
use crate::run::open::{OpenTask, StoredTasks, failure_of_all, interrupts, replay_pass, update_of};
use crate::state::{ShownState, State, StateError};
use crate::typed::{AnySchema, AnyState, AnyUpdate};
use crate::words::{DoneStep, GraphEdit, Interrupt, OpenChild};
use agentgraph_checkpoint::engine::TaskPlace;
use agentgraph_checkpoint::{CheckpointId, PendingWrite, Place, RunId, Source, TaskId};

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
    /// In an eager graph: the nodes whose tasks this checkpoint merged, in that order. One, unless several
    /// commits were deferred or none of its tasks ended. A replay follows this order.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Mail {}
    /// # async fn pass() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Mail>::new().node("read", pass).node("reply", pass);
    /// let graph = graph.edge(START, "read").edge("read", "reply").eager().compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Mail::update()).thread("t-1").await?;
    ///
    /// let history = graph.history("t-1").await?;
    /// let merged: Vec<_> = history.into_iter().rev().flat_map(|checkpoint| checkpoint.merged).collect();
    /// assert_eq!(merged, ["read", "reply"]);
    /// # Ok(())
    /// # }
    /// ```
    pub merged: Vec<String>,
    /// The nodes that run next, in task order. A node appears once for each of its dispatches. Empty for a
    /// [finished](Checkpoint::finished) run, and if all that is left to do is the commit of finished tasks.
    pub next: Vec<String>,
    /// Whether the run has finished. If not, and nothing runs next, the process that ran it ended before its
    /// last commit: [`proceed`](crate::CompiledGraph::proceed) makes it.
    pub finished: bool,
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
    /// [namespace](crate::CompiledGraph::namespace): see [`Memory::PerThread`](crate::Memory::PerThread).
    pub memories: BTreeMap<String, CheckpointId>,
    /// The stored fields, each once, that the state does not have and the graph does not
    /// [drop](crate::StateGraph::drops): of the checkpoint, and for the newest one also of the results of
    /// finished tasks. If there are any, and the graph does not
    /// [keep](crate::StateGraph::keeps_unknown_fields) them, a call that continues the thread is
    /// [`Code::GraphChanged`](crate::Code::GraphChanged).
    pub unknown_fields: Vec<String>,
    #[cfg(feature = "draw")]
    pub(in crate::run) drawn: Option<super::drawn::Drawn>,
}

/// Moves the fields that a checkpoint and its sent form have in common into a new one of either.
macro_rules! with_common_fields {
    ($from:ident, $into:ident { $($own:tt)* }) => {
        $into {
            id: $from.id, parent: $from.parent, run: $from.run, source: $from.source, created: $from.created,
            merged: $from.merged, next: $from.next, finished: $from.finished, deferred: $from.deferred,
            interrupts: $from.interrupts, steps: $from.steps, children: $from.children,
            abandoned: $from.abandoned, edits: $from.edits, skips: $from.skips, memories: $from.memories,
            unknown_fields: $from.unknown_fields,
            $($own)*
        }
    };
}
pub(super) use with_common_fields;

impl Checkpoint<AnyState> {
    /// The same checkpoint with the type of its state.
    pub(super) fn typed<S: State>(self) -> Checkpoint<S> {
        self.with_values(AnyState::into_state)
    }

    /// The same checkpoint with its state in another form.
    pub(super) fn with_values<S>(self, form: impl FnOnce(AnyState) -> S) -> Checkpoint<S> {
        with_common_fields!(
            self,
            Checkpoint {
                #[cfg(feature = "draw")]
                drawn: self.drawn,
                values: form(self.values),
                failures: self.failures,
            }
        )
    }
}

impl<S: State + fmt::Debug> fmt::Debug for Checkpoint<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { id, parent, run, source, created, values, next, deferred, .. } = self;
        let Checkpoint { finished, interrupts, failures, steps, children, abandoned, .. } = self;
        let Checkpoint { merged, edits, skips, memories, unknown_fields, .. } = self;
        let mut parts = out.debug_struct("Checkpoint");
        parts.field("id", id).field("parent", parent).field("run", run).field("source", source);
        parts.field("created", created).field("values", &ShownState(values));
        parts.field("merged", merged).field("next", next);
        parts.field("finished", finished).field("deferred", deferred);
        parts.field("interrupts", interrupts).field("failures", failures);
        parts.field("steps", steps).field("children", children);
        parts
            .field("abandoned", abandoned)
            .field("edits", edits)
            .field("skips", skips)
            .field("memories", memories)
            .field("unknown_fields", unknown_fields)
            .finish()
    }
}

pub(super) async fn state(graph: &Attached, thread: &str) -> Result<Option<Checkpoint<AnyState>>, Error> {
    let Some((found, writes)) = find(graph, thread, None).await? else { return Ok(None) };
    let mut checkpoint = found.checkpoint()?;
    let in_a_pass = graph.driver.is_some() && !checkpoint.next.is_empty();
    if !writes.is_empty()
        || graph.core.uses.graphs
        || graph.core.rules.discipline == Discipline::Eager
        || in_a_pass
    {
        found.add_left_over(&writes, &mut checkpoint).await?;
    }
    Ok(Some(checkpoint))
}

pub(super) async fn state_at(
    graph: &Attached,
    thread: &str,
    id: CheckpointId,
) -> Result<Option<Checkpoint<AnyState>>, Error> {
    let Some((found, writes)) = find(graph, thread, Some(id)).await? else { return Ok(None) };
    let mut checkpoint = found.checkpoint()?;
    (checkpoint.failures, checkpoint.steps) = found.failures_and_steps(&writes).await?;
    Ok(Some(checkpoint))
}

pub(super) async fn topology_at(
    graph: &Attached,
    thread: &str,
    id: CheckpointId,
) -> Result<Option<GraphTopology>, Error> {
    let Some((found, _)) = find(graph, thread, Some(id)).await? else { return Ok(None) };
    let mut gone = Vec::new();
    let edited = RunGraph::restore(&graph.core, &found.replayed.header, &mut gone);
    if gone.is_empty() { Ok(Some(GraphTopology::of(&edited))) } else { Err(graph_changed(found.place, gone)) }
}

/// Reads a checkpoint, or the newest one, and its pending writes.
async fn find<'a>(
    graph: &'a Attached,
    thread: &'a str,
    id: Option<CheckpointId>,
) -> Result<Option<(FoundCheckpoint<'a>, Vec<PendingWrite>)>, Error> {
    let persistence = graph.kept()?;
    persistence.settle(thread).await;
    let place = persistence.place(thread);
    let Some(mut tail) = persistence.saver.get(place, id).await? else { return Ok(None) };
    let replayed = replay(&*persistence.saver, place, &mut tail).await?;
    Ok(Some((FoundCheckpoint { graph, persistence, place, replayed }, tail.writes)))
}

pub(super) fn parent(replayed: &Replay) -> Option<CheckpointId> {
    let CheckpointId { branch, step, .. } = replayed.id;
    let before = step.checked_sub(1)?;
    let began = replayed.header.parent.filter(|(_, parent)| *parent == before);
    let (branch, step) = began.unwrap_or((branch, before));
    Some(CheckpointId::new(branch, step))
}

/// A checkpoint of a thread, as it was read.
pub(super) struct FoundCheckpoint<'a> {
    pub(super) graph: &'a Attached,
    pub(super) persistence: &'a Persistence,
    pub(super) place: Place<'a>,
    pub(super) replayed: Box<Replay>,
}

impl FoundCheckpoint<'_> {
    fn checkpoint(&self) -> Result<Checkpoint<AnyState>, Error> {
        let FoundCheckpoint { graph, persistence, place, replayed } = self;
        let header = &replayed.header;
        let restored = restore(&graph.core, persistence, *place, replayed)?;
        let unknown_fields = restored.unknown_names().map(str::to_owned).collect();
        let values = restored.state;
        let (edits, skips) = match &graph.driver {
            Some(driver) => driver.edits(&values),
            None => (header.overlay.clone(), header.skips.clone()),
        };
        let memories = header.memories.iter();
        let memories =
            memories.map(|(memory, (branch, step))| (memory.clone(), CheckpointId::new(*branch, *step)));
        Ok(Checkpoint {
            #[cfg(feature = "draw")]
            drawn: Some(super::drawn::Drawn::of(graph, place.namespace, header, &values)),
            id: replayed.id,
            parent: parent(replayed),
            run: header.run,
            source: header.source,
            created: header.time(),
            values,
            merged: header
                .eager
                .log
                .iter()
                .filter_map(|merge| Some(merge.ended.as_ref()?.2.clone()))
                .collect(),
            next: header.next.iter().map(|activation| activation.node.clone()).collect(),
            finished: header.next.is_empty(),
            deferred: header.deferred.clone(),
            interrupts: Vec::new(),
            failures: Vec::new(),
            steps: Vec::new(),
            children: Vec::new(),
            abandoned: header.abandoned,
            edits,
            skips,
            memories: memories.collect(),
            unknown_fields,
        })
    }

    /// The checkpoint with the failures in its own record.
    pub(super) fn past(&self) -> Result<Checkpoint<AnyState>, Error> {
        let mut found = self.checkpoint()?;
        if self.graph.core.rules.discipline == Discipline::Eager {
            let left = self.left(&[])?;
            let core = self.core();
            let open = self.tasks(&core, &left).open();
            found.failures = open.filter_map(|task| task.failure(self.place)).collect();
        }
        Ok(found)
    }

    fn left(&self, writes: &[PendingWrite]) -> Result<Leftovers, Error> {
        let Replay { header, id, .. } = &*self.replayed;
        Ok(read_remains(&self.graph.core, self.place, (*id, header), writes)?.tasks)
    }

    fn core(&self) -> RunGraph {
        RunGraph::restore(&self.graph.core, &self.replayed.header, &mut Vec::new())
    }

    fn tasks<'b>(&'b self, core: &'b RunGraph, left: &'b Leftovers) -> StoredTasks<'b> {
        StoredTasks { core, place: self.place, header: &self.replayed.header, id: self.replayed.id, left }
    }

    /// Adds the updates of finished siblings, the questions of waiting ones, and the open work inside tasks.
    async fn add_left_over(
        &self,
        writes: &[PendingWrite],
        checkpoint: &mut Checkpoint<AnyState>,
    ) -> Result<(), Error> {
        let FoundCheckpoint { graph, persistence, place, replayed } = self;
        let left = self.left(writes)?;
        if let Some(driver) = &graph.driver {
            return self.add_pass(driver, &left, checkpoint);
        }
        for name in unknown_in_open_work(&graph.core, &replayed.header.eager.kept, &left) {
            if !checkpoint.unknown_fields.contains(&name) {
                checkpoint.unknown_fields.push(name);
            }
        }
        let core = &self.core();
        let tasks = self.tasks(core, &left);
        let finished = tasks.results().map(|result| {
            let (step, _) = finished(core, &persistence.codec, place.thread, result, Misfit::LeaveOut)?;
            Ok(Some(TaskOutput { update: update_of(step), routing: None }))
        });
        let mut finished: Vec<_> = finished.collect::<Result<_, Error>>()?;
        keep_overwrites(core, &mut finished);
        let updates = finished.into_iter().flatten().filter_map(|done| done.update);
        let mut values = checkpoint.values.clone();
        // A reducer that panics fails the superstep, and not who reads its thread.
        if let Ok(added) = catch_unwind(AssertUnwindSafe(|| add_updates(&core.schema, &mut values, updates)))
        {
            added?;
            checkpoint.values = values;
        }
        let open: Vec<OpenTask<'_>> = tasks.open().collect();
        let work = tasks.open_work(&*persistence.saver, &open).await?;
        checkpoint.interrupts = work.requests.into_iter().map(|request| request.interrupt).collect();
        (checkpoint.children, checkpoint.failures, checkpoint.steps) =
            (work.children, work.failures, work.steps);
        checkpoint.next = open.into_iter().map(|task| task.node).collect();
        Ok(())
    }

    /// The failures and the durable steps of its open tasks.
    pub(super) async fn failures_and_steps(
        &self,
        writes: &[PendingWrite],
    ) -> Result<(Vec<Failure>, Vec<DoneStep>), Error> {
        if self.replayed.header.next.is_empty() {
            return Ok(Default::default());
        }
        let left = self.left(writes)?;
        if self.graph.driver.is_some() {
            return Ok((self.failures_of_pass(&left), self.steps_of_pass(&[], &left)));
        }
        let core = self.core();
        let tasks = self.tasks(&core, &left);
        let open: Vec<OpenTask<'_>> = tasks.open().collect();
        let work = tasks.open_work(&*self.persistence.saver, &open).await?;
        Ok((work.failures, work.steps))
    }

    /// The failures of a pass, in the order in which the nodes are declared.
    fn failures_of_pass(&self, left: &Leftovers) -> Vec<Failure> {
        let tasks = left.iter().filter(|(task, _)| **task != OF_RUN);
        let mut found: Vec<Failure> = tasks.filter_map(|(_, left)| left.failed().cloned()).collect();
        let at = |failure: &Failure| self.graph.core.names.id(failure.node()).unwrap_or(u32::MAX);
        found.sort_by(|a, b| (at(a), a.node()).cmp(&(at(b), b.node())));
        found.extend(failure_of_all(self.place, left));
        found
    }

    /// The durable steps of a pass, in the order in which the nodes are declared; `more` names temporary
    /// nodes.
    fn steps_of_pass(&self, more: &[String], left: &Leftovers) -> Vec<DoneStep> {
        if left.values().all(|left| !left.has_steps()) {
            return Vec::new();
        }
        let (core, place) = (&self.graph.core, self.place);
        let (run, id) = (self.replayed.header.run, self.replayed.id);
        let declared = core.names.iter().map(|name| &**name);
        let temporary = more.iter().map(|name| &**name).filter(|name| core.names.id(name).is_none());
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
    fn add_pass(
        &self,
        driver: &Arc<dyn Driver>,
        left: &Leftovers,
        checkpoint: &mut Checkpoint<AnyState>,
    ) -> Result<(), Error> {
        let (core, place, codec) = (&self.graph.core, self.place, &self.persistence.codec);
        checkpoint.next = replay_pass(driver, core, codec, place.thread, left, &mut checkpoint.values)?;
        (checkpoint.edits, checkpoint.skips) = driver.edits(&checkpoint.values);
        #[cfg(feature = "draw")]
        if let Some(drawn) = &mut checkpoint.drawn {
            drawn.set_finished(driver, &checkpoint.values);
        }
        for (task, left) in left {
            let Some((_, request)) = left.open().next() else { continue };
            let task = OpenTask { id: *task, node: request.node.clone(), left: Some(left) };
            checkpoint.interrupts.extend(interrupts(place, &task));
        }
        let at = |interrupt: &Interrupt| core.names.id(&interrupt.node).unwrap_or(u32::MAX);
        checkpoint.interrupts.sort_by_key(|interrupt| (at(interrupt), interrupt.id));
        checkpoint.failures = self.failures_of_pass(left);
        checkpoint.steps = self.steps_of_pass(&checkpoint.next, left);
        Ok(())
    }
}

/// Applies updates in task order.
fn add_updates(
    schema: &AnySchema,
    values: &mut AnyState,
    updates: impl Iterator<Item = AnyUpdate>,
) -> Result<(), StateError> {
    for mut update in updates {
        // A sum of parallel writes may not fit: the superstep cannot be merged, but its thread can be read.
        match schema.peek(values, &mut update, &mut |_| ()) {
            Ok(()) => values.apply(schema, update)?,
            Err(StateError::BadValue { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
