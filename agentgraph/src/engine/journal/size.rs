//! [`ReplaySize`]: what reading the head costs, by which the journal chooses between a delta and a full.

use crate::engine::load::Replay;

/// Minimum size of a full record's variable header fields: run, time, joins and the next tasks.
const LEAST_BESIDE: u64 = 56;

/// The cost of reading the head.
#[derive(Default)]
pub(super) struct ReplaySize {
    /// The bytes read to restore the head.
    pub(super) replay: u64,
    /// The bytes of the deltas since the newest full, headers included.
    since_full: u64,
    /// A full is not weighed against the deltas before they reach this number of bytes.
    weigh_at: u64,
    /// The number of deltas after the newest full or segment.
    pub(super) deltas: u32,
}

impl ReplaySize {
    pub(super) fn of(replayed: &Replay) -> Self {
        let Replay { replay, since_full, deltas, .. } = *replayed;
        ReplaySize { replay, since_full, weigh_at: 0, deltas }
    }

    /// Whether the deltas since the last full, with `changes` more bytes, may weigh as much as a full, whose
    /// constants and state take `least` bytes.
    pub(super) fn may_outweigh(&self, least: u64, changes: u64) -> bool {
        self.since_full + changes >= self.weigh_at.max(least + LEAST_BESIDE)
    }

    /// Whether these deltas weigh as much as a full of `full` bytes. If not, they are weighed again only when
    /// they reach that size or have doubled: the header of a full may shrink.
    pub(super) fn outweighs(&mut self, full: u64, changes: u64) -> bool {
        let deltas = self.since_full + changes;
        self.weigh_at = full.min(2 * deltas);
        deltas >= full
    }

    /// A record of that many bytes is the head now.
    pub(super) fn stored(&mut self, replay: u64, bytes: u64, (full, folds): (bool, bool)) {
        self.replay = replay;
        self.deltas = if full || folds { 0 } else { self.deltas + 1 };
        if full {
            (self.since_full, self.weigh_at) = (0, 0);
        } else {
            self.since_full += bytes;
        }
    }
}
