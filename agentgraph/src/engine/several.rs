//! A superstep of several tasks, or one that goes on where an earlier call stopped.

use std::sync::Arc;

use crate::context::TaskRequest;
use crate::engine::done::resolve;
use crate::engine::ends::{SuperstepLedger, id_of};
use crate::engine::execute::{Ledger, NotDone, ToRun};
use crate::engine::host::TaskRunner;
use crate::engine::journal::Journal;
use crate::engine::lifetimes::{begin_merge, writes_ephemeral};
use crate::engine::load::{finished_step, proposed, stuck_in};
use crate::engine::merge::Merge;
use crate::engine::plan::{Actors, Handled, StepPlace, handled};
use crate::engine::recorder::Recorder;
use crate::engine::stored::memories_of;
use crate::engine::{Loop, Pause, cut_off, now, nowhere};
use crate::error::Error;
use crate::state::State;
use agentgraph_checkpoint::RunId;

/// The last state, while a merge may yet fail.
pub(super) enum BeforeMerge<S> {
    /// It is still there then.
    Same,
    Kept(Arc<S>),
    /// It is lost then; a store has it.
    Gone,
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// A superstep of several tasks, or one that goes on where an earlier call stopped.
    pub(super) async fn many(&mut self) -> Result<Option<Pause>, Error> {
        self.buffers.ends.begin(self.position.frontier.len());
        let chosen = self.take_left_over()?;
        let chosen = self.take_skipped(chosen)?;
        let mut ends = std::mem::take(&mut self.buffers.ends);
        let mut journal = self.records.journal.take();
        let before: Vec<Handled> = ends.handled.iter().map(Handled::copy).collect();
        let (step, frontier) = (self.position.step, &self.position.frontier);
        let count = chosen.as_ref().map_or(frontier.len(), Vec::len);
        let tasks = (0..count).map(|at| {
            let index = chosen.as_ref().map_or(at as u32, |chosen| chosen[at]);
            let (node, input) = frontier.task(index as usize);
            let handled = handled(&before, index);
            let (node, handles) = handled.map_or((node, false), |handled| (handled.handler, true));
            let request = TaskRequest { step, node, index, attempt: 1, handles };
            ToRun { request, input, failure: handled.map(|handled| &handled.failure) }
        });
        let (core, shared, nowhere) =
            (&self.position.graph, &*self.runtime.shared, nowhere(&self.runtime.shared, step));
        let mut ledger =
            SuperstepLedger { core, frontier, journal: journal.as_mut(), ends: &mut ends, shared, nowhere };
        ledger.store().await?;
        let mut halt = self.listeners.halt.take();
        let cut = self.executor().many(tasks, &mut ledger, halt.as_deref_mut()).await;
        self.listeners.halt = halt;
        self.records.journal = journal;
        self.buffers.ends = ends;
        let cut = cut?;
        if cut.is_none() && self.buffers.ends.not_done.is_empty() {
            self.merge_many()?;
            return Ok(None);
        }
        let late = cut.map(|cut| (cut, self.late()));
        let pause = Box::pin(self.pause()).await?;
        match late {
            None => Ok(Some(pause)),
            Some((cut, late)) => {
                cut_off(cut, late.iter().map(|node| self.position.graph.name(*node))).map(Some)
            }
        }
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

    /// Takes over what the tasks left behind, and gives those that are to be run: not those that are
    /// finished, nor those that still wait for an answer. `None` if that is all of them.
    pub(super) fn take_left_over(&mut self) -> Result<Option<Vec<u32>>, Error> {
        if self.inheritance.left_over.is_empty() {
            return Ok(None);
        }
        let mut left_over = std::mem::take(&mut self.inheritance.left_over);
        self.note_failure_of(&left_over);
        let mut to_run = Vec::with_capacity(self.position.frontier.len());
        for index in 0..self.position.frontier.len() {
            let Some(left) = self.task_id(index).and_then(|id| left_over.remove(&id)) else {
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
                    finished_step(&self.position.graph, &journal.codec, &journal.thread, result)?;
                let edits = proposed(&self.position.graph, &journal.thread, edits)?;
                ends.done[index] = Some(resolve(&self.position.graph, node, step, edits)?);
                ends.stored[index] = true;
                if let Some(memories) = &journal.memories {
                    memories.ended(index as u32, memories_of(result)?);
                }
                if let Some(nest) = &self.runtime.shared.nest {
                    let handles = handled(&ends.handled, index as u32).is_some();
                    nest.put_stuck(
                        (self.position.step, index as u32, handles),
                        stuck_in(&journal.thread, result)?,
                    );
                }
            } else if left.waits() {
                ends.not_done.push((index as u32, NotDone::Waits(left.asks())));
                ends.stored[index] = true;
            } else {
                self.runtime.shared.control.recall(index as u32, left.asked());
                to_run.push(index as u32);
            }
        }
        Ok(Some(to_run))
    }

    pub(super) fn merge_many(&mut self) -> Result<(), Error> {
        let mut done = std::mem::take(&mut self.buffers.ends.done);
        let actors = Actors { frontier: &self.position.frontier, handled: &self.buffers.ends.handled };
        self.buffers.uses.note(&self.position.graph, actors, &done)?;
        let keeps = self.outputs_to_keep(|index| actors.node(index), &done)?;
        self.stage_edits(|run, index| run.actors().node(index), &mut done);
        let actors = self.actors();
        let exits = |index| self.position.graph.exits(actors.node(index));
        let fallible = (0..self.position.frontier.len()).any(|index| exits(index).fallible_routers);
        let before = self.before_merge(fallible);
        self.buffers.ends.done = done;
        let merged = self.merge_noted();
        if merged.is_err() {
            self.position.graph.unstage();
            self.position.frontier.deferred = std::mem::take(&mut self.buffers.next.deferred);
            self.undo_merge(before);
        } else {
            self.keep(keeps);
            self.lay_down();
        }
        merged
    }

    pub(super) fn merge_noted(&mut self) -> Result<(), Error> {
        let core = &self.position.graph;
        let done = &mut self.buffers.ends.done;
        let mut updates = done.iter().flatten().filter_map(|done| done.update.as_ref());
        let writes = core.has_ephemeral && updates.any(|update| writes_ephemeral(core, update));
        let state = begin_merge(
            core,
            &mut self.position.state,
            &mut self.records.journal,
            &mut self.buffers.ephemeral,
            writes,
        )?;
        let now = now(core, &self.runtime.shared);
        self.buffers.next.deferred = std::mem::take(&mut self.position.frontier.deferred);
        let mut merge = Merge {
            core,
            joins: &mut self.position.joins,
            next: &mut self.buffers.next,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut self.position.merging,
            now,
        };
        let actors = Actors { frontier: &self.position.frontier, handled: &self.buffers.ends.handled };
        merge.many(state, actors, done, &self.buffers.uses)
    }

    /// What becomes of the state if the routers of a merge fail. They are asked when nothing but ephemeral
    /// channels has changed.
    pub(super) fn before_merge(&self, fallible: bool) -> BeforeMerge<S> {
        let is_stored_later = self.records.journal.as_ref().is_some_and(Journal::waits);
        match self.position.graph.has_ephemeral && self.buffers.ephemeral {
            false => BeforeMerge::Same,
            // The rare case in which a step costs a clone: the last state is nowhere else.
            true if fallible && is_stored_later => BeforeMerge::Kept(Arc::clone(&self.position.state)),
            true => BeforeMerge::Gone,
        }
    }

    /// A merge failed.
    pub(super) fn undo_merge(&mut self, before: BeforeMerge<S>) {
        match before {
            _ if self.position.merging => {}
            BeforeMerge::Same => {}
            BeforeMerge::Kept(last) => self.position.state = last,
            BeforeMerge::Gone => self.position.merging = true,
        }
    }

    /// Lets handlers stand in the place of tasks that failed in an earlier call. A node that has no handler
    /// any more runs again.
    pub(crate) fn adopt_failures(&mut self) {
        if self.position.eager.is_some() {
            return self.adopt_left();
        }
        let StepPlace { run, parent, .. } = self.step_place();
        self.adopt_failures_of(run, parent, None);
    }

    /// Those of another run on this branch, whose tasks' ids are made of `parent`.
    pub(crate) fn adopt_failures_of(&mut self, run: RunId, parent: u64, thread: Option<&str>) {
        if self.position.eager.is_some() {
            return self.adopt_left_of(run, thread);
        }
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
                let (index, failure) = (index as u32, Arc::new(failure));
                self.buffers.ends.handled.push(Handled { index, handler, failure, stored: true });
            }
        }
    }
}
