//! The loop of a graph with supersteps: plan, execute, merge, commit, one superstep after the other.
//!
//! *Plan* and *merge* are pure and know no runtime. Only *execute* awaits users' code, and only *commit*
//! awaits storage.

mod boundary;
mod commit;
pub(crate) mod edit;
mod execute;
mod express;
mod merge;
mod plan;

use std::future::poll_fn;
use std::task::Poll;

use crate::engine::actors::Actors;
use crate::engine::host::TaskRunner;
use crate::engine::superstep::express::Exit;
use crate::engine::{Loop, Pause, STEPS_WITHOUT_YIELD, cut_off};
use crate::error::Error;
use crate::policy::CatchPanic;
use crate::state::State;
use crate::words::{Interrupt, InterruptKind, StopReason};
use agentgraph_checkpoint::Source;
use agentgraph_checkpoint::services::yield_now;

/// How a superstep of one task stands.
enum Single<S: State> {
    /// Its update is in the state, and the frontier is the next one.
    Merged,
    /// It failed or waits: its end is in the scratch.
    NotDone,
    /// It failed, and its handler is to run.
    Handled,
    /// It was not ready at its first poll.
    Pending(CatchPanic<S>),
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Goes on from superstep to superstep until there is a reason to pause. What is rarely awaited is boxed,
    /// so that every run need not have room for it: the future of a short run would cost more than its steps.
    pub(crate) async fn supersteps(&mut self) -> Result<Pause, Error> {
        if !self.inheritance.halted.is_empty() {
            let nodes = std::mem::take(&mut self.inheritance.halted);
            let interrupts = nodes.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After));
            return self.tell(Pause::Interrupted(interrupts.collect())).await;
        }
        let is_express = self.is_express();
        loop {
            let mut under_way = None;
            if is_express && self.position.graph.edited.is_none() && self.has_one_new_task() {
                match poll_fn(|cx| Poll::Ready(self.express(cx))).await? {
                    Exit::Boundary => {}
                    Exit::Pending(node, task) => under_way = Some((node, Single::Pending(task))),
                    Exit::Ended(node, result) => under_way = Some((node, self.end_single(node, result)?)),
                }
            }
            if under_way.is_none() {
                if let Some(pause) = self.boundary() {
                    return match (pause, self.position.graph.limit_node()) {
                        (Pause::Stopped(StopReason::Limit), Some(node)) => {
                            Box::pin(self.beyond_limit(node)).await
                        }
                        (pause, _) => self.tell(pause).await,
                    };
                }
                self.begin_step();
                if self.position.step.is_multiple_of(STEPS_WITHOUT_YIELD) {
                    yield_now().await;
                }
                if self.has_one_new_task() {
                    let (node, _) = self.position.frontier.task(0);
                    let single = poll_fn(|cx| Poll::Ready(self.start_single(node, cx))).await?;
                    under_way = Some((node, single));
                }
            }
            let mut stop = None;
            let mut several = under_way.is_none();
            if let Some((node, mut single)) = under_way {
                if let Single::Pending(task) = single {
                    let result = match &mut self.listeners.halt {
                        None => task.await,
                        Some(halt) => match halt.until(task).await {
                            Ok(result) => result,
                            Err(cut) => return cut_off(cut, std::iter::once(self.position.graph.name(node))),
                        },
                    };
                    single = self.end_single(node, result)?;
                }
                match single {
                    Single::Merged if self.position.graph.breaks.is_some() => {
                        stop = self.break_after(&[node])
                    }
                    Single::Merged => {}
                    Single::Handled => several = true,
                    _ => return Box::pin(self.pause()).await,
                }
            }
            if several {
                if let Some(pause) = self.many().await? {
                    return Ok(pause);
                }
                std::mem::swap(&mut self.position.frontier, &mut self.buffers.next);
                if self.position.graph.breaks.is_some() {
                    let (frontier, handled) = (&self.buffers.next, &self.buffers.ends.handled[..]);
                    let actors = Actors { frontier, handled };
                    let ended: Vec<u32> = (0..frontier.len()).map(|index| actors.node(index)).collect();
                    stop = self.break_after(&ended);
                }
                self.buffers.next.clear();
                self.buffers.ends.handled.clear();
            }
            self.position.merging = false;
            self.position.merged = self.position.step;
            self.runtime.shared.control.clear();
            if self.records.trace.is_some() {
                self.close_trace()?;
            }
            self.announce_values();
            if self.records.journal.is_some()
                && let Some(prepared) = self.try_commit(Source::Loop, None, stop.as_ref())?
            {
                Box::pin(self.commit_later(prepared)).await?;
            }
            if let Some(pause) = stop {
                return self.tell(pause).await;
            }
            if let Some(events) = &self.listeners.events {
                events.room().await;
            }
        }
    }

    /// The superstep to come is one task, which nothing was heard of in an earlier call.
    #[inline]
    fn has_one_new_task(&self) -> bool {
        self.position.frontier.len() == 1
            && self.inheritance.left_over.is_empty()
            && self.buffers.ends.handled.is_empty()
            && !self.skips_some()
    }
}
