//! The statements for pending writes.

use rusqlite::{Connection, params};

use super::blobs::{self, Freed, Owner};
use super::fault::Fault;
use super::rows::{
    Begin, add_place, all, execute, is_leased, leased, number, place, statements, transaction,
};
use crate::blob::{Pieces, last_of_each_key};
use crate::lease::lease_lost;
use crate::row::{PendingWrite, Place, PutWrites};
use crate::signed::as_fence;

statements! {
    CLEAR = "DELETE FROM pending WHERE place = ", place!(), " AND branch = ?3 AND step = ?4 RETURNING pieces";

    /// Also skips the row if the place is new, another writer has the lease, or the existing write has large
    /// values.
    PUT = "INSERT OR IGNORE INTO pending (place, branch, step, task, slot, bytes, pieces) VALUES (
    (SELECT id FROM place WHERE thread = ?1 AND namespace = ?2 AND ", leased!("?8"),
        "), ?3, ?4, ?5, ?6, ?7, ?9)
    ON CONFLICT (place, branch, step, task, slot) DO UPDATE SET bytes = excluded.bytes, pieces = excluded.pieces
    WHERE pending.pieces = 0";
    EMPTY = "UPDATE pending SET pieces = 0 WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 AND task = ?5 AND slot = ?6";
}

pub(super) fn put(connection: &Connection, put: PutWrites<'_>, pieces: &[Pieces]) -> Result<(), Fault> {
    match put.writes {
        [] => return Ok(()),
        [one] if pieces.iter().all(Pieces::is_empty) && put_one(connection, put, one, 0)? => return Ok(()),
        _ => {}
    }
    transaction(connection, Begin::ToWrite, || {
        if !is_leased(connection, put.place.thread, put.fence)? {
            return Err(lease_lost(put.place.thread).into());
        }
        add_place(connection, put.place)?;
        put_within(connection, put, pieces)
    })
}

/// Stores the writes in a transaction that has checked the lease.
pub(super) fn put_within(
    connection: &Connection,
    put: PutWrites<'_>,
    pieces: &[Pieces],
) -> Result<(), Fault> {
    let mut freed = Freed::default();
    let writes = last_of_each_key(put.writes, pieces);
    for (write, pieces) in &writes {
        let owner = Owner::write(put.place, put.at, write)?;
        let rest =
            PendingWrite { bytes: pieces.rest(&write.bytes).into_owned(), ..PendingWrite::clone(write) };
        let write = if pieces.is_empty() { write } else { &rest };
        if !put_one(connection, put, write, pieces.count())? {
            freed.of(connection, &owner)?;
            empty(connection, put, write)?;
            put_one(connection, put, write, pieces.count())?;
        }
    }
    for (write, pieces) in writes {
        blobs::keep(connection, &Owner::write(put.place, put.at, write)?, &write.bytes, pieces)?;
    }
    freed.sweep(connection)
}

/// `false` if the place is new, another writer has the lease, or the existing write has large values.
fn put_one(
    connection: &Connection,
    put: PutWrites<'_>,
    write: &PendingWrite,
    pieces: u32,
) -> Result<bool, Fault> {
    let PutWrites { place, at, fence, .. } = put;
    let step = number(at.step)?;
    let task = write.task.to_u128().to_be_bytes();
    let PendingWrite { slot, bytes, .. } = write;
    let fence = as_fence(fence);
    let values = params![place.thread, place.namespace, at.branch, step, task, slot, bytes, fence, pieces];
    Ok(execute(connection, PUT, values)? > 0)
}

fn empty(connection: &Connection, put: PutWrites<'_>, write: &PendingWrite) -> Result<(), Fault> {
    let PutWrites { place, at, .. } = put;
    let step = number(at.step)?;
    let task = write.task.to_u128().to_be_bytes();
    let key = params![place.thread, place.namespace, at.branch, step, task, write.slot];
    execute(connection, EMPTY, key)?;
    Ok(())
}

/// Removes the writes on the step before a commit.
pub(super) fn clear(connection: &Connection, place: Place<'_>, branch: u32, step: i64) -> Result<(), Fault> {
    let key = params![place.thread, place.namespace, branch, step];
    let pieces = all(connection, CLEAR, key, |row| Ok(row.get::<_, u32>(0)?))?;
    if pieces.iter().all(|pieces| *pieces == 0) {
        return Ok(());
    }
    let mut freed = Freed::default();
    freed.of_writes(connection, place, branch, step)?;
    freed.sweep(connection)
}
