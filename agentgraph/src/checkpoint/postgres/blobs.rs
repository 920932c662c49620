//! Large values in the database: kept once, read back into what they were cut out of, and gone with the last piece of them.
//!
//! Everything here happens within the transaction of the row it is about, after the rows, in this order: pieces are
//! taken away, values are held or added, pieces are added, values that nothing holds any more go.
//!
//! Others store and delete the same values meanwhile. Whoever adds a piece locks its value against removal, and whoever
//! removes values locks them against new pieces, then looks at the pieces anew; both in order of the hashes. Where
//! two wait for each other all the same, the server ends one of them, and `again` in `postgres.rs` repeats it.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::rows::number;
use crate::checkpoint::blob::{FoundPiece, Hash, Pieces};

/// Puts what stands in a record or a write beside it, as two columns: the places, hashes and bytes of its pieces.
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
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) place: i64,
    pub(super) branch: i64,
    pub(super) step: i64,
}

/// Bytes that were stored without their large values, and what the tables call their owner.
pub(super) struct Cut<'a> {
    pub(super) owner: &'a [u8],
    pub(super) bytes: &'a [u8],
    pub(super) pieces: &'a Pieces,
}

/// Keeps the large values of what was stored; those that are there already are not sent again.
pub(super) async fn keep<'a>(
    transaction: &Transaction<'_>,
    step: Step,
    cuts: impl Iterator<Item = Cut<'a>>,
) -> Result<(), Fault> {
    let mut wanted: BTreeMap<&Hash, &[u8]> = BTreeMap::new();
    let (mut owners, mut places, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
    for Cut { owner, bytes, pieces } in cuts {
        for (at, hash, piece) in pieces.each(bytes) {
            wanted.insert(hash, piece);
            owners.push(owner);
            places.push(number(at)?);
            hashes.push(&hash[..]);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    hold(transaction, wanted).await?;
    let statement = transaction.prepare_cached(ADD_PIECES).await?;
    let Step { place, branch, step } = step;
    transaction.execute(&statement, &[&place, &branch, &step, &owners, &places, &hashes]).await?;
    Ok(())
}

/// Sees to it that all of these are there and stay there until the transaction ends.
async fn hold(transaction: &Transaction<'_>, mut missing: BTreeMap<&Hash, &[u8]>) -> Result<(), Fault> {
    loop {
        let hashes: Vec<&[u8]> = missing.keys().map(|hash| &hash[..]).collect();
        let statement = transaction.prepare_cached(HOLD).await?;
        for held in transaction.query(&statement, &[&hashes]).await? {
            let held: &[u8] = held.try_get(0)?;
            missing.retain(|hash, _| hash[..] != *held);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let hashes: Vec<&[u8]> = missing.keys().map(|hash| &hash[..]).collect();
        let bytes: Vec<&[u8]> = missing.values().copied().collect();
        let statement = transaction.prepare_cached(ADD).await?;
        if transaction.execute(&statement, &[&hashes, &bytes]).await? == missing.len() as u64 {
            return Ok(());
        }
        // Others added some at the same moment.
    }
}

/// Values that something held and holds no more.
#[derive(Default)]
pub(super) struct Freed(BTreeSet<Vec<u8>>);

impl Freed {
    pub(super) async fn of(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
        owners: &[Vec<u8>],
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF, &[&place, &branch, &step, &owners]).await
    }

    pub(super) async fn of_writes(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF_WRITES, &[&place, &branch, &step]).await
    }

    /// From the step to before `end`.
    pub(super) async fn of_steps(
        &mut self,
        transaction: &Transaction<'_>,
        Step { place, branch, step }: Step,
        end: i64,
    ) -> Result<(), Fault> {
        self.take(transaction, GONE_OF_STEPS, &[&place, &branch, &step, &end]).await
    }

    pub(super) async fn of_places(
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
            self.0.insert(row.try_get(0)?);
        }
        Ok(())
    }

    /// Removes those that nothing else holds. The look at the pieces is a statement of its own, so that it sees what those stored
    /// who were waited for.
    pub(super) async fn sweep(self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        if self.0.is_empty() {
            return Ok(());
        }
        let hashes: Vec<Vec<u8>> = self.0.into_iter().collect();
        for statement in [LOCK, SWEEP] {
            let statement = transaction.prepare_cached(statement).await?;
            transaction.execute(&statement, &[&hashes]).await?;
        }
        Ok(())
    }
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
