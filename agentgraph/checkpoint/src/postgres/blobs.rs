//! Large values in the database: stored once, inserted again on reads, and removed with the last piece that
//! uses them.
//!
//! Everything here runs in the transaction of the row it belongs to, after the rows, in this order: pieces
//! are removed, values are locked and added, pieces are added, unused values are removed.
//!
//! Other transactions store and delete the same values meanwhile. A transaction that adds a piece locks its
//! value against removal; one that may remove values locks them against new pieces, then reads the pieces
//! again. A transaction takes all its locks at once, in order of the hashes, so two of them seldom wait for
//! each other; if they do, the server ends one, and `repeated` in `postgres.rs` starts it again.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Fault;
use super::rows::number;
use super::statements::{Transaction, Value};
use crate::blob::{FoundPiece, Pieces};

/// Adds the pieces of a record or a write as columns beside it: their positions, hashes and bytes.
macro_rules! with_pieces {
    ($row:literal, $owner:literal) => {
        with_pieces!(@ $row, $owner, "piece.at", "blob.hash", "blob.bytes")
    };
    (@ $row:literal, $owner:literal, $($column:literal),*) => {
        concat!($(
            ", CASE WHEN ", $row, ".pieces > 0 THEN ARRAY(SELECT ", $column,
            " FROM @piece LEFT JOIN @blob ON blob.hash = piece.blob WHERE piece.place = ", $row,
            ".place AND piece.branch = ", $row, ".branch AND piece.step = ", $row, ".step AND piece.owner = ", $owner,
            " ORDER BY piece.at) END"
        ),*)
    };
}
pub(super) use with_pieces;

const HOLD: &str = "SELECT hash FROM @blob WHERE hash = ANY($1) ORDER BY hash FOR KEY SHARE";

const ADD: &str = "
INSERT INTO @blob (hash, bytes) SELECT new.hash, new.bytes FROM unnest($1::bytea[], $2::bytea[]) AS new (hash, bytes)
ORDER BY new.hash ON CONFLICT DO NOTHING";

const ADD_PIECES: &str = "
INSERT INTO @piece (place, branch, step, owner, at, blob)
SELECT $1, $2, $3, new.owner, new.at, new.hash
FROM unnest($4::bytea[], $5::bigint[], $6::bytea[]) AS new (owner, at, hash)";

const GONE_OF: &str =
    "DELETE FROM @piece WHERE place = $1 AND branch = $2 AND step = $3 AND owner = ANY($4) RETURNING blob";

const GONE_OF_WRITES: &str =
    "DELETE FROM @piece WHERE place = $1 AND branch = $2 AND step = $3 AND owner >= '\\x02' RETURNING blob";

const GONE_OF_STEPS: &str =
    "DELETE FROM @piece WHERE place = $1 AND branch = $2 AND step >= $3 AND step < $4 RETURNING blob";

const GONE_OF_PLACES: &str = "DELETE FROM @piece WHERE place = ANY($1) RETURNING blob";

const LOCK: &str = "SELECT hash FROM @blob WHERE hash = ANY($1) ORDER BY hash FOR UPDATE";

const SWEEP: &str = "DELETE FROM @blob WHERE hash = ANY($1) AND NOT EXISTS (SELECT 1 FROM @piece WHERE piece.blob = blob.hash)";

/// The owner of pieces: a step of a place, by its numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) place: i64,
    pub(super) branch: i64,
    pub(super) step: i64,
}

/// Bytes that were stored without their large values.
struct Cut<'a> {
    step: Step,
    owner: Vec<u8>,
    bytes: &'a [u8],
    pieces: &'a Pieces,
}

/// The changes of a transaction to large values.
#[derive(Default)]
pub(super) struct Changes<'a> {
    cuts: Vec<Cut<'a>>,
    /// Values that lost a use and may be unused now.
    freed: BTreeSet<Vec<u8>>,
}

impl<'a> Changes<'a> {
    /// Stores the large values of the row or write with this owner.
    pub(super) fn keep(&mut self, step: Step, owner: &[u8], bytes: &'a [u8], pieces: &'a Pieces) {
        if !pieces.is_empty() {
            self.cuts.push(Cut { step, owner: owner.to_vec(), bytes, pieces });
        }
    }

