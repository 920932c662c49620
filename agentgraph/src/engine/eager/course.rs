//! One call of an eager run under way: the tasks that run, how those ended that did, and why no more of them
//! start.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::engine::executor::{Ledger, NoOutput, ParentExit};
use crate::engine::flow::Key;
use crate::engine::halt::sleep;
use crate::engine::running_tasks::{EndedTask, RunningTask};
use crate::engine::task_output::TaskOutput;
use crate::error::Error;
use crate::failure::Failure;
use crate::state::State;
use crate::step::InputValue;
use crate::words::{Interrupt, StopReason};
use agentgraph_checkpoint::TaskId;
use agentgraph_checkpoint::services::Services;

/// How a task ended.
pub(super) enum TaskResult<S: State> {
    Done(TaskOutput<S>),
    NotDone(NoOutput),
    /// It failed, and this node stands in its place.
    Handled(u32, Arc<Failure>),
}

/// Why no further task starts.
pub(super) enum Stop {
    Failed(Error),
    /// A run inside a task was left for the graph around it.
    Left(ParentExit),
    /// What runs comes to its end before.
    Soft(StopReason),
    /// What runs is dropped.
    Hard(StopReason),
}

/// A task that was started.
#[derive(Clone, Copy)]
pub(super) struct StartedTask {
    pub(super) key: Key,
    pub(super) detached: bool,
    /// For how long the end of the run waits for it, if it is detached.
    pub(super) awaited: Option<Duration>,
}

/// How long the end still waits for detached tasks: a clock for each of the times that their nodes name, all
/// of which run from the beginning of the end, however many tasks begin later.
#[derive(Default)]
pub(super) struct Ending {
    clocks: Vec<(Duration, Option<BoxFuture<'static, ()>>)>,
}

impl Ending {
    /// Whether it does not wait any more for what may take so long. A time that it has not heard of begins
    /// now.
    pub(super) fn is_over(&mut self, limit: Duration, services: &Arc<dyn Services>) -> bool {
        match self.clocks.iter().find(|(of, _)| *of == limit) {
            Some((_, clock)) => clock.is_none(),
            None => {
                self.clocks.push((limit, Some(sleep(services, limit))));
                false
            }
        }
    }

    /// A time that has come to its end.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>) -> Option<Duration> {
        let (limit, over) = self.clocks.iter_mut().find_map(|(limit, clock)| {
            let is_over = clock.as_mut().is_some_and(|clock| clock.as_mut().poll(cx).is_ready());
            is_over.then_some((*limit, clock))
        })?;
        *over = None;
        Some(limit)
    }
}

/// See the module.
pub(super) struct Course<S: State> {
    /// Made when a task is pending, and away while something is awaited beside them.
    running: Option<FuturesUnordered<RunningTask<S>>>,
    /// Some of them were dropped while they were away.
    dropped: bool,
    /// The tasks that have not come to their end here, by the index of their requests.
    started: HashMap<u32, StartedTask>,
    /// How many of them are not detached.
    normal: usize,
    /// In the order in which they ended.
    ended: VecDeque<(u32, TaskResult<S>)>,
    pub(super) stop: Option<Stop>,
    /// What tasks failed with, in the order in which they ended.
    pub(super) failed: Vec<(Key, Arc<Failure>)>,
    /// What runs inside of tasks ask.
    pub(super) inside: BTreeMap<Key, Vec<Interrupt>>,
    /// The times that tasks may take, oldest first, if they are limited.
    pub(super) limits: VecDeque<(u32, BoxFuture<'static, ()>)>,
    /// None before everything that is not detached has ended.
    pub(super) ending: Option<Ending>,
}

impl<S: State> Course<S> {
    pub(super) fn new() -> Self {
        Course {
            running: None,
            dropped: false,
            started: HashMap::new(),
            normal: 0,
            ended: VecDeque::new(),
            stop: None,
            failed: Vec::new(),
            inside: BTreeMap::new(),
            limits: VecDeque::new(),
            ending: None,
        }
    }

    pub(super) fn begin(&mut self, index: u32, started: StartedTask) {
        self.normal += usize::from(!started.detached);
        self.started.insert(index, started);
    }

    /// Adds tasks that were not ready at once.
    pub(super) fn pend(&mut self, pending: Vec<RunningTask<S>>) {
        if !pending.is_empty() {
            self.running.get_or_insert_default().extend(pending);
        }
    }

    pub(super) fn started(&self, index: u32) -> Option<StartedTask> {
        self.started.get(&index).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.running.as_ref().map_or(0, FuturesUnordered::len)
    }

    /// How many have ended and were not looked at.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Whether tasks run that the run has to wait for.
    pub(super) fn must_wait(&self) -> bool {
        match self.ended.is_empty() {
            true => self.normal > 0,
            // They are held until the turn of another one that runs.
            false => self.count() > 0,
        }
    }

    /// Whether a task has ended, and waits for its turn.
    fn is_held(&self, index: u32) -> bool {
        self.ended.iter().any(|(ended, _)| *ended == index)
    }

