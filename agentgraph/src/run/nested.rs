//! A run inside a task: started when a node that is a graph is called, and continued when it is called again.
//!
//! The task's own future drives it, so it is dropped or cut off with the task. It is stored by the saver of
//! the parent run, in a namespace derived from the task's id: a repeated call finds its own records there.

mod ground;

use std::sync::Arc;

use crate::context::edits::Desk;
use crate::context::{
    Bounds, ChildPause, Control, Editing, Nest, Outer, RunShared, Spending, SubgraphCall, TaskRequest,
};
use crate::engine::call::end::CallEnd;
use crate::engine::executor::ParentExit;
use crate::engine::host::{HostRunner, TaskRunner};
use crate::engine::journal::Journal;
use crate::engine::listeners::Listeners;
use crate::engine::load::{Replay, RestoredState, stuck_at_end};
use crate::engine::once::once_storage;
use crate::engine::recorder::add_step;
use crate::engine::records::Records;
use crate::engine::runtime::TaskRuntime;
use crate::engine::stored::StoredStep;
use crate::engine::unknown_fields::{Misfit, fit};
use crate::engine::{Loop, Pause};
use crate::error::{BoxError, Code, Error, OwnError};
use crate::event::{ChildEvents, EventQueue};
use crate::graph::{Discipline, GraphCore};
use crate::persistence::Persistence;
use crate::policy::Places;
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::record::header::{Header, StoredCall, StoredStuck};
use crate::run::attached::Attached;
use crate::run::levels::ChildFuture;
use crate::run::nested::ground::{CallGround, FoundRun};
use crate::run::outcome::stored_stuck_error;
use crate::run::parts::RunParts;
use crate::session::Sessions;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{Durability, Interrupt, Memory};
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::header::StoredMemories;
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, ListQuery, PendingWrite, Place, RowKind, RunId, Source, TaskId,
};

/// Subgraphs inside one another. Each level adds its name to the namespaces below it.
const MAX_DEPTH: u32 = 1000;

/// A graph that is a node.
pub(crate) struct Callee {
    pub(crate) graph: Arc<Attached>,
    pub(crate) codec: Codec,
    pub(crate) memory: Memory,
}

/// The input of a call.
pub(crate) struct ChildInput {
    /// The state of the parent run, if both have the same type.
    pub(crate) state: Option<Arc<AnyState>>,
    pub(crate) input: AnyUpdate,
}

/// The result of a call.
pub(crate) enum ChildEnd {
    /// The last state.
    State(AnyState),
    /// The sum of the updates, for a call that started with the parent's state.
    Updates(AnyUpdate),
    /// The call exits to a node of the parent graph.
    Left(ParentExit),
}

/// A call, with the data that its parts need.
struct ChildCall {
    callee: Arc<Callee>,
    outer: Arc<Outer>,
    /// Its result is the sum of its updates.
    updates: bool,
    /// The store and thread of the call, if it is stored.
    kept: Option<(Persistence, Arc<str>)>,
}

/// A call whose records were read.
enum Opened {
    /// It had ended: its result, and the positions of memories.
    Ended(ChildEnd, StoredMemories),
    /// Its loop, and the input of a new run.
    Open(Box<Loop>, ChildRunInput),
}

/// The input of a new run, and the unfinished run that it replaces; `None` for a run that continues.
type ChildRunInput = Option<(AnyUpdate, Option<RunId>)>;

/// The start of a call, or its continuation.
struct ChildOpening {
    parts: RunParts,
    /// The sum of the updates merged in earlier calls.
    total: AnyUpdate,
    input: ChildRunInput,
}

/// Calls a graph in the place of a node.
pub(crate) fn enter(
    callee: Arc<Callee>,
    begin: ChildInput,
    outer: Arc<RunShared>,
    request: TaskRequest,
) -> ChildFuture {
    ChildFuture::OnStack(Box::pin(async move {
        // Prepared in one synchronous step: what lives across an await is part of the call's future.
        let (call, may_be_there) = ChildCall::of(callee, outer, request, begin.state.is_some())?;
        let outer = &call.outer.shared;
        match call.run(begin, may_be_there).await {
            Ok((end, memories)) => {
                if let Some(nest) = &outer.nest {
                    nest.memories.ended(request.index, memories);
                }
                Ok(end)
            }
            Err(ChildStop::Paused(inside)) => Err(outer.control.put_inside(request, inside).into()),
            Err(ChildStop::Failed(error)) => Err(error.into()),
        }
    }))
}