    pub(super) async fn free(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
        owners: &[&[u8]],
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF, &[&place, &branch, &step, &owners]).await
    }

    pub(super) async fn free_writes(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF_WRITES, &[&place, &branch, &step]).await
    }

    /// The pieces from the step up to `end`, exclusive.
    pub(super) async fn free_steps(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
        end: i64,
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF_STEPS, &[&place, &branch, &step, &end]).await
    }

    pub(super) async fn free_places(
        &mut self,
        transaction: &Transaction<'_>,
        places: &[i64],
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF_PLACES, &[&places]).await
    }

    async fn take(
        &mut self,
        transaction: &Transaction<'_>,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<(), Fault> {
        for row in transaction.query(sql, values).await? {
            self.freed.insert(row.try_get(0)?);
        }
        Ok(())
    }

    /// Carries out the changes, at the end of the transaction.
    pub(super) async fn carry_out(mut self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let each = self.cuts.iter().flat_map(|cut| cut.pieces.each(cut.bytes));
        let mut missing: BTreeMap<&[u8], &[u8]> = each.map(|(_, hash, bytes)| (&hash[..], bytes)).collect();
        self.freed.retain(|hash| !missing.contains_key(&hash[..]));
        let freed: Vec<&[u8]> = self.freed.iter().map(Vec::as_slice).collect();
        hold(transaction, &mut missing, &freed).await?;
        self.add_pieces(transaction).await?;
        if freed.is_empty() {
            return Ok(());
        }
        // A separate statement, so that it sees the pieces of transactions whose locks it waited for.
        transaction.execute(SWEEP, &[&freed]).await?;
        Ok(())
    }

    async fn add_pieces(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        for of_step in self.cuts.chunk_by(|one, next| one.step == next.step) {
            let mut owners = Vec::new();
            let mut places = Vec::new();
            let mut hashes = Vec::new();
            for cut in of_step {
                for (at, hash, _) in cut.pieces.each(cut.bytes) {
                    owners.push(&cut.owner[..]);
                    places.push(number(at)?);
                    hashes.push(&hash[..]);
                }
            }
            let Step { place, branch, step } = of_step[0].step;
            transaction.execute(ADD_PIECES, &[&place, &branch, &step, &owners, &places, &hashes]).await?;
        }
        Ok(())
    }
}

/// Locks the new values and those that may be removed. Sends and adds only the missing ones.
async fn hold<'a>(
    transaction: &Transaction<'_>,
    missing: &mut BTreeMap<&'a [u8], &'a [u8]>,
    freed: &[&'a [u8]],
) -> Result<(), Fault> {
    let statement = if freed.is_empty() { HOLD } else { LOCK };
    let mut all: BTreeSet<&[u8]> = missing.keys().copied().chain(freed.iter().copied()).collect();
    while !all.is_empty() {
        let hashes: Vec<&[u8]> = all.iter().copied().collect();
        for held in transaction.query(statement, &[&hashes]).await? {
            missing.remove(held.try_get::<_, &[u8]>(0)?);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (hashes, bytes): (Vec<&[u8]>, Vec<&[u8]>) = missing.iter().unzip();
        let added = transaction.execute(ADD, &[&hashes, &bytes]).await?;
        if added == missing.len() as u64 {
            return Ok(());
        }
        // Other transactions added some at the same moment.
        all = missing.keys().copied().collect();
    }
    Ok(())
}

/// Reads the three columns of `with_pieces`, starting at `first`.
pub(super) fn found(row: &tokio_postgres::Row, first: usize) -> Result<Vec<FoundPiece>, Fault> {
    let places: Vec<i64> = row.try_get(first)?;
    let hashes: Vec<Option<Vec<u8>>> = row.try_get(first + 1)?;
    let bytes: Vec<Option<Vec<u8>>> = row.try_get(first + 2)?;
    let all = places.into_iter().zip(hashes).zip(bytes);
    let found = all.map(|((at, hash), bytes)| FoundPiece {
        at: at.unsigned_abs(),
        hash: hash.unwrap_or_default(),
        bytes,
    });
    Ok(found.collect())
}
