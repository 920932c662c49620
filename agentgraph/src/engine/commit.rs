//! Commits: when the loop makes them, and what the end of a call has to store.

use crate::engine::journal::{Commit, CommitNote, DeferredCommit, Journal, PreparedRecord};
use crate::engine::stored::{OF_RUN, SPENT, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::event::EventKind;
use crate::words::{Interrupt, InterruptKind, Spent};
use agentgraph_checkpoint::{PendingWrite, RunId, Source};

impl Loop {
    /// The amounts that the run has used up, if they are counted.
    #[inline]
    pub(super) fn counted(&self) -> Option<Spent> {
        let spending = &self.runtime.shared.bounds.spending;
        spending.counts().then(|| {
            spending.take_unstored();
            self.spent()
        })
    }

    /// The amounts that the run has used up.
    pub(super) fn spent(&self) -> Spent {
        self.runtime.shared.bounds.spending.total(self.position.merged, || self.runtime.shared.services.now())
    }

    /// Stores what unfinished tasks have used up: it counts although they did not finish.
    pub(super) async fn store_spent(&mut self) -> Result<(), Error> {
        let unstored = self.runtime.shared.bounds.spending.take_unstored();
        let bytes = to_bytes(&self.spent())?;
        match &mut self.records.journal {
            Some(journal) if unstored => {
                journal.put_writes(&[PendingWrite { task: OF_RUN, slot: SPENT, bytes }]).await
            }
            _ => Ok(()),
        }
    }

    /// Whether the call still has to store or wait for something before it returns.
    #[inline]
    pub(crate) fn has_to_settle(&self) -> bool {
        self.records.journal.as_ref().is_some_and(|journal| {
            journal.waits() || journal.is_behind() || self.runtime.shared.bounds.spending.counts()
        })
    }

    /// Stores deferred commits and spent amounts, and waits for records that were handed over to a queue.
    pub(crate) async fn settle(&mut self, paused: Result<Pause, Error>) -> Result<Pause, Error> {
        let stored = if self.position.merging {
            // After a failed merge the state is neither the last one nor the next.
            Ok(())
        } else {
            self.end_waiting().await
        };
        let stored = match stored {
            Ok(()) => self.store_spent().await,
            failed => failed,
        };
        let settled = match &self.records.journal {
            Some(journal) => journal.settle().await,
            None => Ok(()),
        };
        // The error of the run counts more than one of storing its remains.
        let pause = paused?;
        stored.and(settled).map(|()| pause)
    }

    /// Stores what was deferred. Later commits are stored at once.
    pub(super) async fn end_waiting(&mut self) -> Result<(), Error> {
        let Some(journal) = &mut self.records.journal else { return Ok(()) };
        let Some(DeferredCommit { source, abandoned, halt }) = journal.end_waiting().await? else {
            return Ok(());
        };
        if let Some(eager) = &mut self.position.eager {
            eager.keep_states(&self.position.graph, journal)?;
        }
        self.commit_halted(source, abandoned, halt).await
    }

    /// Commits with the static interrupts after these nodes.
    pub(super) async fn commit_halted(
        &mut self,
        source: Source,
        abandoned: Option<RunId>,
        halted: Vec<String>,
    ) -> Result<(), Error> {
        let halts: Vec<_> =
            halted.into_iter().map(|node| Interrupt::fixed(node, InterruptKind::After)).collect();
        let stop = (!halts.is_empty()).then_some(Pause::Interrupted(halts));
        match self.try_commit(source, abandoned, stop.as_ref())? {
            Some(prepared) => self.commit_later(prepared).await,
            None => Ok(()),
        }
    }

    pub(super) async fn commit(&mut self, source: Source, abandoned: Option<RunId>) -> Result<(), Error> {
        match self.try_commit(source, abandoned, None)? {
            Some(prepared) => Box::pin(self.commit_later(prepared)).await,
            None => Ok(()),
        }
    }

    /// Commits if the store needs no await; otherwise returns the record to be committed, in a box: every
    /// future that commits has room for it.
    #[inline]
    pub(super) fn try_commit(
        &mut self,
        source: Source,
        abandoned: Option<RunId>,
        stop: Option<&Pause>,
    ) -> Result<Option<Box<PreparedRecord>>, Error> {
        let nest = self.runtime.shared.nest.as_deref();
        // A deferred commit may be made during a later superstep, whose memories are not merged with it.
        if let Some(nest) =
            nest.filter(|_| self.position.eager.is_none() && self.position.merged == self.position.step)
        {
            nest.memories.merge_all();
        }
        let spent = self.counted();
        self.close_trace()?;
        let mut wrote = false;
        if let Some(nest) = &self.runtime.shared.nest {
            wrote = nest.take_wrote();
            self.gather_stuck();
        }
        let Some(journal) = &mut self.records.journal else {
            if let Some(eager) = &mut self.position.eager {
                eager.flow.mark_saved();
            }
            return Ok(None);
        };
        let halt: Vec<String> = match stop {
            Some(Pause::Interrupted(interrupts)) => interrupts.iter().map(|stop| stop.node.clone()).collect(),
            _ => Vec::new(),
        };
        if journal.waits() {
            journal.put_off(DeferredCommit { source, abandoned, halt });
            return Ok(None);
        }
        if let Some(trace) = &mut self.records.trace {
            let wrote = trace.take_unstored(&self.position.graph.schema, journal.codec())?;
            journal.set_updates_sum(wrote);
        }
        if wrote {
            journal.note_writes();
        }
        let sessions = &self.runtime.shared.sessions;
        let sessions_used = source == Source::Input || sessions.take_used();
        let note = CommitNote { source, abandoned, halt, sessions_used };
        let commit = Commit::new(&note, &self.position, &self.records.outputs, sessions, spent);
        let prepared = journal.prepare(&*self.runtime.shared.services, &commit)?;
        // A run inside a task first stores its changes of the runs around it.
        let tells = self.runtime.shared.outer.as_ref().is_some_and(|outer| outer.shared.has_changes());
        let committed = !tells && journal.try_commit(&prepared, &commit)?;
        if committed {
            self.is_committed(source);
        }
        Ok((!committed).then(|| Box::new(prepared)))
    }

    pub(super) async fn commit_later(&mut self, prepared: Box<PreparedRecord>) -> Result<(), Error> {
        if let Some(outer) = &self.runtime.shared.outer {
            outer.shared.store_changes(outer.request.step).await?;
        }
        let spent = self.counted();
        let Some(journal) = &mut self.records.journal else { return Ok(()) };
        let note = prepared.note();
        let sessions = &self.runtime.shared.sessions;
        let commit = Commit::new(note, &self.position, &self.records.outputs, sessions, spent);
        journal.commit(&prepared, &commit).await?;
        self.is_committed(note.source);
        Ok(())
    }

    #[inline]
    pub(super) fn is_committed(&mut self, source: Source) {
        self.records.outputs.is_stored();
        if let Some(eager) = &mut self.position.eager {
            eager.flow.mark_saved();
            if let Some(nest) = &self.runtime.shared.nest {
                nest.set_head(self.records.journal.as_deref().and_then(Journal::checkpoint));
            }
        }
        self.announce_checkpoint(source);
    }

    pub(super) fn announce_checkpoint(&self, source: Source) {
        let Some(events) = self.listeners.events.as_ref().filter(|events| events.views().checkpoints) else {
            return;
        };
        let Some(id) = self.records.journal.as_deref().and_then(Journal::checkpoint) else { return };
        let open = self.position.eager.iter().flat_map(|eager| eager.flow.open.values().map(|one| one.node));
        let next = self
            .position
            .frontier
            .nodes()
            .chain(open)
            .map(|node| self.position.graph.name(node).to_owned())
            .collect();
        events.push(self.position.step, EventKind::Checkpoint { id, source, next });
    }
}
