//! The loop: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and know no runtime. Only *execute* awaits users' code, and only *commit* awaits storage.
//! Everything is by dense ids; names appear where something leaves the process.

#[cfg(feature = "validate")]
mod answer_schema;
mod answers;
mod beyond_limit;
pub(crate) mod commit;
pub(crate) mod eager;
pub(crate) mod edit;
mod ends;
pub(crate) mod execute;
mod express;
pub(crate) mod halt;
pub(crate) mod host;
mod inside;
mod lifetimes;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod pass;
mod pause;
pub(crate) mod plan;
pub(crate) mod recorder;
pub(crate) mod reuse;
mod single;
pub(crate) mod stored;
mod temporary;

pub(crate) use answers::Answers;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use crate::checkpoint::PendingWrite;
use crate::checkpoint::format::{Source, micros};
use crate::context::{Request, RunId, RunShared, Spent, TaskId, TaskRequest, Untold};
use crate::edits::DroppedEdits;
use crate::engine::commit::{Commit, Journal, Prepared, Waited};
pub(crate) use crate::engine::eager::Eager;
use crate::engine::ends::{Ends, SuperstepLedger, id_of};
use crate::engine::execute::{Executor, Ledger, Left, NotDone, ToRun};
use crate::engine::express::Exit;
use crate::engine::halt::{Cut, Halt};
use crate::engine::host::TaskRunner;
use crate::engine::lifetimes::{begin_merge, reset, writes_ephemeral};
use crate::engine::load::{finished_step, proposed};
use crate::engine::merge::{ChannelUses, Merge};
use crate::engine::plan::{Actors, Frontier, Handled, LeftOver, StepPlace, handled};
use crate::engine::recorder::{Recorder, Trace};
use crate::engine::reuse::KeptOutputs;
use crate::engine::stored::{OF_RUN, SPENT, StoredStop, to_bytes, told};
use crate::error::{Code, Error};
use crate::extract::Snapshot;
use crate::graph::GraphCore;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::policy::{CatchPanic, Siblings};
use crate::run::event::{EventKind, EventQueue};
use crate::run::{Interrupt, InterruptKind, StopReason};
use crate::state::{Lifetime, State};
use crate::step::Goto;

/// One run in the making: what a step reads and changes.
pub(crate) struct Loop<S: State, R> {
    pub(crate) core: RunGraph<S>,
    pub(crate) runner: R,
    pub(crate) shared: Arc<RunShared>,
    pub(crate) state: Arc<S>,
    pub(crate) frontier: Frontier,
    pub(crate) joins: Joins,
    pub(crate) journal: Option<Journal<S>>,
    pub(crate) events: Option<Arc<EventQueue<S>>>,
    pub(crate) halt: Option<Box<Halt>>,
    pub(crate) siblings: Siblings,
    pub(crate) max_concurrency: usize,
    /// What the tasks of the first superstep left behind in an earlier call.
    pub(crate) left_over: LeftOver,
    /// Static interrupts were met already: the first superstep goes past them.
    pub(crate) past_breaks: bool,
    /// A static interrupt after these nodes stopped the run in an earlier call, whose caller was not told.
    pub(crate) halted: Vec<String>,
    /// The updates are the result of the task around the run.
    pub(crate) trace: Option<Box<Trace<S>>>,
    /// What a run without supersteps has open.
    pub(crate) eager: Option<Box<Eager<S>>>,
    /// What nodes gave last, if they keep it.
    pub(crate) kept: KeptOutputs<S>,
    pub(crate) scratch: Scratch<S>,
}

/// Buffers that live as long as the run, so that a step allocates nothing for itself.
pub(crate) struct Scratch<S: State> {
    next: Frontier,
    gotos: Vec<Goto>,
    uses: ChannelUses,
    step: u64,
    /// The supersteps of this call that were merged. The one that is under way counts for the run once it is.
    merged: u64,
    /// An ephemeral channel was written in the last superstep.
    ephemeral: bool,
    ends: Ends<S>,
    /// A merge has begun and not ended, so the state is neither the last one nor the next.
    pub(crate) merging: bool,
    /// Static interrupts inside of tasks that the caller is about to be told of.
    pub(crate) untold: Vec<Untold>,
    /// The node for the limit is running.
    beyond_limit: bool,
    /// The nodes of detached tasks that the end of the run cut off.
    pub(crate) cancelled: Vec<String>,
    /// The time of the first join that has one has come, whatever the clock says.
    is_due: bool,
    /// The nodes that the superstep skips.
    skipped: Vec<u32>,
    /// Temporary edits that were dropped in this call.
    pub(crate) dropped: Vec<DroppedEdits>,
}

