//! The statements that read items.

use tokio_postgres::Row;

use super::vectors::Vectors;
use crate::postgres::fault::Fault;
use crate::postgres::statements::{Connection, Link, Parts, Transaction, Value};
use crate::services::from_micros;
use crate::signed::integer;
use crate::store::embedder::best_score;
use crate::store::item::{Found, Item, StoredItem};
use crate::store::namespace::Namespace;
use crate::store::options::end_of;
use crate::store::pattern::{NamespacePage, NamespaceQuery};
use crate::store::search::{Results, SearchQuery, before};

/// The columns of an item, in the order of [`read_item`].
macro_rules! item {
    () => {
        "version, namespace, key, created, updated, expires, value, ttl"
    };
}

const GET: &str = concat!(
    "SELECT ",
    item!(),
    " FROM @item WHERE namespace = $1 AND key = $2 AND (expires IS NULL OR expires > $3)"
);

/// A later version has a time of its own.
const PROLONG: &str = "
UPDATE @item SET expires = least($3::bigint + ttl, $4)
WHERE namespace = $1 AND key = $2 AND version = $5 AND ttl IS NOT NULL AND expires > $3 RETURNING expires";

/// The items in a namespace, the newest first.
macro_rules! within {
    () => {
        concat!(
            "SELECT ",
            item!(),
            " FROM @item WHERE namespace >= $1 AND namespace < $2 AND version < $3
              AND (expires IS NULL OR expires > $4) ORDER BY version DESC"
        )
    };
}

const PAGE: &str = concat!(within!(), " LIMIT $5 OFFSET $6");

/// The items in a namespace with their vectors, those of an item one after the other.
const SCAN_VECTORS: &str = "
SELECT item.version, item.namespace, item.key, created, updated, expires, value, ttl, numbers
FROM @item JOIN @vector ON vector.namespace = item.namespace AND vector.key = item.key
WHERE item.namespace >= $1 AND item.namespace < $2 AND version < $3 AND (expires IS NULL OR expires > $4)
ORDER BY version DESC, at";

/// Some namespaces after the last one that was read.
const NAMESPACES: &str = "
SELECT DISTINCT namespace FROM @item
WHERE namespace >= $1 AND namespace > $2 AND namespace < $3 AND (expires IS NULL OR expires > $4)
ORDER BY namespace LIMIT 256";

pub(super) async fn get(
    client: &Link<impl Parts>,
    namespace: &[u8],
    key: &[u8],
    now: u64,
    refreshes: bool,
) -> Result<Option<Item>, Fault> {
    let Some(row) = client.query_opt(GET, &[&namespace, &key, &integer(now)]).await? else {
        return Ok(None);
    };
    let mut item = read_item(&row)?;
    if refreshes && item.lifetime.is_some() {
        refresh(client, &mut item, now).await?;
    }
    Ok(Some(item))
}

async fn refresh(client: &Link<impl Parts>, item: &mut Item, now: u64) -> Result<(), Fault> {
    let (namespace, key) = (item.namespace.to_bytes(), item.key.as_bytes());
    let (last, version) = (integer(end_of(u64::MAX, 0)), integer(item.version));
    let values: &[&dyn Value] = &[&namespace, &key, &integer(now), &last, &version];
    if let Some(row) = client.query_opt(PROLONG, values).await? {
        item.expires_at = Some(from_micros(row.try_get::<_, i64>(0)?.unsigned_abs()));
    }
    Ok(())
}

/// A search, and who compares its vectors.
pub(super) struct Read {
    pub(super) query: SearchQuery,
    pub(super) vector: Option<Vec<f32>>,
    pub(super) vectors: Vectors,
    pub(super) now: u64,
    pub(super) scan_limit: usize,
    pub(super) refreshes: bool,
}

pub(super) async fn search(connection: &mut Connection, read: &Read) -> Result<Vec<Found>, Fault> {
    let mut page = match (&read.vector, &read.vectors) {
        (None, _) if read.query.filter.is_none() => page(connection, read).await?,
        _ => {
            // All batches see the items of one moment.
            let transaction = connection.snapshot().await?;
            let found = scan(&transaction, read).await?;
            transaction.commit().await?;
            found
        }
    };
    if read.refreshes {
        let ending = page.iter_mut().filter(|found| found.item.expires_at.is_some());
        let mut ending: Vec<&mut Item> = ending.map(|found| &mut found.item).collect();
        // In one order, so that two searches do not wait for each other.
        ending.sort_by_key(|item| item.version);
        if !ending.is_empty() {
            let transaction = connection.begin().await?;
            for item in ending {
                refresh(&transaction, item, read.now).await?;
            }
            transaction.commit().await?;
        }
    }
    Ok(page)
}

async fn page(client: &Link<impl Parts>, read: &Read) -> Result<Vec<Found>, Fault> {
    let Read { query, now, .. } = read;
    let (start, end) = query.within.range();
    let (limit, offset) = (integer(query.limit), integer(query.offset));
    let values: &[&dyn Value] = &[&start, &end, &before(query), &integer(*now), &limit, &offset];
    let rows = client.query(PAGE, values).await?;
    rows.iter().map(|row| Ok(Found::new(read_item(row)?, None))).collect()
}

