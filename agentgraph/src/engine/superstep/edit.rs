//! Edits of a thread whose run has supersteps. They end the open superstep, or leave it as it is.

use std::borrow::Cow;

use crate::engine::Loop;
use crate::engine::actors::{Handover, handled};
use crate::engine::channel_uses::keep_overwrites;
use crate::engine::frontier::{Dispatched, Frontier};
use crate::engine::journal::Journal;
use crate::engine::left_over::EditedTasks;
use crate::engine::load::{finished_step, proposed, stuck_in};
use crate::engine::step_results::id_of;
use crate::engine::stored::{CALL, OF_RUN, memories_of, to_bytes};
use crate::engine::task_id::StepPlace;
use crate::engine::task_output::{TaskOutput, node_to_act_as, resolve};
use crate::error::Error;
use crate::record::header::StoredStuck;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::header::StoredMemories;
use agentgraph_checkpoint::{PendingWrite, Source};

/// A task of the superstep that an edit ends.
struct MergedTask {
    node: u32,
    /// The dispatch, if the task is one.
    dispatch: Option<Dispatched>,
    /// The handover to a handler, if the task failed.
    handled: Option<Handover>,
    done: TaskOutput,
    /// The positions of memories after its calls.
    memories: StoredMemories,
    /// The stuck joins of the subgraphs that it called.
    stuck: Vec<StoredStuck>,
}

