//! Running the tasks of a superstep: a single task, the common case, in one poll if possible; several tasks
//! side by side.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::task::Context;

use futures_util::FutureExt;

use crate::attempt::{CatchPanic, guarded};
use crate::context::TaskRequest;
use crate::engine::actors::{Handover, handled};
use crate::engine::executor::{Ledger, PlannedTask};
use crate::engine::halt::Cutoff;
use crate::engine::lifetimes::writes_ephemeral;
use crate::engine::once::or_unstored;
use crate::engine::step_results::SuperstepLedger;
use crate::engine::superstep::Progress;
use crate::engine::{Loop, Pause, cut_off, nowhere};
use crate::erased::{NodeResult, Started};
use crate::error::Error;
use crate::extract::Task;
use crate::step::Step;
use crate::typed::AnyState;

impl Loop {
    /// Starts the only task of a superstep, and merges its result if it is ready. Not an async function: that
    /// would cost more than the rest of the step.
    #[inline]
    pub(super) fn start_single(&mut self, node: u32, cx: &mut Context<'_>) -> Result<Progress, Error> {
        let started = guarded(|guard| {
            let (_, input) = self.position.frontier.task(0);
            let request = self.single_request(node);
            if self.listeners.events.is_some() {
                self.executor().announce_start(request, input);
            }
            let state = &self.position.state;
            let shared = &self.runtime.shared;
            let task = Task { state, shared, request, input, failure: None };
            let started = match &self.listeners.spans {
                None => self.runtime.runner.start(&self.position.graph, &task, cx),
                Some(spans) => {
                    Started::poll(spans.call(&self.runtime.runner, &self.position.graph, &task), cx)
                }
            };
            match started {
                Started::Ended(result) => {
                    // From here on a panic is one of the engine, a reducer or a route, not of the node.
                    guard.lift();
                    self.end_single(node, result)
                }
                Started::Pending(future) => Ok(Progress::Pending(node, CatchPanic::of(future))),
            }
        });
        started.unwrap_or_else(|panicked| self.end_single_slowly(node, Err(panicked.into())))
    }

    #[inline]
    pub(super) fn end_single(&mut self, node: u32, result: NodeResult<AnyState>) -> Result<Progress, Error> {
        let plain = !self.runtime.shared.control.in_use()
            && self.listeners.events.is_none()
            && self.listeners.spans.is_none()
            && !self.position.graph.is_edited();
        match result {
            Ok(Step::Update(update)) if plain && !self.position.graph.topology.exits(node).special => {
                let writes =
                    self.position.graph.has_ephemeral && writes_ephemeral(&self.position.graph, &update);
                let (state, mut merge) = self.begin_single_merge(writes)?;
                merge.update(state, node, update)?;
                Ok(Progress::Merged(node))
            }
            result => self.end_single_slowly(node, result),
        }
    }

    /// Awaits the only task of a superstep of a stored run, unless it is cut off. The results of its durable
    /// steps are stored while it continues.
    pub(super) async fn wait_for_stored_single(
        &mut self,
        mut task: CatchPanic,
    ) -> Result<Result<NodeResult<AnyState>, Cutoff>, Error> {
        loop {
            let ended = or_unstored(&self.runtime.shared.control, &mut task);
            let ended = match &mut self.listeners.halt {
                None => ended.await,
                Some(halt) => match halt.until(ended).await {
                    Ok(ended) => ended,
                    Err(cut) => return Ok(Err(cut)),
                },
            };
            let ended = match ended {
                Some(result) => Some(result),
                None => self.store_once_beside(&mut task).await?,
            };
            if let Some(result) = ended {
                return Ok(Ok(result));
            }
        }
    }

    /// Ends a single task that is watched or did not just return an update.
    pub(super) fn end_single_slowly(
        &mut self,
        node: u32,
        result: NodeResult<AnyState>,
    ) -> Result<Progress, Error> {
        match self.executor().end(self.single_request(node), result) {
            Ok(done) => {
                self.merge_single(node, done)?;
                Ok(Progress::Merged(node))
            }
            Err(why) => {
                let request = self.single_request(node);
                if let Some((handler, failure)) = self.executor().hand_over(request, &why) {
                    self.buffers.ends.handled.push(Handover { index: 0, handler, failure, stored: false });
                    if let Some(events) = &self.listeners.events {
                        events.hand_over(0, self.actor_id(0));
                    }
                    return Ok(Progress::Several);
                }
                self.buffers.ends.begin(1);
                self.buffers.ends.not_done.push((0, why));
                Ok(Progress::NotDone)
            }
        }
    }

    /// Runs a superstep of several tasks, or one that an earlier call has started.
    pub(super) async fn run_tasks(&mut self) -> Result<Option<Pause>, Error> {
        self.buffers.ends.begin(self.position.frontier.len());
        let chosen = self.take_left_over()?;
        let chosen = self.take_skipped(chosen)?;
        let mut ends = std::mem::take(&mut self.buffers.ends);
        let place = self.origin();
        let mut journal = self.records.journal.take();
        let before: Vec<Handover> = ends.handled.iter().map(Handover::copy).collect();
        let step = self.position.step;
        let frontier = &self.position.frontier;
        let count = chosen.as_ref().map_or(frontier.len(), Vec::len);
        let tasks = (0..count).map(|at| {
            let index = chosen.as_ref().map_or(at as u32, |chosen| chosen[at]);
            let (node, input) = frontier.task(index as usize);
            let handled = handled(&before, index);
            let (node, handles, origin) = match (handled, frontier.dispatch_at(index as usize)) {
                (Some(handled), _) => (handled.handler, true, place.led_by(node, index)),
                (None, Some(dispatch)) => (node, false, place.led_by(dispatch.from, dispatch.index)),
                (None, None) => (node, false, place),
            };
            let request = TaskRequest { step, node, index, attempt: 1, handles, origin };
            PlannedTask { request, input, failure: handled.map(|handled| &handled.failure) }
        });
        let (core, shared, nowhere) =
            (&self.position.graph, &*self.runtime.shared, nowhere(&self.runtime.shared, step));
        let mut ledger =
            SuperstepLedger { core, frontier, journal: journal.as_mut(), ends: &mut ends, shared, nowhere };
        let mut halt = self.listeners.halt.take();
        let executor = self.executor();
        let work = async {
            ledger.store().await?;
            executor.run_tasks(tasks, &mut ledger, halt.as_deref_mut()).await
        };
        // Storing a result beside a running task calls `Serialize`, which may panic. The journal is put back
        // before the panic continues, since the failure is stored with it.
        let cut = AssertUnwindSafe(work).catch_unwind().await;
        self.listeners.halt = halt;
        self.records.journal = journal;
        self.buffers.ends = ends;
        let cut = cut.unwrap_or_else(|payload| resume_unwind(payload))?;
        if cut.is_none() && self.buffers.ends.not_done.is_empty() {
            self.merge_many()?;
            return Ok(None);
        }
        let late = cut.map(|cut| (cut, self.late()));
        let pause = Box::pin(self.pause()).await?;
        match late {
            None => Ok(Some(pause)),
            Some((cut, late)) => {
                cut_off(cut, late.iter().map(|node| self.position.graph.name(*node))).map(Some)
            }
        }
    }
}
