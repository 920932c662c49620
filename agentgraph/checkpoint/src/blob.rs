//! Large values, stored once: how a store separates them from a row, and how the row becomes whole again.
//!
//! A store cuts a record (`cut.rs`) and stores the *rest* in the row. Each cut part is a *blob*, stored
//! under the SHA-256 of its bytes; the row refers to it by a *piece*: the position in the row, and the
//! hash. A blob is removed in the same transaction as the last piece that refers to it.

use std::borrow::Cow;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::collections::BTreeMap;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::cut::cuts;
use crate::row::{PendingWrite, Put, Rewrite};

/// Values of at least this many bytes are stored once, unless the store is set otherwise. Below it the hash
/// and the rows of a piece take longer than a second copy, and most messages are smaller; documents, images
/// and pages are larger.
pub(crate) const SHARE_FROM: usize = 64 * 1024;

/// SHA-256 of a blob.
pub(crate) type Hash = [u8; 32];

/// The ranges that are cut out of bytes, with the hashes of the pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces(Vec<(Range<usize>, Hash)>);

impl Pieces {
    pub(crate) fn of(bytes: &[u8], from: usize) -> Self {
        let ranges = cuts(bytes, from).into_iter();
        Pieces(ranges.map(|range| (range.clone(), Sha256::digest(&bytes[range]).into())).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The bytes that stay in the row.
    pub(crate) fn rest<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut rest = Vec::new();
        let mut at = 0;
        for (range, _) in &self.0 {
            rest.extend_from_slice(&bytes[at..range.start]);
            at = range.end;
        }
        rest.extend_from_slice(&bytes[at..]);
        Cow::Owned(rest)
    }

    /// The position of each piece in the whole, its hash and its bytes.
    pub(crate) fn each<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (u64, &'a Hash, &'a [u8])> {
        self.0.iter().map(|(range, hash)| (range.start as u64, hash, &bytes[range.clone()]))
    }
}

/// The pieces of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PutPieces {
    pub(crate) record: Pieces,
    pub(crate) segment: Pieces,
    /// The pieces of the pending writes, in their order.
    pub(crate) writes: Vec<Pieces>,
}

impl PutPieces {
    pub(crate) fn of(put: &Put<'_>, from: usize) -> Self {
        let segment = put.segment.map(|segment| Pieces::of(segment, from)).unwrap_or_default();
        PutPieces { record: Pieces::of(put.record, from), segment, writes: of_writes(put.writes, from) }
    }

    /// Whether the rows have no large values; pending writes are not considered.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.record.is_empty() && self.segment.is_empty()
    }
}

/// Whether the commit has nothing large for certain; most commits need only this test.
#[inline]
pub(crate) fn is_small(put: &Put<'_>, from: usize) -> bool {
    put.record.len() < from && put.writes.is_empty() && put.segment.is_none_or(|segment| segment.len() < from)
}

pub(crate) fn of_writes(writes: &[PendingWrite], from: usize) -> Vec<Pieces> {
    writes.iter().map(|write| Pieces::of(&write.bytes, from)).collect()
}

/// For each key the last write, in the order of the keys. All writers use this order, so no two of them
/// wait for each other.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn last_of_each_key<'a>(
    writes: &'a [PendingWrite],
    pieces: &'a [Pieces],
) -> Vec<(&'a PendingWrite, &'a Pieces)> {
    let each = writes.iter().zip(pieces);
    let by_key: BTreeMap<_, _> = each.map(|kept| ((kept.0.task, kept.0.slot), kept)).collect();
    by_key.into_values().collect()
}

/// The pieces of the fulls of a rewrite.
pub(crate) fn of_rewrite(rewrite: &Rewrite<'_>, from: usize) -> Vec<Pieces> {
    rewrite.fulls.iter().map(|(_, record)| Pieces::of(record, from)).collect()
}

/// The owner of a piece in a store's tables.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) const OF_ROW: [u8; 1] = [0];
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) const OF_SEGMENT: [u8; 1] = [1];

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn of_write(write: &PendingWrite) -> Vec<u8> {
    [&[2][..], &write.task.to_u128().to_be_bytes(), &write.slot.to_be_bytes()].concat()
}

