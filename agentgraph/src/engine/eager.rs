//! The loop of a graph without supersteps: each result is merged and committed alone, and its successors
//! start at once.
//!
//! The unit is an *activation*: a node, the commit that made it, and its index among the activations of that
//! commit. Its task reads the state of that commit, also when it is called again after a kill. A superstep
//! treats its tasks together; this loop treats them one at a time. The code that judges, merges and stores a
//! result is the same.

mod commit;
mod course;
mod edit;
mod execute;
mod merge;
mod order;
mod plan;
mod wait;

use std::pin::pin;
use std::sync::Arc;

use crate::context::{ChildPause, TaskOrigin, TaskRequest};
use crate::engine::eager::course::{Course, StartedTask, Stop, TaskResult};
use crate::engine::executor::{NoOutput, bad_answer_to};
use crate::engine::flow::{Activation, Handler, Key, Phase};
use crate::engine::running_tasks::{EndedTask, RunningTasks};
use crate::engine::step_results::sessions_write;
use crate::engine::stored::{FAILED, OF_RUN, to_bytes};
use crate::engine::task_id::{StepPlace, nowhere};
use crate::engine::{Loop, Pause, STEPS_WITHOUT_YIELD, yield_now};
use crate::error::{Code, Error};
use crate::event::EventKind;
use crate::failure::Failure;
use crate::policy::Siblings;
use agentgraph_checkpoint::{PendingWrite, Source, TaskId};

impl Loop {
    /// Runs activation after activation until there is a reason to pause.
    pub(super) async fn activations(&mut self) -> Result<Pause, Error> {
        let mut course = Course::default();
        let mut running = RunningTasks::default();
        self.adopt().await?;
        let mut rounds: u64 = 0;
        loop {
            if self.position.eager.as_ref().is_some_and(|eager| eager.flow.normal > 0) {
                course.ending = None;
            }
            self.start(&mut course, &mut running).await;
            if self.runtime.shared.control.has_unstored() {
                self.store_once(&mut course, &mut running).await?;
            } else if let Some(ended) = self.next_end(&mut course) {
                self.merge_while_running(&mut course, &mut running, Some(ended)).await?;
                rounds += 1;
                if rounds.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
                if let Some(events) = &self.listeners.events {
                    events.room().await;
                }
            } else if self.joins_are_due() {
                self.merge_while_running(&mut course, &mut running, None).await?;
            } else if !matches!(course.stop, Some(Stop::Hard(_)))
                && (course.must_wait() || course.is_ending())
            {
                self.wait(&mut course, &mut running).await;
            } else if let Some(events) = self.listeners.events.as_ref().filter(|events| !events.has_room()) {
                // A slow reader delays the start of further tasks.
                events.room().await;
            } else if let Some(pause) = self.conclude(&mut course, &mut running).await? {
                return Ok(pause);
            }
        }
    }

    /// Merges an ended task, or the joins that are due, while other tasks continue. Runs inside those tasks
    /// store nothing on the checkpoint that is being replaced.
    async fn merge_while_running(
        &mut self,
        course: &mut Course,
        running: &mut RunningTasks,
        ended: Option<(u32, StartedTask, TaskResult)>,
    ) -> Result<(), Error> {
        let shared = (!running.is_empty()).then(|| Arc::clone(&self.runtime.shared));
        let (merged, ended) = {
            // Pinned here, since a function that pins its argument has room for it twice.
            let merged = pin!(async {
                // Awaited beside the tasks, not before: one of them may hold the lock while it stores.
                let _alone = match &shared {
                    Some(shared) => shared.lock_head().await,
                    None => None,
                };
                match ended {
                    Some((index, started, end)) => self.take_end(course, index, started, end).await,
                    None => self.merge_due_joins().await,
                }
            });
            running.beside(merged).await
        };
        self.take_ended(course, running, ended);
        merged
    }

    /// Handles the tasks that ended while something was awaited beside them.
    fn take_ended(&self, course: &mut Course, running: &mut RunningTasks, ended: Vec<EndedTask>) {
        course.settle(running);
        let executor = self.executor();
        for (request, result) in ended {
            if course.started(request.index).is_some() {
                executor.report(request, result, &mut Vec::new(), &mut course.ends());
            }
        }
    }

