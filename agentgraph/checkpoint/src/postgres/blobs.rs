//! Large values in the database: kept once, read back into what they were cut out of, and gone with the last
//! piece of them.
//!
//! Everything here happens within the transaction of the row it is about, after the rows, in this order:
//! pieces are taken away, values are locked and added, pieces are added, values that nothing holds any more
//! go.
//!
//! Others store and delete the same values meanwhile. Whoever adds a piece locks its value against removal,
//! and whoever may remove values locks them against new pieces, then looks at the pieces anew. A transaction
//! locks all that it needs at once, in order of the hashes, so that two of them seldom wait for each other;
//! where they do all the same, the server ends one of them, and `repeated` in `postgres.rs` begins it anew.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::rows::number;
use crate::blob::{FoundPiece, Pieces};

/// Puts what stands in a record or a write beside it, as two columns: the places, hashes and bytes of its
/// pieces.
macro_rules! with_pieces {
    ($row:literal, $owner:literal) => {
        with_pieces!(@ $row, $owner, "piece.at", "blob.hash", "blob.bytes")
    };
    (@ $row:literal, $owner:literal, $($column:literal),*) => {
        concat!($(
            ", CASE WHEN ", $row, ".pieces > 0 THEN ARRAY(SELECT ", $column,
            " FROM piece LEFT JOIN blob ON blob.hash = piece.blob WHERE piece.place = ", $row,
            ".place AND piece.branch = ", $row, ".branch AND piece.step = ", $row, ".step AND piece.owner = ", $owner,
            " ORDER BY piece.at) END"
        ),*)
    };
}
pub(super) use with_pieces;

const HOLD: &str = "SELECT hash FROM blob WHERE hash = ANY($1) ORDER BY hash FOR KEY SHARE";

const ADD: &str = "
INSERT INTO blob (hash, bytes) SELECT new.hash, new.bytes FROM unnest($1::bytea[], $2::bytea[]) AS new (hash, bytes)
ORDER BY new.hash ON CONFLICT DO NOTHING";

const ADD_PIECES: &str = "
INSERT INTO piece (place, branch, step, owner, at, blob)
SELECT $1, $2, $3, new.owner, new.at, new.hash
FROM unnest($4::bytea[], $5::bigint[], $6::bytea[]) AS new (owner, at, hash)";

const GONE_OF: &str =
    "DELETE FROM piece WHERE place = $1 AND branch = $2 AND step = $3 AND owner = ANY($4) RETURNING blob";

const GONE_OF_WRITES: &str =
    "DELETE FROM piece WHERE place = $1 AND branch = $2 AND step = $3 AND owner >= '\\x02' RETURNING blob";

const GONE_OF_STEPS: &str =
    "DELETE FROM piece WHERE place = $1 AND branch = $2 AND step >= $3 AND step < $4 RETURNING blob";

const GONE_OF_PLACES: &str = "DELETE FROM piece WHERE place = ANY($1) RETURNING blob";

const LOCK: &str = "SELECT hash FROM blob WHERE hash = ANY($1) ORDER BY hash FOR UPDATE";

const SWEEP: &str =
    "DELETE FROM blob WHERE hash = ANY($1) AND NOT EXISTS (SELECT 1 FROM piece WHERE piece.blob = blob.hash)";

/// What pieces are cut out of: a step of a place, by their numbers.
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

/// What a transaction does to large values.
#[derive(Default)]
pub(super) struct Changes<'a> {
    cuts: Vec<Cut<'a>>,
    /// Values that something held and holds no more.
    freed: BTreeSet<Vec<u8>>,
}

impl<'a> Changes<'a> {
    /// The large values of what was stored under that name.
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

    /// From the step to before `end`.
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
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Fault> {
        for row in transaction.query(&transaction.prepare_cached(sql).await?, values).await? {
            self.freed.insert(row.try_get(0)?);
        }
        Ok(())
    }

    /// Carries it out, at the end of the transaction.
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
        // A statement of its own, so that it sees the pieces of those whose locks were waited for.
        transaction.execute(&transaction.prepare_cached(SWEEP).await?, &[&freed]).await?;
        Ok(())
    }

    async fn add_pieces(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let statement = transaction.prepare_cached(ADD_PIECES).await?;
        for of_step in self.cuts.chunk_by(|one, next| one.step == next.step) {
            let (mut owners, mut places, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
            for cut in of_step {
                for (at, hash, _) in cut.pieces.each(cut.bytes) {
                    owners.push(&cut.owner[..]);
                    places.push(number(at)?);
                    hashes.push(&hash[..]);
                }
            }
            let Step { place, branch, step } = of_step[0].step;
            transaction.execute(&statement, &[&place, &branch, &step, &owners, &places, &hashes]).await?;
        }
        Ok(())
    }
}

/// Locks the values to come and those that may go, and adds the ones that are not there; these are sent, the
/// others are not.
async fn hold<'a>(
    transaction: &Transaction<'_>,
    missing: &mut BTreeMap<&'a [u8], &'a [u8]>,
    freed: &[&'a [u8]],
) -> Result<(), Fault> {
    let statement = if freed.is_empty() { HOLD } else { LOCK };
    let mut all: BTreeSet<&[u8]> = missing.keys().copied().chain(freed.iter().copied()).collect();
    while !all.is_empty() {
        let hashes: Vec<&[u8]> = all.iter().copied().collect();
        for held in transaction.query(&transaction.prepare_cached(statement).await?, &[&hashes]).await? {
            missing.remove(held.try_get::<_, &[u8]>(0)?);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (hashes, bytes): (Vec<&[u8]>, Vec<&[u8]>) = missing.iter().unzip();
        let added = transaction.execute(&transaction.prepare_cached(ADD).await?, &[&hashes, &bytes]).await?;
        if added == missing.len() as u64 {
            return Ok(());
        }
        // Others added some at the same moment.
        all = missing.keys().copied().collect();
    }
    Ok(())
}

/// The three columns of `with_pieces`, from that one on.
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
