//! The loop: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and independent of the async runtime. Only *execute* awaits users' code, and
//! only *commit* awaits storage. Inside the process everything is identified by dense ids; names appear only
//! in what leaves it.

pub(crate) mod activations;
pub(crate) mod actors;
mod beyond_limit;
pub(crate) mod buffers;
pub(crate) mod call;
pub(crate) mod channel_uses;
mod commit;
pub(crate) mod driver;
pub(crate) mod eager;
pub(crate) mod executor;
pub(crate) mod express;
pub(crate) mod failures;
pub(crate) mod flow;
pub(crate) mod frontier;
pub(crate) mod halt;
pub(crate) mod host;
pub(crate) mod inheritance;
pub(crate) mod journal;
pub(crate) mod kept_outputs;
pub(crate) mod left_over;
mod lifetimes;
pub(crate) mod listeners;
pub(crate) mod load;
pub(crate) mod merge;
mod merging;
pub(crate) mod once;
pub(crate) mod pass;
pub(crate) mod position;
mod question_writes;
pub(crate) mod recorder;
pub(crate) mod records;
pub(crate) mod report;
mod running_tasks;
pub(crate) mod runtime;
pub(crate) mod spans;
mod step_results;
pub(crate) mod stored;
mod subgraph_calls;
mod superstep;
pub(crate) mod task_id;
pub(crate) mod task_output;
mod temporary_edits;
pub(crate) mod unknown_fields;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::context::{GraphShared, RunShared, TaskOrigin, TaskRequest};
use crate::engine::actors::Actors;
use crate::engine::buffers::Buffers;
use crate::engine::driver::Driver;
use crate::engine::executor::{Executor, ParentExit};
use crate::engine::express::Express;
use crate::engine::halt::Cutoff;
use crate::engine::inheritance::Inheritance;
use crate::engine::journal::Journal;
use crate::engine::listeners::Listeners;
use crate::engine::position::Position;
use crate::engine::records::Records;
use crate::engine::report::Report;
use crate::engine::runtime::TaskRuntime;
use crate::engine::step_results::id_of;
use crate::engine::task_id::{StepPlace, nowhere};
use crate::error::{Code, Error};
use crate::event::EventKind;
use crate::extract::Snapshot;
use crate::graph::GraphCore;
use crate::words::{Interrupt, StopReason};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::services::{micros, yield_now};

/// What runs the nodes of some graphs in place of the loop.
type Conductors = (Option<Arc<dyn Driver>>, Option<Arc<dyn Express>>);

/// One call of a run: the parts that its loop works with.
pub(crate) struct Loop {
    pub(in crate::engine) position: Position,
    pub(in crate::engine) inheritance: Inheritance,
    pub(in crate::engine) records: Records,
    pub(in crate::engine) listeners: Listeners,
    pub(in crate::engine) runtime: TaskRuntime,
    /// Drives the passes of a dependency graph; `None` for every other graph.
    pub(in crate::engine) driver: Option<Arc<dyn Driver>>,
    /// Runs one ready task after another; `None` if the loop calls all tasks.
    pub(in crate::engine) express: Option<Arc<dyn Express>>,
    pub(in crate::engine) buffers: Buffers,
    pub(in crate::engine) report: Report,
}

impl Loop {
    /// A call that has not started.
    pub(crate) fn new(
        position: Position,
        inheritance: Inheritance,
        records: Records,
        listeners: Listeners,
        runtime: TaskRuntime,
        (driver, express): Conductors,
    ) -> Box<Self> {
        let buffers = Buffers::default();
        let report = Report::default();
        Box::new(Loop {
            position,
            inheritance,
            records,
            listeners,
            runtime,
            driver,
            express,
            buffers,
            report,
        })
    }
}

/// A run whose nodes are always ready never yields to the executor. The loop yields after this number of
/// supersteps, so that timeouts and cancellations from other tasks take effect.
pub(crate) const STEPS_WITHOUT_YIELD: u64 = 256;

/// The current time for joins with a timeout, in microseconds since 1970; 0 if the graph has no such joins.
#[inline]
fn now(core: &GraphCore, shared: &RunShared) -> u64 {
    if core.topology.times_joins { micros(shared.services.now()) } else { 0 }
}