async fn scan(transaction: &Transaction<'_>, read: &Read) -> Result<Vec<Found>, Fault> {
    let Read { query, vector, vectors, now, scan_limit, .. } = read;
    let results = Results::new(query, *scan_limit);
    let (start, end) = query.within.range();
    let (before, now) = (before(query), integer(*now));
    let mut values: Vec<&dyn Value> = vec![&start, &end, &before, &now];
    let length = i32::try_from(vector.as_ref().map_or(0, Vec::len)).unwrap_or(i32::MAX);
    match (vector, vectors) {
        (None, _) => in_order(transaction, within!(), &values, results).await,
        (Some(vector), Vectors::InProcess) => compare(transaction, &values, vector, results).await,
        (Some(vector), Vectors::OnServer { schema }) => {
            values.extend([vector as &dyn Value, &length]);
            in_order(transaction, &by_distance(schema), &values, results).await
        }
    }
}

/// Until the page is full: the server sends the items in their order, with their distances if it compared
/// vectors.
async fn in_order(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&dyn Value],
    mut results: Results<'_>,
) -> Result<Vec<Found>, Fault> {
    transaction.open_cursor(sql, values).await?;
    loop {
        let rows = transaction.fetch().await?;
        for row in &rows {
            if results.is_full() {
                return Ok(results.page());
            }
            results.count(1)?;
            let distance = if row.len() > 8 { Some(row.try_get::<_, f64>(8)?) } else { None };
            results.add(read_item(row)?, distance.map(|distance| (1.0 - distance).clamp(-1.0, 1.0)));
        }
        if rows.is_empty() {
            return Ok(results.page());
        }
    }
}

/// Compares all vectors in this process.
async fn compare(
    transaction: &Transaction<'_>,
    values: &[&dyn Value],
    vector: &[f32],
    mut results: Results<'_>,
) -> Result<Vec<Found>, Fault> {
    transaction.open_cursor(SCAN_VECTORS, values).await?;
    let mut open: Option<(Item, Option<f64>)> = None;
    loop {
        let rows = transaction.fetch().await?;
        for row in &rows {
            let score = best_score(vector, [&*row.try_get::<_, Vec<f32>>(8)?]);
            let version = row.try_get::<_, i64>(0)?.unsigned_abs();
            match &mut open {
                // No score is less than any.
                Some((item, best)) if item.version == version => {
                    *best = if *best < score { score } else { *best };
                }
                open => {
                    results.count(1)?;
                    if let Some((item, score)) = open.replace((read_item(row)?, score)) {
                        results.add(item, score);
                    }
                }
            }
        }
        if rows.is_empty() {
            if let Some((item, score)) = open {
                results.add(item, score);
            }
            return Ok(results.page());
        }
    }
}

/// The distance of a vector without a length is no number; such a vector is similar to nothing.
fn by_distance(schema: &str) -> String {
    let schema = Vectors::quoted(schema);
    format!(
        "SELECT item.version, item.namespace, item.key, created, updated, expires, value, ttl, distance
         FROM (
             SELECT vector.namespace, vector.key, min(coalesce(nullif(
                 numbers::{schema}.vector OPERATOR({schema}.<=>) $5::real[]::{schema}.vector, 'NaN'), 1)) AS distance
             FROM @vector
             WHERE vector.namespace >= $1 AND vector.namespace < $2 AND array_length(numbers, 1) = $6
             GROUP BY vector.namespace, vector.key
         ) AS near JOIN @item ON item.namespace = near.namespace AND item.key = near.key
         WHERE version < $3 AND (expires IS NULL OR expires > $4)
         ORDER BY distance, item.namespace, item.key"
    )
}

pub(super) async fn list(
    client: &Link<impl Parts>,
    query: &NamespaceQuery,
    now: u64,
) -> Result<Vec<Namespace>, Fault> {
    let (start, end) = query.prefix.fixed()?.range();
    let mut page = NamespacePage::new(query);
    let mut rows = client.query(NAMESPACES, &[&start, &Vec::<u8>::new(), &end, &integer(now)]).await?;
    // The root has no bytes, so it is not after anything.
    if start.is_empty() && has_root(client, now).await? {
        page.add(&Namespace::root());
    }
    loop {
        let mut last: Vec<u8> = Vec::new();
        for row in &rows {
            let bytes: Vec<u8> = row.try_get(0)?;
            if !page.add(&Namespace::read(&bytes)?) {
                return Ok(page.into_found());
            }
            last = bytes;
        }
        if rows.is_empty() {
            return Ok(page.into_found());
        }
        rows = client.query(NAMESPACES, &[&start, &last, &end, &integer(now)]).await?;
    }
}

async fn has_root(client: &Link<impl Parts>, now: u64) -> Result<bool, Fault> {
    let sql = "SELECT EXISTS (SELECT FROM @item WHERE namespace = $1 AND (expires IS NULL OR expires > $2))";
    Ok(client.query_one(sql, &[&Vec::<u8>::new(), &integer(now)]).await?.try_get(0)?)
}

fn read_item(row: &Row) -> Result<Item, Fault> {
    let stored = StoredItem {
        version: row.try_get(0)?,
        namespace: row.try_get(1)?,
        key: row.try_get(2)?,
        created: row.try_get(3)?,
        updated: row.try_get(4)?,
        expires: row.try_get(5)?,
        value: Some(row.try_get(6)?),
        ttl: row.try_get(7)?,
    };
    Ok(stored.read()?)
}
