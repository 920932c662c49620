//! What a call that stores at its end puts off until then.

use crate::engine::journal::Journal;
use crate::error::Error;
use crate::state::State;
use agentgraph_checkpoint::{PendingWrite, RunId, Source};

/// What a call that stores at its end has not stored yet.
#[derive(Default)]
pub(super) struct DeferredCommits {
    /// The last commit it would have made.
    pub(super) commit: Option<DeferredCommit>,
    /// Writes on the checkpoint that stands, until a commit makes them obsolete.
    pub(super) writes: Vec<PendingWrite>,
    /// By how much task ids move on with the commits that were put off.
    pub(super) moves: u64,
    /// Whether they do, and where they begin to.
    moves_from: Option<u64>,
}

impl DeferredCommits {
    /// [`moves`](Self::moves) after one more commit.
    pub(super) fn next_move(&self) -> u64 {
        self.moves_from.map_or(self.moves, |from| self.moves.max(from).saturating_add(1))
    }
}

/// A commit that was put off.
#[derive(Default)]
pub(crate) struct DeferredCommit {
    pub(in crate::engine) source: Source,
    pub(in crate::engine) abandoned: Option<RunId>,
    pub(in crate::engine) halt: Vec<String>,
}

impl<S: State> Journal<S> {
    /// Puts off what is to be stored until [`end_waiting`](Self::end_waiting).
    ///
    /// Task ids are made of the head, which does not move meanwhile. Where they name what runs inside of a
    /// task, they must all the same be other ones in every superstep, and other ones than those of a call
    /// that was killed: then they move on from `moves_from`, a random number.
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
        // A call within another run begins where it says so: the sum of its updates is read back to there.
        let begins = source == Source::Input && self.call.is_some();
        let source = if begins { source } else { commit.source };
        waiting.commit = Some(DeferredCommit { source, abandoned: commit.abandoned.or(abandoned), ..commit });
    }

    /// Stores from now on. Gives the commit that is to be made first; without one, what was to be written is.
    pub(crate) async fn end_waiting(&mut self) -> Result<Option<DeferredCommit>, Error> {
        let Some(waiting) = self.waiting.take() else { return Ok(None) };
        if waiting.commit.is_some() {
            self.must_be_full = true;
            self.ahead = self.ahead_by(&waiting);
            return Ok(waiting.commit);
        }
        self.put_writes(&waiting.writes).await?;
        Ok(None)
    }
}