impl<S: State> Default for Scratch<S> {
    fn default() -> Self {
        Scratch {
            next: Frontier::default(),
            gotos: Vec::new(),
            uses: ChannelUses::default(),
            step: 0,
            merged: 0,
            ephemeral: true,
            ends: Ends::default(),
            merging: false,
            untold: Vec::new(),
            beyond_limit: false,
            cancelled: Vec::new(),
            is_due: false,
            skipped: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

/// The last state, while a merge may yet fail.
enum BeforeMerge<S> {
    /// It is still there then.
    Same,
    Kept(Arc<S>),
    /// It is lost then; a store has it.
    Gone,
}

/// Ready nodes never give the executor a turn by themselves; after so many supersteps the loop does, so that timeouts
/// and cancellation from other tasks are heard.
const STEPS_WITHOUT_YIELD: u64 = 256;

/// Lets others run, once.
fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// How a superstep of one task stands.
enum Single<S: State> {
    /// Its update is in the state, and the frontier is the next one.
    Merged,
    /// It failed or waits: its end is in the scratch.
    NotDone,
    /// It failed, and its handler is to run.
    Handled,
    /// It was not ready at its first poll.
    Pending(CatchPanic<S>),
}

/// The time for joins that have a timeout, in microseconds since 1970; 0 where there are none.
#[inline]
fn now<S: State>(core: &GraphCore<S>, shared: &RunShared) -> u64 {
    if core.topology.times_joins { micros(shared.services.now()) } else { 0 }
}

/// The place of a superstep that is not kept.
fn nowhere(shared: &RunShared, step: u64) -> StepPlace<'_> {
    StepPlace { thread: "", namespace: shared.namespace(), run: shared.run, branch: 0, parent: step }
}

/// What cut a superstep off, in which these nodes were still to end.
fn cut_off<'a>(cut: Cut, late: impl Iterator<Item = &'a str>) -> Result<Pause, Error> {
    match cut {
        Cut::Stop(reason) => Ok(Pause::Stopped(reason)),
        Cut::StepTimeout(limit) => {
            let mut nodes: Vec<String> = late.map(|node| format!("`{node}`")).collect();
            nodes.dedup();
            let problem = format!(
                "a superstep took longer than {limit:?}, with {} not at its end: give it more time with \
                 `.step_timeout(..)`, then `proceed()`",
                nodes.join(", ")
            );
            Err(Error::new(Code::StepTimeout, problem))
        }
    }
}

/// Why a call ends without an error.
pub(crate) enum Pause {
    Finished,
    Interrupted(Vec<Interrupt>),
    Stopped(StopReason),
    /// A run inside a task was left for the graph around it.
    Left(Left),
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Begins a run on the state as it is: run channels are reset, the input goes in, and START's edges are followed.
    pub(crate) async fn input(&mut self, input: S::Update, abandoned: Option<RunId>) -> Result<(), Error> {
        let entry = match &self.core.discipline {
            Some(discipline) => {
                Some(Arc::clone(discipline).entry(&self.state, &input, self.journal.is_some())?)
            }
            None => None,
        };
        self.begin_input(input)?;
        if let Some(entry) = entry {
            self.frontier.pulled = entry;
        }
        self.announce_values();
        self.commit(Source::Input, abandoned).await
    }

    fn begin_input(&mut self, input: S::Update) -> Result<(), Error> {
        if self.eager.is_some() {
            self.begin_flow();
        }
        self.begin_record();
        let upcoming = self.upcoming();
        let core = &self.core;
        let state = Arc::make_mut(&mut self.state);
        // A subgraph over the state around it goes on with that as it is.
        let begins = self.trace.is_none();
        if begins && core.has_run_channels {
            reset(core, state, &mut self.journal, Lifetime::Run)?;
        }
        if begins && core.has_ephemeral {
            reset(core, state, &mut self.journal, Lifetime::Ephemeral)?;
        }
        let now = now(core, &self.shared);
        let mut merge = Merge {
            core,
            joins: &mut self.joins,
            next: &mut self.frontier,
            recorder: Recorder::of(&mut self.journal, &mut self.trace),
            gotos: &mut self.scratch.gotos,
            merging: &mut self.scratch.merging,
            now,
        };
        match &mut self.eager {
            None => merge.input(state, input)?,
            Some(eager) => eager.input(merge, state, input, upcoming)?,
        }
        self.scratch.merging = false;
        self.lay_down();
        Ok(())
    }

