//! The results of a superstep of several tasks, and which of them are stored.
//!
//! The buffers live as long as the run. A result is moved once, from the node's future to its place in task
//! order, and is merged from there.

use std::future::Future;
use std::sync::Arc;

use crate::context::RunShared;
use crate::engine::actors::{Actors, Handover, add_handled, handled};
use crate::engine::executor::{Ledger, NoOutput};
use crate::engine::frontier::Frontier;
use crate::engine::journal::Journal;
use crate::engine::once::put_writes;
use crate::engine::stored::{FAILED, OF_RUN, SESSIONS, StoredStep, StoredTarget, once_write, to_bytes};
use crate::engine::task_id::{StepPlace, handler_id, nowhere, task_id};
use crate::engine::task_output::TaskOutput;
use crate::engine::unknown_fields::kinds_of;
use crate::error::Error;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::record::header::StoredStuck;
use crate::session::Sessions;
use crate::step::InputValue;
use agentgraph_checkpoint::{PendingWrite, TaskId};

#[derive(Default)]
pub(super) struct StepResults {
    /// Results in task order; `None` for tasks that are not done.
    pub(super) done: Vec<Option<TaskOutput>>,
    /// Unfinished tasks in the order in which they ended.
    pub(super) not_done: Vec<(u32, NoOutput)>,
    /// Whether the record or request of a task is in the store.
    pub(super) stored: Vec<bool>,
    /// Tasks with a stored error from an earlier call.
    pub(super) had_error: Vec<u32>,
    /// Finished tasks that may have to be stored.
    fresh: Vec<u32>,
    /// Failed tasks with a handler, until the superstep is merged.
    pub(super) handled: Vec<Handover>,
}

impl StepResults {
    /// Makes room for `tasks` results. Handovers stay.
    pub(super) fn begin(&mut self, tasks: usize) {
        self.done.clear();
        self.done.resize_with(tasks, || None);
        self.not_done.clear();
        self.stored.clear();
        self.stored.resize(tasks, false);
        self.fresh.clear();
        self.had_error.clear();
    }
}

/// Stores the record of every finished task while others are not done, so that a kill cannot make it run
/// again.
pub(super) struct SuperstepLedger<'a> {
    pub(super) core: &'a RunGraph,
    pub(super) frontier: &'a Frontier,
    pub(super) journal: Option<&'a mut Journal>,
    pub(super) ends: &'a mut StepResults,
    pub(super) shared: &'a RunShared,
    /// The superstep, for its place without a journal.
    pub(super) step: u64,
}

impl Ledger for SuperstepLedger<'_> {
    #[inline]
    fn done(&mut self, index: u32, done: TaskOutput) {
        self.ends.done[index as usize] = Some(done);
        if self.journal.is_some() {
            self.ends.fresh.push(index);
        }
    }

    fn not_done(&mut self, index: u32, why: NoOutput) {
        self.ends.not_done.push((index, why));
    }

    fn handled(&mut self, index: u32, handler: u32, failure: Arc<Failure>) {
        add_handled(&mut self.ends.handled, Handover { index, handler, failure, stored: false });
    }

    fn id(&self, index: u32) -> TaskId {
        let place =
            self.journal.as_deref().map_or_else(|| nowhere(self.shared, self.step), Journal::step_place);
        id_of(self.core, place, self.frontier, &self.ends.handled, index)
    }

    fn input(&self, index: u32) -> Option<InputValue> {
        self.frontier.task(index as usize).1.cloned()
    }

    fn store(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        let fresh = std::mem::take(&mut self.ends.fresh);
        async move {
            let has_failures = self.ends.handled.iter().any(|handled| !handled.stored);
            let once = self.shared.control.take_unstored();
            let writes_now = |journal: &&mut Journal| {
                !journal.waits() && (!fresh.is_empty() || has_failures || !once.is_empty())
            };
            let Some(journal) = self.journal.as_deref_mut().filter(writes_now) else { return Ok(()) };
            let mut writes = Vec::with_capacity(fresh.len());
            for handled in self.ends.handled.iter_mut().filter(|handled| !handled.stored) {
                writes.push(failure_write(self.core, journal, self.frontier, handled)?);
                handled.stored = true;
            }
            for index in &fresh {
                if let Some(done) = &self.ends.done[*index as usize] {
                    let task =
                        id_of(self.core, journal.step_place(), self.frontier, &self.ends.handled, *index);
                    let actors = Actors { frontier: self.frontier, handled: &self.ends.handled };
                    let node = self.core.name(actors.node(*index as usize));
                    let handles = handled(&self.ends.handled, *index).is_some();
                    let stuck = self.shared.stuck_inside(*index, handles);
                    let write = result_write(self.core, journal, (task, *index), done, stuck);
                    writes.push(write.map_err(|error| error.at_node(node))?);
                }
            }
            for one in &once {
                let place = journal.step_place();
                let task = id_of(self.core, place, self.frontier, &self.ends.handled, one.index);
                writes.push(once_write(task, one)?);
            }
            // Runs inside tasks store the sessions beside the same checkpoint. Encoded under the lock, the
            // last write is the newest.
            let _alone = self.shared.lock_head().await;
            if !fresh.is_empty() || has_failures {
                writes.extend(sessions_write(&self.shared.sessions)?);
            }
            put_writes(journal, &self.shared.control, &writes, &once).await?;
            for index in fresh {
                self.ends.stored[index as usize] = true;
            }
            Ok(())
        }
    }
}

