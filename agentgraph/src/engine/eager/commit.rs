//! The end of an eager call: its result, and what it leaves behind once no task that it waits for runs.

use std::collections::HashSet;

use crate::context::{NewQuestions, Refusal};
use crate::engine::eager::course::{Course, Stop};
use crate::engine::flow::{Activation, Key, Phase};
use crate::engine::question_writes::refusal_writes;
use crate::engine::running_tasks::RunningTasks;
use crate::engine::stored::{StoredAnswer, StoredRequest, error_write, no_error, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::failure::Failure;
use crate::words::{Interrupt, InterruptKind, StopReason, StoredStop};
use agentgraph_checkpoint::{PendingWrite, Source, TaskId};

impl Loop {
    /// Ends the call and returns its result; `None` if the call continues after all.
    pub(super) async fn conclude(
        &mut self,
        course: &mut Course,
        running: &mut RunningTasks,
    ) -> Result<Option<Pause>, Error> {
        // Tasks are dropped before anything is stored, since they may occupy what a store waits for.
        match course.stop.take() {
            Some(Stop::Failed(error)) => {
                course.forget_unless(|_| false);
                course.settle(running);
                self.store_open_questions().await?;
                return Err(error.with_failures(self.failures(course)));
            }
            Some(Stop::Left(left)) => return Ok(Some(Pause::Left(left))),
            Some(Stop::Hard(reason)) => {
                course.forget_unless(|_| false);
                course.settle(running);
                self.store_open_questions().await?;
                return Ok(Some(Pause::Stopped(reason)));
            }
            Some(Stop::Soft(reason)) if self.could_continue() => {
                course.forget_unless(|_| false);
                course.settle(running);
                return self.stopped(reason).await.map(Some);
            }
            // A soft stop that has held nothing back does not count: the call ends as it would without it.
            Some(Stop::Soft(_)) | None => {}
        }
        if self.position.eager.as_ref().is_some_and(|eager| eager.flow.normal > 0) {
            course.forget_unless(|_| false);
            course.settle(running);
            self.interrupted(course).await.map(Some)
        } else {
            self.end(course, running).await
        }
    }

    /// Whether an activation that is not detached could continue without an answer from the caller.
    fn could_continue(&self) -> bool {
        let open = self.position.eager.iter().flat_map(|eager| eager.flow.open.values());
        open.filter(|one| !self.position.graph.is_detached(one.node)).any(|one| one.phase != Phase::Waits)
    }

    async fn stopped(&mut self, reason: StopReason) -> Result<Pause, Error> {
        self.store_open_questions().await?;
        match (reason, self.position.graph.limit_node()) {
            (StopReason::Limit, Some(node)) => Box::pin(self.beyond_limit(node)).await,
            _ => Ok(Pause::Stopped(reason)),
        }
    }

    async fn interrupted(&mut self, course: &mut Course) -> Result<Pause, Error> {
        self.store_open_questions().await?;
        let (mut interrupts, mut fixed): (Vec<Interrupt>, Vec<Interrupt>) = Default::default();
        for key in self.open_keys() {
            let Some(activation) = self.activation(key) else { continue };
            if let Some(asked) = course.inside.remove(&key) {
                interrupts.extend(asked);
            } else if let Some(left) = activation.left.as_ref().filter(|left| left.waits()) {
                let Some(task) = self.activation_id(key) else { continue };
                let node = self.position.graph.name(activation.actor());
                let asked = |request| Interrupt::of_request(task, node.to_owned(), request);
                interrupts.extend(left.asks().requests.into_iter().map(asked));
            } else if let Some(stop) = self.fixed(activation).filter(|stop| !fixed.contains(stop)) {
                fixed.push(stop);
            }
        }
        let stops = StoredStop::of_own_graph(&fixed);
        interrupts.extend(fixed);
        if !stops.is_empty() {
            self.store_reported(stops).await?;
        }
        Ok(Pause::Interrupted(interrupts))
    }

    /// The static interrupt that blocks an activation.
    fn fixed(&self, activation: &Activation) -> Option<Interrupt> {
        if activation.phase != Phase::Waits || activation.told {
            return None;
        }
        let name = |node: u32| self.position.graph.name(node).to_owned();
        Some(match activation.after {
            Some(after) => Interrupt::fixed(name(after), InterruptKind::After),
            None => Interrupt::fixed(name(activation.node), InterruptKind::Before),
        })
    }

    /// Ends a run in which only detached tasks are left.
    async fn end(&mut self, course: &mut Course, running: &mut RunningTasks) -> Result<Option<Pause>, Error> {
        let begins = course.ending.is_none();
        let mut ending = course.ending.take().unwrap_or_default();
        if begins {
            for limit in &self.position.graph.detached.awaited {
                // Starts the clocks: detached tasks are awaited from the end of the run on.
                ending.is_over(*limit, &self.runtime.shared.services);
            }
        }
        course.forget_unless(|started| started.awaited.is_some());
        course.settle(running);
        course.ending = Some(ending);
        // The end of the run changes which queued activations are worth waiting for, so they are looked at
        // once more.
        if course.is_ending()
            || (begins && self.position.eager.as_ref().is_some_and(|eager| !eager.flow.ready.is_empty()))
        {
            return Ok(None);
        }
        self.cut_detached().await?;
        Ok(Some(Pause::Finished))
    }

    /// Drops the detached tasks that are still open.
    async fn cut_detached(&mut self) -> Result<(), Error> {
        let Some(eager) = &mut self.position.eager else { return Ok(()) };
        let open: Vec<Key> = eager.flow.open.keys().copied().collect();
        for key in &open {
            if let Some(activation) = eager.flow.open.get(key) {
                self.report.cancelled.push(self.position.graph.name(activation.node).to_owned());
            }
            eager.flow.end(*key, true, false);
        }
        eager.flow.ready.clear();
        if open.is_empty() { Ok(()) } else { self.commit_unmerged(Source::Loop).await }
    }

    /// Commits the open activations without a merge.
    pub(super) async fn commit_unmerged(&mut self, source: Source) -> Result<(), Error> {
        self.begin_record();
        let commit = self.upcoming();
        if let Some(eager) = &mut self.position.eager {
            eager.flow.pass(commit);
        }
        self.commit(source, None).await
    }

    /// Stores the questions and voided answers of open tasks if no record contains them yet, and their open
    /// questions in any case.
    async fn store_open_questions(&mut self) -> Result<(), Error> {
        self.end_waiting().await?;
        let Some(eager) = &self.position.eager else { return Ok(()) };
        let unsaved: HashSet<Key> = eager.flow.unsaved.begun.iter().copied().collect();
        let mut writes = self.unsaved_errors(&unsaved)?;
        writes.extend(self.asked_in_flow(&unsaved)?);
        match &mut self.records.journal {
            Some(journal) if !writes.is_empty() => journal.put_writes(&writes).await,
            _ => Ok(()),
        }
    }

    /// The errors of open tasks, and the notes that an error is over, if no record contains them yet.
    fn unsaved_errors(&self, unsaved: &HashSet<Key>) -> Result<Vec<PendingWrite>, Error> {
        let mut writes = Vec::new();
        for (key, activation) in self.position.eager.iter().flat_map(|eager| &eager.flow.open) {
            let Some(task) = self.activation_id(*key).filter(|_| unsaved.contains(key)) else { continue };
            match &activation.error {
                Some(failure) => writes.push(error_write(task, failure)?),
                None if activation.error_is_over => writes.push(no_error(task)),
                None => {}
            }
        }
        Ok(writes)
    }

    /// The failures of tasks in this call, in the order in which their activations were made.
    fn failures(&self, course: &mut Course) -> Vec<Failure> {
        course.failed.sort_unstable_by_key(|(key, _)| *key);
        course.failed.drain(..).map(|(_, failure)| Failure::clone(&failure)).collect()
    }

    /// The open questions of open tasks as pending writes, since a store finds waiting threads by these. For
    /// `unsaved` activations, all their questions.
    pub(in crate::engine) fn asked_in_flow(
        &self,
        unsaved: &HashSet<Key>,
    ) -> Result<Vec<PendingWrite>, Error> {
        let mut writes = Vec::new();
        for (key, activation) in self.position.eager.iter().flat_map(|eager| &eager.flow.open) {
            let (Some(left), Some(task)) = (&activation.left, self.activation_id(*key)) else { continue };
            let open: Vec<u32> = left.open().map(|(n, _)| *n).collect();
            let unsaved = unsaved.contains(key);
            for (n, request) in left.requests.iter().filter(|(n, _)| unsaved || open.contains(n)) {
                let slot = PendingWrite::request_slot(*n);
                writes.push(PendingWrite { task, slot, bytes: to_bytes(request)? });
                // A store takes a request for open unless an answer or a void is stored beside it.
                let answer = left.answers.get(n).map(|answer| StoredAnswer::Given(answer.clone()));
                let answer = answer.or_else(|| left.voided.contains(n).then_some(StoredAnswer::Voided));
                if let Some(answer) = answer {
                    writes.push(answer.write(task, *n)?);
                }
            }
        }
        Ok(writes)
    }

    /// Records the questions of a task, which then waits, and the answers that they void.
    pub(super) fn hold(&mut self, key: Key, asks: NewQuestions) {
        let actor = self.activation(key).map_or(0, Activation::actor);
        let node = self.position.graph.name(actor).to_owned();
        let Some(activation) = self.changed(key) else { return };
        let left = activation.remains_mut();
        for request in asks.requests {
            left.request(request.n, StoredRequest::new(node.clone(), request));
        }
        for n in asks.voided {
            left.take(n, StoredAnswer::Voided);
        }
        activation.phase = Phase::Waits;
        activation.forget_error();
    }

    /// Takes back an answer that its task could not read, so that the interrupt stays open.
    pub(super) async fn take_answer_back(
        &mut self,
        key: Key,
        task: TaskId,
        refusal: &Refusal,
    ) -> Result<(), Error> {
        let actor = self.activation(key).map_or(0, Activation::actor);
        let node = self.position.graph.name(actor).to_owned();
        let Some(activation) = self.changed(key) else { return Ok(()) };
        let left = activation.remains_mut();
        if let Some(asked) = &refusal.asked {
            left.request(refusal.n, StoredRequest::new(node.clone(), asked.clone()));
        }
        left.take(refusal.n, StoredAnswer::Refused);
        match &mut self.records.journal {
            Some(journal) => journal.put_writes(&refusal_writes(task, &node, refusal, None)?).await,
            None => Ok(()),
        }
    }
}
