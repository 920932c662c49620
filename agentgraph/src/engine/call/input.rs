//! Values that enter a run without a task: its input, and updates written from outside.

use std::sync::Arc;

use crate::engine::Loop;
use crate::engine::lifetimes::reset;
use crate::engine::merge::Arrival;
use crate::engine::task_output::TaskOutput;
use crate::error::Error;
use crate::state::Lifetime;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::{RunId, Source};

impl Loop {
    /// Starts a run on the current state: resets run channels, applies the input and follows START's edges.
    pub(crate) async fn input(&mut self, input: AnyUpdate, abandoned: Option<RunId>) -> Result<(), Error> {
        let entry = match &self.driver {
            Some(driver) => Some(Arc::clone(driver).entry(
                &self.position.state,
                &input,
                self.records.journal.is_some(),
            )?),
            None => None,
        };
        self.begin_input(input)?;
        if let Some(entry) = entry {
            self.position.frontier.pulled = entry;
        }
        self.announce_values();
        self.commit(Source::Input, abandoned).await
    }

    pub(super) fn begin_input(&mut self, input: AnyUpdate) -> Result<(), Error> {
        if self.position.eager.is_some() {
            self.begin_flow();
        }
        self.begin_record();
        let upcoming = self.upcoming();
        let core = &self.position.graph;
        let state = Arc::make_mut(&mut self.position.state);
        // A subgraph over the parent's state continues with that state, so nothing is reset.
        let begins = self.records.trace.is_none();
        if begins && core.uses.run_channels {
            reset(core, state, &mut self.records.journal, Lifetime::Run)?;
        }
        if begins && core.uses.ephemeral {
            reset(core, state, &mut self.records.journal, Lifetime::Ephemeral)?;
        }
        let (state, eager, mut merge) = self.parts_of_merge();
        match eager {
            None => {
                let start = merge.core.topology.start();
                let done = TaskOutput { update: Some(input), routing: None };
                merge.one(state, start, done, Arrival::WithEdits)?;
                merge.settle();
            }
            Some(eager) => eager.input(merge, state, input, upcoming)?,
        }
        self.position.merging = false;
        self.apply_staged_edits();
        Ok(())
    }
}