/// The sessions, stored beside the record of a finished task: the task's changes must not be lost, since it
/// is never run again.
pub(super) fn sessions_write(sessions: &Sessions) -> Result<Option<PendingWrite>, Error> {
    if sessions.is_empty() {
        return Ok(None);
    }
    Ok(Some(PendingWrite { task: OF_RUN, slot: SESSIONS, bytes: to_bytes(&sessions.encode()?)? }))
}

/// The record of the finished task at `index`.
pub(super) fn result_write(
    core: &RunGraph,
    journal: &Journal,
    (task, index): (TaskId, u32),
    done: &TaskOutput,
    stuck: Vec<StoredStuck>,
) -> Result<PendingWrite, Error> {
    let mut step = stored_step(core, journal.codec(), done, true)?;
    if let Some(memories) = journal.memories() {
        step.memories = memories.of_task(index);
    }
    step.stuck = stuck;
    Ok(PendingWrite { task, slot: 0, bytes: step.to_bytes()? })
}

/// The stored form of a finished task, with or without its temporary edits.
pub(super) fn stored_step(
    core: &RunGraph,
    codec: &Codec,
    done: &TaskOutput,
    with_edits: bool,
) -> Result<StoredStep, Error> {
    let update = done.update.as_ref().map(|update| (codec.encode_update)(&core.schema, update));
    let update = update.transpose()?;
    let targets =
        done.targets().iter().map(|target| StoredTarget::new(target.name(core), target.input.as_ref()));
    let edits = done.edits().iter().filter(|_| with_edits).map(|one| one.edit.clone());
    Ok(StoredStep {
        version: core.stored.migrations.version,
        kinds: update.as_ref().map(|update| kinds_of(core, update)).unwrap_or_default(),
        update: update.map(Bytes),
        targets: targets.collect::<Result<_, Error>>()?,
        replaces_edges: done.replaces_edges(),
        edits: edits.collect(),
        ..StoredStep::default()
    })
}

/// The record of a failed task whose failure is handled.
pub(super) fn failure_write(
    core: &RunGraph,
    journal: &Journal,
    frontier: &Frontier,
    handled: &Handover,
) -> Result<PendingWrite, Error> {
    let task = id_of(core, journal.step_place(), frontier, &[], handled.index);
    Ok(PendingWrite { task, slot: FAILED, bytes: to_bytes(&*handled.failure)? })
}

/// The id of the task or handler that acts at `index`.
pub(super) fn id_of(
    core: &RunGraph,
    place: StepPlace<'_>,
    frontier: &Frontier,
    all: &[Handover],
    index: u32,
) -> TaskId {
    match handled(all, index) {
        None => task_id(place, frontier, index as usize, &|node| core.name(node)),
        Some(handled) => {
            let failed = core.name(frontier.task(index as usize).0);
            handler_id(place, failed, index as usize, core.name(handled.handler))
        }
    }
}