    async fn take_end(
        &mut self,
        course: &mut Course,
        index: u32,
        started: StartedTask,
        end: TaskResult,
    ) -> Result<(), Error> {
        let StartedTask { key, detached, .. } = started;
        if let TaskResult::Handled(handler, failure) = end {
            return self.hand_over(course, index, key, handler, failure).await;
        }
        self.leave(index);
        match end {
            TaskResult::Handled(..) => Ok(()),
            TaskResult::Done(done) => match self.merge_activation(key, done) {
                Ok(()) => {
                    if let Some(nest) = &self.runtime.shared.nest {
                        self.position.joins.note_stuck_inside(nest.take_stuck_of(index));
                    }
                    self.commit_merged(index).await
                }
                Err(error) if self.position.merging => Err(error),
                Err(error) => {
                    self.forget_calls_of_detached(index, detached);
                    self.fail(course, key, detached, error).await
                }
            },
            TaskResult::NotDone(why) => {
                self.forget_calls_of_detached(index, detached);
                self.take_not_done(course, key, detached, why).await
            }
        }
    }

    async fn take_not_done(
        &mut self,
        course: &mut Course,
        key: Key,
        detached: bool,
        why: NoOutput,
    ) -> Result<(), Error> {
        let node = self.activation(key).map_or(0, Activation::actor);
        match why {
            NoOutput::Waits(_) | NoOutput::Inside(ChildPause::Waits(..)) if detached => {
                let problem =
                    "it calls `interrupt`, which a detached node cannot do: no call waits for its answer";
                let error = Error::new(Code::NodeFailed, problem).at_node(self.position.graph.name(node));
                self.fail(course, key, detached, error).await
            }
            NoOutput::Waits(asks) => {
                self.hold(key, asks);
                Ok(())
            }
            NoOutput::Inside(ChildPause::Waits(asked, unreported)) => {
                self.report.unreported.extend(unreported);
                course.inside.insert(key, asked);
                self.set_phase(key, Phase::Waits);
                self.forget_error(key);
                Ok(())
            }
            NoOutput::Refused(refusal) => {
                let task = self.activation_id(key).unwrap_or(OF_RUN);
                self.take_answer_back(key, task, &refusal).await?;
                let error = bad_answer_to(task, &refusal).at_node(self.position.graph.name(node));
                self.fail(course, key, detached, error).await
            }
            NoOutput::Inside(ChildPause::Stopped(reason)) => {
                self.set_phase(key, Phase::Unfinished);
                course.stop(Stop::Soft(reason));
                Ok(())
            }
            NoOutput::Failed(error) => {
                self.fail(course, key, detached, error.at_node(self.position.graph.name(node))).await
            }
            // This applies to detached tasks too: the run itself cannot continue.
            NoOutput::Inside(ChildPause::Broken(error)) => {
                let error = error.at_node(self.position.graph.name(node));
                self.set_phase(key, Phase::Unfinished);
                course.failed.push((key, Arc::new(self.failure_of(node, &error))));
                course.break_off(error);
                if self.runtime.siblings == Siblings::Cancel {
                    course.forget_unless(|_| false);
                }
                Ok(())
            }
            NoOutput::Leaves(left) => {
                self.set_phase(key, Phase::Unfinished);
                let stop = match course.stop.take() {
                    Some(Stop::Left(_)) => {
                        let problem =
                            "two tasks left the graph with `Command::parent`: let one of them do it";
                        Stop::Failed(Error::new(Code::ParentCommand, problem))
                    }
                    Some(failed @ Stop::Failed(_)) => failed,
                    _ => Stop::Left(left),
                };
                course.stop = Some(stop);
                Ok(())
            }
        }
    }

    /// Handles a failed task. A detached task ends with its failure.
    async fn fail(
        &mut self,
        course: &mut Course,
        key: Key,
        detached: bool,
        error: Error,
    ) -> Result<(), Error> {
        if detached {
            tracing::warn!(target: "agentgraph", error = %error, "a detached task failed");
            return self.end_without_result(key).await;
        }
        self.set_phase(key, Phase::Unfinished);
        self.note_error(course, key, &error);
        course.stop(Stop::Failed(error));
        if self.runtime.siblings == Siblings::Cancel {
            course.forget_unless(|_| false);
        }
        Ok(())
    }

    /// Keeps the error of a task for the record.
    fn note_error(&mut self, course: &mut Course, key: Key, error: &Error) {
        let node = self.activation(key).map_or(0, Activation::actor);
        let failure = Arc::new(self.failure_of(node, error));
        course.failed.push((key, Arc::clone(&failure)));
        if error.code() == Code::BadAnswer {
            // Its question is open again.
            return;
        }
        if let Some(activation) = self.changed(key) {
            activation.error = Some(failure);
        }
    }

