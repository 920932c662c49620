//! The loop: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and know no runtime. Only *execute* awaits users' code, and only *commit*
//! awaits storage. Everything is by dense ids; names appear where something leaves the process.

mod answers;
mod asks;
mod beyond_limit;
mod boundary;
pub(crate) mod buffers;
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
pub(crate) mod inheritance;
mod input;
mod inside;
pub(crate) mod journal;
mod lifetimes;
pub(crate) mod listeners;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod pass;
mod pause;
pub(crate) mod plan;
pub(crate) mod position;
pub(crate) mod recorder;
pub(crate) mod records;
pub(crate) mod report;
pub(crate) mod reuse;
mod running;
pub(crate) mod runtime;
mod several;
mod single;
pub(crate) mod stored;
mod temporary;
pub(crate) mod uses;

pub(crate) use answers::Answers;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::context::RunShared;
use crate::engine::buffers::Buffers;
use crate::engine::driver::Driver;
use crate::engine::ends::id_of;
use crate::engine::execute::{Executor, Left};
use crate::engine::express::Exit;
use crate::engine::halt::Cut;
use crate::engine::host::TaskRunner;
use crate::engine::inheritance::Inheritance;
use crate::engine::journal::Journal;
use crate::engine::listeners::Listeners;
use crate::engine::plan::{Actors, StepPlace};
use crate::engine::position::Position;
use crate::engine::records::Records;
use crate::engine::report::Report;
use crate::engine::runtime::TaskRuntime;
use crate::error::{Code, Error};
use crate::extract::Snapshot;
use crate::graph::GraphCore;
use crate::policy::CatchPanic;
use crate::run::event::EventKind;
use crate::state::State;
use crate::words::{Interrupt, InterruptKind, StopReason};
use agentgraph_checkpoint::services::micros;
use agentgraph_checkpoint::services::yield_now;
use agentgraph_checkpoint::{Source, TaskId};

