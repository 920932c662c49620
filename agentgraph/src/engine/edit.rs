//! Edits: a checkpoint that no task wrote.

use std::borrow::Cow;
use std::sync::Arc;

use crate::checkpoint::PendingWrite;
use crate::checkpoint::format::Source;
use crate::engine::ends::id_of;
use crate::engine::host::TaskRunner;
use crate::engine::lifetimes::begin_merge;
use crate::engine::merge::{Done, node_to_act_as};
use crate::engine::plan::{Actors, Frontier, Handled, StepPlace};
use crate::engine::stored::{CALL, OF_RUN, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::graph::joins::Joins;
use crate::run::{Edit, Interrupt, InterruptKind};
use crate::state::State;

/// What the tasks of the edited checkpoint left behind, and where it stands.
pub(crate) struct Behind<'a> {
    pub(crate) place: StepPlace<'a>,
    pub(crate) writes: Vec<PendingWrite>,
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Commits the edit. `behind` is what stays with an edit that moves nothing.
    pub(crate) async fn edit(&mut self, edit: Edit<S>, behind: Option<Behind<'_>>) -> Result<(), Error> {
        match edit {
            Edit::Here(update) => self.edit_here(update, behind).await,
            Edit::As(writers) => self.edit_as(writers).await,
            Edit::AsStart(input) => {
                self.clear_frontier();
                self.begin_input(input)?;
                self.commit(Source::Update, None).await
            }
            Edit::AsEnd(update) => {
                self.write(update)?;
                self.clear_frontier();
                self.commit(Source::Update, None).await
            }
        }
    }

    fn clear_frontier(&mut self) {
        self.frontier = Frontier::default();
        self.joins = Joins::of(&self.core.topology);
    }

    async fn edit_here(
        &mut self,
        update: Option<S::Update>,
        behind: Option<Behind<'_>>,
    ) -> Result<(), Error> {
        let source = if update.is_some() { Source::Update } else { Source::Fork };
        match update {
            Some(update) => self.write(update)?,
            None => self.begin_record(),
        }
        let (results, of_run) = match behind {
            None => Default::default(),
            Some(behind) => self.moved(behind),
        };
        // Results first: if only they are stored, nobody asks for them. The other way round a finished task would run again.
        let next = self.journal.as_ref().map(|journal| journal.next_id());
        if let (Some(journal), Some(next)) = (&mut self.journal, next) {
            journal.put_writes_at(next, &results).await?;
        }
        let halted = std::mem::take(&mut self.halted).into_iter();
        let halts: Vec<_> = halted.map(|node| Interrupt::fixed(node, InterruptKind::After)).collect();
        let stop = (!halts.is_empty()).then_some(Pause::Interrupted(halts));
        if let Some(prepared) = self.try_commit(source, None, stop.as_ref())? {
            self.commit_later(prepared).await?;
        }
        match &mut self.journal {
            Some(journal) => journal.put_writes(&of_run).await,
            None => Ok(()),
        }
    }

    async fn edit_as(&mut self, writers: Vec<(Cow<'static, str>, S::Update)>) -> Result<(), Error> {
        let core = Arc::clone(&self.core);
        let mut tasks = Vec::with_capacity(writers.len());
        for (name, update) in writers {
            tasks.push((node_to_act_as(&core, &name)?, update));
        }
        tasks.sort_by_key(|(node, _)| *node);
        let mut acting = Frontier::default();
        let mut done = Vec::with_capacity(tasks.len());
        for (node, update) in tasks {
            acting.pull(node);
            done.push(Some(Done { update: Some(update), goes: None }));
        }
        self.scratch.next.deferred = std::mem::take(&mut self.frontier.deferred);
        begin_merge(&core, &mut self.state, &mut self.journal, &mut self.scratch.ephemeral, true)?;
        let actors = Actors { frontier: &acting, handled: &[] };
        self.merge_as(actors, &mut done)?;
        self.frontier = std::mem::take(&mut self.scratch.next);
        self.commit(Source::Update, None).await
    }

    /// Lets tasks that have called subgraphs go on with these calls under their new ids.
    fn moved_calls(&self, old: StepPlace<'_>, new: StepPlace<'_>) -> Vec<PendingWrite> {
        let handled = &self.scratch.ends.handled[..];
        let tasks = 0..if self.core.has_graphs { self.frontier.len() } else { 0 };
        let calls = tasks.filter_map(|index| {
            self.memory_of(self.actors().node(index))?;
            let old = id_of(&self.core, old, &self.frontier, handled, index as u32);
            let task = id_of(&self.core, new, &self.frontier, handled, index as u32);
            Some(PendingWrite { task, slot: CALL, bytes: to_bytes(&self.callee(old)).ok()? })
        });
        calls.collect()
    }

    /// The writes of a checkpoint's tasks, under the ids that the tasks have on the next one; those of the run apart.
    fn moved(&self, behind: Behind<'_>) -> (Vec<PendingWrite>, Vec<PendingWrite>) {
        let (of_run, mut of_tasks): (Vec<_>, Vec<_>) =
            behind.writes.into_iter().partition(|write| write.task == OF_RUN);
        let Some(journal) = &self.journal else { return Default::default() };
        let place = StepPlace {
            parent: journal.next_id().step.saturating_add(journal.ahead),
            ..journal.step_place()
        };
        let ids = |place, handled: &[Handled]| {
            let ids = (0..self.frontier.len())
                .map(move |index| id_of(&self.core, place, &self.frontier, handled, index as u32));
            ids.collect::<Vec<_>>()
        };
        let handled = &self.scratch.ends.handled[..];
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
        of_tasks.extend(self.moved_calls(behind.place, place));
        (of_tasks, of_run)
    }
}