    fn forget_error(&mut self, key: Key) {
        if self.activation(key).is_some_and(|one| one.error.is_some())
            && let Some(activation) = self.changed(key)
        {
            activation.forget_error();
        }
    }

    /// Replaces a failed task by its handler. The failure is stored before the handler acts on it.
    async fn hand_over(
        &mut self,
        course: &mut Course,
        index: u32,
        key: Key,
        handler: u32,
        failure: Arc<Failure>,
    ) -> Result<(), Error> {
        let task = self.activation_id(key);
        if let Some(activation) = self.changed(key) {
            activation.handler = Some(Handler { node: handler, failure: Arc::clone(&failure) });
            activation.left = None;
            activation.error = None;
        }
        if let (Some(journal), Some(task)) = (&mut self.records.journal, task) {
            let mut writes = vec![PendingWrite { task, slot: FAILED, bytes: to_bytes(&*failure)? }];
            writes.extend(sessions_write(&self.runtime.shared.sessions)?);
            journal.put_writes(&writes).await?;
        }
        self.start_again(course, index, key).await;
        Ok(())
    }

    /// Sets the phase of an activation that is not tried again in this call.
    fn set_phase(&mut self, key: Key, phase: Phase) {
        if let Some(activation) = self.activation_mut(key) {
            activation.phase = phase;
        }
    }

    /// Frees the memories that a failed detached task has called, so that others may call them. Any other
    /// unfinished task continues its calls, in this run or a later one.
    fn forget_calls_of_detached(&self, index: u32, detached: bool) {
        if let Some(nest) = self.runtime.shared.nest.as_ref().filter(|_| detached) {
            nest.memories.forget(index);
        }
    }

    /// Reports that a task is over.
    fn leave(&self, index: u32) {
        self.runtime.shared.control.leave(index);
        if let Some(events) = &self.listeners.events {
            events.leave(index);
        }
        if let Some(nest) = self.runtime.shared.nest.as_ref() {
            nest.leave(index);
        }
    }

    async fn commit_merged(&mut self, index: u32) -> Result<(), Error> {
        self.position.merging = false;
        if let Some(nest) = &self.runtime.shared.nest {
            nest.memories.merge(index);
        }
        self.position.merged += 1;
        if self.records.trace.is_some() {
            self.close_trace()?;
        }
        if let Some(events) = self.listeners.events.as_ref().filter(|events| events.views().values) {
            let state = crate::extract::Snapshot::from(Arc::clone(&self.position.state));
            events.push(u64::from(index), EventKind::Values(state));
        }
        self.commit(Source::Loop, None).await
    }

    fn activation(&self, key: Key) -> Option<&Activation> {
        self.position.eager.as_ref()?.flow.open.get(&key)
    }

    fn activation_mut(&mut self, key: Key) -> Option<&mut Activation> {
        self.position.eager.as_mut()?.flow.open.get_mut(&key)
    }

    /// An activation to be changed, which the next record then contains.
    fn changed(&mut self, key: Key) -> Option<&mut Activation> {
        let flow = &mut self.position.eager.as_mut()?.flow;
        if flow.open.contains_key(&key) {
            flow.change(key);
        }
        flow.open.get_mut(&key)
    }

    fn open_keys(&self) -> Vec<Key> {
        self.position.eager.iter().flat_map(|eager| eager.flow.open.keys().copied()).collect()
    }

    /// The id of the task or handler that acts in an activation.
    fn activation_id(&self, key: Key) -> Option<TaskId> {
        let activation = self.activation(key)?;
        Some(crate::engine::flow::record::id_of(&self.position.graph, self.flow_place(), key, activation))
    }

    /// The origin of the task or handler that acts in an activation.
    fn origin_of(&self, key: Key, activation: &Activation) -> TaskOrigin {
        let place = match &self.records.journal {
            None => TaskOrigin::unstored(key.made),
            Some(journal) => journal.step_place().origin().at(key.made),
        };
        let from = if activation.handler.is_some() { activation.node } else { activation.from };
        place.led_by(from, key.index)
    }

    fn flow_place(&self) -> StepPlace<'_> {
        let nowhere = || nowhere(&self.runtime.shared, 0);
        self.records.journal.as_ref().map_or_else(nowhere, |journal| journal.step_place())
    }
}

/// The request of the n-th task that a call starts.
fn request(ordinal: u32, node: u32, handles: bool, origin: TaskOrigin) -> TaskRequest {
    TaskRequest { step: u64::from(ordinal), node, index: ordinal, attempt: 1, handles, origin }
}
