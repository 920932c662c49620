//! A superstep that cannot be committed: what its tasks leave behind, and what the caller is told.

use crate::checkpoint::PendingWrite;
use crate::context::{Inside, Request, TaskId};
use crate::engine::ends::{failure_write, id_of, result_write, sessions_write};
use crate::engine::execute::{Left, NotDone, bad_answer_to};
use crate::engine::host::TaskRunner;
use crate::engine::plan::{Actors, Handled};
use crate::engine::stored::{StoredAnswer, StoredRequest, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::{Code, Error};
use crate::run::{Interrupt, InterruptId};
use crate::state::State;

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// A superstep that cannot be committed: stores what its tasks left behind, then says why.
    pub(super) async fn pause(&mut self) -> Result<Pause, Error> {
        self.end_waiting().await?;
        let mut ends = std::mem::take(&mut self.scratch.ends);
        ends.not_done.sort_by_key(|(index, _)| *index);
        if let Some(left) = take_left(&mut ends.not_done)? {
            return Ok(Pause::Left(left));
        }
        let mut writes = Vec::new();
        let mut interrupts = Vec::new();
        let (mut failed, mut stopped) = (None, None);
        let mut finished = false;
        if let Some(journal) = &self.journal {
            for handled in ends.handled.iter().filter(|handled| !handled.stored) {
                writes.push(failure_write(&self.core, journal, &self.frontier, handled)?);
            }
            for (index, done) in ends.done.iter().enumerate().filter(|(index, _)| !ends.stored[*index]) {
                let Some(done) = done else { continue };
                let task = self.acting_among(&ends.handled, index);
                let node = self.core.name(self.node_at(&ends.handled, index));
                let write = result_write(&self.core, journal, task, done);
                writes.push(write.map_err(|error| error.at_node(node))?);
                finished = true;
            }
        }
        for (index, why) in ends.not_done {
            let index = index as usize;
            match why {
                NotDone::Waits(request) => {
                    if !ends.stored[index] {
                        writes.extend(self.request_write(&ends.handled, index, &request)?);
                    }
                    interrupts.push(self.interrupt(&ends.handled, index, request));
                }
                NotDone::Refused { n, problem } => {
                    writes.extend(self.void_answer(&ends.handled, index, n)?);
                    let refused = bad_answer_to(self.acting_among(&ends.handled, index), n, &problem);
                    failed.get_or_insert(refused.at_node(&self.actor_name(&ends.handled, index)));
                }
                NotDone::Inside(Inside::Waits(asked, untold)) => {
                    interrupts.extend(asked);
                    self.scratch.untold.extend(untold);
                }
                NotDone::Inside(Inside::Stopped(reason)) => {
                    stopped.get_or_insert(reason);
                }
                NotDone::Failed(error) | NotDone::Inside(Inside::Broken(error)) => {
                    failed.get_or_insert_with(|| {
                        error.at_node(self.core.name(self.node_at(&ends.handled, index)))
                    });
                }
                NotDone::Leaves(_) => {}
            }
        }
        if finished {
            writes.extend(sessions_write(&self.shared.sessions)?);
        }
        if let Some(journal) = &mut self.journal {
            journal.put_writes(&writes).await?;
        }
        match (failed, stopped) {
            (Some(error), _) => Err(error),
            (None, Some(reason)) if interrupts.is_empty() => Ok(Pause::Stopped(reason)),
            (None, _) => Ok(Pause::Interrupted(interrupts)),
        }
    }

    fn request_write(
        &self,
        handled: &[Handled],
        index: usize,
        request: &Request,
    ) -> Result<Option<PendingWrite>, Error> {
        if self.journal.is_none() {
            return Ok(None);
        }
        let node = self.actor_name(handled, index);
        let stored = StoredRequest::new(node, request.value.clone(), request.schema.clone());
        let (task, slot) = (self.acting_among(handled, index), 1 + 2 * request.n);
        Ok(Some(PendingWrite { task, slot, bytes: to_bytes(&stored)? }))
    }

    fn void_answer(&self, handled: &[Handled], index: usize, n: u32) -> Result<Option<PendingWrite>, Error> {
        if self.journal.is_none() {
            return Ok(None);
        }
        let (task, slot) = (self.acting_among(handled, index), 2 + 2 * n);
        Ok(Some(PendingWrite { task, slot, bytes: to_bytes(&StoredAnswer(None))? }))
    }

    fn interrupt(&self, handled: &[Handled], index: usize, request: Request) -> Interrupt {
        let task = self.acting_among(handled, index);
        Interrupt::asked(InterruptId { task, n: request.n }, self.actor_name(handled, index), request)
    }

    fn acting_among(&self, handled: &[Handled], index: usize) -> TaskId {
        id_of(&self.core, self.step_place(), &self.frontier, handled, index as u32)
    }

    fn actor_name(&self, handled: &[Handled], index: usize) -> String {
        self.core.name(self.node_at(handled, index)).to_owned()
    }

    fn node_at(&self, handled: &[Handled], index: usize) -> u32 {
        Actors { frontier: &self.frontier, handled }.node(index)
    }
}

/// The command that leaves the graph, if all others did not fail. It counts more than what they ask: nobody will go on here.
fn take_left(not_done: &mut Vec<(u32, NotDone)>) -> Result<Option<Left>, Error> {
    let fails = |why: &NotDone| {
        matches!(why, NotDone::Failed(_) | NotDone::Refused { .. } | NotDone::Inside(Inside::Broken(_)))
    };
    if not_done.iter().any(|(_, why)| fails(why)) {
        return Ok(None);
    }
    let mut leaving = not_done.extract_if(.., |(_, why)| matches!(why, NotDone::Leaves(_)));
    let Some((_, NotDone::Leaves(left))) = leaving.next() else { return Ok(None) };
    if leaving.next().is_none() {
        return Ok(Some(left));
    }
    let problem = "two tasks of one superstep left the graph with `Command::parent`: let one of them do it";
    Err(Error::new(Code::ParentCommand, problem))
}
