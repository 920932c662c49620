//! The stored failures of a thread, so that a reader can explain why it does not continue.
//!
//! A failed task leaves its [`Failure`] as a pending write beside the results of its siblings. A failure of
//! the superstep that belongs to no task (two writers of a field, a route to nowhere, a step timeout) is a
//! write of the run. Both are dropped by the commit that ends the superstep; an empty write marks a failure
//! that is over before that.

use crate::engine::journal::Journal;
use crate::engine::left_over::Leftovers;
use crate::engine::stored::{FAILURE, OF_RUN, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::{Code, Error};
use crate::failure::Failure;
use agentgraph_checkpoint::{CheckpointId, PendingWrite};

impl Loop {
    /// The failure of a node's task.
    pub(super) fn failure_of(&self, node: u32, error: &Error) -> Failure {
        let keeps = self.position.graph.entry(node).map_or(&[][..], |node| &node.keeps);
        Failure::of(self.position.graph.name(node), error, keeps)
    }

    /// Notes whether the store contains a failure of the superstep that belongs to no task.
    pub(super) fn note_failure_of(&mut self, left: &Leftovers) {
        let said = left.get(&OF_RUN).is_some_and(|left| left.error.is_some());
        self.inheritance.had_failure = self.head().filter(|_| said);
    }

    /// The checkpoint that the run continues from; `None` before the run has stored one.
    fn head(&self) -> Option<CheckpointId> {
        self.records.journal.as_deref().filter(|journal| journal.has_begun()).and_then(Journal::checkpoint)
    }
}

impl Loop {
    /// Whether [`keep_failure`](Self::keep_failure) may have something to store.
    pub(crate) fn may_keep_failure(&self, paused: &Result<Pause, Error>) -> bool {
        self.records.journal.is_some() && (paused.is_err() || self.inheritance.had_failure.is_some())
    }

    /// Stores the failure of the call if it belongs to no task. Returns the error of the call even if the
    /// failure cannot be stored.
    pub(crate) async fn keep_failure(&mut self, paused: Result<Pause, Error>) -> Result<Pause, Error> {
        let had_failure =
            self.inheritance.had_failure.is_some() && self.inheritance.had_failure == self.head();
        let bytes = match &paused {
            Err(error) if error.failures().is_empty() && is_of_a_superstep(error.code()) => {
                to_bytes(&Failure::of(error.node().unwrap_or_default(), error, &[]))
            }
            Err(error) if error.failures().is_empty() => return paused,
            Err(_) | Ok(Pause::Interrupted(_)) if had_failure => Ok(Vec::new()),
            _ => return paused,
        };
        let stored = match bytes {
            Ok(bytes) => self.store_failure(PendingWrite { task: OF_RUN, slot: FAILURE, bytes }).await,
            Err(error) => Err(error),
        };
        match (paused, stored) {
            (Ok(_), Err(error)) => Err(error),
            (paused, _) => paused,
        }
    }

    /// [`keep_failure`](Self::keep_failure) for a panic of users' code outside nodes, after which deferred
    /// commits cannot be stored.
    pub(crate) async fn keep_panic(&mut self, error: Error) -> Result<Pause, Error> {
        self.position.merging |= self.records.journal.as_deref().is_some_and(Journal::waits);
        let kept = self.keep_failure(Err(error)).await;
        if let Some(journal) = &self.records.journal {
            // Records handed over to a queue must be stored before the thread is released. The panic counts
            // more than an error of that.
            let _ = journal.settle().await;
        }
        kept
    }

    async fn store_failure(&mut self, write: PendingWrite) -> Result<(), Error> {
        // After a failed merge there is no state that could be committed.
        if !self.position.merging {
            self.end_waiting().await?;
        }
        match self.records.journal.as_mut().filter(|journal| journal.has_begun()) {
            Some(journal) => journal.put_write_now(write).await,
            None => Ok(()),
        }
    }
}

/// Whether a superstep can fail with this code. The other codes concern the store or the call, or occur when
/// the run is over.
fn is_of_a_superstep(code: Code) -> bool {
    match code {
        Code::StepTimeout => true,
        Code::StuckJoin | Code::NotFinished | Code::NoCheckpointer => false,
        code => !code.ends_the_run(),
    }
}