/// The reason why a call did not reach its end.
enum ChildStop {
    /// It continues when its task is called again; no retry or handler can help.
    Paused(ChildPause),
    /// A node in it failed.
    Failed(Error),
}

impl From<Error> for ChildStop {
    /// Failures of nodes are left to the policies of the parent task; errors of a store or an answer are not.
    fn from(error: Error) -> Self {
        if error.code().ends_the_run() {
            ChildStop::Paused(ChildPause::Broken(error))
        } else {
            ChildStop::Failed(error)
        }
    }
}

impl ChildCall {
    /// The call of a task, and whether its records may be there.
    fn of(
        callee: Arc<Callee>,
        outer: Arc<RunShared>,
        request: TaskRequest,
        updates: bool,
    ) -> Result<(Self, bool), BoxError> {
        if outer.subgraphs_around() >= MAX_DEPTH {
            return Err(outer.control.put_inside(request, ChildPause::Broken(too_deep())).into());
        }
        let nowhere = SubgraphCall { task: Some(TaskId::from_u128(0)), again: false, shares_memory: false };
        let nest = outer.nest.as_deref();
        let call = nest.and_then(|nest| nest.call(request)).unwrap_or(nowhere);
        let inherits_host = callee.graph.host.is_none();
        let around = Outer::new(Arc::clone(&outer), request, callee.memory, call.task, inherits_host);
        if callee.memory == Memory::PerThread
            && (call.shares_memory || !outer.claim_memory(request, around.namespace()))
        {
            return Err(called_twice().into());
        }
        let saver = nest.and_then(|nest| nest.saver.clone()).filter(|_| callee.memory != Memory::None);
        let kept = saver.zip(outer.thread.clone()).map(|(saver, thread)| {
            (Persistence::inside(saver, callee.codec, Arc::clone(around.namespace())), thread)
        });
        if let Some((persistence, _)) = &kept
            && let Some(refused) = callee.graph.core.refusal(&*persistence.saver)
        {
            let broken = ChildPause::Broken(Error::new(refused.code.into(), refused.why));
            return Err(outer.control.put_inside(request, broken).into());
        }
        let may_be_there = call.again || callee.memory == Memory::PerThread;
        Ok((ChildCall { callee, outer: Arc::new(around), updates, kept }, may_be_there))
    }

    /// Runs the call to its end. Returns the result and the positions of memories.
    async fn run(
        &self,
        begin: ChildInput,
        may_be_there: bool,
    ) -> Result<(ChildEnd, StoredMemories), ChildStop> {
        let (run, input) = match &self.kept {
            // Boxed: most calls are new, and the future of each would have room for it.
            Some(kept) if may_be_there => match Box::pin(self.open(kept, begin)).await? {
                Opened::Ended(end, memories) => return Ok((end, memories)),
                Opened::Open(run, input) => (run, input),
            },
            _ => self.make_loop(self.fresh(begin, self.journal(None)))?,
        };
        self.drive(run, input).await
    }

    /// Opens the call on the records that it has.
    async fn open(
        &self,
        (persistence, thread): &(Persistence, Arc<str>),
        begin: ChildInput,
    ) -> Result<Opened, ChildStop> {
        let CallGround { found, branch, unnamed } = self.ground(persistence, thread).await?;
        let opening = match found {
            Some(found) if !found.is(self.call()) => {
                self.start_on_earlier_state(begin, found, branch, unnamed)?
            }
            Some(found) if found.has_ended() => return self.recall_ended(found).await,
            Some(found) => self.continue_run(found).await?,
            None => {
                let mut journal = self.journal(unnamed);
                if let (Some(journal), Some(branch)) = (&mut journal, branch) {
                    journal.begin_on(branch);
                }
                self.fresh(begin, journal)
            }
        };
        let (run, input) = self.make_loop(opening)?;
        Ok(Opened::Open(run, input))
    }

