//! The statements for whole threads: listing, deleting, copying, pruning.

use super::blobs::{Changes, Step};
use super::fault::Fault;
use super::rows::{as_id, check_fence, check_names, number};
use super::statements::{Connection, Value};
use crate::blob::Usage;
use crate::blob::{OF_ROW, OF_SEGMENT, Pieces};
use crate::error::{corrupt, thread_exists, unknown_thread};
use crate::id::CheckpointId;
use crate::row::{Place, Rewrite};

const THREADS: &str = "
SELECT DISTINCT thread FROM @place WHERE EXISTS (SELECT 1 FROM @checkpoint WHERE checkpoint.place = place.id)
ORDER BY thread";

const NAMESPACES: &str = "
SELECT namespace FROM @place WHERE thread = $1 AND EXISTS (SELECT 1 FROM @checkpoint WHERE checkpoint.place = place.id)
ORDER BY namespace";

/// Jumps from one branch to the next, however large the gaps and however many rows a branch has.
const BRANCHES: &str = "
WITH RECURSIVE asked AS (SELECT id FROM @place WHERE thread = $1 AND namespace = $2),
found (branch) AS (
    SELECT (SELECT min(branch) FROM @checkpoint WHERE place = (SELECT id FROM asked))
    UNION ALL
    SELECT (SELECT min(checkpoint.branch) FROM @checkpoint
        WHERE place = (SELECT id FROM asked) AND checkpoint.branch > found.branch)
    FROM found WHERE found.branch IS NOT NULL
)
SELECT branch FROM found WHERE branch IS NOT NULL ORDER BY branch";

const LOCK_PLACES: &str = "SELECT id FROM @place WHERE thread = $1 ORDER BY id FOR UPDATE";

/// Rows and writes are removed with their places.
const DELETE_PLACES: &str = "DELETE FROM @place WHERE id = ANY($1)";
const DELETE_LEASE: &str = "DELETE FROM @lease WHERE thread = $1";

const IS_THERE: &str = "
SELECT 1 FROM @place WHERE thread = $1 AND (EXISTS (SELECT 1 FROM @checkpoint WHERE checkpoint.place = place.id)
    OR EXISTS (SELECT 1 FROM @pending WHERE pending.place = place.id)) LIMIT 1";

/// No other transaction stores in them until this one ends.
const LOCK_COPIES: &str = "SELECT id, namespace FROM @place WHERE thread = $1 ORDER BY id FOR UPDATE";

/// Copies the state of one moment, so it is one statement. The copy refers to the same large values. If
/// another transaction creates a place of the target meanwhile, which this one cannot see, the names clash
/// at their key.
const COPY: &str = "
WITH made AS (
    INSERT INTO @place (thread, namespace)
    SELECT $2, namespace FROM @place WHERE thread = $1 AND namespace <> ALL ($4) RETURNING id, namespace
),
copy AS (SELECT id, namespace FROM made UNION ALL SELECT id, namespace FROM @place WHERE id = ANY ($3)),
pair AS (
    SELECT original.id AS old, copy.id AS new FROM @place AS original
    JOIN copy ON copy.namespace = original.namespace WHERE original.thread = $1
),
rows AS (
    INSERT INTO @checkpoint (place, branch, step, part, kind, record, pieces)
    SELECT pair.new, branch, step, part, kind, record, pieces FROM @checkpoint JOIN pair ON pair.old = place
),
writes AS (
    INSERT INTO @pending (place, branch, step, task, slot, bytes, pieces)
    SELECT pair.new, branch, step, task, slot, bytes, pieces FROM @pending JOIN pair ON pair.old = place
)
INSERT INTO @piece (place, branch, step, owner, at, blob)
SELECT pair.new, branch, step, owner, at, blob FROM @piece JOIN pair ON pair.old = place ORDER BY blob";

const FIND_PLACE: &str = "SELECT id FROM @place WHERE thread = $1 AND namespace = $2 FOR UPDATE";
const GONE_ROWS: &str =
    "DELETE FROM @checkpoint WHERE place = $1 AND branch = $2 AND step >= $3 AND step < $4";
const GONE_WRITES: &str =
    "DELETE FROM @pending WHERE place = $1 AND branch = $2 AND step >= $3 AND step < $4";
const GONE_SEGMENT: &str =
    "DELETE FROM @checkpoint WHERE place = $1 AND branch = $2 AND step = $3 AND part = 1";
const MAKE_FULL: &str = "UPDATE @checkpoint SET kind = 0, record = $4, pieces = $5 WHERE place = $1 AND branch = $2 AND step = $3 AND part = 0";
const EMPTY_PLACE: &str = "
DELETE FROM @place WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM @checkpoint WHERE checkpoint.place = place.id)
    AND NOT EXISTS (SELECT 1 FROM @pending WHERE pending.place = place.id)";

const USAGE: &str = "
SELECT (SELECT count(*) FROM @checkpoint), (SELECT count(*) FROM @pending),
    (SELECT coalesce(sum(octet_length(record)), 0)::bigint FROM @checkpoint)
        + (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM @pending),
    (SELECT count(*) FROM @blob), (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM @blob),
    (SELECT count(*) FROM @piece)";

