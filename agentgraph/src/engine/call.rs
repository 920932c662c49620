//! The operations of a call on a run: start, answer, edit and continue, each according to the run's
//! discipline.

pub(crate) mod answers;
pub(crate) mod edit;
pub(crate) mod end;
pub(crate) mod input;

use crate::engine::task_id::StepPlace;
use crate::engine::{Loop, Pause};
use crate::error::Error;
use agentgraph_checkpoint::RunId;

impl Loop {
    /// Continues the run until there is a reason to pause, according to the discipline of the graph.
    pub(crate) async fn run_until_pause(&mut self) -> Result<Pause, Error> {
        if let Some(driver) = self.driver.clone() {
            return driver.drive(self).await;
        }
        self.announce_start();
        let paused = match self.position.eager {
            None => self.supersteps().await,
            Some(_) => Box::pin(self.activations()).await,
        };
        if let Some(spans) = &mut self.listeners.spans {
            spans.end_step(paused.as_ref().err().map(Error::code));
        }
        paused
    }

    /// Replaces tasks that failed in an earlier call by their handlers. A failed node that no longer has a
    /// handler runs again.
    pub(crate) fn adopt_failures(&mut self) {
        if self.position.eager.is_some() {
            return self.adopt_left();
        }
        let StepPlace { run, parent, .. } = self.step_place();
        self.adopt_handlers(run, parent, None);
    }

    /// [`adopt_failures`](Self::adopt_failures) for the tasks of another run, on this branch or on the thread
    /// that this one was copied from.
    pub(crate) fn adopt_failures_of(&mut self, run: RunId, parent: u64, thread: Option<&str>) {
        if self.position.eager.is_some() {
            self.adopt_left_of(run, thread)
        } else {
            self.adopt_handlers(run, parent, thread)
        }
    }
}
