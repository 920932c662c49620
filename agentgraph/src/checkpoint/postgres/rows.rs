//! The statements about rows and writes. Every value is a parameter.

use deadpool_postgres::{ClientWrapper, GenericClient, Object};
use tokio_postgres::{IsolationLevel, Row as SqlRow};

use super::fault::Fault;
use crate::checkpoint::{
    ListQuery, PendingWrite, Place, Put, PutWrites, Row, RowKind, Tail, corrupt, lease_lost, stale,
};
use crate::context::{CheckpointId, TaskId};
use crate::error::{Code, Error};

/// `held` locks the lease, so that it cannot be taken before this is committed. Nothing comes of a step that is not after the
/// newest, of a place that is new, and of a fence that is not that of the lease. Two writers of one step meet at the key.
const PUT: &str = "
WITH held AS MATERIALIZED (SELECT fence FROM lease WHERE thread = $1 AND fence = $3 FOR SHARE),
wanted AS (
    SELECT id FROM place WHERE thread = $1 AND namespace = $2 AND ($3 = 0 OR EXISTS (SELECT 1 FROM held))
        AND NOT EXISTS (
            SELECT 1 FROM checkpoint AS newer WHERE newer.place = place.id AND newer.branch = $4 AND newer.step >= $5)
),
stored AS (
    INSERT INTO checkpoint (place, branch, step, part, kind, record)
    SELECT id, $4, $5, 0, $6, $7 FROM wanted ON CONFLICT DO NOTHING RETURNING place
),
folded AS (
    INSERT INTO checkpoint (place, branch, step, part, kind, record)
    SELECT place, $4, $5, 1, 2, $8 FROM stored WHERE $8::bytea IS NOT NULL
),
cleared AS (
    DELETE FROM pending USING stored WHERE pending.place = stored.place AND branch = $4 AND step = $9
)
SELECT count(*) FROM stored";

const ADD_PLACE: &str = "INSERT INTO place (thread, namespace) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Locks the lease, too.
const IS_LEASED: &str = "SELECT 1 FROM lease WHERE thread = $1 AND fence = $2 FOR SHARE";

const PUT_WRITE: &str = "
INSERT INTO pending (place, branch, step, task, slot, bytes)
SELECT id, $3, $4, $5, $6, $7 FROM place WHERE thread = $1 AND namespace = $2
ON CONFLICT (place, branch, step, task, slot) DO UPDATE SET bytes = excluded.bytes";

const NEWEST: &str = "
SELECT branch, step FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND part = 0 ORDER BY branch DESC, step DESC LIMIT 1";

const EXISTS: &str = "
SELECT branch, step FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step = $4 AND part = 0";

const ROW: &str = "
SELECT step, kind, record FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step = $4 AND part = 0";

const NEWEST_FULL: &str = "
SELECT step FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step <= $4 AND kind = 0 AND kind <> 1
ORDER BY step DESC LIMIT 1";

const FULL_AND_SEGMENTS: &str = "
SELECT step, kind, record FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step BETWEEN $4 AND $5 AND kind <> 1 ORDER BY step, kind";

const DELTAS: &str = "
SELECT step, kind, record FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step > $4 AND step <= $5 AND part = 0 AND kind = 1
ORDER BY step";

const WRITES: &str = "
SELECT task, slot, bytes FROM pending JOIN place ON place.id = pending.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step = $4 ORDER BY task, slot";

const LIST: &str = "
SELECT step, kind, record FROM checkpoint JOIN place ON place.id = checkpoint.place
WHERE thread = $1 AND namespace = $2 AND branch = $3 AND step <= $4 AND part = 0 ORDER BY step DESC LIMIT $5";

pub(super) async fn put(connection: &mut Object, put: &Put<'_>) -> Result<(), Fault> {
    check_names(put.place)?;
    if insert(&*connection, put).await? {
        return Ok(());
    }
    let transaction = connection.transaction().await?;
    check_fence(&transaction, put.place.thread, put.fence).await?;
    let (thread, namespace) = (put.place.thread.as_bytes(), put.place.namespace.as_bytes());
    transaction.execute(&transaction.prepare_cached(ADD_PLACE).await?, &[&thread, &namespace]).await?;
    if !insert(&transaction, put).await? {
        return Err(stale(put.place, put.id).into());
    }
    transaction.commit().await?;
    Ok(())
}

