//! The loop of a graph with supersteps: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and independent of the async runtime. Only *execute* awaits users' code, and
//! only *commit* awaits storage.

mod boundary;
mod commit;
pub(crate) mod edit;
mod execute;
mod express;
mod merge;
mod plan;

use std::future::poll_fn;
use std::task::Poll;

use crate::attempt::CatchPanic;
use crate::engine::express::Begun;
use crate::engine::halt::Cutoff;
use crate::engine::journal::PreparedRecord;
use crate::engine::task_output::TaskOutput;
use crate::engine::{Loop, Pause, STEPS_WITHOUT_YIELD};
use crate::erased::Started;
use crate::error::Error;
use crate::words::{Interrupt, InterruptKind, StopReason};
use agentgraph_checkpoint::Source;
use agentgraph_checkpoint::services::yield_now;

/// What a superstep begins with.
enum Planned {
    /// Nothing: the call ends between two supersteps.
    Over(Box<Pause>),
    /// Tasks that are polled once while they are planned: if the only task of a superstep is ready, the
    /// superstep needs no await.
    Begun(Begun),
    /// Tasks that run side by side, or one that an earlier call has started.
    Several,
}

/// The results of a superstep's tasks.
enum Executed {
    /// The output of its only task, of this node.
    Only(u32, TaskOutput),
    /// All tasks are done: the buffers contain their outputs.
    Several,
    /// A task failed, waits or was cut off: the buffers contain the results of the others.
    Unfinished(Option<Cutoff>),
}

/// A superstep whose updates are in the state. The frontier is the next one.
struct Merged {
    /// The static interrupt after one of its nodes.
    stop: Option<Pause>,
}

impl Loop {
    /// Runs superstep after superstep until there is a reason to pause. Rare awaits are boxed, so that the
    /// future of every run stays small: for a short run, a large future would cost more than its steps.
    pub(crate) async fn supersteps(&mut self) -> Result<Pause, Error> {
        let pause = 'run: {
            if let Some(pause) = self.take_halted() {
                break 'run pause;
            }
            let express = self.express_way();
            loop {
                // `poll_fn` only lends the waker of the run: an async function would cost as much as a step.
                let planned = poll_fn(|cx| Poll::Ready(self.plan(express.as_deref(), cx))).await?;
                let (mut executed, mut begun) = (None, Vec::new());
                match planned {
                    Planned::Over(pause) => {
                        break 'run match (*pause, self.position.graph.limit_node()) {
                            (Pause::Stopped(StopReason::Limit), Some(node)) => {
                                return Box::pin(self.beyond_limit(node)).await;
                            }
                            (pause, _) => pause,
                        };
                    }
                    Planned::Begun(Begun::Only(node, Started::Ended(result))) => {
                        executed = self.judge(node, Ok(result));
                    }
                    Planned::Begun(Begun::Only(node, Started::Pending(task))) => {
                        let task = CatchPanic::of(task);
                        let ended = match (&mut self.listeners.halt, &self.records.journal) {
                            (None, None) => Ok(task.await),
                            (Some(halt), None) => halt.until(task).await,
                            (_, Some(_)) => Box::pin(self.await_stored(task)).await?,
                        };
                        executed = self.judge(node, ended);
                    }
                    Planned::Begun(Begun::Several(tasks)) => begun = tasks,
                    Planned::Several => {}
                }
                let executed = match executed {
                    Some(executed) => executed,
                    None => Box::pin(self.execute(begun)).await?,
                };
                let merged = match executed {
                    Executed::Only(node, done) => self.merge_only(node, done)?,
                    Executed::Several => self.merge_several()?,
                    Executed::Unfinished(cut) => return Box::pin(self.pause(cut)).await,
                };
                if let Some(prepared) = self.commit_superstep(&merged)? {
                    Box::pin(self.commit_later(prepared)).await?;
                }
                if let Some(spans) = &mut self.listeners.spans {
                    spans.end_step(None);
                }
                if let Some(pause) = merged.stop {
                    break 'run pause;
                }
                if let Some(events) = &self.listeners.events {
                    // A slow reader delays the next superstep, not the commit of this one.
                    events.room().await;
                }
                if self.position.step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
            }
        };
        // In one place: each await of it would be room in the future of every run.
        if let Pause::Interrupted(stops) = &pause {
            Box::pin(self.note_stops_reported(stops)).await?;
        }
        Ok(pause)
    }

    /// The static interrupt that stopped an earlier call and was not reported to its caller.
    fn take_halted(&mut self) -> Option<Pause> {
        if self.inheritance.halted.is_empty() {
            return None;
        }
        let nodes = std::mem::take(&mut self.inheritance.halted);
        let interrupts = nodes.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After));
        Some(Pause::Interrupted(interrupts.collect()))
    }

    /// Commits a merged superstep. Returns its record if the store has to be awaited.
    #[inline]
    fn commit_superstep(&mut self, merged: &Merged) -> Result<Option<Box<PreparedRecord>>, Error> {
        self.position.merging = false;
        self.position.merged = self.position.step;
        self.runtime.shared.control.clear();
        if self.records.trace.is_some() {
            self.close_trace()?;
        }
        self.announce_values();
        match self.records.journal {
            None => Ok(None),
            Some(_) => self.try_commit(Source::Loop, None, merged.stop.as_ref()),
        }
    }
}