    /// Calls the tasks here, or on the host of the graph or of the run around it.
    fn runner(&self) -> TaskRunner {
        let Callee { graph, codec, .. } = &*self.callee;
        let around = self.outer.shared.nest.as_ref().and_then(|nest| nest.host.as_ref());
        match (&graph.host, around) {
            (None, Some(inherited)) => {
                TaskRunner::Host(Arc::new(HostRunner::new(Arc::clone(inherited), *codec)))
            }
            (own, _) => TaskRunner::of(own.as_ref()),
        }
    }

    fn journal(&self, unnamed: Option<CheckpointId>) -> Option<Box<Journal>> {
        let (persistence, thread) = self.kept.as_ref()?;
        let channels = self.callee.graph.core.schema.channels().len();
        let run = self.outer.shared.run;
        let mut journal = Box::new(Journal::new(persistence, Arc::clone(thread), run, channels));
        journal.set_call(self.call_after(unnamed));
        Some(journal)
    }

    /// The call as its records contain it.
    fn call(&self) -> StoredCall {
        let is_named = self.callee.memory == Memory::PerThread;
        StoredCall { task: self.outer.task(), updates: self.updates, is_named, unnamed: None }
    }

    /// [`call`](Self::call), in a memory in which an earlier release left that checkpoint.
    fn call_after(&self, unnamed: Option<CheckpointId>) -> StoredCall {
        StoredCall { unnamed: unnamed.map(|id| (id.branch, id.step)), ..self.call() }
    }

    fn fresh(&self, begin: ChildInput, journal: Option<Box<Journal>>) -> ChildOpening {
        let core = &self.callee.graph.core;
        let state = begin.state.unwrap_or_else(|| Arc::new(core.schema.initial()));
        let parts = RunParts::fresh(core, state, journal);
        ChildOpening { parts, total: AnyUpdate::default(), input: Some((begin.input, None)) }
    }

    /// Starts a new run on the state of an earlier one, on a branch of its own if that is not the newest.
    fn start_on_earlier_state(
        &self,
        begin: ChildInput,
        found: FoundRun,
        branch: Option<u32>,
        unnamed: Option<CheckpointId>,
    ) -> Result<ChildOpening, Error> {
        let FoundRun { replayed, restored, writes, .. } = found;
        let mut journal = self.journal_behind(&replayed, &restored, &writes);
        let input = begin.input;
        let remembered = begin.state.is_none().then(|| Arc::new(restored.state));
        let abandoned = (!replayed.header.next.is_empty()).then_some(replayed.header.run);
        if let Some(journal) = &mut journal {
            if let Some(branch) = branch {
                journal.fork(branch);
            }
            journal.begin_run(self.outer.shared.run);
            journal.set_call(self.call_after(unnamed));
            if let Some(memories) = journal.memories() {
                memories.begin_call();
            }
            // The state is not the stored one, so the next record must be a full.
            if remembered.is_none() {
                journal.write_whole();
            }
        }
        let begin = ChildInput { state: remembered.or(begin.state), input: AnyUpdate::default() };
        let mut opening = self.fresh(begin, journal);
        opening.parts.outputs = replayed.header.outputs;
        Ok(ChildOpening { input: Some((input, abandoned)), ..opening })
    }

    fn journal_behind(
        &self,
        replayed: &Replay,
        restored: &RestoredState,
        writes: &[PendingWrite],
    ) -> Option<Box<Journal>> {
        let mut journal = self.journal(None)?;
        journal.continue_from(&self.callee.graph.core, replayed, restored, !writes.is_empty());
        Some(journal)
    }

    async fn continue_run(&self, found: FoundRun) -> Result<ChildOpening, Error> {
        let total = self.stored_total(&found).await?;
        let FoundRun { replayed, restored, left, writes } = found;
        let journal = self.journal_behind(&replayed, &restored, &writes);
        let (core, state) = (&self.callee.graph.core, restored.state);
        let parts = RunParts::continued(core, self.place(), replayed.header, state, left, journal)?;
        Ok(ChildOpening { parts, total, input: None })
    }

