//! The statements that change items.

use crate::postgres::fault::Fault;
use crate::postgres::statements::{Connection, Link, Parts, Transaction, Value};
use crate::signed::integer;
use crate::store::change::{Condition, Write};
use crate::store::options::ChangeRow;

/// Ended items are absent: their time of creation is not kept. `$8` is the version, or null for the next
/// one; a later one is taken if another call has stored the item meanwhile.
const PUT: &str = "
INSERT INTO @item AS old (namespace, key, version, created, updated, ttl, expires, value)
VALUES ($1, $2, coalesce($8::bigint, nextval('@versions')), $3, $4, $5, $6, $7)
ON CONFLICT (namespace, key) DO UPDATE SET
    version = CASE WHEN excluded.version > old.version THEN excluded.version ELSE nextval('@versions') END,
    created = CASE WHEN old.expires <= $4 THEN excluded.created ELSE old.created END,
    updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires, value = excluded.value
RETURNING version";

/// Creates the item, or nothing if it is there.
const PUT_ABSENT: &str = "
INSERT INTO @item AS old (namespace, key, version, created, updated, ttl, expires, value)
VALUES ($1, $2, coalesce($8::bigint, nextval('@versions')), $3, $4, $5, $6, $7)
ON CONFLICT (namespace, key) DO UPDATE SET
    version = CASE WHEN excluded.version > old.version THEN excluded.version ELSE nextval('@versions') END,
    created = excluded.created,
    updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires, value = excluded.value
WHERE old.expires <= $4
RETURNING version";

const PUT_VERSION: &str = "
UPDATE @item SET version = coalesce($8::bigint, nextval('@versions')), updated = $4, ttl = $5, expires = $6, value = $7
WHERE namespace = $1 AND key = $2 AND version = $9 AND (expires IS NULL OR expires > $4) AND $3::bigint IS NOT NULL
RETURNING version";

const RESERVE: &str = "SELECT nextval('@versions') FROM generate_series(1, $1::bigint)";

/// The version of the item, which stays as it is until the transaction ends.
const LOOK: &str = "
SELECT version, expires IS NULL OR expires > $3 FROM @item WHERE namespace = $1 AND key = $2 FOR UPDATE";

const DELETE: &str = "DELETE FROM @item WHERE namespace = $1 AND key = $2";

const DELETE_VECTORS: &str = "DELETE FROM @vector WHERE namespace = $1 AND key = $2";

const INSERT_VECTOR: &str = "INSERT INTO @vector (namespace, key, at, numbers) VALUES ($1, $2, $3, $4)";

const SWEEP: &str = "DELETE FROM @item WHERE expires <= $1";

/// All changes in one transaction.
pub(super) async fn apply(
    connection: &mut Connection,
    rows: &[ChangeRow],
) -> Result<Vec<Option<u64>>, Fault> {
    let transaction = connection.begin().await?;
    let numbers = reserve(&transaction, rows.len()).await?;
    let mut numbered: Vec<(usize, &ChangeRow)> = rows.iter().enumerate().collect();
    // In the order of their names, so that two calls which change the same items do not wait for each other.
    numbered.sort_by_key(|(at, row)| (&row.namespace, row.key(), *at));
    let mut versions = Vec::with_capacity(rows.len());
    for (at, row) in numbered {
        let version = match &row.prepared.change.write {
            Write::Delete => delete(&transaction, row).await?,
            Write::Put(_) => Some(put(&transaction, row, numbers.get(at).copied()).await?),
        };
        versions.push((at, version));
    }
    transaction.commit().await?;
    versions.sort_by_key(|(at, _)| *at);
    Ok(versions.into_iter().map(|(_, version)| version).collect())
}

/// Versions in the order of the changes, if there are several.
async fn reserve(transaction: &Transaction<'_>, count: usize) -> Result<Vec<i64>, Fault> {
    if count < 2 {
        return Ok(Vec::new());
    }
    let rows = transaction.query(RESERVE, &[&integer(count as u64)]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn put(transaction: &Transaction<'_>, row: &ChangeRow, number: Option<i64>) -> Result<u64, Fault> {
    let ChangeRow { prepared, namespace, value } = row;
    let key = &row.key();
    let (created, now) = (integer(prepared.created), integer(prepared.now));
    let (ttl, expires) = (prepared.ttl.map(integer), prepared.expires.map(integer));
    let mut values: Vec<&dyn Value> = vec![namespace, key, &created, &now, &ttl, &expires, value, &number];
    let wanted;
    let sql = match prepared.change.condition {
        Condition::Any => PUT,
        Condition::Absent => PUT_ABSENT,
        Condition::Version(version) => {
            wanted = integer(version);
            values.push(&wanted);
            PUT_VERSION
        }
    };
    let Some(stored) = transaction.query_opt(sql, &values).await? else {
        let found = look(transaction, row).await?;
        prepared.change.check_condition(found)?;
        // The item was changed after the first statement looked at it: the whole call is repeated.
        return Err(Fault::Changed);
    };
    let version: i64 = stored.try_get(0)?;
    transaction.execute(DELETE_VECTORS, &[namespace, key]).await?;
    for (at, vector) in (0_i32..).zip(&prepared.vectors) {
        transaction.execute(INSERT_VECTOR, &[namespace, key, &at, vector]).await?;
    }
    Ok(version.unsigned_abs())
}

async fn delete(transaction: &Transaction<'_>, row: &ChangeRow) -> Result<Option<u64>, Fault> {
    let found = look(transaction, row).await?;
    row.prepared.change.check_condition(found)?;
    transaction.execute(DELETE, &[&row.namespace, &row.key()]).await?;
    Ok(found)
}

async fn look(transaction: &Transaction<'_>, row: &ChangeRow) -> Result<Option<u64>, Fault> {
    let values: &[&dyn Value] = &[&row.namespace, &row.key(), &integer(row.prepared.now)];
    let Some(found) = transaction.query_opt(LOOK, values).await? else { return Ok(None) };
    let is_alive: bool = found.try_get(1)?;
    let version: i64 = found.try_get(0)?;
    Ok(is_alive.then_some(version.unsigned_abs()))
}

pub(super) async fn sweep(client: &Link<impl Parts>, now: u64) -> Result<u64, Fault> {
    client.execute(SWEEP, &[&integer(now)]).await
}
