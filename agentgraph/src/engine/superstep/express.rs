//! Supersteps of one task each, in a run without listeners and store: many of them in one poll of the shell.
//!
//! [`Loop::is_express`] checks once everything that cannot change during the run. A task that is pending or
//! returns anything but an update goes back to the general loop, which handles all cases; so every decision
//! there is the same as here.

use std::sync::Arc;
use std::task::Context;

use crate::attempt::CatchPanic;
use crate::engine::Loop;
use crate::engine::express::{ExpressExit, ExpressParts};
use crate::engine::merge::Merge;
use crate::engine::recorder::Recorder;
use crate::engine::superstep::Progress;
use crate::error::Error;

impl Loop {
    /// Whether a superstep of one task has nothing to check but the task.
    pub(super) fn is_express(&self) -> bool {
        let watched = self.listeners.events.is_some()
            || self.listeners.spans.is_some()
            || self.listeners.halt.is_some()
            || self.runtime.shared.spending.has_budget();
        let kept = self.records.journal.is_some()
            || self.records.trace.is_some()
            || self.runtime.shared.outer.is_some();
        let core = &self.position.graph;
        let special = core.breaks.is_some() || core.has_graphs || core.has_ephemeral;
        let late = core.topology.times_joins || !core.topology.deferred.is_empty();
        let far = self.runtime.runner.as_host().is_some() || self.express.is_none();
        !(watched || kept || special || late || far)
    }

    /// Continues as long as each superstep is one task that is ready and returns an update.
    pub(super) fn express(&mut self, cx: &mut Context<'_>) -> Result<Progress, Error> {
        let Some(express) = self.express.clone() else { return Ok(Progress::Boundary) };
        let position = &mut self.position;
        let merge = Merge {
            core: &position.graph,
            joins: &mut position.joins,
            next: &mut position.frontier,
            recorder: Recorder::Nowhere,
            gotos: &mut self.buffers.gotos,
            merging: &mut position.merging,
            now: 0,
        };
        let parts = ExpressParts {
            merge,
            // Copies at most the box around the state. The shell clones the state itself, if a snapshot still
            // holds it.
            state: Arc::make_mut(&mut position.state),
            shared: &self.runtime.shared,
            step: &mut position.step,
            merged: &mut position.merged,
        };
        match express.run(parts, cx)? {
            ExpressExit::Boundary => Ok(Progress::Boundary),
            ExpressExit::Pending(node, task) => Ok(Progress::Pending(node, CatchPanic::of(task))),
            ExpressExit::Ended(node, result) => self.end_single(node, result),
        }
    }
}