impl Loop {
    /// Ends the open superstep as if these nodes had returned the updates. Its finished tasks are merged with
    /// them, since they are never run again. Unfinished tasks are given up.
    pub(in crate::engine) async fn edit_as(
        &mut self,
        writers: Vec<(Cow<'static, str>, AnyUpdate)>,
        behind: Option<EditedTasks<'_>>,
    ) -> Result<(), Error> {
        let mut edits = Vec::with_capacity(writers.len());
        for (name, update) in writers {
            edits.push((
                node_to_act_as(&self.position.graph, &name)?,
                TaskOutput { update: Some(update), routing: None },
            ));
        }
        let mut finished = self.take_finished_tasks(behind)?;
        let acts = |node: u32| edits.iter().any(|(edit, _)| *edit == node);
        finished.retain(|task| task.dispatch.is_some() || task.handled.is_some() || !acts(task.node));
        let edits = edits.into_iter().map(|(node, done)| MergedTask {
            node,
            dispatch: None,
            handled: None,
            done,
            memories: StoredMemories::new(),
            stuck: Vec::new(),
        });
        finished.extend(edits);
        finished.sort_by_key(|task| {
            (task.dispatch.is_some(), if task.dispatch.is_some() { 0 } else { task.node })
        });
        let mut acting = Frontier::default();
        let mut handled = Vec::new();
        let mut done = Vec::new();
        for (index, task) in (0..).zip(finished) {
            self.note_memories(index, task.memories);
            self.position.joins.note_stuck_inside(task.stuck);
            match task.dispatch {
                Some(dispatch) => acting.dispatched.push(dispatch),
                None => acting.pull(task.node),
            }
            handled.extend(task.handled.map(|by| Handover { index, ..by }));
            done.push(Some(task.done));
        }
        acting.deferred = std::mem::take(&mut self.position.frontier.deferred);
        self.position.frontier = acting;
        self.buffers.ends.handled = handled;
        self.buffers.ends.done = done;
        // An edit does not stop at static interrupts.
        self.merge_several()?;
        self.position.merging = false;
        self.commit(Source::Update, None).await
    }

    /// The finished tasks of the edited superstep, in task order.
    fn take_finished_tasks(&mut self, behind: Option<EditedTasks<'_>>) -> Result<Vec<MergedTask>, Error> {
        let (Some(EditedTasks { place, .. }), Some(journal)) = (behind, &self.records.journal) else {
            return Ok(Vec::new());
        };
        let core = &self.position.graph;
        let all = &self.buffers.ends.handled;
        let mut ended = Vec::new();
        for index in 0..self.position.frontier.len() {
            let id = id_of(core, place, &self.position.frontier, all, index as u32);
            let Some(result) = self.inheritance.left_over.remove(&id).and_then(|left| left.result) else {
                continue;
            };
            let (step, edits) = finished_step(core, journal.codec(), journal.thread(), &result)?;
            let edits = proposed(core, journal.thread(), edits)?;
            let stuck = stuck_in(journal.thread(), &result)?;
            let handled = handled(all, index as u32).map(Handover::copy);
            let (node, _) = self.position.frontier.task(index);
            let at = index.checked_sub(self.position.frontier.pulled.len());
            let dispatch = at.map(|at| self.position.frontier.dispatched[at].clone());
            let actor = handled.as_ref().map_or(node, |by| by.handler);
            let memories = memories_of(&result)?;
            let done = resolve(core, actor, step, edits)?;
            ended.push(MergedTask { node, dispatch, handled, done, memories, stuck });
        }
        Ok(ended)
    }

    /// The updates of the finished tasks of the edited superstep.
    pub(in crate::engine) fn finished_updates(
        &mut self,
        behind: Option<EditedTasks<'_>>,
    ) -> Result<Vec<AnyUpdate>, Error> {
        let mut done = Vec::new();
        for (index, task) in (0..).zip(self.take_finished_tasks(behind)?) {
            self.note_memories(index, task.memories);
            self.position.joins.note_stuck_inside(task.stuck);
            done.push(Some(task.done));
        }
        keep_overwrites(&self.position.graph, &mut done);
        Ok(done.into_iter().flatten().filter_map(|done| done.update).collect())
    }

    /// Keeps the memories of a task that is merged with the edit.
    fn note_memories(&self, index: u32, memories: StoredMemories) {
        if let Some(named) = self.records.journal.as_deref().and_then(Journal::memories) {
            named.ended(index, memories);
        }
    }

    /// Lets tasks that have called subgraphs continue these calls under their new ids.
    fn calls_under_new_ids(&self, old: StepPlace<'_>, new: StepPlace<'_>) -> Vec<PendingWrite> {
        let handled = &self.buffers.ends.handled[..];
        let tasks = 0..if self.position.graph.uses.graphs { self.position.frontier.len() } else { 0 };
        let calls = tasks.filter_map(|index| {
            self.memory_of(self.actors().node(index))?;
            let old = id_of(&self.position.graph, old, &self.position.frontier, handled, index as u32);
            let task = id_of(&self.position.graph, new, &self.position.frontier, handled, index as u32);
            Some(PendingWrite { task, slot: CALL, bytes: to_bytes(&self.callee(old)).ok()? })
        });
        calls.collect()
    }

    /// The pending writes of a checkpoint's tasks, under the ids that the tasks have on the next one, and the
    /// writes of the run.
    pub(in crate::engine) fn writes_under_new_ids(&self, behind: EditedTasks<'_>) -> Vec<PendingWrite> {
        let (of_run, mut of_tasks): (Vec<_>, Vec<_>) =
            behind.writes.into_iter().partition(|write| write.task == OF_RUN);
        let Some(journal) = &self.records.journal else { return Default::default() };
        let place = journal.next_place();
        let ids = |place, handled: &[Handover]| {
            let ids = (0..self.position.frontier.len()).map(move |index| {
                id_of(&self.position.graph, place, &self.position.frontier, handled, index as u32)
            });
            ids.collect::<Vec<_>>()
        };
        let handled = &self.buffers.ends.handled[..];
        of_tasks.retain(|write| write.slot != CALL);
        let mut old = ids(behind.place, &[]);
        old.extend(ids(behind.place, handled));
        let mut new = ids(place, &[]);
        new.extend(ids(place, handled));
        let moves: std::collections::HashMap<_, _> = old.into_iter().zip(new).collect();
        of_tasks.retain_mut(|write| match moves.get(&write.task) {
            None => false,
            Some(task) => {
                write.task = *task;
                true
            }
        });
        of_tasks.extend(self.calls_under_new_ids(behind.place, place));
        of_tasks.extend(of_run);
        of_tasks
    }
}
