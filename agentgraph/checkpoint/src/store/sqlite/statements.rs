//! The statements. Nothing here waits or retries; every value is a parameter.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Row, params};

use crate::services::from_micros;
use crate::signed::integer;
use crate::sqlite::fault::Fault;
use crate::sqlite::rows::{Begin, all, execute, first, statements, transaction};
use crate::store::change::Write;
use crate::store::embedder::best_score;
use crate::store::item::{Found, Item, StoredItem, unreadable};
use crate::store::namespace::Namespace;
use crate::store::options::{ChangeRow, end_of};
use crate::store::pattern::{NamespacePage, NamespaceQuery};
use crate::store::search::{Results, SearchQuery, before};
use crate::store::value::{decode_vector, encode_vector};

/// An item whose time has not ended at `?1`.
macro_rules! alive {
    () => {
        "(expires IS NULL OR expires > ?1)"
    };
}

/// The columns of an item, in the order of [`read_item`].
macro_rules! item {
    () => {
        "version, namespace, key, created, updated, ttl, expires, vectors, value"
    };
}

statements! {
    GET = "SELECT ", item!(), " FROM item WHERE namespace = ?2 AND key = ?3 AND ", alive!();
    LOOK = "SELECT version, created, expires, vectors FROM item WHERE namespace = ?1 AND key = ?2";
    INSERT = "
INSERT INTO item (namespace, key, created, updated, ttl, expires, vectors, value)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    INSERT_VECTOR = "INSERT INTO vector (version, at, numbers) VALUES (?1, ?2, ?3)";
    DELETE = "DELETE FROM item WHERE version = ?1";
    DELETE_VECTORS = "DELETE FROM vector WHERE version = ?1";

    /// By the index of names, which SQLite would not choose for few results: the newest items of the file may
    /// all be in other namespaces.
    PAGE = "SELECT ", item!(), " FROM item WHERE version IN (
        SELECT version FROM item INDEXED BY sqlite_autoindex_item_1
        WHERE namespace >= ?2 AND namespace < ?3 AND version < ?4 AND ", alive!(),
        " ORDER BY version DESC LIMIT ?5 OFFSET ?6)
    ORDER BY version DESC";

    /// Everything in the file, the newest first.
    PAGE_OF_ALL = "SELECT ", item!(), " FROM item WHERE version < ?4 AND ", alive!(),
        " AND ?2 = ?2 AND ?3 = ?3 ORDER BY version DESC LIMIT ?5 OFFSET ?6";

    /// The items in a namespace, the newest first. Only their versions: sorting would copy their values.
    SCAN = "
SELECT version FROM item INDEXED BY sqlite_autoindex_item_1
WHERE namespace >= ?1 AND namespace < ?2 AND version < ?3 ORDER BY version DESC";
    SCAN_ALL = "
SELECT version FROM item WHERE version < ?3 AND ?1 = ?1 AND ?2 = ?2 ORDER BY version DESC";
    ITEM = "SELECT ", item!(), " FROM item WHERE version = ?2 AND ", alive!();
    VECTORS = "SELECT numbers FROM vector WHERE version = ?1 ORDER BY at";
    NEXT_NAMESPACES = "SELECT DISTINCT namespace FROM item WHERE namespace >= ?2 AND namespace < ?3 AND ",
        alive!(), " ORDER BY namespace";
    TTL = "SELECT ttl FROM item WHERE version = ?2 AND ttl IS NOT NULL AND ", alive!();
    PROLONG = "UPDATE item SET expires = ?2 WHERE version = ?1";
    ENDED = "SELECT version, vectors FROM item WHERE expires IS NOT NULL AND expires <= ?1 LIMIT 256";
}

pub(super) fn prepare(connection: &Connection) -> Result<(), Fault> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Beside these: the beginning and the end of a transaction, in two kinds.
    connection.set_prepared_statement_cache_capacity(ALL.len() + 4);
    for sql in ALL {
        connection.prepare_cached(sql)?;
    }
    Ok(())
}

pub(super) fn get(
    connection: &Connection,
    namespace: &Namespace,
    key: &str,
    now: u64,
) -> Result<Option<Item>, Fault> {
    let mut statement = connection.prepare_cached(GET)?;
    let place = params![integer(now), namespace.to_bytes(), key.as_bytes()];
    first(&mut statement, place, |row| Ok(read_item(row)?.0))
}

/// All changes in one transaction.
pub(super) fn change(connection: &Connection, rows: &[ChangeRow]) -> Result<Vec<Option<u64>>, Fault> {
    transaction(connection, Begin::ToWrite, || {
        rows.iter().map(|row| change_one(connection, row)).collect::<Result<_, _>>()
    })
}

fn change_one(connection: &Connection, row: &ChangeRow) -> Result<Option<u64>, Fault> {
    let ChangeRow { prepared, namespace, value } = row;
    let key = row.key();
    let now = integer(prepared.now);
    let mut look = connection.prepare_cached(LOOK)?;
    let there = first(&mut look, params![namespace, key], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, Option<i64>>(2)?,
            row.get::<_, i64>(3)?,
        ))
    })?;
    let alive = there.filter(|(_, _, expires, _)| expires.is_none_or(|end| end > now));
    let found = alive.map(|(version, ..)| version.unsigned_abs());
    prepared.change.check_condition(found)?;
    if let Some((version, _, _, vectors)) = there {
        remove(connection, version, vectors)?;
    }
    if prepared.change.write == Write::Delete {
        return Ok(found);
    }
    let created = alive.map_or_else(|| integer(prepared.created), |(_, created, ..)| created);
    let (ttl, expires) = (prepared.ttl.map(integer), prepared.expires.map(integer));
    let count = i64::try_from(prepared.vectors.len()).unwrap_or(i64::MAX);
    execute(connection, INSERT, params![namespace, key, created, now, ttl, expires, count, value])?;
    let version = connection.last_insert_rowid();
    for (at, vector) in (0_i64..).zip(&prepared.vectors) {
        execute(connection, INSERT_VECTOR, params![version, at, encode_vector(vector)])?;
    }
    Ok(Some(version.unsigned_abs()))
}