pub(super) async fn threads(connection: &Connection) -> Result<Vec<String>, Fault> {
    let found = connection.query(THREADS, &[]).await?;
    found.iter().map(|row| name(row.try_get(0)?)).collect()
}

pub(super) async fn namespaces(connection: &Connection, thread: &str) -> Result<Vec<String>, Fault> {
    let found = connection.query(NAMESPACES, &[&thread.as_bytes()]).await?;
    found.iter().map(|row| name(row.try_get(0)?)).collect()
}

pub(super) async fn branches(connection: &Connection, place: Place<'_>) -> Result<Vec<u32>, Fault> {
    let names: &[&dyn Value] = &[&place.thread.as_bytes(), &place.namespace.as_bytes()];
    let found = connection.query(BRANCHES, names).await?;
    found.iter().map(|row| Ok(as_id(row.try_get(0)?, 0).branch)).collect()
}

pub(super) fn name(bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|_| {
        let nowhere = Place::root("");
        corrupt(nowhere, CheckpointId::default(), "a name in its table is not text").into()
    })
}

pub(super) async fn usage(connection: &Connection) -> Result<Usage, Fault> {
    let found = connection.query_one(USAGE, &[]).await?;
    let number = |column| found.try_get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(Usage {
        rows: number(0)?,
        writes: number(1)?,
        bytes: number(2)?,
        values: number(3)?,
        value_bytes: number(4)?,
        uses: number(5)?,
    })
}

pub(super) async fn delete_thread(connection: &mut Connection, thread: &str) -> Result<(), Fault> {
    let transaction = connection.begin().await?;
    transaction.execute(DELETE_LEASE, &[&thread.as_bytes()]).await?;
    let places = transaction.query(LOCK_PLACES, &[&thread.as_bytes()]).await?;
    let places: Vec<i64> = places.iter().map(|place| place.try_get(0)).collect::<Result<_, _>>()?;
    let mut changes = Changes::default();
    changes.free_places(&transaction, &places).await?;
    transaction.execute(DELETE_PLACES, &[&places]).await?;
    changes.carry_out(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn copy_thread(connection: &mut Connection, from: &str, to: &str) -> Result<(), Fault> {
    check_names(Place::root(to))?;
    let target = to.as_bytes();
    let transaction = connection.begin().await?;
    // One copy onto a thread at a time: the second finds the result of the first.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 6))";
    transaction.query(lock, &[&target]).await?;
    let locked = transaction.query(LOCK_COPIES, &[&target]).await?;
    let ids: Vec<i64> = locked.iter().map(|place| place.try_get(0)).collect::<Result<_, _>>()?;
    let namespaces: Vec<&[u8]> = locked.iter().map(|place| place.try_get(1)).collect::<Result<_, _>>()?;
    if transaction.query_opt(IS_THERE, &[&target]).await?.is_some() {
        return Err(thread_exists(to).into());
    }
    if transaction.query_opt(IS_THERE, &[&from.as_bytes()]).await?.is_none() {
        return Err(unknown_thread(from).into());
    }
    let values: &[&dyn Value] = &[&from.as_bytes(), &target, &ids, &namespaces];
    transaction.execute(COPY, values).await?;
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn rewrite(
    connection: &mut Connection,
    rewrite: &Rewrite<'_>,
    pieces: &[Pieces],
) -> Result<(), Fault> {
    let Place { thread, namespace } = rewrite.place;
    let transaction = connection.begin().await?;
    check_fence(&transaction, thread, rewrite.fence).await?;
    let found = transaction.query_opt(FIND_PLACE, &[&thread.as_bytes(), &namespace.as_bytes()]).await?;
    let Some(found) = found else { return Ok(()) };
    let place: i64 = found.try_get(0)?;
    let mut changes = Changes::default();
    for ((id, record), pieces) in rewrite.fulls.iter().zip(pieces) {
        let branch = i64::from(id.branch);
        let step = number(id.step)?;
        let owner = Step { place, branch, step };
        changes.free(&transaction, owner, &[&OF_ROW, &OF_SEGMENT]).await?;
        transaction.execute(GONE_SEGMENT, &[&place, &branch, &step]).await?;
        let rest = pieces.rest(record);
        let count = i64::from(pieces.count());
        let full: &[&dyn Value] = &[&place, &branch, &step, &rest.as_ref(), &count];
        if transaction.execute(MAKE_FULL, full).await? > 0 {
            changes.keep(owner, &OF_ROW, record, pieces);
        }
    }
    for id in rewrite.unfold {
        let branch = i64::from(id.branch);
        let step = number(id.step)?;
        changes.free(&transaction, Step { place, branch, step }, &[&OF_SEGMENT]).await?;
        transaction.execute(GONE_SEGMENT, &[&place, &branch, &step]).await?;
    }
    for (branch, steps) in rewrite.gone {
        let Ok(start) = number(steps.start) else { continue };
        let end = number(steps.end).unwrap_or(i64::MAX);
        let from = Step { place, branch: i64::from(*branch), step: start };
        changes.free_steps(&transaction, from, end).await?;
        for statement in [GONE_ROWS, GONE_WRITES] {
            transaction.execute(statement, &[&place, &i64::from(*branch), &start, &end]).await?;
        }
    }
    transaction.execute(EMPTY_PLACE, &[&place]).await?;
    changes.carry_out(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}