    /// The result of a call whose end was stored before the parent task was cut off or retried, and the
    /// positions of memories at that end.
    async fn recall_ended(&self, found: FoundRun) -> Result<Opened, ChildStop> {
        let core = &self.callee.graph.core;
        let header = &found.replayed.header;
        if core.rules.stuck_fails
            && let Some(error) = stored_stuck_error(stuck_at_end(core, "", header))
        {
            return Err(error.with_state(found.restored.state.value()).into());
        }
        self.report_stuck(stuck_at_end(core, self.outer.namespace(), header));
        Ok(self.stored_end(found).await?)
    }

    async fn stored_end(&self, found: FoundRun) -> Result<Opened, Error> {
        let memories =
            self.memories_after_call(found.replayed.header.memories.clone(), Some(found.replayed.id));
        let end = if self.updates {
            ChildEnd::Updates(self.stored_total(&found).await?)
        } else {
            ChildEnd::State(found.restored.state)
        };
        Ok(Opened::Ended(end, memories))
    }

    /// The positions of memories after the call: those that it has called, and its own.
    fn memories_after_call(&self, mut called: StoredMemories, own: Option<CheckpointId>) -> StoredMemories {
        if let Some(own) = own.filter(|_| self.callee.memory == Memory::PerThread) {
            called.insert(self.outer.namespace().to_string(), (own.branch, own.step));
        }
        called
    }

    /// The sum of the updates in the records of the call.
    async fn stored_total(&self, found: &FoundRun) -> Result<AnyUpdate, Error> {
        let mut total = AnyUpdate::default();
        let Some((persistence, _)) = self.kept.as_ref().filter(|_| self.updates) else {
            return Ok(total);
        };
        let core = &self.callee.graph.core;
        let schema = &core.schema;
        for StoredUpdate { version, update } in
            written(&*persistence.saver, self.place(), found.replayed.id).await?
        {
            let mut step = StoredStep::of_update(version, update).migrated(&core.stored.migrations)?;
            fit(core, self.place().thread, &mut step, Misfit::Refuse)?;
            let Some(Bytes(update)) = step.update else { continue };
            let update = (persistence.codec.decode_update)(schema, &update)?;
            add_step(schema, &mut total, update)?;
        }
        Ok(total)
    }