    /// Opens the record of a checkpoint that no superstep writes.
    fn begin_record(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.begin();
        }
    }

    /// Writes an update that leads nowhere into the record that was begun.
    fn write(&mut self, update: S::Update) -> Result<(), Error> {
        let state = Arc::make_mut(&mut self.state);
        let recorder = Recorder::of(&mut self.journal, &mut self.trace);
        merge::write(&self.core, state, recorder, update)
    }

    /// Merges updates as if these nodes had returned them.
    fn merge_as(&mut self, actors: Actors<'_>, done: &mut [Option<merge::Done<S>>]) -> Result<(), Error> {
        self.scratch.uses.note(&self.core, actors, done)?;
        let keeps = self.outputs_to_keep(|index| actors.node(index), done)?;
        self.stage_edits(|_, index| actors.node(index), done);
        let now = now(&self.core, &self.shared);
        let state = Arc::make_mut(&mut self.state);
        let mut merge = Merge {
            core: &self.core,
            joins: &mut self.joins,
            next: &mut self.scratch.next,
            recorder: Recorder::of(&mut self.journal, &mut self.trace),
            gotos: &mut self.scratch.gotos,
            merging: &mut self.scratch.merging,
            now,
        };
        merge.many(state, actors, done, &self.scratch.uses)?;
        self.scratch.merging = false;
        self.keep(keeps);
        self.lay_down();
        Ok(())
    }

    /// Goes on until there is a reason to pause, in the way in which the graph runs.
    pub(crate) async fn go_on(&mut self) -> Result<Pause, Error> {
        match self.eager {
            None => self.supersteps().await,
            Some(_) => Box::pin(self.activations()).await,
        }
    }

