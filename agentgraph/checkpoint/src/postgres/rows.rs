//! The statements for rows and writes. Every value is a parameter.

use tokio_postgres::Row as SqlRow;

use super::blobs::{self, Changes, Step, with_pieces};
use super::fault::Fault;
use super::statements::{Connection, Link, Parts, Transaction, Value};
use crate::blob::{OF_ROW, OF_SEGMENT, Pieces, PutPieces, last_of_each_key, of_write, whole};
use crate::error::{StoreCode, StoreError};
use crate::error::{corrupt, stale};
use crate::id::{CheckpointId, TaskId};
use crate::lease::lease_lost;
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, Row, RowKind};
use crate::signed::as_fence;

/// `held` locks the lease, so that it cannot be taken before this is committed. Nothing is inserted if the
/// step is not after the newest, the place is new, or the fence is not the one of the lease. Two writers of
/// one step clash at the key.
///
/// Cleared writes with large values need further statements, so nothing is inserted if there are any,
/// unless the caller takes care of them.
const PUT: &str = "
WITH held AS MATERIALIZED (SELECT fence FROM @lease WHERE thread = $1 AND fence = $3 FOR SHARE),
wanted AS (
    SELECT id FROM @place WHERE thread = $1 AND namespace = $2 AND ($3 = 0 OR EXISTS (SELECT 1 FROM held))
        AND NOT EXISTS (
            SELECT 1 FROM @checkpoint AS newer WHERE newer.place = place.id AND newer.branch = $4 AND newer.step >= $5)
        AND ($13::bigint IS NULL OR EXISTS (
            SELECT 1 FROM @checkpoint AS parent
            WHERE parent.place = place.id AND parent.branch = $13 AND parent.step = $14 AND parent.part = 0))
        AND ($10 OR NOT EXISTS (
            SELECT 1 FROM @pending WHERE pending.place = place.id AND branch = $4 AND step = $9 AND pieces > 0))
),
stored AS (
    INSERT INTO @checkpoint (place, branch, step, part, kind, record, pieces)
    SELECT id, $4, $5, 0, $6, $7, $11 FROM wanted ON CONFLICT DO NOTHING RETURNING place
),
folded AS (
    INSERT INTO @checkpoint (place, branch, step, part, kind, record, pieces)
    SELECT place, $4, $5, 1, 2, $8, $12 FROM stored WHERE $8::bytea IS NOT NULL
),
cleared AS (
    DELETE FROM @pending USING stored WHERE pending.place = stored.place AND branch = $4 AND step = $9
        AND ($10 OR pieces = 0)
)
SELECT place FROM stored";

const ADD_PLACE: &str = "INSERT INTO @place (thread, namespace) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Locks the lease too.
const IS_LEASED: &str = "SELECT 1 FROM @lease WHERE thread = $1 AND fence = $2 FOR SHARE";

/// Writes without large values, in one round trip. Like [`PUT`] it locks the lease, and inserts nothing if
/// the place is new, the fence is not the one of the lease, or one of the writes that it may replace has
/// large values.
const PUT_WRITES: &str = "
WITH held AS MATERIALIZED (SELECT fence FROM @lease WHERE thread = $1 AND fence = $3 FOR SHARE),
wanted AS (
    SELECT id FROM @place WHERE thread = $1 AND namespace = $2 AND ($3 = 0 OR EXISTS (SELECT 1 FROM held))
        AND NOT EXISTS (
            SELECT 1 FROM @pending WHERE pending.place = place.id AND branch = $4 AND step = $5 AND pieces > 0)
)
INSERT INTO @pending (place, branch, step, task, slot, bytes)
SELECT id, $4, $5, new.task, new.slot, new.bytes
FROM wanted, unnest($6::bytea[], $7::bigint[], $8::bytea[]) AS new (task, slot, bytes) ORDER BY new.task, new.slot
ON CONFLICT (place, branch, step, task, slot) DO UPDATE SET bytes = excluded.bytes WHERE pending.pieces = 0";

const PUT_WRITE: &str = "
INSERT INTO @pending (place, branch, step, task, slot, bytes, pieces) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (place, branch, step, task, slot) DO UPDATE SET bytes = excluded.bytes, pieces = excluded.pieces
WHERE pending.pieces = 0";

