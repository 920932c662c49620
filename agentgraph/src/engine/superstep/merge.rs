//! Merging a superstep: the results of its tasks become the next state and the next frontier.

use std::sync::Arc;

use crate::engine::actors::Actors;
use crate::engine::buffers::Buffers;
use crate::engine::lifetimes::begin_merge;
use crate::engine::merge::{Arrival, Merge};
use crate::engine::recorder::Recorder;
use crate::engine::superstep::Merged;
use crate::engine::task_output::TaskOutput;
use crate::engine::temporary_edits::stage_edits;
use crate::engine::{Loop, Pause, now};
use crate::error::Error;

impl Loop {
    /// Merges the output of a superstep's only task.
    #[inline]
    pub(super) fn merge_only(&mut self, node: u32, done: TaskOutput) -> Result<Merged, Error> {
        let graph = &self.position.graph;
        if done.edits().is_empty() && !graph.is_edited() && !graph.topology.exits(node).special {
            self.merge_in_place(node, done)?;
        } else {
            self.merge_special(node, done)?;
        }
        Ok(Merged { stop: self.break_after(&[node]) })
    }

    #[inline]
    fn merge_in_place(&mut self, node: u32, done: TaskOutput) -> Result<(), Error> {
        self.begin_merge(done.update.as_ref())?;
        // The task is done, so its frontier is reused for the next one.
        self.position.frontier.clear();
        let (state, _, mut merge) = self.parts_of_merge();
        merge.one(state, node, done, Arrival::WithEdits)?;
        merge.settle();
        Ok(())
    }

    /// Merges a task with edits, or one whose merge may fail or is kept for a later skip.
    fn merge_special(&mut self, node: u32, done: TaskOutput) -> Result<(), Error> {
        let mut done = [Some(done)];
        let keeps = self.records.outputs_to_keep(&self.position.graph, |_| node, &done)?;
        stage_edits(&mut self.position.graph, |_| node, &mut done);
        let [Some(done)] = done else { return Ok(()) };
        let fallible = self.position.graph.exits(node).fallible_routers;
        let frontier = fallible.then(|| self.position.frontier.clone());
        let merged = self.merge_staged(fallible, keeps, |run| run.merge_in_place(node, done));
        if merged.is_err() {
            self.position.frontier = frontier.unwrap_or_default();
        }
        merged
    }

    /// Merges the outputs of a superstep's tasks, which the buffers contain.
    pub(super) fn merge_several(&mut self) -> Result<Merged, Error> {
        let (graph, ends) = (&mut self.position.graph, &mut self.buffers.ends);
        let actors = Actors { frontier: &self.position.frontier, handled: &ends.handled };
        self.buffers.uses.note(graph, actors, &ends.done)?;
        let keeps = self.records.outputs_to_keep(graph, |index| actors.node(index), &ends.done)?;
        stage_edits(graph, |index| actors.node(index), &mut ends.done);
        let tasks = 0..actors.frontier.len();
        let fallible = tasks.into_iter().any(|index| graph.exits(actors.node(index)).fallible_routers);
        let merged = self.merge_staged(fallible, keeps, Self::merge_noted);
        if merged.is_err() {
            self.position.frontier.deferred = std::mem::take(&mut self.buffers.next.deferred);
        }
        merged.map(|()| Merged { stop: self.take_next_frontier() })
    }

    /// Merges results whose writes do not clash.
    fn merge_noted(&mut self) -> Result<(), Error> {
        let Loop { position, records, runtime, buffers, .. } = self;
        let Buffers { next, gotos, uses, ends, ephemeral, .. } = buffers;
        let updates = ends.done.iter().flatten().filter_map(|done| done.update.as_ref());
        begin_merge(position, &mut records.journal, ephemeral, updates)?;
        next.deferred = std::mem::take(&mut position.frontier.deferred);
        let mut merge = Merge {
            core: &position.graph,
            joins: &mut position.joins,
            next,
            recorder: Recorder::of(&mut records.journal, &mut records.trace),
            gotos,
            merging: &mut position.merging,
            now: now(&position.graph, &runtime.shared),
        };
        let actors = Actors { frontier: &position.frontier, handled: &ends.handled };
        merge.several(Arc::make_mut(&mut position.state), actors, &mut ends.done, uses)
    }

    /// Moves to the frontier that a superstep of several tasks has made. Returns a static interrupt after one
    /// of these tasks.
    fn take_next_frontier(&mut self) -> Option<Pause> {
        std::mem::swap(&mut self.position.frontier, &mut self.buffers.next);
        let mut stop = None;
        if self.position.graph.rules.breaks.is_some() {
            let frontier = &self.buffers.next;
            let handled = &self.buffers.ends.handled[..];
            let actors = Actors { frontier, handled };
            let ended: Vec<u32> = (0..frontier.len()).map(|index| actors.node(index)).collect();
            stop = self.break_after(&ended);
        }
        self.buffers.next.clear();
        self.buffers.ends.handled.clear();
        stop
    }
}