    /// Goes on from superstep to superstep until there is a reason to pause. What is rarely awaited is boxed, so that every run need not have room for
    /// it: the future of a short run would cost more than its steps.
    pub(crate) async fn supersteps(&mut self) -> Result<Pause, Error> {
        if !self.halted.is_empty() {
            let nodes = std::mem::take(&mut self.halted);
            let interrupts = nodes.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After));
            return self.tell(Pause::Interrupted(interrupts.collect())).await;
        }
        let is_express = self.is_express();
        loop {
            let mut under_way = None;
            if is_express && self.core.edited.is_none() && self.has_one_new_task() {
                match poll_fn(|cx| Poll::Ready(self.express(cx))).await? {
                    Exit::Boundary => {}
                    Exit::Pending(node, task) => under_way = Some((node, Single::Pending(task))),
                    Exit::Ended(node, result) => under_way = Some((node, self.end_single(node, result)?)),
                }
            }
            if under_way.is_none() {
                if let Some(pause) = self.boundary() {
                    return match (pause, self.core.limit_node()) {
                        (Pause::Stopped(StopReason::Limit), Some(node)) => {
                            Box::pin(self.beyond_limit(node)).await
                        }
                        (pause, _) => self.tell(pause).await,
                    };
                }
                self.begin_step();
                if self.scratch.step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
                if self.has_one_new_task() {
                    let (node, _) = self.frontier.task(0);
                    let single = poll_fn(|cx| Poll::Ready(self.start_single(node, cx))).await?;
                    under_way = Some((node, single));
                }
            }
            let mut stop = None;
            let mut several = under_way.is_none();
            if let Some((node, mut single)) = under_way {
                if let Single::Pending(task) = single {
                    let result = match &mut self.halt {
                        None => task.await,
                        Some(halt) => match halt.until(task).await {
                            Ok(result) => result,
                            Err(cut) => return cut_off(cut, std::iter::once(self.core.name(node))),
                        },
                    };
                    single = self.end_single(node, result)?;
                }
                match single {
                    Single::Merged if self.core.breaks.is_some() => stop = self.break_after(&[node]),
                    Single::Merged => {}
                    Single::Handled => several = true,
                    _ => return Box::pin(self.pause()).await,
                }
            }
            if several {
                if let Some(pause) = self.many().await? {
                    return Ok(pause);
                }
                std::mem::swap(&mut self.frontier, &mut self.scratch.next);
                if self.core.breaks.is_some() {
                    let (frontier, handled) = (&self.scratch.next, &self.scratch.ends.handled[..]);
                    let actors = Actors { frontier, handled };
                    let ended: Vec<u32> = (0..frontier.len()).map(|index| actors.node(index)).collect();
                    stop = self.break_after(&ended);
                }
                self.scratch.next.clear();
                self.scratch.ends.handled.clear();
            }
            self.scratch.merging = false;
            self.scratch.merged = self.scratch.step;
            self.shared.control.clear();
            if self.trace.is_some() {
                self.close_trace()?;
            }
            self.announce_values();
            if self.journal.is_some()
                && let Some(prepared) = self.try_commit(Source::Loop, None, stop.as_ref())?
            {
                Box::pin(self.commit_later(prepared)).await?;
            }
            if let Some(pause) = stop {
                return self.tell(pause).await;
            }
            if let Some(events) = &self.events {
                events.room().await;
            }
        }
    }

    /// The superstep to come is one task, which nothing was heard of in an earlier call.
    #[inline]
    fn has_one_new_task(&self) -> bool {
        self.frontier.len() == 1
            && self.left_over.is_empty()
            && self.scratch.ends.handled.is_empty()
            && !self.skips_some()
    }

    #[inline]
    fn begin_step(&mut self) {
        self.scratch.step += 1;
        self.shared.control.begin_step(self.scratch.step);
        if let Some(halt) = &mut self.halt {
            halt.begin_step();
        }
        if self.core.has_graphs {
            self.announce_calls();
        }
        if let Some(events) = &self.events {
            let tasks = 0..self.frontier.len();
            events.begin_step(self.scratch.step, tasks.map(|index| self.acting(index)).collect());
        }
    }

    /// What may end the call between two supersteps. Static interrupts come before the limit and the token: whoever goes
    /// on from here goes past them, so they must have been told.
    #[inline]
    fn boundary(&mut self) -> Option<Pause> {
        if self.frontier.is_empty() {
            return Some(Pause::Finished);
        }
        if self.core.breaks.is_some()
            && let Some(pause) = self.break_before()
        {
            return Some(pause);
        }
        if self.shared.outer.is_some() {
            return self.boundary_inside();
        }
        if let Some(reason) = self.halt.as_mut().and_then(|halt| halt.at_boundary()) {
            return Some(Pause::Stopped(reason));
        }
        self.used_up().map(Pause::Stopped)
    }

    /// Whether a node or a limit asks the call to end.
    #[inline]
    fn used_up(&self) -> Option<StopReason> {
        if self.shared.drains.load(Ordering::Acquire) {
            return Some(StopReason::Drained);
        }
        if self.scratch.step >= self.shared.max_supersteps {
            return Some(StopReason::Limit);
        }
        if self.shared.spending.has_budget() && self.shared.spending.is_used_up(self.scratch.step) {
            return Some(StopReason::Budget);
        }
        None
    }

    fn break_before(&mut self) -> Option<Pause> {
        let past = std::mem::take(&mut self.past_breaks);
        let breaks = self.core.breaks.as_ref().filter(|_| !past)?;
        let stops = self.frontier.nodes().filter(|node| breaks.before.get(*node as usize) == Some(&true));
        self.static_interrupts(stops, InterruptKind::Before)
    }

    /// `ended` are the nodes of the superstep that was merged; the frontier is the next one.
    fn break_after(&self, ended: &[u32]) -> Option<Pause> {
        let breaks = self.core.breaks.as_ref()?;
        let stops = ended.iter().copied().filter(|node| breaks.after.get(*node as usize) == Some(&true));
        if self.frontier.is_empty() {
            return None;
        }
        self.static_interrupts(stops, InterruptKind::After)
    }

    fn static_interrupts(&self, nodes: impl Iterator<Item = u32>, kind: InterruptKind) -> Option<Pause> {
        let mut interrupts: Vec<Interrupt> = Vec::new();
        for node in nodes {
            let name = self.core.name(node);
            if interrupts.iter().all(|told| told.node != name) {
                interrupts.push(Interrupt::fixed(name.to_owned(), kind));
            }
        }
        (!interrupts.is_empty()).then_some(Pause::Interrupted(interrupts))
    }

    /// A superstep of several tasks, or one that goes on where an earlier call stopped.
    async fn many(&mut self) -> Result<Option<Pause>, Error> {
        self.scratch.ends.begin(self.frontier.len());
        let chosen = self.take_left_over()?;
        let chosen = self.take_skipped(chosen)?;
        let mut ends = std::mem::take(&mut self.scratch.ends);
        let mut journal = self.journal.take();
        let before: Vec<Handled> = ends.handled.iter().map(Handled::copy).collect();
        let (step, frontier) = (self.scratch.step, &self.frontier);
        let count = chosen.as_ref().map_or(frontier.len(), Vec::len);
        let tasks = (0..count).map(|at| {
            let index = chosen.as_ref().map_or(at as u32, |chosen| chosen[at]);
            let (node, input) = frontier.task(index as usize);
            let handled = handled(&before, index);
            let (node, handles) = handled.map_or((node, false), |handled| (handled.handler, true));
            let request = TaskRequest { step, node, index, attempt: 1, handles };
            ToRun { request, input, failure: handled.map(|handled| &handled.failure) }
        });
        let (core, sessions, nowhere) = (&self.core, &self.shared.sessions, nowhere(&self.shared, step));
        let mut ledger =
            SuperstepLedger { core, frontier, journal: journal.as_mut(), ends: &mut ends, sessions, nowhere };
        ledger.store().await?;
        let mut halt = self.halt.take();
        let cut = self.executor().many(tasks, &mut ledger, halt.as_deref_mut()).await;
        self.halt = halt;
        self.journal = journal;
        self.scratch.ends = ends;
        let cut = cut?;
        if cut.is_none() && self.scratch.ends.not_done.is_empty() {
            self.merge_many()?;
            return Ok(None);
        }
        let late = cut.map(|cut| (cut, self.late()));
        let pause = Box::pin(self.pause()).await?;
        match late {
            None => Ok(Some(pause)),
            Some((cut, late)) => cut_off(cut, late.iter().map(|node| self.core.name(*node))).map(Some),
        }
    }

    /// The nodes of the tasks that have not ended.
    fn late(&self) -> Vec<u32> {
        let ends = &self.scratch.ends;
        let ended = |index: usize| {
            ends.done[index].is_some() || ends.not_done.iter().any(|(at, _)| *at as usize == index)
        };
        (0..self.frontier.len())
            .filter(|index| !ended(*index))
            .map(|index| self.actors().node(index))
            .collect()
    }

    /// Takes over what the tasks left behind, and gives those that are to be run: not those that are finished, nor those
    /// that still wait for an answer. `None` if that is all of them.
    fn take_left_over(&mut self) -> Result<Option<Vec<u32>>, Error> {
        if self.left_over.is_empty() {
            return Ok(None);
        }
        let mut left_over = std::mem::take(&mut self.left_over);
        let mut to_run = Vec::with_capacity(self.frontier.len());
        for index in 0..self.frontier.len() {
            let Some(left) = self.task_id(index).and_then(|id| left_over.remove(&id)) else {
                to_run.push(index as u32);
                continue;
            };
            let node = self.actors().node(index);
            let ends = &mut self.scratch.ends;
            if let (Some(result), Some(journal)) = (&left.result, &self.journal) {
                let (step, edits) = finished_step(&self.core, &journal.codec, &journal.thread, result)?;
                let edits = proposed(&self.core, &journal.thread, edits)?;
                ends.done[index] = Some(merge::resolve(&self.core, node, step, edits)?);
                ends.stored[index] = true;
            } else if let Some((n, request)) = left.open() {
                let request = Request { n: *n, value: request.value.clone(), schema: request.schema.clone() };
                ends.not_done.push((index as u32, NotDone::Waits(request)));
                ends.stored[index] = true;
            } else {
                self.shared.control.answer(index as u32, left.answers);
                to_run.push(index as u32);
            }
        }
        Ok(Some(to_run))
    }

    fn merge_many(&mut self) -> Result<(), Error> {
        let mut done = std::mem::take(&mut self.scratch.ends.done);
        let actors = Actors { frontier: &self.frontier, handled: &self.scratch.ends.handled };
        self.scratch.uses.note(&self.core, actors, &done)?;
        let keeps = self.outputs_to_keep(|index| actors.node(index), &done)?;
        self.stage_edits(|run, index| run.actors().node(index), &mut done);
        let actors = self.actors();
        let exits = |index| self.core.exits(actors.node(index));
        let fallible = (0..self.frontier.len()).any(|index| exits(index).fallible_routers);
        let before = self.before_merge(fallible);
        self.scratch.ends.done = done;
        let merged = self.merge_noted();
        if merged.is_err() {
            self.core.unstage();
            self.frontier.deferred = std::mem::take(&mut self.scratch.next.deferred);
            self.undo_merge(before);
        } else {
            self.keep(keeps);
            self.lay_down();
        }
        merged
    }

    fn merge_noted(&mut self) -> Result<(), Error> {
        let core = &self.core;
        let done = &mut self.scratch.ends.done;
        let mut updates = done.iter().flatten().filter_map(|done| done.update.as_ref());
        let writes = core.has_ephemeral && updates.any(|update| writes_ephemeral(core, update));
        let state =
            begin_merge(core, &mut self.state, &mut self.journal, &mut self.scratch.ephemeral, writes)?;
        let now = now(core, &self.shared);
        self.scratch.next.deferred = std::mem::take(&mut self.frontier.deferred);
        let mut merge = Merge {
            core,
            joins: &mut self.joins,
            next: &mut self.scratch.next,
            recorder: Recorder::of(&mut self.journal, &mut self.trace),
            gotos: &mut self.scratch.gotos,
            merging: &mut self.scratch.merging,
            now,
        };
        let actors = Actors { frontier: &self.frontier, handled: &self.scratch.ends.handled };
        merge.many(state, actors, done, &self.scratch.uses)
    }

    /// What becomes of the state if the routers of a merge fail. They are asked when nothing but ephemeral channels has
    /// changed.
    fn before_merge(&self, fallible: bool) -> BeforeMerge<S> {
        let is_stored_later = self.journal.as_ref().is_some_and(Journal::waits);
        match self.core.has_ephemeral && self.scratch.ephemeral {
            false => BeforeMerge::Same,
            // The rare case in which a step costs a clone: the last state is nowhere else.
            true if fallible && is_stored_later => BeforeMerge::Kept(Arc::clone(&self.state)),
            true => BeforeMerge::Gone,
        }
    }

    /// A merge failed.
    fn undo_merge(&mut self, before: BeforeMerge<S>) {
        match before {
            _ if self.scratch.merging => {}
            BeforeMerge::Same => {}
            BeforeMerge::Kept(last) => self.state = last,
            BeforeMerge::Gone => self.scratch.merging = true,
        }
    }

    fn task_id(&self, index: usize) -> Option<TaskId> {
        let journal = self.journal.as_ref()?;
        let handled = &self.scratch.ends.handled;
        Some(id_of(&self.core, journal.step_place(), &self.frontier, handled, index as u32))
    }

    /// The id of whoever acts at `index`; without a journal one that only this call knows.
    fn acting(&self, index: usize) -> TaskId {
        id_of(&self.core, self.step_place(), &self.frontier, &self.scratch.ends.handled, index as u32)
    }

    fn step_place(&self) -> StepPlace<'_> {
        let nowhere = || nowhere(&self.shared, self.scratch.step);
        self.journal.as_ref().map_or_else(nowhere, Journal::step_place)
    }

    fn actors(&self) -> Actors<'_> {
        Actors { frontier: &self.frontier, handled: &self.scratch.ends.handled }
    }

    /// Lets handlers stand in the place of tasks that failed in an earlier call. A node that has no handler any more runs
    /// again.
    pub(crate) fn adopt_failures(&mut self) {
        if self.eager.is_some() {
            return self.adopt_left();
        }
        let StepPlace { run, parent, .. } = self.step_place();
        self.adopt_failures_of(run, parent, None);
    }

    /// Those of another run on this branch, whose tasks' ids are made of `parent`.
    pub(crate) fn adopt_failures_of(&mut self, run: RunId, parent: u64, thread: Option<&str>) {
        if self.eager.is_some() {
            return self.adopt_left_of(run);
        }
        let tasks = if self.left_over.is_empty() { 0 } else { self.frontier.len() };
        for index in 0..tasks {
            let failed = self.frontier.task(index).0;
            let Some(handler) = self.core.handler(failed) else {
                continue;
            };
            let handled = &self.scratch.ends.handled;
            let own = self.step_place();
            let place = StepPlace { run, parent, thread: thread.unwrap_or(own.thread), ..own };
            let task = id_of(&self.core, place, &self.frontier, handled, index as u32);
            let left = self.left_over.get_mut(&task);
            if let Some(failure) = left.and_then(|left| left.failure.take()) {
                let (index, failure) = (index as u32, Arc::new(failure));
                self.scratch.ends.handled.push(Handled { index, handler, failure, stored: true });
            }
        }
    }

    /// What the run has used up, if that is counted.
    #[inline]
    fn counted(&self) -> Option<Spent> {
        let spending = &self.shared.spending;
        spending.counts().then(|| {
            spending.take_unstored();
            self.spent()
        })
    }

    /// What the run has used up.
    pub(crate) fn spent(&self) -> Spent {
        self.shared.spending.total(self.scratch.merged, || self.shared.services.now())
    }

    /// Stores what was used up by tasks that did not finish: spent is spent.
    pub(crate) async fn store_spent(&mut self) -> Result<(), Error> {
        let unstored = self.shared.spending.take_unstored();
        let bytes = to_bytes(&self.spent())?;
        match &mut self.journal {
            Some(journal) if unstored => {
                journal.put_writes(&[PendingWrite { task: OF_RUN, slot: SPENT, bytes }]).await
            }
            _ => Ok(()),
        }
    }

    fn executor(&self) -> Executor<'_, S, R> {
        Executor {
            core: &self.core,
            runner: &self.runner,
            state: &self.state,
            shared: &self.shared,
            events: self.events.as_deref(),
            siblings: self.siblings,
            max_concurrency: self.max_concurrency,
        }
    }

    fn announce_values(&self) {
        if let Some(events) = self.events.as_ref().filter(|events| events.views.values) {
            events.push(self.scratch.step, EventKind::Values(Snapshot::new(Arc::clone(&self.state))));
        }
    }

    /// Notes that the caller is being told of a static interrupt, so that the next call goes past it. Only then: a caller
    /// that was dropped before has not been asked.
    async fn tell(&mut self, pause: Pause) -> Result<Pause, Error> {
        if matches!(pause, Pause::Interrupted(_)) {
            Box::pin(self.end_waiting()).await?;
        }
        if self.shared.outer.is_some() {
            self.leave_to_be_told(&pause);
        } else if let (Pause::Interrupted(stops), Some(journal)) = (&pause, &mut self.journal) {
            if let Some(events) = &self.events {
                events.read().await;
            }
            journal.put_writes(&[told(&StoredStop::among(stops))?]).await?;
        }
        Ok(pause)
    }

    /// Whether the end of the call has more to do than to say what it came to.
    #[inline]
    pub(crate) fn has_to_settle(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| journal.waits() || journal.is_behind() || self.shared.spending.counts())
    }

    /// Stores what was put off and what was spent, and waits for what was handed over.
    pub(crate) async fn settle(&mut self, paused: Result<Pause, Error>) -> Result<Pause, Error> {
        let stored = match self.scratch.merging {
            // The state is neither the last one nor the next.
            true => Ok(()),
            false => self.end_waiting().await,
        };
        let stored = match stored {
            Ok(()) => self.store_spent().await,
            failed => failed,
        };
        let settled = match &self.journal {
            Some(journal) => journal.settle().await,
            None => Ok(()),
        };
        let pause = paused?;
        stored.and(settled).map(|()| pause)
    }

    /// Stores what was put off, and from now on as it comes.
    async fn end_waiting(&mut self) -> Result<(), Error> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let Some(Waited { source, abandoned, halt }) = journal.end_waiting().await? else { return Ok(()) };
        let halts: Vec<_> =
            halt.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After)).collect();
        let stop = (!halts.is_empty()).then_some(Pause::Interrupted(halts));
        if self.eager.is_some() {
            self.keep_states()?;
        }
        match self.try_commit(source, abandoned, stop.as_ref())? {
            Some(prepared) => self.commit_later(prepared).await,
            None => Ok(()),
        }
    }

    async fn commit(&mut self, source: Source, abandoned: Option<RunId>) -> Result<(), Error> {
        match self.try_commit(source, abandoned, None)? {
            Some(prepared) => Box::pin(self.commit_later(prepared)).await,
            None => Ok(()),
        }
    }

    /// Commits, if the store needs no await for it; otherwise gives what is to be committed.
    #[inline]
    fn try_commit(
        &mut self,
        source: Source,
        abandoned: Option<RunId>,
        stop: Option<&Pause>,
    ) -> Result<Option<Prepared>, Error> {
        let spent = self.counted();
        self.close_trace()?;
        let Some(journal) = &mut self.journal else {
            if let Some(eager) = &mut self.eager {
                eager.flow.said();
            }
            return Ok(None);
        };
        let sessions = &self.shared.sessions;
        let sessions_used = source == Source::Input || sessions.take_used();
        let (frontier, joins) = (&self.frontier, &self.joins);
        let halt: Vec<String> = match stop {
            Some(Pause::Interrupted(interrupts)) => interrupts.iter().map(|stop| stop.node.clone()).collect(),
            _ => Vec::new(),
        };
        if journal.waits() {
            journal.put_off(Waited { source, abandoned, halt });
            return Ok(None);
        }
        if let Some(trace) = &mut self.trace {
            journal.wrote = trace.take_unstored(&self.core.schema, &journal.codec)?;
        }
        if self.shared.nest.as_ref().is_some_and(|nest| nest.take_wrote()) {
            journal.has_writes = true;
        }
        let flow = self.eager.as_ref().map(|eager| &eager.flow);
        let (skips, outputs) = (self.core.skips(), &self.kept);
        let commit = Commit {
            source,
            frontier,
            joins,
            abandoned,
            halt: &halt,
            sessions,
            sessions_used,
            spent,
            flow,
            skips: &skips,
            outputs,
        };
        let mut prepared = journal.prepare(&self.core, &self.state, &*self.shared.services, &commit)?;
        // A run inside a task has to store first what it changed around it.
        let tells = self.shared.outer.as_ref().is_some_and(|outer| outer.shared.has_changes());
        let committed = !tells && journal.try_commit(&self.core, &prepared, &commit)?;
        if committed {
            self.is_committed(source);
        }
        prepared.halt = halt;
        Ok((!committed).then_some(prepared))
    }

    async fn commit_later(&mut self, prepared: Prepared) -> Result<(), Error> {
        if let Some(outer) = &self.shared.outer {
            outer.shared.store_changes(outer.request.step).await?;
        }
        let spent = self.counted();
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let Prepared { source, abandoned, sessions_used, ref halt, .. } = prepared;
        let (frontier, joins, sessions) = (&self.frontier, &self.joins, &self.shared.sessions);
        let flow = self.eager.as_ref().map(|eager| &eager.flow);
        let (skips, outputs) = (self.core.skips(), &self.kept);
        let commit = Commit {
            source,
            frontier,
            joins,
            abandoned,
            halt,
            sessions,
            sessions_used,
            spent,
            flow,
            skips: &skips,
            outputs,
        };
        journal.commit(&self.core, &prepared, &commit).await?;
        self.is_committed(source);
        Ok(())
    }

    #[inline]
    fn is_committed(&mut self, source: Source) {
        self.kept.is_stored();
        if let Some(eager) = &mut self.eager {
            eager.flow.said();
            if let Some(nest) = &self.shared.nest {
                nest.stands(self.journal.as_ref().and_then(Journal::checkpoint));
            }
        }
        self.announce_checkpoint(source);
    }

    fn announce_checkpoint(&self, source: Source) {
        let Some(events) = self.events.as_ref().filter(|events| events.views.checkpoints) else { return };
        let Some(id) = self.journal.as_ref().and_then(Journal::checkpoint) else { return };
        let open = self.eager.iter().flat_map(|eager| eager.flow.open.values().map(|one| one.node));
        let next = self.frontier.nodes().chain(open).map(|node| self.core.name(node).to_owned()).collect();
        events.push(self.scratch.step, EventKind::Checkpoint { id, source, next });
    }
}