/// Replaces a write that had large values.
const REPLACE_WRITE: &str = "
UPDATE @pending SET bytes = $6, pieces = $7
WHERE place = $1 AND branch = $2 AND step = $3 AND task = $4 AND slot = $5";

/// This lock allows other transactions to store in the place, and none to remove it.
const FIND_PLACE: &str = "SELECT id FROM @place WHERE thread = $1 AND namespace = $2 FOR KEY SHARE";

const NEWEST: &str = "
SELECT branch, step FROM @checkpoint JOIN @place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND part = 0 ORDER BY branch DESC, step DESC LIMIT 1";

const ROW: &str = concat!(
    "SELECT checkpoint.step, kind, record, pieces",
    with_pieces!("checkpoint", "set_byte('\\x00', 0, checkpoint.part)"),
    "
FROM @checkpoint JOIN @place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step = $4 AND part = 0"
);

const LIST: &str = concat!(
    "SELECT checkpoint.step, kind, record, pieces",
    with_pieces!("checkpoint", "set_byte('\\x00', 0, checkpoint.part)"),
    "
FROM @checkpoint JOIN @place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step <= $4 AND part = 0 ORDER BY step DESC LIMIT $5"
);

pub(super) async fn put(connection: &mut Connection, put: &Put<'_>, pieces: &PutPieces) -> Result<(), Fault> {
    check_names(put.place)?;
    if pieces.is_empty() && put.writes.is_empty() && insert(&*connection, put, pieces, false).await?.is_some()
    {
        return Ok(());
    }
    let transaction = connection.begin().await?;
    check_fence(&transaction, put.place.thread, put.fence).await?;
    place_of(&transaction, put.place).await?;
    let Some(place) = insert(&transaction, put, pieces, true).await? else {
        return Err(stale(put.place, put.id).into());
    };
    let step = Step { place, branch: i64::from(put.id.branch), step: number(put.id.step)? };
    let mut changes = Changes::default();
    if put.clears_writes {
        changes.free_writes(&transaction, Step { step: step_before(step.step), ..step }).await?;
    }
    changes.keep(step, &OF_ROW, put.record, &pieces.record);
    changes.keep(step, &OF_SEGMENT, put.segment.unwrap_or_default(), &pieces.segment);
    add_writes(&transaction, step, (put.writes, &pieces.writes), &mut changes).await?;
    changes.carry_out(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// The number of a place, which is created if missing, and stays until the transaction ends.
async fn place_of(transaction: &Transaction<'_>, place: Place<'_>) -> Result<i64, Fault> {
    let names: &[&dyn Value] = &[&place.thread.as_bytes(), &place.namespace.as_bytes()];
    loop {
        if let Some(found) = transaction.query_opt(FIND_PLACE, names).await? {
            return Ok(found.try_get(0)?);
        }
        transaction.execute(ADD_PLACE, names).await?;
    }
}

fn step_before(step: i64) -> i64 {
    step.saturating_sub(1).max(0)
}

/// The number of its place, if it was stored.
async fn insert(
    client: &Link<impl Parts>,
    put: &Put<'_>,
    pieces: &PutPieces,
    frees: bool,
) -> Result<Option<i64>, Fault> {
    let thread = put.place.thread.as_bytes();
    let namespace = put.place.namespace.as_bytes();
    let branch = i64::from(put.id.branch);
    let step = number(put.id.step)?;
    let before = if put.clears_writes { step_before(step) } else { -1 };
    let kind = i16::from(put.kind.to_number());
    let record = pieces.record.rest(put.record);
    let segment = put.segment.map(|segment| pieces.segment.rest(segment));
    let parent =
        put.parent.map(|parent| Ok::<_, StoreError>((i64::from(parent.branch), number(parent.step)?)));
    let parent = parent.transpose()?;
    let stored = client
        .query_opt(
            PUT,
            &[
                &thread,
                &namespace,
                &as_fence(put.fence),
                &branch,
                &step,
                &kind,
                &record.as_ref(),
                &segment.as_deref(),
                &before,
                &frees,
                &i64::from(pieces.record.count()),
                &i64::from(pieces.segment.count()),
                &parent.map(|(branch, _)| branch),
                &parent.map(|(_, step)| step),
            ],
        )
        .await?;
    Ok(stored.map(|place| place.try_get(0)).transpose()?)
}

/// Locks the lease until the transaction ends.
pub(super) async fn check_fence(client: &Link<impl Parts>, thread: &str, fence: u64) -> Result<(), Fault> {
    if fence == 0 {
        return Ok(());
    }
    match client.query_opt(IS_LEASED, &[&thread.as_bytes(), &as_fence(fence)]).await? {
        Some(_) => Ok(()),
        None => Err(lease_lost(thread).into()),
    }
}

pub(super) async fn put_writes(
    connection: &mut Connection,
    put: &PutWrites<'_>,
    pieces: &[Pieces],
) -> Result<(), Fault> {
    check_names(put.place)?;
    if put.writes.is_empty() {
        return Ok(());
    }
    if pieces.iter().all(|pieces| pieces.count() == 0) && insert_writes(connection, put, pieces).await? {
        return Ok(());
    }
    let transaction = connection.begin().await?;
    check_fence(&transaction, put.place.thread, put.fence).await?;
    let place = place_of(&transaction, put.place).await?;
    let step = Step { place, branch: i64::from(put.at.branch), step: number(put.at.step)? };
    let mut changes = Changes::default();
    add_writes(&transaction, step, (put.writes, pieces), &mut changes).await?;
    changes.carry_out(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Stores writes without large values. `false` if that takes more than one statement.
async fn insert_writes(
    connection: &Connection,
    put: &PutWrites<'_>,
    pieces: &[Pieces],
) -> Result<bool, Fault> {
    let writes = last_of_each_key(put.writes, pieces);
    let tasks: Vec<_> = writes.iter().map(|(write, _)| write.task.to_u128().to_be_bytes()).collect();
    let tasks: Vec<&[u8]> = tasks.iter().map(|task| &task[..]).collect();
    let slots: Vec<_> = writes.iter().map(|(write, _)| i64::from(write.slot)).collect();
    let bytes: Vec<_> = writes.iter().map(|(write, _)| &write.bytes[..]).collect();
    let inserted = connection
        .execute(
            PUT_WRITES,
            &[
                &put.place.thread.as_bytes(),
                &put.place.namespace.as_bytes(),
                &as_fence(put.fence),
                &i64::from(put.at.branch),
                &number(put.at.step)?,
                &&tasks[..],
                &&slots[..],
                &&bytes[..],
            ],
        )
        .await?;
    Ok(inserted == writes.len() as u64)
}

async fn add_writes<'a>(
    transaction: &Transaction<'_>,
    step: Step,
    (put, pieces): (&'a [PendingWrite], &'a [Pieces]),
    changes: &mut Changes<'a>,
) -> Result<(), Fault> {
    if put.is_empty() {
        return Ok(());
    }
    for (write, pieces) in last_of_each_key(put, pieces) {
        let task = write.task.to_u128().to_be_bytes();
        let slot = i64::from(write.slot);
        let count = i64::from(pieces.count());
        let rest = pieces.rest(&write.bytes);
        let Step { place, branch, step: number } = step;
        let values: &[&dyn Value] = &[&place, &branch, &number, &&task[..], &slot, &rest.as_ref(), &count];
        if transaction.execute(PUT_WRITE, values).await? == 0 {
            // The write had large values.
            transaction.execute(REPLACE_WRITE, values).await?;
            changes.free(transaction, step, &[&of_write(write)]).await?;
        }
        changes.keep(step, &of_write(write), &write.bytes, pieces);
    }
    Ok(())
}

async fn newest(client: &Link<impl Parts>, place: Place<'_>) -> Result<Option<SqlRow>, Fault> {
    client.query_opt(NEWEST, &[&place.thread.as_bytes(), &place.namespace.as_bytes()]).await
}

pub(super) async fn row(
    connection: &Connection,
    place: Place<'_>,
    id: CheckpointId,
) -> Result<Option<Row>, Fault> {
    let Ok(step) = number(id.step) else { return Ok(None) };
    let thread = place.thread.as_bytes();
    let namespace = place.namespace.as_bytes();
    let found = connection.query_opt(ROW, &[&thread, &namespace, &i64::from(id.branch), &step]).await?;
    found.map(|row| read_row(place, id.branch, &row)).transpose()
}

pub(super) async fn list(
    connection: &Connection,
    place: Place<'_>,
    query: ListQuery,
) -> Result<Vec<Row>, Fault> {
    let branch = match query.branch {
        Some(branch) => branch,
        None => match newest(connection, place).await? {
            Some(found) => as_id(found.get(0), 0).branch,
            None => return Ok(Vec::new()),
        },
    };
    let last = query.before.map_or(i64::MAX, |before| number(before).map_or(i64::MAX, |before| before - 1));
    let limit = query.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let thread = place.thread.as_bytes();
    let namespace = place.namespace.as_bytes();
    let read = connection.query(LIST, &[&thread, &namespace, &i64::from(branch), &last, &limit]).await?;
    read_rows(place, branch, read)
}

fn read_rows(place: Place<'_>, branch: u32, rows: Vec<SqlRow>) -> Result<Vec<Row>, Fault> {
    rows.iter().map(|row| read_row(place, branch, row)).collect()
}

pub(super) fn read_row(place: Place<'_>, branch: u32, row: &SqlRow) -> Result<Row, Fault> {
    let id = as_id(i64::from(branch), row.try_get(0)?);
    let kind: i16 = row.try_get(1)?;
    let known = u8::try_from(kind).ok().and_then(RowKind::from_number);
    let kind =
        known.ok_or_else(|| corrupt(place, id, format_args!("its row is of the unknown kind {kind}")))?;
    let record = with_its_pieces(place, id, row, 2)?;
    Ok(Row { id, kind, record })
}

/// Reads bytes, the number of their pieces, and the pieces from the columns starting at `first`.
fn with_its_pieces(place: Place<'_>, id: CheckpointId, row: &SqlRow, first: usize) -> Result<Vec<u8>, Fault> {
    let count: i64 = row.try_get(first + 1)?;
    if count == 0 {
        return Ok(row.try_get(first)?);
    }
    let rest: &[u8] = row.try_get(first)?;
    let found = blobs::found(row, first + 2)?;
    whole(rest, u32::try_from(count).unwrap_or(u32::MAX), found)
        .map_err(|missing| corrupt(place, id, missing).into())
}

/// Reads a task, a slot, and bytes with their pieces, from the columns that start there.
pub(super) fn read_write(
    place: Place<'_>,
    id: CheckpointId,
    row: &SqlRow,
    [task, slot, bytes]: [usize; 3],
) -> Result<PendingWrite, Fault> {
    let (task, slot): (&[u8], i64) = (row.try_get(task)?, row.try_get(slot)?);
    let unfit = || corrupt(place, id, "a pending write has a key that agentgraph did not write");
    let task = <[u8; 16]>::try_from(task).map_err(|_| unfit())?;
    let slot = u32::try_from(slot).map_err(|_| unfit())?;
    Ok(PendingWrite {
        task: TaskId::from_u128(u128::from_be_bytes(task)),
        slot,
        bytes: with_its_pieces(place, id, row, bytes)?,
    })
}

pub(super) fn as_id(branch: i64, step: i64) -> CheckpointId {
    CheckpointId::new(u32::try_from(branch).unwrap_or(u32::MAX), step.unsigned_abs())
}

/// Integers of Postgres are signed.
pub(super) fn number(step: u64) -> Result<i64, StoreError> {
    i64::try_from(step).map_err(|_| {
        let problem = format!("step {step} is above {}, the largest that Postgres can hold", i64::MAX);
        StoreError::new(StoreCode::Store, problem)
    })
}

/// The most bytes of names that an index of Postgres takes.
const LONGEST: usize = 2_500;

pub(super) fn check_names(place: Place<'_>) -> Result<(), StoreError> {
    let length = place.thread.len() + place.namespace.len();
    if length <= LONGEST {
        return Ok(());
    }
    let problem = format!(
        "the names of a thread and a namespace together have {length} bytes, and Postgres can take {LONGEST} in an index"
    );
    Err(StoreError::new(StoreCode::Store, problem))
}
