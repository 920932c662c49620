//! The parts of a run that a merge changes, and the way back after a merge that failed.

use std::sync::Arc;

use crate::engine::activations::Activations;
use crate::engine::journal::Journal;
use crate::engine::kept_outputs::NewOutputs;
use crate::engine::lifetimes::begin_merge;
use crate::engine::merge::Merge;
use crate::engine::recorder::Recorder;
use crate::engine::{Loop, now};
use crate::error::Error;
use crate::typed::{AnyState, AnyUpdate};

/// The state before a merge that may fail.
enum BeforeMerge {
    /// The state is unchanged after a failure.
    Same,
    Kept(Arc<AnyState>),
    /// The state is lost after a failure; a store contains it.
    Gone,
}

impl Loop {
    /// Begins to merge these updates: opens their record, and resets the ephemeral channels.
    #[inline]
    pub(super) fn begin_merge(&mut self, update: Option<&AnyUpdate>) -> Result<(), Error> {
        begin_merge(&mut self.position, &mut self.records.journal, &mut self.buffers.ephemeral, update)
    }

    /// The state, the activations of an eager run, and what else a merge changes. The successors of the
    /// merged task go into the frontier that it came from.
    #[inline]
    pub(super) fn parts_of_merge(&mut self) -> (&mut AnyState, Option<&mut Activations>, Merge<'_>) {
        let now = now(&self.position.graph, &self.runtime.shared);
        let position = &mut self.position;
        let merge = Merge {
            core: &position.graph,
            joins: &mut position.joins,
            next: &mut position.frontier,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut position.merging,
            now,
        };
        // Copies at most the box around the state. The first write clones the state itself, if a task still
        // holds it.
        (Arc::make_mut(&mut position.state), position.eager.as_deref_mut(), merge)
    }

    /// Merges results whose edits are staged. If `fallible`, routers run before anything is changed, so that
    /// their failure leaves the run where it was.
    pub(super) fn merge_staged(
        &mut self,
        fallible: bool,
        keeps: NewOutputs,
        merge: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = self.before_merge(fallible);
        let merged = merge(self);
        if merged.is_ok() {
            let new = self.records.outputs.keep(keeps);
            if !new.is_empty() {
                Arc::make_mut(&mut self.runtime.shared.lock_visible().kept).extend(new);
            }
            self.apply_staged_edits();
        } else {
            self.position.graph.unstage();
            self.undo_merge(before);
        }
        merged
    }

    /// How to restore the state if the routers of a merge fail. At that time only ephemeral channels have
    /// changed.
    fn before_merge(&self, fallible: bool) -> BeforeMerge {
        let is_stored_later = self.records.journal.as_deref().is_some_and(Journal::waits);
        if !(self.position.graph.uses.ephemeral && self.buffers.ephemeral) {
            BeforeMerge::Same
        } else if fallible && is_stored_later {
            // The rare superstep that costs a clone of the state: there is no other copy of it.
            BeforeMerge::Kept(Arc::clone(&self.position.state))
        } else {
            BeforeMerge::Gone
        }
    }

    /// Restores the state after a failed merge.
    fn undo_merge(&mut self, before: BeforeMerge) {
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
        let mut recorder = Recorder::of(&mut self.records.journal, &mut self.records.trace);
        recorder.apply(state, &self.position.graph.schema, update).map_err(Error::from)
    }
}