    fn place(&self) -> Place<'_> {
        let thread = self.kept.as_ref().map_or("", |(_, thread)| thread);
        Place { thread, namespace: self.outer.namespace() }
    }

    async fn drive(
        &self,
        mut run: Box<Loop>,
        input: ChildRunInput,
    ) -> Result<(ChildEnd, StoredMemories), ChildStop> {
        run.show_edits();
        let paused = match input {
            Some((input, abandoned)) => match run.input(input, abandoned).await {
                Ok(()) => run.run_until_pause().await,
                Err(error) => Err(error),
            },
            None => {
                run.adopt_failures();
                run.run_until_pause().await
            }
        };
        let paused =
            if run.may_keep_failure(&paused) { Box::pin(run.keep_failure(paused)).await } else { paused };
        run.gather_stuck();
        let paused = if run.has_deferred_commits() { Box::pin(run.settle(paused)).await } else { paused };
        match paused {
            Ok(pause) => match run.stuck_error(&pause) {
                None => {
                    let (named, own) = run.named_memories();
                    Ok((self.end(run.into_end(), pause)?, self.memories_after_call(named, own)))
                }
                Some(error) => Err(run.fail_with(error).into()),
            },
            Err(error) => Err(run.fail_with(error).into()),
        }
    }

    fn make_loop(&self, opening: ChildOpening) -> Result<(Box<Loop>, ChildRunInput), Error> {
        let ChildOpening { parts, total, input } = opening;
        let RunParts { position, inheritance, outputs, mut journal, sessions, sessions_changed } = parts;
        let graph = &self.callee.graph;
        let outer = &self.outer.shared;
        let around = outer.nest.as_deref();
        let durability = around.map_or(Durability::Sync, |nest| nest.durability);
        if let Some(journal) = journal.as_mut().filter(|_| durability == Durability::Exit) {
            journal.wait_for_the_end(moves_from(&graph.core, || outer.services.random()));
        }
        let own = Sessions::open(&graph.shared.sessions, &sessions, sessions_changed)?;
        let places = around.map_or_else(Places::unlimited, |nest| nest.places.clone());
        let runner = self.runner();
        let host = runner.as_host().map(|runner| Arc::clone(runner.host()));
        let nest = graph.core.uses.graphs.then(|| {
            let saver = journal.as_deref().map(Journal::saver);
            let resumed = journal.as_ref().is_some_and(|journal| journal.checkpoint().is_some());
            let memories = journal.as_deref_mut().map(Journal::share_memories).unwrap_or_default();
            let mut nest = Nest::new(saver, durability, places.clone(), None, resumed, memories);
            nest.host.clone_from(&host);
            Box::new(nest)
        });
        let events = self.events();
        let once_storage = once_storage(journal.as_deref());
        let shared = RunShared {
            graph: Arc::clone(&graph.shared),
            run: outer.run,
            thread: outer.thread.clone(),
            call: outer.call.clone(),
            control: Control::of(graph.core.rules.discipline == Discipline::Eager, once_storage),
            sessions: outer.sessions.within(own),
            audience: EventQueue::audience(events.as_ref()),
            services: Arc::clone(&outer.services),
            bounds: Bounds::new(outer.bounds.max_supersteps, Spending::default()),
            outer: Some(Arc::clone(&self.outer)),
            nest,
            editing: Editing::at(
                Arc::clone(&graph.core) as Arc<dyn Desk>,
                journal.is_some() || host.is_some(),
            ),
        };
        let traced = self.updates.then_some(total);
        let records = Records::new(journal, &position, outputs, traced);
        let runtime = TaskRuntime::new(runner, Arc::new(shared), graph.core.rules.siblings, places);
        // No stops of its own: those of the root end the task that polls this run, or are seen at its
        // boundaries (`boundary_inside`).
        let run =
            Loop::new(position, inheritance, records, Listeners::new(events, None), runtime, (None, None));
        Ok((run, input))
    }

    /// The queue for its events, if the stream includes subgraphs.
    fn events(&self) -> Option<Arc<EventQueue>> {
        let hears = self.outer.root.nest.as_ref()?.hears.as_ref()?;
        let to = Arc::clone(hears).downcast::<EventQueue>().ok()?;
        let graph = &self.callee.graph;
        let schema = graph.core.schema.clone();
        let namespace = Arc::clone(self.outer.namespace());
        let inside = ChildEvents::new(to, namespace, schema, self.callee.codec);
        let events = EventQueue::inside(inside, &graph.shared.names);
        events.begin(self.outer.shared.run);
        Some(Arc::new(events))
    }

    fn end(&self, end: CallEnd, pause: Pause) -> Result<ChildEnd, ChildStop> {
        match pause {
            Pause::Finished => {
                let own = end.stuck.into_iter().map(|stuck| stuck.within(self.outer.namespace()));
                self.report_stuck(own.chain(end.stuck_inside).collect());
                Ok(match end.updates {
                    Some(total) => ChildEnd::Updates(total),
                    None => ChildEnd::State(Arc::unwrap_or_clone(end.state)),
                })
            }
            Pause::Left(left) => {
                // Its own joins are dropped with it.
                self.report_stuck(end.stuck_inside);
                Ok(ChildEnd::Left(left))
            }
            Pause::Stopped(reason) => Err(ChildStop::Paused(ChildPause::Stopped(reason))),
            Pause::Interrupted(_) if self.asks_without_store() => {
                let problem = "a node in the subgraph calls `interrupt`, and the memory of the subgraph is `Memory::None`, so the \
                               call could not be continued: give the subgraph `Memory::PerCall`";
                Err(ChildStop::Failed(Error::new(Code::NoCheckpointer, problem)))
            }
            Pause::Interrupted(interrupts) => {
                let named = interrupts.into_iter().map(|interrupt| self.named(interrupt)).collect();
                Err(ChildStop::Paused(ChildPause::Waits(named, end.unreported)))
            }
        }
    }

    /// Reports to the parent run the joins that were still waiting at the end.
    fn report_stuck(&self, joins: Vec<StoredStuck>) {
        if let Some(nest) = &self.outer.shared.nest {
            let TaskRequest { step, index, handles, .. } = self.outer.request;
            nest.put_stuck((step, index, handles), joins);
        }
    }

    /// Whether it asks without a store although the parent run has one and could be asked later.
    fn asks_without_store(&self) -> bool {
        self.kept.is_none() && self.outer.shared.nest.as_ref().is_some_and(|nest| nest.saver.is_some())
    }

    fn named(&self, mut interrupt: Interrupt) -> Interrupt {
        if interrupt.namespace.is_empty() {
            interrupt.namespace = self.outer.namespace().to_string();
        }
        interrupt
    }
}