/// A piece as read from the store.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) struct FoundPiece {
    pub(crate) at: u64,
    pub(crate) hash: Vec<u8>,
    /// `None` if the blob is missing.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Inserts the pieces where they were cut out, in order.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn whole(rest: &[u8], count: u32, pieces: Vec<FoundPiece>) -> Result<Vec<u8>, Missing> {
    if pieces.len() != count as usize {
        return Err(Missing::Pieces { found: pieces.len(), count });
    }
    let mut bytes = Vec::new();
    let mut left = rest;
    for FoundPiece { at, hash, bytes: blob } in pieces {
        let blob = blob.ok_or_else(|| Missing::Blob(hex(&hash)))?;
        if Sha256::digest(&blob)[..] != hash[..] {
            return Err(Missing::Changed(hex(&hash)));
        }
        let between = usize::try_from(at).ok().and_then(|at| at.checked_sub(bytes.len()));
        let cut = between.and_then(|between| left.split_at_checked(between));
        let (before, after) = cut.ok_or(Missing::Place)?;
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(&blob);
        left = after;
    }
    bytes.extend_from_slice(left);
    Ok(bytes)
}

/// Why bytes cannot be made whole.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Debug)]
pub(crate) enum Missing {
    Pieces { found: usize, count: u32 },
    Blob(String),
    Changed(String),
    Place,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Pieces { found, count } => {
                write!(out, "it has {count} large values, and the store has {found} of them")
            }
            Missing::Blob(hash) => write!(out, "its large value {hash} is missing from the store"),
            Missing::Changed(hash) => write!(out, "its large value {hash} has changed"),
            Missing::Place => out.write_str("its large values do not fit into it"),
        }
    }
}

/// The first bytes in hexadecimal, enough to find the blob.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The content of a store, in numbers: see [`Catalog::usage`](crate::Catalog::usage).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Fulls, deltas and segments.
    pub rows: u64,
    /// Pending writes.
    pub writes: u64,
    /// The bytes of both, without the large values in them.
    pub bytes: u64,
    /// Large values, each counted once.
    pub values: u64,
    /// Their bytes.
    pub value_bytes: u64,
    /// The places in rows and writes that use large values.
    pub uses: u64,
}

#[cfg(test)]
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(pieces: &Pieces, bytes: &[u8]) -> Vec<FoundPiece> {
        let each = pieces.each(bytes);
        each.map(|(at, hash, blob)| FoundPiece { at, hash: hash.to_vec(), bytes: Some(blob.to_vec()) })
            .collect()
    }

    #[test]
    fn missing_and_changed_pieces_are_errors() {
        let bytes = [&[0xc1; 100][..], &[0xc1; 100]].concat();
        let pieces = Pieces::of(&bytes, 50);
        let rest = pieces.rest(&bytes);
        let error = |count, pieces| whole(&rest, count, pieces).unwrap_err().to_string();
        assert_eq!(error(2, found(&pieces, &bytes)), "it has 2 large values, and the store has 1 of them");
        let mut missing = found(&pieces, &bytes);
        missing[0].bytes = None;
        assert!(error(1, missing).contains("is missing from the store"));
        let mut changed = found(&pieces, &bytes);
        changed[0].bytes.as_mut().unwrap()[7] ^= 1;
        assert!(error(1, changed).contains("has changed"));
        let mut elsewhere = found(&pieces, &bytes);
        elsewhere[0].at = 7;
        assert_eq!(error(1, elsewhere), "its large values do not fit into it");
    }

    proptest! {
        #[test]
        fn what_was_cut_is_whole_again(bytes in proptest::collection::vec(any::<u8>(), 0..300), from in 1..40_usize) {
            let pieces = Pieces::of(&bytes, from);
            let rest = pieces.rest(&bytes);
            let again = whole(&rest, pieces.count(), found(&pieces, &bytes)).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }
}