async fn insert(client: &impl GenericClient, put: &Put<'_>) -> Result<bool, Fault> {
    let (thread, namespace) = (put.place.thread.as_bytes(), put.place.namespace.as_bytes());
    let (branch, step) = (i64::from(put.id.branch), number(put.id.step)?);
    let before = if put.clears_writes { step.saturating_sub(1).max(0) } else { -1 };
    let kind = i16::from(put.kind.to_number());
    let statement = client.prepare_cached(PUT).await?;
    let stored = client
        .query_one(
            &statement,
            &[
                &thread,
                &namespace,
                &as_fence(put.fence),
                &branch,
                &step,
                &kind,
                &put.record,
                &put.segment,
                &before,
            ],
        )
        .await?;
    Ok(stored.get::<_, i64>(0) > 0)
}

/// Holds on to the lease until the transaction ends.
pub(super) async fn check_fence(client: &impl GenericClient, thread: &str, fence: u64) -> Result<(), Fault> {
    if fence == 0 {
        return Ok(());
    }
    let statement = client.prepare_cached(IS_LEASED).await?;
    match client.query_opt(&statement, &[&thread.as_bytes(), &as_fence(fence)]).await? {
        Some(_) => Ok(()),
        None => Err(lease_lost(thread).into()),
    }
}

pub(super) async fn put_writes(connection: &mut Object, put: &PutWrites<'_>) -> Result<(), Fault> {
    check_names(put.place)?;
    if put.writes.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction().await?;
    check_fence(&transaction, put.place.thread, put.fence).await?;
    let (thread, namespace) = (put.place.thread.as_bytes(), put.place.namespace.as_bytes());
    let (branch, step) = (i64::from(put.at.branch), number(put.at.step)?);
    transaction.execute(&transaction.prepare_cached(ADD_PLACE).await?, &[&thread, &namespace]).await?;
    let statement = transaction.prepare_cached(PUT_WRITE).await?;
    // In one order for all writers, so that two of them do not wait for each other.
    let mut writes: Vec<&PendingWrite> = put.writes.iter().collect();
    writes.sort_by_key(|write| (write.task, write.slot));
    for write in writes {
        let task = write.task.to_u128().to_be_bytes();
        let slot = i64::from(write.slot);
        let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&thread, &namespace, &branch, &step, &&task[..], &slot, &write.bytes];
        transaction.execute(&statement, values).await?;
    }
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn tail(
    connection: &mut Object,
    place: Place<'_>,
    at: Option<CheckpointId>,
) -> Result<Option<Tail>, Fault> {
    let client: &mut ClientWrapper = connection;
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let (thread, namespace) = (place.thread.as_bytes(), place.namespace.as_bytes());
    let found = match at {
        Some(id) => {
            let Ok(step) = number(id.step) else { return Ok(None) };
            let statement = transaction.prepare_cached(EXISTS).await?;
            transaction.query_opt(&statement, &[&thread, &namespace, &i64::from(id.branch), &step]).await?
        }
        None => newest(&transaction, place).await?,
    };
    let Some(found) = found else { return Ok(None) };
    let (branch, step): (i64, i64) = (found.get(0), found.get(1));
    let statement = transaction.prepare_cached(NEWEST_FULL).await?;
    let Some(full) = transaction.query_opt(&statement, &[&thread, &namespace, &branch, &step]).await? else {
        return Ok(None);
    };
    let full: i64 = full.get(0);
    let id = as_id(branch, step);
    let statement = transaction.prepare_cached(FULL_AND_SEGMENTS).await?;
    let read = transaction.query(&statement, &[&thread, &namespace, &branch, &full, &step]).await?;
    let mut rows = read_rows(place, id.branch, read)?;
    let folded = rows.last().map_or(Ok(full), |row| number(row.id.step))?;
    let statement = transaction.prepare_cached(DELTAS).await?;
    let read = transaction.query(&statement, &[&thread, &namespace, &branch, &folded, &step]).await?;
    rows.extend(read_rows(place, id.branch, read)?);
    let statement = transaction.prepare_cached(WRITES).await?;
    let writes = transaction.query(&statement, &[&thread, &namespace, &branch, &step]).await?;
    let writes = writes.iter().map(|row| read_write(place, id, row, 0)).collect::<Result<_, _>>()?;
    transaction.commit().await?;
    Ok(Some(Tail { rows, writes }))
}