    /// Whether the task of an activation is running.
    pub(super) fn is_under_way(&self, key: Key) -> bool {
        self.started.iter().any(|(index, started)| started.key == key && !self.is_held(*index))
    }

    /// The first of those that ended which is not to be merged.
    pub(super) fn take_unmerged(&mut self) -> Option<(u32, StartedTask, TaskResult<S>)> {
        let detached = |index: &u32| self.started.get(index).is_some_and(|started| started.detached);
        let at = self.ended.iter().position(|(index, end)| match end {
            TaskResult::Done(_) => false,
            TaskResult::NotDone(_) => !detached(index),
            TaskResult::Handled(..) => true,
        })?;
        self.take_end(at)
    }

    /// How the task of an activation ended, if it has.
    pub(super) fn take_end_of(&mut self, key: Key) -> Option<(u32, StartedTask, TaskResult<S>)> {
        let is_of = |index: &u32| self.started.get(index).is_some_and(|started| started.key == key);
        let at = self.ended.iter().position(|(index, _)| is_of(index))?;
        self.take_end(at)
    }

    /// Whether the end waits for tasks that are detached.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some() && !self.started.is_empty()
    }

    /// The task that ended first, which is over with that.
    pub(super) fn next_end(&mut self) -> Option<(u32, StartedTask, TaskResult<S>)> {
        self.take_end(0)
    }

    fn take_end(&mut self, at: usize) -> Option<(u32, StartedTask, TaskResult<S>)> {
        let (index, end) = self.ended.remove(at)?;
        let started = self.started.get(&index).copied()?;
        if !matches!(end, TaskResult::Handled(..)) {
            self.forget(index);
        }
        Some((index, started, end))
    }

    /// Notes that a task is over, or will not be waited for.
    pub(super) fn forget(&mut self, index: u32) {
        if let Some(started) = self.started.remove(&index) {
            self.normal -= usize::from(!started.detached);
        }
    }

    /// Drops the tasks that are not to go on.
    pub(super) fn drop_unless(&mut self, goes_on: impl Fn(StartedTask) -> bool) {
        let ended: HashSet<u32> = self.ended.iter().map(|(index, _)| *index).collect();
        let over =
            self.started.iter().filter(|(index, started)| !goes_on(**started) && !ended.contains(index));
        let over: HashSet<u32> = over.map(|(index, _)| *index).collect();
        if over.is_empty() {
            return;
        }
        over.into_iter().for_each(|index| self.forget(index));
        match self.running.take() {
            Some(running) => self.running = Some(self.those_started(running)),
            None => self.dropped = true,
        }
    }

    fn those_started(&self, running: FuturesUnordered<RunningTask<S>>) -> FuturesUnordered<RunningTask<S>> {
        running.into_iter().filter(|task| self.started.contains_key(&task.request.index)).collect()
    }

    /// Gives away the tasks that run, for something to be awaited beside them.
    pub(super) fn give_away(&mut self) -> Option<FuturesUnordered<RunningTask<S>>> {
        self.running.take_if(|running| !running.is_empty())
    }

    /// Takes them back, without those that were dropped meanwhile.
    pub(super) fn take_back(&mut self, mut running: FuturesUnordered<RunningTask<S>>) {
        if std::mem::take(&mut self.dropped) {
            running = self.those_started(running);
        }
        running.extend(self.running.take().into_iter().flatten());
        self.running = Some(running);
    }

    /// The result of a task that ended meanwhile, if there is one.
    pub(super) fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Option<EndedTask<S>>> {
        match &mut self.running {
            Some(running) => running.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }

    /// Notes why no further task starts; the first reason counts, but for a failure, which counts more than a
    /// wish to stop.
    pub(super) fn stop(&mut self, stop: Stop) {
        match (&self.stop, &stop) {
            (None | Some(Stop::Soft(_)), _) => self.stop = Some(stop),
            (Some(Stop::Left(_)), Stop::Failed(_)) => self.stop = Some(stop),
            _ => {}
        }
    }

    /// Notes an error that ends the run. It counts more than what a task failed with.
    pub(super) fn break_off(&mut self, error: Error) {
        if !matches!(self.stop, Some(Stop::Hard(_))) {
            self.stop = Some(Stop::Failed(error));
        }
    }
}

/// Takes down how tasks end.
pub(super) struct ResultLedger<'a, S: State>(&'a mut VecDeque<(u32, TaskResult<S>)>);

impl<S: State> Course<S> {
    pub(super) fn ends(&mut self) -> ResultLedger<'_, S> {
        ResultLedger(&mut self.ended)
    }
}

impl<S: State> Ledger<S> for ResultLedger<'_, S> {
    fn done(&mut self, index: u32, done: TaskOutput<S>) {
        self.0.push_back((index, TaskResult::Done(done)));
    }

    fn not_done(&mut self, index: u32, why: NoOutput) {
        self.0.push_back((index, TaskResult::NotDone(why)));
    }

    fn handled(&mut self, index: u32, handler: u32, failure: Arc<Failure>) {
        self.0.push_back((index, TaskResult::Handled(handler, failure)));
    }

    /// Events learn who handles a failure when the handler begins.
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
