//! What a thread keeps of its failures, so that a reader can say why it does not go on.
//!
//! A task that failed leaves its [`Failure`] as a pending write beside the results of its siblings. What made
//! a superstep fail and is none of its tasks (two writers of a field, a route to nowhere, a step timeout) is
//! a write of the run. Both go with the commit that ends the superstep; an empty write says that one is over
//! before that.

use crate::engine::host::TaskRunner;
use crate::engine::journal::Journal;
use crate::engine::left_over::Leftovers;
use crate::engine::stored::{ERROR, FAILURE, OF_RUN, from_bytes, to_bytes};
use crate::engine::{Loop, Pause};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::state::State;
use agentgraph_checkpoint::{CheckpointId, PendingWrite, TaskId};

/// The record of a task that failed.
pub(super) fn error_write(task: TaskId, failure: &Failure) -> Result<PendingWrite, Error> {
    Ok(PendingWrite { task, slot: ERROR, bytes: to_bytes(failure)? })
}

/// The record of a task whose error of an earlier call is over.
pub(super) fn no_error(task: TaskId) -> PendingWrite {
    PendingWrite { task, slot: ERROR, bytes: Vec::new() }
}

/// Reads either of them, or that of a run.
pub(super) fn read_failure(bytes: &[u8]) -> Result<Option<Failure>, Error> {
    if bytes.is_empty() { Ok(None) } else { from_bytes(bytes).map(Some) }
}

impl<S: State, R> Loop<S, R> {
    /// What the task of a node failed with.
    pub(super) fn failure_of(&self, node: u32, error: &Error) -> Failure {
        let keeps = self.position.graph.entry(node).map_or(&[][..], |node| &node.keeps);
        Failure::of(self.position.graph.name(node), error, keeps)
    }

    /// Notes whether a store says that the superstep has failed, and no task of it.
    pub(super) fn note_failure_of(&mut self, left: &Leftovers) {
        let said = left.get(&OF_RUN).is_some_and(|left| left.error.is_some());
        self.inheritance.had_failure = self.head().filter(|_| said);
    }

    /// The checkpoint that the run goes on from; none before it has stored one.
    fn head(&self) -> Option<CheckpointId> {
        self.records.journal.as_ref().filter(|journal| journal.has_begun()).and_then(Journal::checkpoint)
    }
}

impl<S: State, R: TaskRunner<S>> Loop<S, R> {
    /// Whether [`keep_failure`](Self::keep_failure) may have something to store.
    pub(crate) fn may_keep_failure(&self, paused: &Result<Pause, Error>) -> bool {
        self.records.journal.is_some() && (paused.is_err() || self.inheritance.had_failure.is_some())
    }

    /// Stores what the call failed with, if that was none of its tasks. The error is the call's whether or
    /// not that can be stored.
    pub(crate) async fn keep_failure(&mut self, paused: Result<Pause, Error>) -> Result<Pause, Error> {
        let had_failure =
            self.inheritance.had_failure.is_some() && self.inheritance.had_failure == self.head();
        let bytes = match &paused {
            Err(error) if error.failures().is_empty() => match is_of_a_superstep(error.code()) {
                true => to_bytes(&Failure::of(error.node().unwrap_or_default(), error, &[])),
                false => return paused,
            },
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

    /// The same for a panic of users' code outside of nodes, after which what was put off cannot be stored.
    pub(crate) async fn keep_panic(&mut self, error: Error) -> Result<Pause, Error> {
        self.position.merging |= self.records.journal.as_ref().is_some_and(Journal::waits);
        let kept = self.keep_failure(Err(error)).await;
        if let Some(journal) = &self.records.journal {
            // What was handed over to a queue has to be stored before the thread is given back. The panic
            // counts more than that.
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

/// Whether a superstep can fail with it. The other codes are about the store or the call, or come when the
/// run is over.
fn is_of_a_superstep(code: Code) -> bool {
    match code {
        Code::StepTimeout => true,
        Code::StuckJoin | Code::NotFinished | Code::NoCheckpointer => false,
        code => !code.ends_the_run(),
    }
}
