//! Large values in the file: stored once, inserted again on reads, and removed with the last piece that
//! uses them.
//!
//! Everything here runs in the transaction of the row it belongs to. Pieces are removed first and added
//! after; unused values are removed last. So a value that moves from a pending write to a record is not
//! written again.

use std::collections::BTreeSet;

use rusqlite::{Connection, Params, params};

use super::fault::Fault;
use super::rows::{all, execute, first, number, place, statements};
use crate::blob::{self, FoundPiece, Pieces};
use crate::error::corrupt;
use crate::id::CheckpointId;
use crate::row::{PendingWrite, Place};

statements! {
    FIND_BLOB = "SELECT id FROM blob WHERE hash = ?1";
    ADD_BLOB = "INSERT INTO blob (hash, bytes) VALUES (?1, ?2)";
    ADD_PIECE = "INSERT INTO piece (place, branch, step, owner, at, blob) VALUES (", place!(),
        ", ?3, ?4, ?5, ?6, ?7)";
    PIECES = "SELECT at, hash, bytes FROM piece LEFT JOIN blob ON blob.id = piece.blob WHERE place = ",
        place!(), " AND branch = ?3 AND step = ?4 AND owner = ?5 ORDER BY at";
    GONE_OF = "DELETE FROM piece WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 AND owner = ?5 RETURNING blob";
    GONE_OF_WRITES = "DELETE FROM piece WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 AND owner >= x'02' RETURNING blob";
    GONE_OF_STEPS =
        "DELETE FROM piece WHERE place = ?1 AND branch = ?2 AND step >= ?3 AND step < ?4 RETURNING blob";
    GONE_OF_THREAD =
        "DELETE FROM piece WHERE place IN (SELECT id FROM place WHERE thread = ?1) RETURNING blob";
    SWEEP = "DELETE FROM blob WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE piece.blob = ?1)";
}

/// The row or write that pieces were cut out of.
pub(super) struct Owner<'a> {
    place: Place<'a>,
    id: CheckpointId,
    step: i64,
    name: Vec<u8>,
}

impl<'a> Owner<'a> {
    fn new(place: Place<'a>, id: CheckpointId, name: Vec<u8>) -> Result<Self, Fault> {
        Ok(Owner { place, id, step: number(id.step)?, name })
    }

    pub(super) fn row(place: Place<'a>, id: CheckpointId) -> Result<Self, Fault> {
        Self::new(place, id, blob::OF_ROW.to_vec())
    }

    pub(super) fn segment(place: Place<'a>, id: CheckpointId) -> Result<Self, Fault> {
        Self::new(place, id, blob::OF_SEGMENT.to_vec())
    }

    pub(super) fn write(place: Place<'a>, id: CheckpointId, write: &PendingWrite) -> Result<Self, Fault> {
        Self::new(place, id, blob::of_write(write))
    }
}

/// Stores the large values of a row or write; existing ones are not written again.
pub(super) fn keep(
    connection: &Connection,
    owner: &Owner<'_>,
    bytes: &[u8],
    pieces: &Pieces,
) -> Result<(), Fault> {
    let Owner { place, id, step, name } = owner;
    for (at, hash, piece) in pieces.each(bytes) {
        let mut statement = connection.prepare_cached(FIND_BLOB)?;
        let known = first(&mut statement, [&hash[..]], |row| Ok(row.get::<_, i64>(0)?))?;
        let blob = match known {
            Some(blob) => blob,
            None => {
                execute(connection, ADD_BLOB, params![&hash[..], piece])?;
                connection.last_insert_rowid()
            }
        };
        let values = params![place.thread, place.namespace, id.branch, step, name, number(at)?, blob];
        execute(connection, ADD_PIECE, values)?;
    }
    Ok(())
}

/// The bytes with their large values inserted.
pub(super) fn whole(
    connection: &Connection,
    owner: &Owner<'_>,
    rest: &[u8],
    count: u32,
) -> Result<Vec<u8>, Fault> {
    let Owner { place, id, step, name } = owner;
    let key = params![place.thread, place.namespace, id.branch, step, name];
    let found = all(connection, PIECES, key, |row| {
        let at = row.get::<_, i64>(0)?.unsigned_abs();
        let hash: Option<Vec<u8>> = row.get(1)?;
        Ok(FoundPiece { at, hash: hash.unwrap_or_default(), bytes: row.get(2)? })
    })?;
    blob::whole(rest, count, found).map_err(|missing| corrupt(*place, *id, missing).into())
}

/// Values that lost a use and may be unused now.
#[derive(Default)]
pub(super) struct Freed(BTreeSet<i64>);

impl Freed {
    pub(super) fn of(&mut self, connection: &Connection, owner: &Owner<'_>) -> Result<(), Fault> {
        let Owner { place, id, step, name } = owner;
        self.take(connection, GONE_OF, params![place.thread, place.namespace, id.branch, step, name])
    }

    pub(super) fn of_writes(
        &mut self,
        connection: &Connection,
        place: Place<'_>,
        branch: u32,
        step: i64,
    ) -> Result<(), Fault> {
        self.take(connection, GONE_OF_WRITES, params![place.thread, place.namespace, branch, step])
    }

    /// The pieces of a place in a range of steps; the end is exclusive.
    pub(super) fn of_steps(
        &mut self,
        connection: &Connection,
        place: i64,
        branch: u32,
        (start, end): (i64, i64),
    ) -> Result<(), Fault> {
        self.take(connection, GONE_OF_STEPS, params![place, branch, start, end])
    }

    pub(super) fn of_thread(&mut self, connection: &Connection, thread: &str) -> Result<(), Fault> {
        self.take(connection, GONE_OF_THREAD, [thread])
    }

    fn take(&mut self, connection: &Connection, sql: &str, values: impl Params) -> Result<(), Fault> {
        self.0.extend(all(connection, sql, values, |row| Ok(row.get::<_, i64>(0)?))?);
        Ok(())
    }

    /// Removes the values without any use.
    pub(super) fn sweep(self, connection: &Connection) -> Result<(), Fault> {
        for blob in self.0 {
            execute(connection, SWEEP, [blob])?;
        }
        Ok(())
    }
}
