//! Starting a merge, and undoing a failed one.

use std::sync::Arc;

use crate::engine::actors::Actors;
use crate::engine::journal::Journal;
use crate::engine::lifetimes::begin_merge;
use crate::engine::merge::{Merge, write};
use crate::engine::recorder::Recorder;
use crate::engine::task_output::TaskOutput;
use crate::engine::{Loop, now};
use crate::error::Error;
use crate::typed::{AnyState, AnyUpdate};

/// The state before a merge that may fail.
pub(super) enum BeforeMerge {
    /// The state is unchanged after a failure.
    Same,
    Kept(Arc<AnyState>),
    /// The state is lost after a failure; a store contains it.
    Gone,
}

impl Loop {
    /// The state and the other parts that the merge of a superstep's only task changes. The task is done, so
    /// its frontier is reused in place for the next one.
    #[inline]
    pub(super) fn begin_single_merge(&mut self, writes: bool) -> Result<(&mut AnyState, Merge<'_>), Error> {
        self.position.frontier.clear();
        let now = now(&self.position.graph, &self.runtime.shared);
        let state = begin_merge(
            &self.position.graph,
            &mut self.position.state,
            &mut self.records.journal,
            &mut self.buffers.ephemeral,
            writes,
        )?;
        let merge = Merge {
            core: &self.position.graph,
            joins: &mut self.position.joins,
            next: &mut self.position.frontier,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut self.position.merging,
            now,
        };
        Ok((state, merge))
    }

    /// How to restore the state if the routers of a merge fail. At that time only ephemeral channels have
    /// changed.
    pub(super) fn before_merge(&self, fallible: bool) -> BeforeMerge {
        let is_stored_later = self.records.journal.as_ref().is_some_and(Journal::waits);
        if !(self.position.graph.has_ephemeral && self.buffers.ephemeral) {
            BeforeMerge::Same
        } else if fallible && is_stored_later {
            // The rare superstep that costs a clone of the state: there is no other copy of it.
            BeforeMerge::Kept(Arc::clone(&self.position.state))
        } else {
            BeforeMerge::Gone
        }
    }

    /// Restores the state after a failed merge.
    pub(super) fn undo_merge(&mut self, before: BeforeMerge) {
        match before {
            _ if self.position.merging => {}
            BeforeMerge::Same => {}
            BeforeMerge::Kept(last) => self.position.state = last,
            BeforeMerge::Gone => self.position.merging = true,
        }
    }

    /// Opens the record of a checkpoint that no superstep writes.
    pub(super) fn begin_record(&mut self) {
        if let Some(journal) = &mut self.records.journal {
            journal.begin();
        }
    }

    /// Writes an update without successors into the open record.
    pub(super) fn write(&mut self, update: AnyUpdate) -> Result<(), Error> {
        let state = Arc::make_mut(&mut self.position.state);
        let recorder = Recorder::of(&mut self.records.journal, &mut self.records.trace);
        write(&self.position.graph, state, recorder, update)
    }

    /// Merges updates as if these nodes had returned them.
    pub(super) fn merge_as(
        &mut self,
        actors: Actors<'_>,
        done: &mut [Option<TaskOutput>],
    ) -> Result<(), Error> {
        self.buffers.uses.note(&self.position.graph, actors, done)?;
        let keeps = self.outputs_to_keep(|index| actors.node(index), done)?;
        self.stage_edits(|_, index| actors.node(index), done);
        let now = now(&self.position.graph, &self.runtime.shared);
        let state = Arc::make_mut(&mut self.position.state);
        let mut merge = Merge {
            core: &self.position.graph,
            joins: &mut self.position.joins,
            next: &mut self.buffers.next,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut self.position.merging,
            now,
        };
        merge.merge_tasks(state, actors, done, &self.buffers.uses)?;
        self.position.merging = false;
        self.keep(keeps);
        self.apply_staged_edits();
        Ok(())
    }
}