async fn newest(client: &impl GenericClient, place: Place<'_>) -> Result<Option<SqlRow>, Fault> {
    let statement = client.prepare_cached(NEWEST).await?;
    Ok(client.query_opt(&statement, &[&place.thread.as_bytes(), &place.namespace.as_bytes()]).await?)
}

pub(super) async fn row(
    connection: &Object,
    place: Place<'_>,
    id: CheckpointId,
) -> Result<Option<Row>, Fault> {
    let Ok(step) = number(id.step) else { return Ok(None) };
    let statement = connection.prepare_cached(ROW).await?;
    let (thread, namespace) = (place.thread.as_bytes(), place.namespace.as_bytes());
    let found =
        connection.query_opt(&statement, &[&thread, &namespace, &i64::from(id.branch), &step]).await?;
    found.map(|row| read_row(place, id.branch, &row)).transpose()
}

pub(super) async fn list(connection: &Object, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Fault> {
    let branch = match query.branch {
        Some(branch) => branch,
        None => match newest(connection, place).await? {
            Some(found) => as_id(found.get(0), 0).branch,
            None => return Ok(Vec::new()),
        },
    };
    let last = query.before.map_or(i64::MAX, |before| number(before).map_or(i64::MAX, |before| before - 1));
    let limit = query.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let statement = connection.prepare_cached(LIST).await?;
    let (thread, namespace) = (place.thread.as_bytes(), place.namespace.as_bytes());
    let read =
        connection.query(&statement, &[&thread, &namespace, &i64::from(branch), &last, &limit]).await?;
    read_rows(place, branch, read)
}

fn read_rows(place: Place<'_>, branch: u32, rows: Vec<SqlRow>) -> Result<Vec<Row>, Fault> {
    rows.iter().map(|row| read_row(place, branch, row)).collect()
}

fn read_row(place: Place<'_>, branch: u32, row: &SqlRow) -> Result<Row, Fault> {
    let id = as_id(i64::from(branch), row.try_get(0)?);
    let kind: i16 = row.try_get(1)?;
    let known = u8::try_from(kind).ok().and_then(RowKind::from_number);
    let kind =
        known.ok_or_else(|| corrupt(place, id, format_args!("its row is of the unknown kind {kind}")))?;
    Ok(Row { id, kind, record: row.try_get(2)? })
}

/// Task, slot and bytes stand in three columns from that one on.
pub(super) fn read_write(
    place: Place<'_>,
    id: CheckpointId,
    row: &SqlRow,
    first: usize,
) -> Result<PendingWrite, Fault> {
    let (task, slot): (&[u8], i64) = (row.try_get(first)?, row.try_get(first + 1)?);
    let unfit = || corrupt(place, id, "a pending write has a key that agentgraph did not write");
    let task = <[u8; 16]>::try_from(task).map_err(|_| unfit())?;
    let slot = u32::try_from(slot).map_err(|_| unfit())?;
    Ok(PendingWrite {
        task: TaskId::from_u128(u128::from_be_bytes(task)),
        slot,
        bytes: row.try_get(first + 2)?,
    })
}

pub(super) fn as_id(branch: i64, step: i64) -> CheckpointId {
    CheckpointId::new(u32::try_from(branch).unwrap_or(u32::MAX), step.unsigned_abs())
}

/// No lease has a fence that Postgres cannot hold.
pub(super) fn as_fence(fence: u64) -> i64 {
    i64::try_from(fence).unwrap_or(-1)
}

/// Integers of Postgres have a sign.
pub(super) fn number(step: u64) -> Result<i64, Error> {
    i64::try_from(step).map_err(|_| {
        let problem = format!("step {step} is above {}, the largest that Postgres can hold", i64::MAX);
        Error::new(Code::Store, problem)
    })
}

/// What an index of Postgres can hold.
const LONGEST: usize = 2_500;

pub(super) fn check_names(place: Place<'_>) -> Result<(), Error> {
    let length = place.thread.len() + place.namespace.len();
    if length <= LONGEST {
        return Ok(());
    }
    let problem = format!(
        "the names of a thread and a namespace together have {length} bytes, and Postgres can take {LONGEST} in an index"
    );
    Err(Error::new(Code::Store, problem))
}
