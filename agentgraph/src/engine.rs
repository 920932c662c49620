//! The loop: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and know no runtime. Only *execute* awaits users' code, and only *commit*
//! awaits storage. Everything is by dense ids; names appear where something leaves the process.

mod answers;
mod asks;
mod beyond_limit;
mod boundary;
mod commit;
pub(crate) mod done;
pub(crate) mod driver;
pub(crate) mod eager;
pub(crate) mod edit;
mod ends;
pub(crate) mod execute;
mod express;
pub(crate) mod failed;
pub(crate) mod fields;
pub(crate) mod halt;
pub(crate) mod host;
mod input;
mod inside;
pub(crate) mod journal;
mod lifetimes;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod pass;
mod pause;
pub(crate) mod plan;
pub(crate) mod recorder;
pub(crate) mod reuse;
mod running;
mod several;
mod single;
pub(crate) mod stored;
mod temporary;
pub(crate) mod uses;

pub(crate) use answers::Answers;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::context::{RunShared, Untold};
use crate::engine::driver::Driver;
pub(crate) use crate::engine::eager::Eager;
use crate::engine::ends::{Ends, id_of};
use crate::engine::execute::{Executor, Left};
use crate::engine::express::Exit;
use crate::engine::halt::{Cut, Halt};
use crate::engine::host::TaskRunner;
use crate::engine::journal::Journal;
use crate::engine::plan::{Actors, Frontier, LeftOver, StepPlace};
use crate::engine::recorder::Trace;
use crate::engine::reuse::KeptOutputs;
use crate::engine::uses::ChannelUses;
use crate::error::{Code, Error};
use crate::extract::Snapshot;
use crate::graph::GraphCore;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::policy::{CatchPanic, Siblings};
use crate::run::event::{EventKind, EventQueue};
use crate::state::State;
use crate::step::Goto;
use crate::words::{DroppedEdits, Interrupt, InterruptKind, StopReason};
use agentgraph_checkpoint::services::micros;
use agentgraph_checkpoint::services::yield_now;
use agentgraph_checkpoint::{CheckpointId, Source, TaskId};

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
    /// Drives the passes of a dependency graph; every other graph has none.
    pub(crate) driver: Option<Arc<dyn Driver<S>>>,
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
    /// The checkpoint beside which a store says that the superstep has failed, and no task of it.
    had_failure: Option<CheckpointId>,
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
            had_failure: None,
        }
    }
}

/// Ready nodes never give the executor a turn by themselves; after so many supersteps the loop does, so that
/// timeouts and cancellation from other tasks are heard.
const STEPS_WITHOUT_YIELD: u64 = 256;

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
    /// Goes on until there is a reason to pause, in the way in which the graph runs.
    pub(crate) async fn go_on(&mut self) -> Result<Pause, Error> {
        match self.eager {
            None => self.supersteps().await,
            Some(_) => Box::pin(self.activations()).await,
        }
    }

    /// Goes on from superstep to superstep until there is a reason to pause. What is rarely awaited is boxed,
    /// so that every run need not have room for it: the future of a short run would cost more than its steps.
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
}
