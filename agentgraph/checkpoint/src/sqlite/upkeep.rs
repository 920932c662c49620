//! Operations on whole threads: deleting, copying, pruning, freeing space.

use rusqlite::{Connection, params};

use super::blobs::{self, Freed, Owner};
use super::fault::Fault;
use super::leases;
use super::rows::{Begin, all, execute, first, is_leased, number, place, read_step, statements, transaction};
use crate::blob::Pieces;
use crate::blob::Usage;
use crate::error::{thread_exists, unknown_thread};
use crate::lease::lease_lost;
use crate::row::{Place, Rewrite};

/// Joins each place of the original with its copy.
macro_rules! copies {
    () => {
        "JOIN place AS original ON original.id = row.place AND original.thread = ?1
         JOIN place AS copy ON copy.thread = ?2 AND copy.namespace = original.namespace"
    };
}

statements! {
    DELETE_ROWS = "DELETE FROM checkpoint WHERE place IN (SELECT id FROM place WHERE thread = ?1)";
    DELETE_WRITES = "DELETE FROM pending WHERE place IN (SELECT id FROM place WHERE thread = ?1)";
    DELETE_PLACES = "DELETE FROM place WHERE thread = ?1";
    NAMESPACES = "
SELECT namespace FROM place WHERE thread = ?1 AND EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.place = place.id)
ORDER BY namespace";

    /// Jumps from one branch to the next, however large the gaps and however many rows a branch has.
    BRANCHES = "WITH RECURSIVE found (branch) AS (
    SELECT min(branch) FROM checkpoint WHERE place = ", place!(),
        " UNION ALL SELECT (SELECT min(branch) FROM checkpoint WHERE place = ", place!(),
        " AND branch > found.branch) FROM found WHERE branch IS NOT NULL
)
SELECT branch FROM found WHERE branch IS NOT NULL";
    IS_THERE = "
SELECT 1 FROM place WHERE thread = ?1 AND (EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.place = place.id)
    OR EXISTS (SELECT 1 FROM pending WHERE pending.place = place.id)) LIMIT 1";
    COPY_PLACES =
        "INSERT OR IGNORE INTO place (thread, namespace) SELECT ?2, namespace FROM place WHERE thread = ?1";
    COPY_ROWS = "INSERT INTO checkpoint (place, branch, step, part, kind, record, pieces)
     SELECT copy.id, row.branch, row.step, row.part, row.kind, row.record, row.pieces FROM checkpoint AS row ",
        copies!(), " ORDER BY row.place, row.branch, row.step, row.part";
    COPY_WRITES = "INSERT INTO pending (place, branch, step, task, slot, bytes, pieces)
     SELECT copy.id, row.branch, row.step, row.task, row.slot, row.bytes, row.pieces FROM pending AS row ",
        copies!();

    /// The copy refers to the same values.
    COPY_PIECES = "INSERT INTO piece (place, branch, step, owner, at, blob)
     SELECT copy.id, row.branch, row.step, row.owner, row.at, row.blob FROM piece AS row ", copies!();
    FIND_PLACE = "SELECT id FROM place WHERE thread = ?1 AND namespace = ?2";
    GONE_ROWS = "DELETE FROM checkpoint WHERE place = ?1 AND branch = ?2 AND step >= ?3 AND step < ?4";
    GONE_WRITES = "DELETE FROM pending WHERE place = ?1 AND branch = ?2 AND step >= ?3 AND step < ?4";
    GONE_SEGMENT = "DELETE FROM checkpoint WHERE place = ?1 AND branch = ?2 AND step = ?3 AND part = 1";
    MAKE_FULL =
        "UPDATE checkpoint SET kind = 0, record = ?4, pieces = ?5 WHERE place = ?1 AND branch = ?2 AND step = ?3 AND part = 0";
    EMPTY_PLACE = "
DELETE FROM place WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.place = place.id)
    AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.place = place.id)";
    USAGE = "
SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM pending),
    (SELECT ifnull(sum(length(record)), 0) FROM checkpoint) + (SELECT ifnull(sum(length(bytes)), 0) FROM pending),
    (SELECT count(*) FROM blob), (SELECT ifnull(sum(length(bytes)), 0) FROM blob), (SELECT count(*) FROM piece)";
}

pub(super) fn delete_thread(connection: &Connection, thread: &str) -> Result<(), Fault> {
    transaction(connection, Begin::ToWrite, || {
        let mut freed = Freed::default();
        freed.of_thread(connection, thread)?;
        execute(connection, DELETE_ROWS, [thread])?;
        execute(connection, DELETE_WRITES, [thread])?;
        execute(connection, DELETE_PLACES, [thread])?;
        freed.sweep(connection)?;
        leases::forget(connection, thread)
    })
}

