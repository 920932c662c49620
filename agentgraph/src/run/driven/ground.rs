//! [`Ground`]: where a driven run starts.

use std::fmt;
use std::time::SystemTime;

/// Where a driven run starts: its thread, the thread's rows, the time, and the seed of its random numbers.
///
/// A run that is built again needs the same ground.
#[derive(Clone)]
pub struct Ground {
    pub(super) thread: String,
    pub(super) seed: u64,
    pub(super) now: SystemTime,
    pub(super) rows: Vec<(String, Vec<u8>)>,
    pub(super) journaled: bool,
}

impl Ground {
    /// A thread without rows. Run ids come from `seed` too, so no two calls of a thread may have the same
    /// one.
    pub fn new(thread: impl AsRef<str>, seed: u64, now: SystemTime) -> Self {
        Ground { thread: thread.as_ref().to_owned(), seed, now, rows: Vec::new(), journaled: false }
    }

    /// Adds rows of the thread: all that earlier runs have [set](super::StoreChange::set) and not cleared.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Says that all replies are kept in a journal while the run is under way. The results of tasks are then
    /// in the journal, so the run asks only for its commits to be stored, and for the rest when it pauses.
    #[must_use]
    pub fn journaled(mut self) -> Self {
        self.journaled = true;
        self
    }
}

/// Omits the rows, which may contain secrets.
impl fmt::Debug for Ground {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ground { thread, seed, now, rows, journaled } = self;
        let mut parts = out.debug_struct("Ground");
        parts.field("thread", thread).field("seed", seed).field("now", now).field("rows", &rows.len());
        parts.field("journaled", journaled).finish()
    }
}
