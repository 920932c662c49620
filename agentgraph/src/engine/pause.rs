//! A superstep that cannot be committed: what its tasks leave behind, and what the caller is told.

use crate::checkpoint::PendingWrite;
use crate::context::Request;
use crate::engine::commit::Journal;
use crate::engine::ends::{result_write, sessions_write};
use crate::engine::execute::NotDone;
use crate::engine::host::TaskRunner;
use crate::engine::plan::{StepPlace, task_id};
use crate::engine::stored::{StoredAnswer, StoredRequest, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::run::{Interrupt, InterruptId};
use crate::state::State;

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// A superstep that cannot be committed: stores what its tasks left behind, then says why.
    pub(super) async fn pause(&mut self) -> Result<Pause, Error> {
        let mut ends = std::mem::take(&mut self.scratch.ends);
        ends.not_done.sort_by_key(|(index, _)| *index);
        let mut writes = Vec::new();
        let mut interrupts = Vec::new();
        let mut failed = None;
        let mut finished = false;
        if let Some(journal) = &self.journal {
            for (index, done) in ends.done.iter().enumerate().filter(|(index, _)| !ends.stored[*index]) {
                let Some(done) = done else { continue };
                writes.push(result_write(&self.core, journal, &self.frontier, index, done)?);
                finished = true;
            }
        }
        for (index, why) in ends.not_done {
            let index = index as usize;
            match why {
                NotDone::Waits(request) => {
                    if !ends.stored[index] {
                        writes.extend(self.request_write(index, &request)?);
                    }
                    interrupts.push(self.interrupt(index, request));
                }
                NotDone::Refused { n, error } => {
                    writes.extend(self.void_answer(index, n)?);
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

    pub(super) fn request_write(
        &self,
        index: usize,
        request: &Request,
    ) -> Result<Option<PendingWrite>, Error> {
        let Some(task) = self.task_id(index) else { return Ok(None) };
        let node = self.core.name(self.frontier.task(index).0).to_owned();
        let stored = StoredRequest { node, value: request.value.clone(), schema: request.schema.clone() };
        Ok(Some(PendingWrite { task, slot: 1 + 2 * request.n, bytes: to_bytes(&stored)? }))
    }

    pub(super) fn void_answer(&self, index: usize, n: u32) -> Result<Option<PendingWrite>, Error> {
        let Some(task) = self.task_id(index) else { return Ok(None) };
        Ok(Some(PendingWrite { task, slot: 2 + 2 * n, bytes: to_bytes(&StoredAnswer(None))? }))
    }

    pub(super) fn interrupt(&self, index: usize, request: Request) -> Interrupt {
        let nowhere = StepPlace { thread: "", run: self.shared.run, branch: 0, parent: 0 };
        let place = self.journal.as_ref().map_or(nowhere, Journal::step_place);
        let task = task_id(place, &self.frontier, index, &|node| self.core.name(node).to_owned());
        let node = self.core.name(self.frontier.task(index).0).to_owned();
        Interrupt::asked(InterruptId { task, n: request.n }, node, request)
    }
}
