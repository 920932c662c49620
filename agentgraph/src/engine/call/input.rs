//! Values that enter a run without a task: its input, and updates written from outside.

use std::sync::Arc;

use crate::engine::lifetimes::reset;
use crate::engine::merge::Merge;
use crate::engine::recorder::Recorder;
use crate::engine::{Loop, now};
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
        if begins && core.has_run_channels {
            reset(core, state, &mut self.records.journal, Lifetime::Run)?;
        }
        if begins && core.has_ephemeral {
            reset(core, state, &mut self.records.journal, Lifetime::Ephemeral)?;
        }
        let now = now(core, &self.runtime.shared);
        let mut merge = Merge {
            core,
            joins: &mut self.position.joins,
            next: &mut self.position.frontier,
            recorder: Recorder::of(&mut self.records.journal, &mut self.records.trace),
            gotos: &mut self.buffers.gotos,
            merging: &mut self.position.merging,
            now,
        };
        match &mut self.position.eager {
            None => merge.input(state, input)?,
            Some(eager) => eager.input(merge, state, input, upcoming)?,
        }
        self.position.merging = false;
        self.apply_staged_edits();
        Ok(())
    }
}