fn remove(connection: &Connection, version: i64, vectors: i64) -> Result<(), Fault> {
    execute(connection, DELETE, [version])?;
    if vectors > 0 {
        execute(connection, DELETE_VECTORS, [version])?;
    }
    Ok(())
}

/// A search without a filter and without a text.
pub(super) fn page(connection: &Connection, query: &SearchQuery, now: u64) -> Result<Vec<Found>, Fault> {
    let (start, end) = query.within.range();
    let sql = if start.is_empty() { PAGE_OF_ALL } else { PAGE };
    let (limit, offset) = (integer(query.limit), integer(query.offset));
    let values = params![integer(now), start, end, before(query), limit, offset];
    all(connection, sql, values, |row| Ok(Found::new(read_item(row)?.0, None)))
}

/// A search that looks at items one by one.
pub(super) struct Read {
    pub(super) query: SearchQuery,
    pub(super) vector: Option<Vec<f32>>,
    pub(super) now: u64,
    pub(super) scan_limit: usize,
}

pub(super) fn scan(connection: &Connection, read: &Read) -> Result<Vec<Found>, Fault> {
    // In one transaction, so that items and vectors fit together.
    transaction(connection, Begin::ToRead, || {
        let Read { query, vector, now, scan_limit } = read;
        let mut results = Results::new(query, *scan_limit);
        let (start, end) = query.within.range();
        let sql = if start.is_empty() { SCAN_ALL } else { SCAN };
        let versions =
            all(connection, sql, params![start, end, before(query)], |row| Ok(row.get::<_, i64>(0)?))?;
        let mut statement = connection.prepare_cached(ITEM)?;
        for version in versions {
            if vector.is_none() && results.is_full() {
                break;
            }
            let found = first(&mut statement, params![integer(*now), version], read_item)?;
            let Some((item, vectors)) = found else { continue };
            results.count(1)?;
            let score = match vector {
                Some(vector) if vectors > 0 && results.fits(&item.value) => score(connection, vector, &item)?,
                _ => None,
            };
            results.add(item, score);
        }
        Ok(results.page())
    })
}

fn score(connection: &Connection, query: &[f32], item: &Item) -> Result<Option<f64>, Fault> {
    let vectors = all(connection, VECTORS, [integer(item.version)], |row| Ok(row.get::<_, Vec<u8>>(0)?))?;
    let damaged = || unreadable(&item.namespace, &item.key, "one of its vectors is damaged");
    let vectors: Vec<Vec<f32>> =
        vectors.iter().map(|bytes| decode_vector(bytes).ok_or_else(damaged)).collect::<Result<_, _>>()?;
    Ok(best_score(query, vectors.iter().map(Vec::as_slice)))
}

pub(super) fn list(
    connection: &Connection,
    query: &NamespaceQuery,
    now: u64,
) -> Result<Vec<Namespace>, Fault> {
    let (start, end) = query.prefix.fixed()?.range();
    let mut page = NamespacePage::new(query);
    let mut statement = connection.prepare_cached(NEXT_NAMESPACES)?;
    let mut rows = statement.query(params![integer(now), start, end])?;
    while let Some(row) = rows.next()? {
        if !page.add(&Namespace::read(&row.get::<_, Vec<u8>>(0)?)?) {
            break;
        }
    }
    Ok(page.into_found())
}

/// Begins the times of items anew. Returns their ends; `None` for one that has no time, or is gone.
pub(super) fn refresh(
    connection: &Connection,
    versions: &[u64],
    now: u64,
) -> Result<Vec<Option<std::time::SystemTime>>, Fault> {
    transaction(connection, Begin::ToWrite, || {
        let refresh = |version: &u64| {
            let version = integer(*version);
            let mut statement = connection.prepare_cached(TTL)?;
            let ttl = first(&mut statement, params![integer(now), version], |row| Ok(row.get::<_, i64>(0)?))?;
            let Some(ttl) = ttl else { return Ok(None) };
            let end = end_of(now, ttl.unsigned_abs());
            execute(connection, PROLONG, params![version, integer(end)])?;
            Ok(Some(from_micros(end)))
        };
        versions.iter().map(refresh).collect::<Result<_, Fault>>()
    })
}

/// Removes some of the items whose time has ended; returns their number.
pub(super) fn sweep(connection: &Connection, now: u64) -> Result<u64, Fault> {
    transaction(connection, Begin::ToWrite, || {
        let ended = all(connection, ENDED, [integer(now)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (version, vectors) in &ended {
            remove(connection, *version, *vectors)?;
        }
        Ok(ended.len() as u64)
    })
}

/// The item of a row, and the number of its vectors.
fn read_item(row: &Row<'_>) -> Result<(Item, i64), Fault> {
    let stored = StoredItem {
        version: row.get(0)?,
        namespace: row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?,
        key: row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?,
        created: row.get(3)?,
        updated: row.get(4)?,
        ttl: row.get(5)?,
        expires: row.get(6)?,
        value: row.get_ref(8)?.as_blob().ok(),
    };
    Ok((stored.read()?, row.get(7)?))
}
