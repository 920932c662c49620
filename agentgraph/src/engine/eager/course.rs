//! [`Course`]: one call of an eager run under way, with its running tasks, ended tasks, and the reason to
//! stop.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::engine::executor::{Ledger, NoOutput, ParentExit};
use crate::engine::flow::Key;
use crate::engine::halt::sleep;
use crate::engine::running_tasks::{RunningTask, RunningTasks};
use crate::engine::task_output::TaskOutput;
use crate::error::Error;
use crate::failure::Failure;
use crate::step::InputValue;
use crate::words::{Interrupt, StopReason};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::services::Services;

/// The end of a task.
pub(super) enum TaskResult {
    Done(TaskOutput),
    NotDone(NoOutput),
    /// The task failed, and this node handles the failure.
    Handled(u32, Arc<Failure>),
}

/// The reason why no further task starts.
pub(super) enum Stop {
    Failed(Error),
    /// A run inside a task exits to the parent graph.
    Left(ParentExit),
    /// Running tasks may finish first.
    Soft(StopReason),
    /// Running tasks are dropped.
    Hard(StopReason),
}

/// A started task.
#[derive(Clone, Copy)]
pub(super) struct StartedTask {
    pub(super) key: Key,
    pub(super) detached: bool,
    /// For a detached task, how long the end of the run waits for it.
    pub(super) awaited: Option<Duration>,
}

/// The clocks of the end of a run: one for each time that the nodes of detached tasks name. All of them run
/// from the moment the end starts, however many tasks start later.
#[derive(Default)]
pub(super) struct Ending {
    clocks: Vec<(Duration, Option<BoxFuture<'static, ()>>)>,
}

impl Ending {
    /// Whether this time is over. The clock of a time that is not known yet starts now.
    pub(super) fn is_over(&mut self, limit: Duration, services: &Arc<dyn Services>) -> bool {
        match self.clocks.iter().find(|(of, _)| *of == limit) {
            Some((_, clock)) => clock.is_none(),
            None => {
                self.clocks.push((limit, Some(sleep(services, limit))));
                false
            }
        }
    }

    /// The next time that is over.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Option<Duration> {
        let (limit, over) = self.clocks.iter_mut().find_map(|(limit, clock)| {
            let is_over = clock.as_mut().is_some_and(|clock| clock.as_mut().poll(cx).is_ready());
            is_over.then_some((*limit, clock))
        })?;
        *over = None;
        Some(limit)
    }
}

/// One call of an eager run under way.
#[derive(Default)]
pub(super) struct Course {
    /// Tasks that were pending at their first poll and are not among the running ones yet.
    begun: Vec<RunningTask>,
    /// Whether some running tasks are no longer waited for.
    forgot: bool,
    /// The tasks without a handled end, by the index of their request.
    started: BTreeMap<u32, StartedTask>,
    /// The number of started tasks that are not detached.
    normal: usize,
    /// Ended tasks that are not handled yet, in the order in which they ended.
    ended: VecDeque<(u32, TaskResult)>,
    pub(super) stop: Option<Stop>,
    /// The failures of tasks, in the order in which they ended.
    pub(super) failed: Vec<(Key, Arc<Failure>)>,
    /// The interrupts of runs inside tasks.
    pub(super) inside: BTreeMap<Key, Vec<Interrupt>>,
    /// The timers of tasks with a time limit, oldest first.
    pub(super) limits: VecDeque<(u32, BoxFuture<'static, ()>)>,
    /// `None` until every task that is not detached has ended.
    pub(super) ending: Option<Ending>,
}

impl Course {
    pub(super) fn begin(&mut self, index: u32, started: StartedTask) {
        self.normal += usize::from(!started.detached);
        self.started.insert(index, started);
    }

    /// Adds tasks that were pending after their first poll.
    pub(super) fn add_pending(&mut self, pending: Vec<RunningTask>) {
        self.begun.extend(pending);
    }

    /// Brings the running tasks up to date. Not done while something is awaited beside them: it borrows them.
    pub(super) fn settle(&mut self, running: &mut RunningTasks) {
        if std::mem::take(&mut self.forgot) {
            running.retain(|task| self.started.contains_key(&task.request.index));
        }
        running.add(self.begun.drain(..));
    }

    pub(super) fn started(&self, index: u32) -> Option<StartedTask> {
        self.started.get(&index).copied()
    }

    /// The number of tasks that were pending at their last poll.
    pub(super) fn count(&self) -> usize {
        self.started.len() - self.ended.len()
    }

    /// The number of ended tasks that are not handled yet.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Whether the run has to wait for running tasks.
    pub(super) fn must_wait(&self) -> bool {
        if self.ended.is_empty() {
            self.normal > 0
        } else {
            // These ended tasks are waiting for the turn of a task that is still running.
            self.count() > 0
        }
    }

