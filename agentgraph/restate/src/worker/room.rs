//! [`Room`]: how much the thread and the journal of an invocation hold, so that no limit of the runtime is
//! met.

use std::collections::BTreeMap;

use crate::wire::MOST_INLINE;

/// With a blob store, rows of a thread go there by their hash when so many bytes are in the object.
const ROWS: usize = 8 * 1024 * 1024;

/// An invocation whose journal has so many bytes is the last one to add some: the call goes on in another.
const JOURNAL: usize = 8 * 1024 * 1024;

/// The bytes of a thread's rows in the object, and those of the journal. They follow from what is written, so
/// they are the same on every replay.
#[derive(Default)]
pub(super) struct Room {
    rows: BTreeMap<String, usize>,
    all_rows: usize,
    journal: usize,
}

impl Room {
    /// Counts a row that the thread has.
    pub(super) fn hold(&mut self, key: &str, bytes: usize) {
        self.clear(key);
        self.rows.insert(key.to_owned(), bytes);
        self.all_rows += bytes;
    }

    /// The bytes that a row may take in the object.
    pub(super) fn for_row(&self, key: &str, has_blobs: bool) -> usize {
        let others = self.all_rows - self.rows.get(key).copied().unwrap_or_default();
        let most = if has_blobs { ROWS } else { MOST_INLINE };
        most.saturating_sub(others)
    }

    /// Counts a row that is written.
    pub(super) fn set(&mut self, key: &str, bytes: usize) {
        self.hold(key, bytes);
        self.journal(bytes);
    }

    pub(super) fn clear(&mut self, key: &str) {
        self.all_rows -= self.rows.remove(key).unwrap_or_default();
    }

    /// Counts what was written to the journal.
    pub(super) fn journal(&mut self, bytes: usize) {
        self.journal = self.journal.saturating_add(bytes);
    }

    pub(super) fn is_journal_full(&self) -> bool {
        self.journal >= JOURNAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_room_that_the_others_leave() {
        let mut room = Room::default();
        room.hold("a", 3);
        room.hold("b", ROWS);
        assert!(!room.is_journal_full());
        assert_eq!((room.for_row("c", true), room.for_row("b", true)), (0, ROWS - 3));
        assert_eq!(room.for_row("c", false), MOST_INLINE - ROWS - 3);
        room.set("b", 5);
        room.clear("a");
        room.clear("nothing");
        assert_eq!(room.for_row("c", true), ROWS - 5);
        room.journal(JOURNAL);
        assert!(room.is_journal_full());
    }
}
