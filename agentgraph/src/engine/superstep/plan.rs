//! Planning a superstep: whether there is one, and which of its tasks run, since they are not finished,
//! waiting or skipped.

use std::task::Context;

use crate::context::TaskRequest;
use crate::engine::Loop;
use crate::engine::actors::{Handover, handled};
use crate::engine::executor::NoOutput;
use crate::engine::express::{Begun, Express};
use crate::engine::load::{finished_step, proposed, stuck_in};
use crate::engine::step_results::id_of;
use crate::engine::stored::memories_of;
use crate::engine::superstep::Planned;
use crate::engine::task_id::StepPlace;
use crate::engine::task_output::resolve;
use crate::error::Error;
use agentgraph_checkpoint::RunId;

impl Loop {
    /// Plans the next superstep, after all that go the express way.
    #[inline]
    pub(super) fn plan(
        &mut self,
        express: Option<&dyn Express>,
        cx: &mut Context<'_>,
    ) -> Result<Planned, Error> {
        if let Some(express) =
            express.filter(|_| !self.position.graph.is_edited() && self.has_only_new_tasks())
            && let Some(planned) = self.go_express(express, cx)?
        {
            return Ok(planned);
        }
        if let Some(pause) = self.boundary() {
            return Ok(Planned::Over(Box::new(pause)));
        }
        self.begin_step();
        if self.position.frontier.len() != 1 || !self.has_only_new_tasks() {
            return Ok(Planned::Several);
        }
        let (node, _) = self.position.frontier.task(0);
        Ok(Planned::Begun(Begun::Only(node, self.start_only(node, cx))))
    }

    /// Whether no task of the next superstep has remains of an earlier call or is skipped.
    #[inline]
    fn has_only_new_tasks(&self) -> bool {
        self.inheritance.left_over.is_empty() && self.buffers.ends.handled.is_empty() && !self.skips_some()
    }

    /// Applies the remains of earlier calls, and returns the tasks to run: those that are neither finished
    /// nor waiting for an answer. `None` means all tasks.
    pub(super) fn take_left_over(&mut self) -> Result<Option<Vec<u32>>, Error> {
        if self.inheritance.left_over.is_empty() {
            return Ok(None);
        }
        let mut left_over = std::mem::take(&mut self.inheritance.left_over);
        let ids = std::mem::take(&mut self.inheritance.ids);
        self.note_failure_of(&left_over);
        let mut to_run = Vec::with_capacity(self.position.frontier.len());
        for index in 0..self.position.frontier.len() {
            let id = ids.get(index).copied().or_else(|| self.task_id(index));
            let Some(left) = id.and_then(|id| left_over.remove(&id)) else {
                to_run.push(index as u32);
                continue;
            };
            let node = self.actors().node(index);
            let ends = &mut self.buffers.ends;
            if left.error.is_some() {
                ends.had_error.push(index as u32);
            }
            if let (Some(result), Some(journal)) = (&left.result, &self.records.journal) {
                let (step, edits) =
                    finished_step(&self.position.graph, journal.codec(), journal.thread(), result)?;
                let edits = proposed(&self.position.graph, journal.thread(), edits)?;
                ends.done[index] = Some(resolve(&self.position.graph, node, step, edits)?);
                ends.stored[index] = true;
                if let Some(memories) = journal.memories() {
                    memories.ended(index as u32, memories_of(result)?);
                }
                if let Some(nest) = &self.runtime.shared.nest {
                    let handles = handled(&ends.handled, index as u32).is_some();
                    nest.put_stuck(
                        (self.position.step, index as u32, handles),
                        stuck_in(journal.thread(), result)?,
                    );
                }
            } else if left.waits() {
                ends.not_done.push((index as u32, NoOutput::Waits(left.asks())));
                ends.stored[index] = true;
            } else {
                self.runtime.shared.control.recall(index as u32, left.asked(), left.once());
                to_run.push(index as u32);
            }
        }
        Ok(Some(to_run))
    }

    /// The nodes of the tasks that have not ended.
    pub(super) fn late(&self) -> Vec<u32> {
        let ends = &self.buffers.ends;
        let ended = |index: usize| {
            ends.done[index].is_some() || ends.not_done.iter().any(|(at, _)| *at as usize == index)
        };
        (0..self.position.frontier.len())
            .filter(|index| !ended(*index))
            .map(|index| self.actors().node(index))
            .collect()
    }

    /// Ends skipped tasks with the last outputs of their nodes, and returns the tasks to run.
    pub(super) fn take_skipped(&mut self, chosen: Option<Vec<u32>>) -> Result<Option<Vec<u32>>, Error> {
        self.buffers.skipped.clear();
        if !self.skips_some() {
            return Ok(chosen);
        }
        let mut to_run = Vec::new();
        for index in chosen.unwrap_or_else(|| (0..self.position.frontier.len() as u32).collect()) {
            let node = self.position.frontier.task(index as usize).0;
            let used_up = self.buffers.skipped.contains(&node);
            let skips = !used_up && handled(&self.buffers.ends.handled, index).is_none();
            let overlay = self.position.graph.overlay().filter(|_| skips);
            match overlay.is_some_and(|overlay| overlay.skips().contains(&node)) {
                true if self.skip(index, node)? => self.buffers.skipped.push(node),
                _ => to_run.push(index),
            }
        }
        Ok(Some(to_run))
    }

    /// Returns false if there is no output to use again: then the node runs.
    fn skip(&mut self, index: u32, node: u32) -> Result<bool, Error> {
        let Some(done) = self.output_of(node)? else { return Ok(false) };
        let request = TaskRequest { index, ..self.single_request(node) };
        self.executor().announce_skip(request, &done);
        let ends = &mut self.buffers.ends;
        ends.done[index as usize] = Some(done);
        ends.stored[index as usize] = true;
        Ok(true)
    }

    /// Replaces tasks that failed in an earlier run on this branch by their handlers; the ids of those tasks
    /// are derived from `parent`. A failed node that no longer has a handler runs again.
    pub(in crate::engine) fn adopt_handlers(&mut self, run: RunId, parent: u64, thread: Option<&str>) {
        let tasks = if self.inheritance.left_over.is_empty() { 0 } else { self.position.frontier.len() };
        for index in 0..tasks {
            let failed = self.position.frontier.task(index).0;
            let Some(handler) = self.position.graph.handler(failed) else {
                continue;
            };
            let handled = &self.buffers.ends.handled;
            let own = self.step_place();
            let place = StepPlace { run, parent, thread: thread.unwrap_or(own.thread), ..own };
            let task = id_of(&self.position.graph, place, &self.position.frontier, handled, index as u32);
            let left = self.inheritance.left_over.get_mut(&task);
            if let Some(failure) = left.and_then(|left| left.failure.take()) {
                let index = index as u32;
                self.buffers.ends.handled.push(Handover { index, handler, failure, stored: true });
            }
        }
    }
}
