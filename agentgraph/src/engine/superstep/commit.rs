//! A superstep that cannot be committed: the remains of its tasks, and the result for the caller.

use crate::context::ChildPause;
use crate::engine::actors::handled;
use crate::engine::executor::{NoOutput, ParentExit, bad_answer_to};
use crate::engine::halt::Cutoff;
use crate::engine::question_writes::{asks_writes, refusal_writes};
use crate::engine::step_results::{failure_write, result_write, sessions_write};
use crate::engine::stored::{error_write, no_error};
use crate::engine::{Loop, Pause, cut_off};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::words::{Interrupt, StopReason};
use agentgraph_checkpoint::PendingWrite;

/// What the tasks of a superstep leave that cannot be committed.
#[derive(Default)]
struct Remains {
    writes: Vec<PendingWrite>,
    interrupts: Vec<Interrupt>,
    failures: Vec<Failure>,
    /// The first failure of a node.
    failed: Option<Error>,
    /// The first error that ends the run. It counts more than the failure of a node.
    broken: Option<Error>,
    /// The first stop of a run inside a task.
    stopped: Option<StopReason>,
}

impl Loop {
    /// Stores the remains of a superstep that cannot be committed, then returns the reason.
    pub(super) async fn pause(&mut self, cut: Option<Cutoff>) -> Result<Pause, Error> {
        let late = cut.map(|cut| (cut, self.late()));
        let pause = self.leave_open().await?;
        match late {
            None => Ok(pause),
            Some((cut, late)) => cut_off(cut, late.iter().map(|node| self.position.graph.name(*node))),
        }
    }

    async fn leave_open(&mut self) -> Result<Pause, Error> {
        // First: with `Durability::Exit` the checkpoint that the writes below belong to is not stored yet.
        self.end_waiting().await?;
        let mut not_done = std::mem::take(&mut self.buffers.ends.not_done);
        not_done.sort_by_key(|(index, _)| *index);
        if let Some(left) = take_left(&mut not_done)? {
            return Ok(Pause::Left(left));
        }
        let mut remains = Remains { writes: self.writes_of_ended()?, ..Remains::default() };
        for (index, why) in not_done {
            self.leave_task(index as usize, why, &mut remains)?;
        }
        if let Some(journal) = &mut self.records.journal {
            journal.put_writes(&remains.writes).await?;
        }
        remains.into_pause()
    }

    /// The records of tasks that ended or failed and are not stored yet.
    fn writes_of_ended(&self) -> Result<Vec<PendingWrite>, Error> {
        let mut writes = Vec::new();
        let Some(journal) = &self.records.journal else { return Ok(writes) };
        let (graph, frontier, ends) = (&self.position.graph, &self.position.frontier, &self.buffers.ends);
        for handled in ends.handled.iter().filter(|handled| !handled.stored) {
            writes.push(failure_write(graph, journal, frontier, handled)?);
        }
        let mut finished = false;
        for (index, done) in ends.done.iter().enumerate().filter(|(index, _)| !ends.stored[*index]) {
            let Some(done) = done else { continue };
            let handles = handled(&ends.handled, index as u32).is_some();
            let stuck = self.runtime.shared.stuck_inside(index as u32, handles);
            let write = result_write(graph, journal, (self.actor_id(index), index as u32), done, stuck);
            writes.push(write.map_err(|error| error.at_node(graph.name(self.actors().node(index))))?);
            finished = true;
        }
        if finished {
            writes.extend(sessions_write(&self.runtime.shared.sessions)?);
        }
        Ok(writes)
    }

    /// Adds what a task leaves that is not done.
    fn leave_task(&mut self, index: usize, why: NoOutput, remains: &mut Remains) -> Result<(), Error> {
        let task = self.actor_id(index);
        let actor = self.actors().node(index);
        let node = self.position.graph.name(actor);
        let is_stored = self.records.journal.is_some();
        let ends = &self.buffers.ends;
        if is_stored && ends.had_error.contains(&(index as u32)) && !why.is_failure() {
            remains.writes.push(no_error(task));
        }
        match why {
            NoOutput::Waits(asks) => {
                if is_stored && !ends.stored[index] {
                    remains.writes.extend(asks_writes(task, node, &asks, None)?);
                }
                if remains.interrupts.is_empty() {
                    // Mostly there is one, and a vector that grows would make room for four.
                    remains.interrupts.reserve_exact(asks.requests.len());
                }
                let asked = |request| Interrupt::of_request(task, node.to_owned(), request);
                remains.interrupts.extend(asks.requests.into_iter().map(asked));
            }
            NoOutput::Refused(refusal) => {
                if is_stored {
                    remains.writes.extend(refusal_writes(task, node, &refusal, None)?);
                }
                let refused = bad_answer_to(task, &refusal).at_node(node);
                remains.failures.push(self.failure_of(actor, &refused));
                remains.failed.get_or_insert(refused);
            }
            NoOutput::Inside(ChildPause::Waits(asked, unreported)) => {
                remains.interrupts.extend(asked);
                self.report.unreported.extend(unreported);
            }
            NoOutput::Inside(ChildPause::Stopped(reason)) => {
                remains.stopped.get_or_insert(reason);
            }
            NoOutput::Failed(error) => {
                let error = error.at_node(node);
                let failure = self.failure_of(actor, &error);
                if is_stored {
                    remains.writes.push(error_write(task, &failure)?);
                }
                remains.failures.push(failure);
                remains.failed.get_or_insert(error);
            }
            NoOutput::Inside(ChildPause::Broken(error)) => {
                let error = error.at_node(node);
                remains.failures.push(self.failure_of(actor, &error));
                remains.broken.get_or_insert(error);
            }
            NoOutput::Leaves(_) => {}
        }
        Ok(())
    }
}

impl Remains {
    fn into_pause(self) -> Result<Pause, Error> {
        match (self.broken.or(self.failed), self.stopped) {
            (Some(error), _) => Err(error.with_failures(self.failures)),
            (None, Some(reason)) if self.interrupts.is_empty() => Ok(Pause::Stopped(reason)),
            (None, _) => Ok(Pause::Interrupted(self.interrupts)),
        }
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
