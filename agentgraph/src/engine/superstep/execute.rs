//! Executing a superstep: a single task, the common case, in one poll if possible; several tasks side by
//! side.

use std::task::Context;

use crate::attempt::{CatchPanic, guarded};
use crate::context::TaskRequest;
use crate::engine::Loop;
use crate::engine::actors::{Handover, handled};
use crate::engine::executor::{Executor, Ledger, PlannedTask};
use crate::engine::halt::Cutoff;
use crate::engine::once::{beside, or_unstored, put_writes};
use crate::engine::step_results::{SuperstepLedger, id_of};
use crate::engine::stored::once_write;
use crate::engine::superstep::Executed;
use crate::engine::task_output::TaskOutput;
use crate::erased::{NodeResult, Started};
use crate::error::Error;
use crate::extract::Task;
use crate::step::Step;
use crate::typed::AnyState;

impl Loop {
    /// Calls the only task of a superstep and polls it once.
    #[inline]
    pub(super) fn start_only(&mut self, node: u32, cx: &mut Context<'_>) -> Started {
        let started = guarded(|_| {
            let (_, input) = self.position.frontier.task(0);
            let request = self.single_request(node);
            let state = &self.position.state;
            let shared = &self.runtime.shared;
            self.executor().start_task(&Task { state, shared, request, input, failure: None }, cx)
        });
        started.unwrap_or_else(|panicked| Started::Ended(Err(panicked.into())))
    }

    /// Awaits the only task of a superstep of a stored run, unless it is cut off. The results of its durable
    /// steps are stored while it continues.
    pub(super) async fn await_stored(
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

    /// Stores the results of durable steps of the only task of a superstep while the task continues. Returns
    /// the task's result if it ended meanwhile.
    async fn store_once_beside(
        &mut self,
        task: &mut CatchPanic,
    ) -> Result<Option<NodeResult<AnyState>>, Error> {
        let control = &self.runtime.shared.control;
        let new = control.take_unstored();
        let Some(journal) = &mut self.records.journal else { return Ok(None) };
        let graph = &self.position.graph;
        let frontier = &self.position.frontier;
        let id = id_of(graph, journal.step_place(), frontier, &self.buffers.ends.handled, 0);
        let writes = new.iter().map(|one| once_write(id, one)).collect::<Result<Vec<_>, Error>>()?;
        let work = put_writes(journal, control, &writes, &new);
        let (stored, ended) = beside(work, task).await;
        stored?;
        Ok(ended)
    }

    /// Judges the end of a superstep's only task. `None`: a handler takes over, and runs as one of several
    /// tasks does.
    #[inline]
    pub(super) fn judge(
        &mut self,
        node: u32,
        ended: Result<NodeResult<AnyState>, Cutoff>,
    ) -> Option<Executed> {
        match ended {
            Ok(Ok(Step::Update(update))) if self.executor().is_plain() => {
                Some(Executed::Only(node, TaskOutput { update: Some(update), routing: None }))
            }
            Ok(result) => self.judge_slowly(node, result),
            Err(cut) => {
                self.buffers.ends.begin(1);
                Some(Executed::Unfinished(Some(cut)))
            }
        }
    }

    /// Judges a task that is watched or did not just return an update.
    fn judge_slowly(&mut self, node: u32, result: NodeResult<AnyState>) -> Option<Executed> {
        let request = self.single_request(node);
        let why = match self.executor().end(request, result) {
            Ok(done) => return Some(Executed::Only(node, done)),
            Err(why) => why,
        };
        if let Some((handler, failure)) = self.executor().hand_over(request, &why) {
            self.buffers.ends.handled.push(Handover { index: 0, handler, failure, stored: false });
            if let Some(events) = &self.listeners.events {
                events.hand_over(0, self.actor_id(0));
            }
            return None;
        }
        self.buffers.ends.begin(1);
        self.buffers.ends.not_done.push((0, why));
        Some(Executed::Unfinished(None))
    }

    /// Executes a superstep of several tasks, or one that an earlier call has started. `begun`: all its
    /// tasks, if they are polled once already.
    pub(super) async fn execute(&mut self, begun: Vec<(u32, Started)>) -> Result<Executed, Error> {
        self.buffers.ends.begin(self.position.frontier.len());
        let chosen = self.take_left_over()?;
        let chosen = self.take_skipped(chosen)?;
        let origin = self.origin();
        // Each part is borrowed by itself: tasks read the position while their results go to the buffers and
        // the journal, and a panic leaves all of them where they are.
        let Loop { position, records, listeners, runtime, buffers, .. } = self;
        let (executor, halt) = Executor::of(position, listeners, runtime);
        let (core, frontier, step, ends) =
            (&position.graph, &position.frontier, position.step, &mut buffers.ends);
        let before: Vec<Handover> = ends.handled.iter().map(Handover::copy).collect();
        let all = if begun.is_empty() { frontier.len() } else { 0 };
        let count = chosen.as_ref().map_or(all, Vec::len);
        let tasks = (0..count).map(|at| {
            let index = chosen.as_ref().map_or(at, |chosen| chosen[at] as usize);
            let (request, input) = frontier.request(index, step, origin);
            match handled(&before, request.index) {
                None => PlannedTask { request, input, failure: None },
                Some(Handover { handler, failure, .. }) => {
                    let origin = origin.led_by(request.node, request.index);
                    let request = TaskRequest { node: *handler, handles: true, origin, ..request };
                    PlannedTask { request, input, failure: Some(failure) }
                }
            }
        });
        let begun = begun
            .into_iter()
            .map(|(index, started)| (frontier.request(index as usize, step, origin).0, started));
        let shared = &*runtime.shared;
        let mut ledger =
            SuperstepLedger { core, frontier, journal: records.journal.as_deref_mut(), ends, shared, step };
        ledger.store().await?;
        let cut = executor.run_tasks(tasks, begun, &mut ledger, halt).await?;
        let is_done = cut.is_none() && ledger.ends.not_done.is_empty();
        Ok(if is_done { Executed::Several } else { Executed::Unfinished(cut) })
    }
}
