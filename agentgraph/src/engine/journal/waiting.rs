//! Deferred commits: what a call that stores at its end has not stored yet.

use crate::engine::journal::Journal;
use crate::error::Error;
use agentgraph_checkpoint::{PendingWrite, RunId, Source};

/// The unstored commits and writes of a call that stores at its end.
#[derive(Default)]
pub(super) struct DeferredCommits {
    /// The last commit that the call would have made.
    pub(super) commit: Option<DeferredCommit>,
    /// Writes on the current checkpoint, until a commit makes them obsolete.
    pub(super) writes: Vec<PendingWrite>,
    /// The number that deferred commits add to the step used in task ids.
    pub(super) moves: u64,
    /// The start of that number; `None` if it does not change.
    moves_from: Option<u64>,
}

impl DeferredCommits {
    /// [`moves`](Self::moves) after one more commit.
    pub(super) fn next_move(&self) -> u64 {
        self.moves_from.map_or(self.moves, |from| self.moves.max(from).saturating_add(1))
    }
}

/// A deferred commit.
#[derive(Default)]
pub(crate) struct DeferredCommit {
    pub(in crate::engine) source: Source,
    pub(in crate::engine) abandoned: Option<RunId>,
    pub(in crate::engine) halt: Vec<String>,
}

impl Journal {
    /// Defers all commits and writes until [`end_waiting`](Self::end_waiting).
    ///
    /// Task ids are derived from the head, which does not change meanwhile. If they name runs inside tasks,
    /// they must still differ between supersteps, and from those of a call that was killed: they then advance
    /// from `moves_from`, a random number.
    pub(crate) fn wait_for_the_end(&mut self, moves_from: Option<u64>) {
        self.waiting = Some(DeferredCommits { moves_from, ..DeferredCommits::default() });
    }

    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Notes a commit that would have been made here.
    pub(crate) fn put_off(&mut self, commit: DeferredCommit) {
        let Some(waiting) = &mut self.waiting else { return };
        waiting.writes.clear();
        waiting.moves = waiting.next_move();
        let DeferredCommit { source, abandoned, .. } = waiting.commit.take().unwrap_or_default();
        // A run inside a task keeps the source of its first commit: readers sum its updates back to that
        // point.
        let begins = source == Source::Input && self.head.call.is_some();
        let source = if begins { source } else { commit.source };
        waiting.commit = Some(DeferredCommit { source, abandoned: commit.abandoned.or(abandoned), ..commit });
    }

    /// Ends the deferral. Returns the commit to be made first; without one, stores the deferred writes.
    pub(crate) async fn end_waiting(&mut self) -> Result<Option<DeferredCommit>, Error> {
        let Some(waiting) = self.waiting.take() else { return Ok(None) };
        if waiting.commit.is_some() {
            // The changes of the deferred commits are in no record, so this one has to hold every field.
            self.next.must_be_full = true;
            self.head.ahead = self.ahead_by(&waiting);
            return Ok(waiting.commit);
        }
        self.put_writes(&waiting.writes).await?;
        Ok(None)
    }
}