    /// Whether a task has ended and waits for its turn.
    fn is_held(&self, index: u32) -> bool {
        self.ended.iter().any(|(ended, _)| *ended == index)
    }

    /// Whether the task of an activation is running.
    pub(super) fn is_under_way(&self, key: Key) -> bool {
        self.started.iter().any(|(index, started)| started.key == key && !self.is_held(*index))
    }

    /// The first ended task whose end makes no commit: its failure is handled, or it is not done and not
    /// detached.
    pub(super) fn take_unmerged(&mut self) -> Option<(u32, StartedTask, TaskResult)> {
        let detached = |index: &u32| self.started.get(index).is_some_and(|started| started.detached);
        let at = self.ended.iter().position(|(index, end)| match end {
            TaskResult::Done(_) => false,
            TaskResult::NotDone(_) => !detached(index),
            TaskResult::Handled(..) => true,
        })?;
        self.take_end(at)
    }

    /// The end of an activation's task, if it has ended.
    pub(super) fn take_end_of(&mut self, key: Key) -> Option<(u32, StartedTask, TaskResult)> {
        let is_of = |index: &u32| self.started.get(index).is_some_and(|started| started.key == key);
        let at = self.ended.iter().position(|(index, _)| is_of(index))?;
        self.take_end(at)
    }

    /// Whether the end of the run waits for detached tasks.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some() && !self.started.is_empty()
    }

    /// Takes the task that ended first.
    pub(super) fn next_end(&mut self) -> Option<(u32, StartedTask, TaskResult)> {
        self.take_end(0)
    }

    fn take_end(&mut self, at: usize) -> Option<(u32, StartedTask, TaskResult)> {
        let (index, end) = self.ended.remove(at)?;
        let started = self.started.get(&index).copied()?;
        if !matches!(end, TaskResult::Handled(..)) {
            self.forget(index);
        }
        Some((index, started, end))
    }

    /// Removes a task that is over or no longer waited for.
    pub(super) fn forget(&mut self, index: u32) {
        if let Some(started) = self.started.remove(&index) {
            self.normal -= usize::from(!started.detached);
        }
    }

    /// Gives up the tasks for which `goes_on` is false and that have not ended. Those that run are dropped by
    /// [`settle`](Self::settle).
    pub(super) fn forget_unless(&mut self, goes_on: impl Fn(StartedTask) -> bool) {
        let ended: HashSet<u32> = self.ended.iter().map(|(index, _)| *index).collect();
        let over =
            self.started.iter().filter(|(index, started)| !goes_on(**started) && !ended.contains(index));
        let over: HashSet<u32> = over.map(|(index, _)| *index).collect();
        self.forgot |= !over.is_empty();
        self.begun.retain(|task| !over.contains(&task.request.index));
        over.into_iter().for_each(|index| self.forget(index));
    }

    /// Sets the reason why no further task starts. The first reason counts, but any reason replaces a soft
    /// stop, and a failure replaces an exit to the parent graph.
    pub(super) fn stop(&mut self, stop: Stop) {
        match (&self.stop, &stop) {
            (None | Some(Stop::Soft(_)), _) => self.stop = Some(stop),
            (Some(Stop::Left(_)), Stop::Failed(_)) => self.stop = Some(stop),
            _ => {}
        }
    }

    /// Records an error that ends the run. It counts more than failures of tasks.
    pub(super) fn break_off(&mut self, error: Error) {
        if !matches!(self.stop, Some(Stop::Hard(_))) {
            self.stop = Some(Stop::Failed(error));
        }
    }
}

/// The ledger in which the executor records how tasks end.
pub(super) struct ResultLedger<'a>(&'a mut VecDeque<(u32, TaskResult)>);

impl Course {
    pub(super) fn ends(&mut self) -> ResultLedger<'_> {
        ResultLedger(&mut self.ended)
    }
}

impl Ledger for ResultLedger<'_> {
    fn done(&mut self, index: u32, done: TaskOutput) {
        self.0.push_back((index, TaskResult::Done(done)));
    }

    fn not_done(&mut self, index: u32, why: NoOutput) {
        self.0.push_back((index, TaskResult::NotDone(why)));
    }

    fn handled(&mut self, index: u32, handler: u32, failure: Arc<Failure>) {
        self.0.push_back((index, TaskResult::Handled(handler, failure)));
    }

    /// Events learn the id of a handler when it starts.
    fn id(&self, _index: u32) -> TaskId {
        TaskId::from_u128(0)
    }

    fn input(&self, _index: u32) -> Option<InputValue> {
        None
    }

    async fn store(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