pub(super) fn namespaces(connection: &Connection, thread: &str) -> Result<Vec<String>, Fault> {
    all(connection, NAMESPACES, [thread], |row| Ok(row.get(0)?))
}

pub(super) fn branches(connection: &Connection, place: Place<'_>) -> Result<Vec<u32>, Fault> {
    all(connection, BRANCHES, [place.thread, place.namespace], |row| Ok(row.get(0)?))
}

pub(super) fn copy_thread(connection: &Connection, from: &str, to: &str) -> Result<(), Fault> {
    transaction(connection, Begin::ToWrite, || {
        if connection.prepare_cached(IS_THERE)?.exists([to])? {
            return Err(thread_exists(to).into());
        }
        if !connection.prepare_cached(IS_THERE)?.exists([from])? {
            return Err(unknown_thread(from).into());
        }
        execute(connection, COPY_PLACES, [from, to])?;
        execute(connection, COPY_ROWS, [from, to])?;
        execute(connection, COPY_WRITES, [from, to])?;
        execute(connection, COPY_PIECES, [from, to])?;
        Ok(())
    })
}

pub(super) fn rewrite(
    connection: &Connection,
    rewrite: &Rewrite<'_>,
    pieces: &[Pieces],
) -> Result<(), Fault> {
    let Place { thread, namespace } = rewrite.place;
    transaction(connection, Begin::ToWrite, || {
        if !is_leased(connection, thread, rewrite.fence)? {
            return Err(lease_lost(thread).into());
        }
        let found = all(connection, FIND_PLACE, [thread, namespace], |row| Ok(row.get::<_, i64>(0)?))?;
        let Some(place) = found.first() else { return Ok(()) };
        let mut freed = Freed::default();
        for ((id, record), pieces) in rewrite.fulls.iter().zip(pieces) {
            let step = number(id.step)?;
            let owner = Owner::row(rewrite.place, *id)?;
            freed.of(connection, &owner)?;
            freed.of(connection, &Owner::segment(rewrite.place, *id)?)?;
            execute(connection, GONE_SEGMENT, params![place, id.branch, step])?;
            let full = params![place, id.branch, step, pieces.rest(record), pieces.count()];
            if execute(connection, MAKE_FULL, full)? > 0 {
                blobs::keep(connection, &owner, record, pieces)?;
            }
        }
        for id in rewrite.unfold {
            freed.of(connection, &Owner::segment(rewrite.place, *id)?)?;
            execute(connection, GONE_SEGMENT, params![place, id.branch, number(id.step)?])?;
        }
        for (branch, steps) in rewrite.gone {
            let Ok(start) = number(steps.start) else { continue };
            let end = number(steps.end).unwrap_or(i64::MAX);
            freed.of_steps(connection, *place, *branch, (start, end))?;
            execute(connection, GONE_ROWS, params![place, branch, start, end])?;
            execute(connection, GONE_WRITES, params![place, branch, start, end])?;
        }
        execute(connection, EMPTY_PLACE, [place])?;
        freed.sweep(connection)
    })
}

pub(super) fn usage(connection: &Connection) -> Result<Usage, Fault> {
    let mut statement = connection.prepare_cached(USAGE)?;
    let found = first(&mut statement, [], |row| {
        Ok(Usage {
            rows: read_step(row, 0)?,
            writes: read_step(row, 1)?,
            bytes: read_step(row, 2)?,
            values: read_step(row, 3)?,
            value_bytes: read_step(row, 4)?,
            uses: read_step(row, 5)?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

/// Cuts unused pages off the end of the file. In small parts, so that another writer waits for one part at
/// most. `true` if there may be more.
pub(super) fn give_pages_back(connection: &Connection) -> Result<bool, Fault> {
    let free = |connection: &Connection| {
        connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0))
    };
    let mode: i64 = connection.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if free(connection)? == 0 {
        return Ok(false);
    }
    if mode != INCREMENTAL {
        connection.execute_batch("VACUUM")?;
        return Ok(false);
    }
    connection.execute_batch("PRAGMA incremental_vacuum(2048)")?;
    Ok(free(connection)? > 0)
}

/// The value of `PRAGMA auto_vacuum` in files that this release creates.
const INCREMENTAL: i64 = 2;

/// Moves the log into the file and truncates it; `false` if another process reads or writes.
pub(super) fn empty_log(connection: &Connection) -> Result<bool, Fault> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))? == 0)
}
