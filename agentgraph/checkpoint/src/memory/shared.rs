//! Large values in memory: each is stored once while a row or a write uses it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::blob::{Hash, Pieces};

/// A large value. Its bytes are freed with the last use, though its entry may stay for a while.
type Blob = Vec<u8>;

/// A piece of a row or a write: its position in the whole, and its value.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    at: usize,
    blob: Arc<Blob>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    blobs: HashMap<Hash, Weak<Blob>>,
    /// Entries of freed values are removed when there are more entries than this.
    look_at: usize,
}

impl Shared {
    /// The pieces of `bytes`; values that are stored already are reused.
    pub(super) fn hold(&mut self, bytes: &[u8], pieces: &Pieces) -> Vec<Piece> {
        let held = pieces.each(bytes).map(|(at, hash, piece)| {
            let entry = self.blobs.entry(*hash).or_default();
            let blob = entry.upgrade().unwrap_or_else(|| {
                let blob = Arc::new(piece.to_vec());
                *entry = Arc::downgrade(&blob);
                blob
            });
            Piece { at: at as usize, blob }
        });
        let held = held.collect();
        if self.blobs.len() > self.look_at {
            self.blobs.retain(|_, blob| blob.strong_count() > 0);
            self.look_at = 2 * self.blobs.len() + 64;
        }
        held
    }

    /// The number of stored values, and their bytes.
    pub(super) fn count(&self) -> (u64, u64) {
        let alive = self.blobs.values().filter_map(Weak::upgrade);
        alive.fold((0, 0), |(count, bytes), blob| (count + 1, bytes + blob.len() as u64))
    }
}

/// Inserts pieces where they were cut out.
pub(super) fn whole(rest: &[u8], pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut left = rest;
    for Piece { at, blob } in pieces {
        let (before, after) = left.split_at_checked(at.saturating_sub(bytes.len())).unwrap_or((left, &[]));
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(blob);
        left = after;
    }
    bytes.extend_from_slice(left);
    bytes
}