/// The pause or error for a superstep that was cut off. `late` are the nodes that had not ended.
fn cut_off<'a>(cut: Cutoff, late: impl Iterator<Item = &'a str>) -> Result<Pause, Error> {
    match cut {
        Cutoff::Stop(reason) => Ok(Pause::Stopped(reason)),
        Cutoff::StepTimeout(limit) => {
            let mut nodes: Vec<String> = late.map(|node| format!("`{node}`")).collect();
            nodes.dedup();
            let problem = format!(
                "a superstep took longer than {limit:?}, with {} unfinished: give it more time with \
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
    Left(ParentExit),
}

impl Loop {
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

    /// The id of the task or handler that acts at `index`. Without a journal, the id is known only to this
    /// call.
    fn actor_id(&self, index: usize) -> TaskId {
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
        self.records.journal.as_deref().map_or_else(nowhere, Journal::step_place)
    }

    /// The origin of the tasks of this superstep that edges led to.
    #[inline]
    fn origin(&self) -> TaskOrigin {
        match &self.records.journal {
            None => TaskOrigin::unstored(self.position.step),
            Some(journal) => journal.step_place().origin(),
        }
    }

    fn actors(&self) -> Actors<'_> {
        Actors { frontier: &self.position.frontier, handled: &self.buffers.ends.handled }
    }

    fn executor(&self) -> Executor<'_> {
        Executor {
            core: &self.position.graph,
            state: &self.position.state,
            runtime: &self.runtime,
            events: self.listeners.events.as_deref(),
            spans: self.listeners.spans.as_deref(),
        }
    }

    /// Shows the state and the checkpoint that a call continues from, as the first events of its stream.
    fn announce_start(&mut self) {
        if let Some(source) = self.inheritance.unshown.take() {
            self.announce_values();
            self.announce_checkpoint(source);
        }
    }

    /// What all runs of its graph share.
    pub(crate) fn graph_shared(&self) -> &Arc<GraphShared> {
        &self.runtime.shared.graph
    }

    /// [`announce_start`](Self::announce_start) before the first commit of a branch, which shows itself.
    pub(crate) fn announce_fork(&mut self) {
        self.inheritance.unshown = None;
        self.announce_values();
    }

    fn announce_values(&self) {
        if let Some(events) = self.listeners.events.as_ref().filter(|events| events.views().values) {
            events.push(
                self.position.step,
                EventKind::Values(Snapshot::from(Arc::clone(&self.position.state))),
            );
        }
    }

    /// The reason to end the call: a node asked for a drain, or a limit is reached.
    #[inline]
    pub(super) fn used_up(&self) -> Option<StopReason> {
        if self.runtime.shared.bounds.drains.load(Ordering::Acquire) {
            return Some(StopReason::Drained);
        }
        if self.position.step >= self.runtime.shared.bounds.max_supersteps {
            return Some(StopReason::Limit);
        }
        if self.runtime.shared.bounds.spending.has_budget()
            && self.runtime.shared.bounds.spending.is_used_up(self.position.step)
        {
            return Some(StopReason::Budget);
        }
        None
    }

    #[inline]
    pub(super) fn single_request(&self, node: u32) -> TaskRequest {
        let mut origin = self.origin();
        if let ([], [dispatch]) = self.position.frontier.parts() {
            origin = origin.led_by(dispatch.from, dispatch.index);
        }
        TaskRequest { step: self.position.step, node, index: 0, attempt: 1, handles: false, origin }
    }

    #[inline]
    fn begin_step(&mut self) {
        self.position.step += 1;
        self.runtime.shared.control.begin_step(self.position.step);
        if let Some(halt) = &mut self.listeners.halt {
            halt.begin_step();
            halt.report_steps(self.position.step);
        }
        if let Some(spans) = &mut self.listeners.spans {
            spans.begin_step(self.position.step);
        }
        if self.position.graph.uses.graphs {
            self.announce_calls();
        }
        if let Some(events) = &self.listeners.events {
            let tasks = 0..self.position.frontier.len();
            events.begin_step(self.position.step, tasks.map(|index| self.actor_id(index)));
        }
    }
}
