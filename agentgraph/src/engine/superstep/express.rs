//! Supersteps of ready tasks, in a run without listeners and store: many of them in one poll of the shell.
//!
//! [`Loop::express_way`] checks once everything that cannot change during the run. A superstep with a task
//! that is pending, or returns what the shell does not merge, goes back to the general loop, which handles
//! all cases; so every decision there is the same as here.

use std::sync::Arc;
use std::task::Context;

use crate::engine::Loop;
use crate::engine::express::{Express, ExpressParts};
use crate::engine::merge::Merge;
use crate::engine::recorder::Recorder;
use crate::engine::superstep::Planned;
use crate::error::Error;

impl Loop {
    /// What runs supersteps of ready tasks, if there is nothing to check but the tasks.
    pub(super) fn express_way(&self) -> Option<Arc<dyn Express>> {
        let watched = self.listeners.events.is_some()
            || self.listeners.spans.is_some()
            || self.listeners.halt.is_some()
            || self.runtime.shared.bounds.spending.has_budget();
        let kept = self.records.journal.is_some()
            || self.records.trace.is_some()
            || self.runtime.shared.outer.is_some();
        let core = &self.position.graph;
        let special = core.rules.breaks.is_some() || core.uses.graphs || core.uses.ephemeral;
        let late = core.topology.times_joins || !core.topology.deferred.is_empty();
        let far = self.runtime.runner.as_host().is_some();
        let timed = self.runtime.shared.graph.slow_polls.times_nodes();
        let express = self.express.as_ref().filter(|_| !(watched || kept || special || late || far || timed));
        express.map(Arc::clone)
    }

    /// Continues as long as all tasks of each superstep are ready and the shell can merge what they return.
    /// Returns the first superstep in which that is not so; `None` between two supersteps.
    pub(super) fn go_express(
        &mut self,
        express: &dyn Express,
        cx: &mut Context<'_>,
    ) -> Result<Option<Planned>, Error> {
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
            uses: &mut self.buffers.uses,
            max_concurrency: self.runtime.places.most(),
            shared: &self.runtime.shared,
            step: &mut position.step,
            merged: &mut position.merged,
        };
        Ok(express.run(parts, cx)?.map(Planned::Begun))
    }
}
