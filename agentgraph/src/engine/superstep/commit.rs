//! A superstep that cannot be committed: the remains of its tasks, and the result for the caller.

use crate::context::ChildPause;
use crate::engine::actors::{Actors, Handover, handled};
use crate::engine::executor::{NoOutput, ParentExit, bad_answer_to};
use crate::engine::failures::{error_write, no_error};
use crate::engine::question_writes::{asks_writes, refusal_writes};
use crate::engine::step_results::{failure_write, id_of, result_write, sessions_write};
use crate::engine::{Loop, Pause};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::words::Interrupt;
use agentgraph_checkpoint::TaskId;

impl Loop {
    /// Stores the remains of a superstep that cannot be committed, then returns the reason.
    pub(super) async fn pause(&mut self) -> Result<Pause, Error> {
        // First: with `Durability::Exit` the checkpoint that the writes below belong to is not stored yet.
        self.end_waiting().await?;
        let mut ends = std::mem::take(&mut self.buffers.ends);
        ends.not_done.sort_by_key(|(index, _)| *index);
        if let Some(left) = take_left(&mut ends.not_done)? {
            return Ok(Pause::Left(left));
        }
        let mut writes = Vec::new();
        let mut interrupts = Vec::new();
        let mut failed = None;
        let mut broken = None;
        let mut stopped = None;
        let mut failures = Vec::new();
        let mut finished = false;
        if let Some(journal) = &self.records.journal {
            for handled in ends.handled.iter().filter(|handled| !handled.stored) {
                writes.push(failure_write(&self.position.graph, journal, &self.position.frontier, handled)?);
            }
            for (index, done) in ends.done.iter().enumerate().filter(|(index, _)| !ends.stored[*index]) {
                let Some(done) = done else { continue };
                let task = self.actor_id_in(&ends.handled, index);
                let node = self.position.graph.name(self.node_at(&ends.handled, index));
                let handles = handled(&ends.handled, index as u32).is_some();
                let stuck = self.runtime.shared.stuck_inside(index as u32, handles);
                let write = result_write(&self.position.graph, journal, (task, index as u32), done, stuck);
                writes.push(write.map_err(|error| error.at_node(node))?);
                finished = true;
            }
        }
        for (index, why) in ends.not_done {
            let index = index as usize;
            let is_over = ends.had_error.contains(&(index as u32)) && !why.is_failure();
            if is_over && let Some(task) = self.stored_id(&ends.handled, index) {
                writes.push(no_error(task));
            }
            match why {
                NoOutput::Waits(asks) => {
                    let (task, node) =
                        (self.actor_id_in(&ends.handled, index), self.actor_name(&ends.handled, index));
                    if self.records.journal.is_some() && !ends.stored[index] {
                        writes.extend(asks_writes(task, &node, &asks, None)?);
                    }
                    let asked = |request| Interrupt::of_request(task, node.clone(), request);
                    interrupts.extend(asks.requests.into_iter().map(asked));
                }
                NoOutput::Refused(refusal) => {
                    let (task, node) =
                        (self.actor_id_in(&ends.handled, index), self.actor_name(&ends.handled, index));
                    if self.records.journal.is_some() {
                        writes.extend(refusal_writes(task, &node, &refusal, None)?);
                    }
                    let refused = bad_answer_to(task, &refusal).at_node(&node);
                    failures.push(self.failure_at(&ends.handled, index, &refused));
                    failed.get_or_insert(refused);
                }
                NoOutput::Inside(ChildPause::Waits(asked, unreported)) => {
                    interrupts.extend(asked);
                    self.report.unreported.extend(unreported);
                }
                NoOutput::Inside(ChildPause::Stopped(reason)) => {
                    stopped.get_or_insert(reason);
                }
                NoOutput::Failed(error) => {
                    let error = error.at_node(self.position.graph.name(self.node_at(&ends.handled, index)));
                    let failure = self.failure_at(&ends.handled, index, &error);
                    if let Some(task) = self.stored_id(&ends.handled, index) {
                        writes.push(error_write(task, &failure)?);
                    }
                    failures.push(failure);
                    failed.get_or_insert(error);
                }
                NoOutput::Inside(ChildPause::Broken(error)) => {
                    let error = error.at_node(self.position.graph.name(self.node_at(&ends.handled, index)));
                    failures.push(self.failure_at(&ends.handled, index, &error));
                    broken.get_or_insert(error);
                }
                NoOutput::Leaves(_) => {}
            }
        }
        if finished {
            writes.extend(sessions_write(&self.runtime.shared.sessions)?);
        }
        if let Some(journal) = &mut self.records.journal {
            journal.put_writes(&writes).await?;
        }
        // An error that ends the run counts more than the failure of a node.
        match (broken.or(failed), stopped) {
            (Some(error), _) => Err(error.with_failures(failures)),
            (None, Some(reason)) if interrupts.is_empty() => Ok(Pause::Stopped(reason)),
            (None, _) => Ok(Pause::Interrupted(interrupts)),
        }
    }

    fn actor_id_in(&self, handled: &[Handover], index: usize) -> TaskId {
        id_of(&self.position.graph, self.step_place(), &self.position.frontier, handled, index as u32)
    }

    /// The id of the task or handler that acts at `index`, if the run has a journal.
    fn stored_id(&self, handled: &[Handover], index: usize) -> Option<TaskId> {
        self.records.journal.as_ref().map(|_| self.actor_id_in(handled, index))
    }

    fn failure_at(&self, handled: &[Handover], index: usize, error: &Error) -> Failure {
        self.failure_of(self.node_at(handled, index), error)
    }

    fn actor_name(&self, handled: &[Handover], index: usize) -> String {
        self.position.graph.name(self.node_at(handled, index)).to_owned()
    }

    fn node_at(&self, handled: &[Handover], index: usize) -> u32 {
        Actors { frontier: &self.position.frontier, handled }.node(index)
    }
}

/// The command that leaves the graph, if no other task failed. It counts more than open questions: this run
/// is not continued.
fn take_left(not_done: &mut Vec<(u32, NoOutput)>) -> Result<Option<ParentExit>, Error> {
    if not_done.iter().any(|(_, why)| why.is_failure()) {
        return Ok(None);
    }
    let mut leaving = not_done.extract_if(.., |(_, why)| matches!(why, NoOutput::Leaves(_)));
    let Some((_, NoOutput::Leaves(left))) = leaving.next() else { return Ok(None) };
    if leaving.next().is_none() {
        return Ok(Some(left));
    }
    let problem = "two tasks of one superstep left the graph with `Command::parent`: let one of them do it";
    Err(Error::new(Code::ParentCommand, problem))
}