/// The start of the advance of task ids while commits are deferred: see [`Journal::wait_for_the_end`].
pub(super) fn moves_from(core: &GraphCore, random: impl FnOnce() -> u64) -> Option<u64> {
    if core.uses.graphs {
        Some(random() & u64::from(u32::MAX))
    } else {
        // Activations are distinguished by the commits that made them, stored or not.
        (core.rules.discipline == Discipline::Eager).then_some(0)
    }
}

fn too_deep() -> Error {
    let problem = format!(
        "this subgraph is inside {MAX_DEPTH} others, one in the other: run the inner work as a graph of its own, \
         from a node"
    );
    Error::new(Code::Depth, problem)
}

fn called_twice() -> OwnError {
    let problem = "two parallel tasks call this subgraph, which has one memory for the thread: call it from one at a time, add \
                   it as two nodes, or give it `Memory::PerCall`";
    OwnError(Error::new(Code::ConcurrentSubgraph, problem))
}

/// Number of rows read at a time.
const PAGE: usize = 256;

/// The update of a record, and the version of the state that it was written for.
struct StoredUpdate {
    version: u32,
    update: Vec<u8>,
}

/// The updates in the records of the newest run of a namespace, oldest first, including those on the branches
/// that its branch started from.
async fn written(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    head: CheckpointId,
) -> Result<Vec<StoredUpdate>, Error> {
    let mut found: Vec<StoredUpdate> = Vec::new();
    // Deltas have the version of the full before them.
    let mut unversioned = 0;
    let mut oldest_read = head;
    let mut branch = head.branch;
    let mut before = head.step.checked_add(1);
    'branches: loop {
        let query = ListQuery { branch: Some(branch), before, limit: Some(PAGE) };
        let rows = page(saver, place, query).await?;
        let Some(oldest) = rows.last().map(|row| row.id) else { break };
        let mut parent = None;
        for row in rows {
            let header = Header::of_row(place, &row)?;
            found.extend(header.wrote.map(|wrote| StoredUpdate { version: 0, update: wrote.0 }));
            oldest_read = row.id;
            if row.kind == RowKind::Full {
                found[unversioned..].iter_mut().for_each(|written| written.version = header.schema);
                unversioned = found.len();
            }
            if header.source == Source::Input {
                break 'branches;
            }
            parent = header.parent.filter(|(_, step)| row.id.step.checked_sub(1) == Some(*step));
        }
        (branch, before) = match parent {
            Some((branch, step)) => (branch, step.checked_add(1)),
            None => (branch, Some(oldest.step)),
        };
    }
    if unversioned < found.len() {
        let version = version_at(saver, place, oldest_read).await?;
        found[unversioned..].iter_mut().for_each(|written| written.version = version);
    }
    found.reverse();
    Ok(found)
}

/// The version of the state at a checkpoint.
async fn version_at(saver: &dyn Checkpointer, place: Place<'_>, id: CheckpointId) -> Result<u32, Error> {
    let tail = saver.get(place, Some(id)).await?.unwrap_or_default();
    Ok(Header::of_rows(place, &tail.rows)?.schema)
}
