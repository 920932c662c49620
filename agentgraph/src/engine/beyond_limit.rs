//! The superstep beyond the limit: a node that runs when a call reaches its limit of supersteps.

use crate::attempt::CatchPanic;
use crate::context::{ChildPause, TaskRequest};
use crate::engine::executor::NoOutput;
use crate::engine::once::or_unstored;
use crate::engine::{Loop, Pause, cut_off};
use crate::error::{Code, Error};
use crate::extract::Task;
use crate::graph::topology::END_ID;
use crate::words::StopReason;
use agentgraph_checkpoint::Source;

impl Loop {
    /// Runs `node` on the last state and commits its update. The frontier stays as it is, so the run
    /// continues from there.
    pub(super) async fn beyond_limit(&mut self, node: u32) -> Result<Pause, Error> {
        let frontier = std::mem::take(&mut self.position.frontier);
        self.position.frontier.pull(node);
        self.buffers.beyond_limit = true;
        let ended = self.call_beyond_limit(node).await;
        self.position.frontier = frontier;
        self.buffers.beyond_limit = false;
        let stopped = match ended {
            Ok(None) => self.commit_beyond_limit().await,
            Ok(Some(pause)) => Ok(pause),
            Err(error) => Err(error),
        };
        self.runtime.shared.control.clear();
        stopped
    }

    /// Merges the update of the node into the state, unless there is none or the node was cut off.
    async fn call_beyond_limit(&mut self, node: u32) -> Result<Option<Pause>, Error> {
        self.begin_step();
        // The same node may be in the frontier, so this task has an origin of its own.
        let origin = self.origin().led_by(END_ID, 0);
        let request = TaskRequest { origin, ..self.single_request(node) };
        let task = Task {
            state: &self.position.state,
            shared: &self.runtime.shared,
            request,
            input: None,
            failure: None,
        };
        let control = &self.runtime.shared.control;
        let mut call = CatchPanic::new(|| self.executor().call_task(&task));
        let call = async {
            loop {
                match or_unstored(control, &mut call).await {
                    Some(result) => break result,
                    // A later call does not continue this task, so nothing of it is stored before its end.
                    None => control.mark_stored(&control.take_unstored()),
                }
            }
        };
        let result = match &mut self.listeners.halt {
            None => call.await,
            Some(halt) => match halt.until(call).await {
                Ok(result) => result,
                Err(cut) => return cut_off(cut, std::iter::once(self.position.graph.name(node))).map(Some),
            },
        };
        let done = match self.executor().end(request, result) {
            Ok(done) => done,
            Err(NoOutput::Inside(ChildPause::Stopped(reason))) => return Ok(Some(Pause::Stopped(reason))),
            Err(NoOutput::Leaves(left)) => return Ok(Some(Pause::Left(left))),
            Err(NoOutput::Failed(error) | NoOutput::Inside(ChildPause::Broken(error))) => {
                return Err(error.at_node(self.position.graph.name(node)));
            }
            Err(NoOutput::Waits(_) | NoOutput::Refused { .. } | NoOutput::Inside(ChildPause::Waits(..))) => {
                let problem = "it calls `interrupt`, which the node for the limit cannot do: no call waits for its answer";
                return Err(Error::new(Code::NodeFailed, problem).at_node(self.position.graph.name(node)));
            }
        };
        let Some(update) = done.update else { return Ok(Some(Pause::Stopped(StopReason::Limit))) };
        self.begin_merge(Some(&update))?;
        let (state, _, mut merge) = self.parts_of_merge();
        merge.apply_alone(state, node, update)?;
        self.position.merging = false;
        self.position.merged = self.position.step;
        if let Some(nest) = &self.runtime.shared.nest {
            nest.memories.merge(request.index);
            self.position.joins.note_stuck_inside(nest.take_stuck_of(request.index));
        }
        Ok(None)
    }

    async fn commit_beyond_limit(&mut self) -> Result<Pause, Error> {
        self.announce_values();
        self.commit(Source::Loop, None).await?;
        Ok(Pause::Stopped(StopReason::Limit))
    }
}
