//! A superstep that cannot be committed: what its tasks leave behind, and what the caller is told.

use crate::checkpoint::PendingWrite;
use crate::context::{Request, TaskId};
use crate::engine::ends::{failure_write, id_of, result_write, sessions_write};
use crate::engine::execute::NotDone;
use crate::engine::host::TaskRunner;
use crate::engine::plan::{Actors, Handled};
use crate::engine::stored::{StoredAnswer, StoredRequest, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::run::{Interrupt, InterruptId};
use crate::state::State;

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// A superstep that cannot be committed: stores what its tasks left behind, then says why.
    pub(super) async fn pause(&mut self) -> Result<Pause, Error> {
        self.end_waiting().await?;
        let mut ends = std::mem::take(&mut self.scratch.ends);
        ends.not_done.sort_by_key(|(index, _)| *index);
        let mut writes = Vec::new();
        let mut interrupts = Vec::new();
        let mut failed = None;
        let mut finished = false;
        if let Some(journal) = &self.journal {
            for handled in ends.handled.iter().filter(|handled| !handled.stored) {
                writes.push(failure_write(&self.core, journal, &self.frontier, handled)?);
            }
            for (index, done) in ends.done.iter().enumerate().filter(|(index, _)| !ends.stored[*index]) {
                let Some(done) = done else { continue };
                let task = self.acting_among(&ends.handled, index);
                writes.push(result_write(&self.core, journal, task, done)?);
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
                NotDone::Refused { n, error } => {
                    writes.extend(self.void_answer(&ends.handled, index, n)?);
                    failed.get_or_insert(error);
                }
                NotDone::Failed(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        if finished {
            writes.extend(sessions_write(&self.shared.sessions)?);
        }
        if let Some(journal) = &mut self.journal {
            journal.put_writes(&writes).await?;
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(Pause::Interrupted(interrupts)),
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
        let stored = StoredRequest { node, value: request.value.clone(), schema: request.schema.clone() };
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
        let node = Actors { frontier: &self.frontier, handled }.node(index);
        self.core.name(node).to_owned()
    }
}
