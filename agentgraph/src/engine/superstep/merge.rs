//! Merging the results of a superstep's tasks.

use crate::engine::actors::Actors;
use crate::engine::lifetimes::{begin_merge, writes_ephemeral};
use crate::engine::merge::Merge;
use crate::engine::recorder::Recorder;
use crate::engine::task_output::TaskOutput;
use crate::engine::{Loop, now};
use crate::error::Error;

impl Loop {
    pub(super) fn merge_single(&mut self, node: u32, done: TaskOutput) -> Result<(), Error> {
        let mut done = [Some(done)];
        let keeps = self.outputs_to_keep(|_| node, &done)?;
        self.stage_edits(|_, _| node, &mut done);
        let [Some(done)] = done else { return Ok(()) };
        let fallible = self.position.graph.exits(node).fallible_routers;
        let before = self.before_merge(fallible);
        let frontier = fallible.then(|| self.position.frontier.clone());
        let mut updates = done.update.iter();
        let writes = self.position.graph.has_ephemeral
            && updates.any(|update| writes_ephemeral(&self.position.graph, update));
        let (state, mut merge) = self.begin_single_merge(writes)?;
        let merged = merge.single(state, node, done);
        if merged.is_ok() {
            self.keep(keeps);
            self.apply_staged_edits();
        } else {
            self.position.graph.unstage();
            self.position.frontier = frontier.unwrap_or_default();
            self.undo_merge(before);
        }
        merged
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
            self.apply_staged_edits();
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
        merge.merge_tasks(state, actors, done, &self.buffers.uses)
    }
}