/// One call of a run: the parts that its loop works with, each of which keeps its own rules.
pub(crate) struct Loop<S: State, R> {
    pub(crate) position: Position<S>,
    pub(crate) inheritance: Inheritance,
    pub(crate) records: Records<S>,
    pub(crate) listeners: Listeners<S>,
    pub(crate) runtime: TaskRuntime<R>,
    /// Drives the passes of a dependency graph; every other graph has none.
    pub(crate) driver: Option<Arc<dyn Driver<S>>>,
    pub(crate) buffers: Buffers<S>,
    pub(crate) report: Report,
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
        match self.position.eager {
            None => self.supersteps().await,
            Some(_) => Box::pin(self.activations()).await,
        }
    }

    /// Goes on from superstep to superstep until there is a reason to pause. What is rarely awaited is boxed,
    /// so that every run need not have room for it: the future of a short run would cost more than its steps.
    pub(crate) async fn supersteps(&mut self) -> Result<Pause, Error> {
        if !self.inheritance.halted.is_empty() {
            let nodes = std::mem::take(&mut self.inheritance.halted);
            let interrupts = nodes.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After));
            return self.tell(Pause::Interrupted(interrupts.collect())).await;
        }
        let is_express = self.is_express();
        loop {
            let mut under_way = None;
            if is_express && self.position.graph.edited.is_none() && self.has_one_new_task() {
                match poll_fn(|cx| Poll::Ready(self.express(cx))).await? {
                    Exit::Boundary => {}
                    Exit::Pending(node, task) => under_way = Some((node, Single::Pending(task))),
                    Exit::Ended(node, result) => under_way = Some((node, self.end_single(node, result)?)),
                }
            }
            if under_way.is_none() {
                if let Some(pause) = self.boundary() {
                    return match (pause, self.position.graph.limit_node()) {
                        (Pause::Stopped(StopReason::Limit), Some(node)) => {
                            Box::pin(self.beyond_limit(node)).await
                        }
                        (pause, _) => self.tell(pause).await,
                    };
                }
                self.begin_step();
                if self.position.step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
                if self.has_one_new_task() {
                    let (node, _) = self.position.frontier.task(0);
                    let single = poll_fn(|cx| Poll::Ready(self.start_single(node, cx))).await?;
                    under_way = Some((node, single));
                }
            }
            let mut stop = None;
            let mut several = under_way.is_none();
            if let Some((node, mut single)) = under_way {
                if let Single::Pending(task) = single {
                    let result = match &mut self.listeners.halt {
                        None => task.await,
                        Some(halt) => match halt.until(task).await {
                            Ok(result) => result,
                            Err(cut) => return cut_off(cut, std::iter::once(self.position.graph.name(node))),
                        },
                    };
                    single = self.end_single(node, result)?;
                }
                match single {
                    Single::Merged if self.position.graph.breaks.is_some() => {
                        stop = self.break_after(&[node])
                    }
                    Single::Merged => {}
                    Single::Handled => several = true,
                    _ => return Box::pin(self.pause()).await,
                }
            }
            if several {
                if let Some(pause) = self.many().await? {
                    return Ok(pause);
                }
                std::mem::swap(&mut self.position.frontier, &mut self.buffers.next);
                if self.position.graph.breaks.is_some() {
                    let (frontier, handled) = (&self.buffers.next, &self.buffers.ends.handled[..]);
                    let actors = Actors { frontier, handled };
                    let ended: Vec<u32> = (0..frontier.len()).map(|index| actors.node(index)).collect();
                    stop = self.break_after(&ended);
                }
                self.buffers.next.clear();
                self.buffers.ends.handled.clear();
            }
            self.position.merging = false;
            self.position.merged = self.position.step;
            self.runtime.shared.control.clear();
            if self.records.trace.is_some() {
                self.close_trace()?;
            }
            self.announce_values();
            if self.records.journal.is_some()
                && let Some(prepared) = self.try_commit(Source::Loop, None, stop.as_ref())?
            {
                Box::pin(self.commit_later(prepared)).await?;
            }
            if let Some(pause) = stop {
                return self.tell(pause).await;
            }
            if let Some(events) = &self.listeners.events {
                events.room().await;
            }
        }
    }

    /// The superstep to come is one task, which nothing was heard of in an earlier call.
    #[inline]
    fn has_one_new_task(&self) -> bool {
        self.position.frontier.len() == 1
            && self.inheritance.left_over.is_empty()
            && self.buffers.ends.handled.is_empty()
            && !self.skips_some()
    }

    #[inline]
    fn begin_step(&mut self) {
        self.position.step += 1;
        self.runtime.shared.control.begin_step(self.position.step);
        if let Some(halt) = &mut self.listeners.halt {
            halt.begin_step();
        }
        if self.position.graph.has_graphs {
            self.announce_calls();
        }
        if let Some(events) = &self.listeners.events {
            let tasks = 0..self.position.frontier.len();
            events.begin_step(self.position.step, tasks.map(|index| self.acting(index)).collect());
        }
    }

    fn task_id(&self, index: usize) -> Option<TaskId> {
        let journal = self.records.journal.as_ref()?;
        let handled = &self.buffers.ends.handled;
        Some(id_of(
            &self.position.graph,
            journal.step_place(),
            &self.position.frontier,
            handled,
            index as u32,
        ))
    }

    /// The id of whoever acts at `index`; without a journal one that only this call knows.
    fn acting(&self, index: usize) -> TaskId {
        id_of(
            &self.position.graph,
            self.step_place(),
            &self.position.frontier,
            &self.buffers.ends.handled,
            index as u32,
        )
    }

    fn step_place(&self) -> StepPlace<'_> {
        let nowhere = || nowhere(&self.runtime.shared, self.position.step);
        self.records.journal.as_ref().map_or_else(nowhere, Journal::step_place)
    }

    fn actors(&self) -> Actors<'_> {
        Actors { frontier: &self.position.frontier, handled: &self.buffers.ends.handled }
    }

    fn executor(&self) -> Executor<'_, S, R> {
        Executor {
            core: &self.position.graph,
            state: &self.position.state,
            runtime: &self.runtime,
            events: self.listeners.events.as_deref(),
        }
    }

    fn announce_values(&self) {
        if let Some(events) = self.listeners.events.as_ref().filter(|events| events.views.values) {
            events
                .push(self.position.step, EventKind::Values(Snapshot::new(Arc::clone(&self.position.state))));
        }
    }
}
