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
use std::task::{Context, Poll};

use crate::attempt::CatchPanic;
use crate::engine::actors::Actors;
use crate::engine::journal::PreparedRecord;
use crate::engine::{Loop, Pause, STEPS_WITHOUT_YIELD, cut_off};
use crate::error::Error;
use crate::words::{Interrupt, InterruptKind, StopReason};
use agentgraph_checkpoint::Source;
use agentgraph_checkpoint::services::yield_now;

/// The progress of a superstep.
enum Progress {
    /// It has not started.
    Boundary,
    /// Its only task, of this node, was pending at its first poll.
    Pending(u32, CatchPanic),
    /// The update of its only task, of this node, is merged, and the frontier is the next one.
    Merged(u32),
    /// Its only task failed or waits: the buffers contain its end.
    NotDone,
    /// Its tasks run side by side, or its only task needs the general path.
    Several,
}

impl Loop {
    /// Runs superstep after superstep until there is a reason to pause. Rare awaits are boxed, so that the
    /// future of every run stays small: for a short run, a large future would cost more than its steps.
    pub(crate) async fn supersteps(&mut self) -> Result<Pause, Error> {
        if let Some(pause) = self.take_halted() {
            return self.note_stops_reported(pause).await;
        }
        let is_express = self.is_express();
        loop {
            let mut progress = Progress::Boundary;
            if is_express && self.may_go_express() {
                // `poll_fn` only lends the waker of the run: an async function of its own would cost as much
                // as a step.
                progress = poll_fn(|cx| Poll::Ready(self.express(cx))).await?;
            }
            if let Progress::Boundary = progress {
                if let Some(pause) = self.boundary() {
                    return match (pause, self.position.graph.limit_node()) {
                        (Pause::Stopped(StopReason::Limit), Some(node)) => {
                            Box::pin(self.beyond_limit(node)).await
                        }
                        (pause, _) => self.note_stops_reported(pause).await,
                    };
                }
                self.begin_step();
                progress = poll_fn(|cx| Poll::Ready(self.start_step(cx))).await?;
            }
            if let Progress::Pending(node, task) = progress {
                let result = match (&mut self.listeners.halt, &self.records.journal) {
                    (None, None) => Ok(task.await),
                    (Some(halt), None) => halt.until(task).await,
                    (_, Some(_)) => Box::pin(self.wait_for_stored_single(task)).await?,
                };
                progress = match result {
                    Ok(result) => self.end_single(node, result)?,
                    Err(cut) => return cut_off(cut, std::iter::once(self.position.graph.name(node))),
                };
            }
            let stop = match progress {
                Progress::Merged(node) => self.break_after(&[node]),
                Progress::NotDone => return Box::pin(self.pause()).await,
                _ => match self.run_tasks().await? {
                    Some(pause) => return Ok(pause),
                    None => self.take_next_frontier(),
                },
            };
            if let Some(prepared) = self.close_step(stop.as_ref())? {
                Box::pin(self.commit_later(prepared)).await?;
            }
            if let Some(spans) = &mut self.listeners.spans {
                spans.end_step(None);
            }
            if let Some(pause) = stop {
                return self.note_stops_reported(pause).await;
            }
            if let Some(events) = &self.listeners.events {
                // A slow reader delays the next superstep, not the commit of this one.
                events.room().await;
            }
            if self.position.step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                yield_now().await;
            }
        }
    }

    /// The static interrupt that stopped an earlier call and was not reported to its caller.
    fn take_halted(&mut self) -> Option<Pause> {
        let nodes = std::mem::take(&mut self.inheritance.halted);
        let interrupts = nodes.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After));
        let interrupts: Vec<_> = interrupts.collect();
        (!interrupts.is_empty()).then_some(Pause::Interrupted(interrupts))
    }

    #[inline]
    fn may_go_express(&self) -> bool {
        !self.position.graph.is_edited() && self.has_one_new_task()
    }

    /// Whether the next superstep is one task without remains of an earlier call.
    #[inline]
    fn has_one_new_task(&self) -> bool {
        self.position.frontier.len() == 1
            && self.inheritance.left_over.is_empty()
            && self.buffers.ends.handled.is_empty()
            && !self.skips_some()
    }

    /// Starts a superstep of one task.
    #[inline]
    fn start_step(&mut self, cx: &mut Context<'_>) -> Result<Progress, Error> {
        if self.has_one_new_task() {
            let (node, _) = self.position.frontier.task(0);
            self.start_single(node, cx)
        } else {
            Ok(Progress::Several)
        }
    }

    /// Moves to the frontier that a superstep of several tasks has made. Returns a static interrupt after one
    /// of these tasks.
    fn take_next_frontier(&mut self) -> Option<Pause> {
        std::mem::swap(&mut self.position.frontier, &mut self.buffers.next);
        let mut stop = None;
        if self.position.graph.breaks.is_some() {
            let frontier = &self.buffers.next;
            let handled = &self.buffers.ends.handled[..];
            let actors = Actors { frontier, handled };
            let ended: Vec<u32> = (0..frontier.len()).map(|index| actors.node(index)).collect();
            stop = self.break_after(&ended);
        }
        self.buffers.next.clear();
        self.buffers.ends.handled.clear();
        stop
    }

    /// Closes a merged superstep. Returns its record if the store has to be awaited.
    #[inline]
    fn close_step(&mut self, stop: Option<&Pause>) -> Result<Option<PreparedRecord>, Error> {
        self.position.merging = false;
        self.position.merged = self.position.step;
        self.runtime.shared.control.clear();
        if self.records.trace.is_some() {
            self.close_trace()?;
        }
        self.announce_values();
        match self.records.journal {
            None => Ok(None),
            Some(_) => self.try_commit(Source::Loop, None, stop),
        }
    }
}
