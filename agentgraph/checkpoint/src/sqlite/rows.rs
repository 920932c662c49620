//! The statements. Nothing here waits or retries; every value is a parameter.

use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, Connection, Params, Row as SqlRow, params};

use super::blobs::{self, Owner};
use super::fault::Fault;
use super::{leases, upkeep, waiting, writes};
use crate::blob::PutPieces;
use crate::error::{StoreCode, StoreError};
use crate::error::{corrupt, stale};
use crate::id::{CheckpointId, TaskId};
use crate::lease::lease_lost;
use crate::row::{ListQuery, PendingWrite, Place, Put, Row, RowKind, Tail};
use crate::signed::as_fence;

/// The number of a place, which replaces both names in every other table.
macro_rules! place {
    () => {
        "(SELECT id FROM place WHERE thread = ?1 AND namespace = ?2)"
    };
}

/// Whether the thread is leased with a fence; the fence 0 is not checked.
macro_rules! leased {
    ($fence:literal) => {
        concat!(
            "(",
            $fence,
            " = 0 OR EXISTS (SELECT 1 FROM lease WHERE fence = ",
            $fence,
            " AND lease.thread = ?1))"
        )
    };
}

/// Declares statements, each a text in one or more parts.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $($part:expr),+;)+) => {
        $($(#[$doc])* const $name: &str = concat!($($part),+);)+

        /// All of them, which are compiled when a file is opened.
        pub(super) const ALL: &[&str] = &[$($name),+];
    };
}
pub(crate) use statements;
pub(super) use {leased, place};

statements! {
    IS_LEASED = "SELECT ", leased!("?2");
    ADD_PLACE = "INSERT OR IGNORE INTO place (thread, namespace) VALUES (?1, ?2)";

    /// One statement that checks and inserts: if the step is not after the newest one, or the place is new,
    /// the number of the place becomes NULL, which the column refuses and `OR IGNORE` skips. (An
    /// `INSERT .. SELECT` copies the record into a temporary table first, since it reads the table it
    /// writes.)
    ///
    /// The same happens if the fence is not the one of the thread's lease, or the parent is missing.
    INSERT = "
INSERT OR IGNORE INTO checkpoint (place, branch, step, part, kind, record, pieces)
VALUES (
    (SELECT id FROM place WHERE thread = ?1 AND namespace = ?2 AND NOT EXISTS (
        SELECT 1 FROM checkpoint AS newer WHERE newer.place = place.id AND newer.branch = ?3 AND newer.step >= ?4)
        AND ", leased!("?7"), " AND (?9 IS NULL OR EXISTS (
        SELECT 1 FROM checkpoint AS parent
        WHERE parent.place = place.id AND parent.branch = ?9 AND parent.step = ?10 AND parent.part = 0))
    ), ?3, ?4, 0, ?5, ?6, ?8)";
    INSERT_SEGMENT = "INSERT INTO checkpoint (place, branch, step, part, kind, record, pieces) VALUES (",
        place!(), ", ?3, ?4, 1, 2, ?5, ?6)";
    NEWEST = "SELECT branch, step FROM checkpoint WHERE place = ", place!(),
        " ORDER BY branch DESC, step DESC LIMIT 1";
    ROW = "SELECT step, kind, record, pieces FROM checkpoint WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 AND part = 0";
    EXISTS = "SELECT 1 FROM checkpoint WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 AND part = 0";
    NEWEST_FULL = "SELECT step FROM checkpoint INDEXED BY base WHERE place = ", place!(),
        " AND branch = ?3 AND step <= ?4 AND kind <> 1 AND kind = 0 ORDER BY step DESC LIMIT 1";
    FULL_AND_SEGMENTS = "SELECT step, kind, record, pieces FROM checkpoint INDEXED BY base WHERE place = ",
        place!(), " AND branch = ?3 AND step BETWEEN ?4 AND ?5 AND kind <> 1 ORDER BY step, kind";
    DELTAS = "SELECT step, kind, record, pieces FROM checkpoint WHERE place = ", place!(),
        " AND branch = ?3 AND step > ?4 AND step <= ?5 AND part = 0 AND kind = 1 ORDER BY step";
    WRITES = "SELECT task, slot, bytes, pieces FROM pending WHERE place = ", place!(),
        " AND branch = ?3 AND step = ?4 ORDER BY task, slot";
    LIST = "SELECT step, kind, record, pieces FROM checkpoint WHERE place = ", place!(),
        " AND branch = ?3 AND step <= ?4 AND part = 0 ORDER BY step DESC LIMIT ?5";
    THREADS = "
SELECT DISTINCT thread FROM place WHERE EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.place = place.id)
ORDER BY thread";
    BEGIN_TO_READ = "BEGIN";
    BEGIN_TO_WRITE = "BEGIN IMMEDIATE";
    COMMIT = "COMMIT";
}

/// Compiles every statement, so that foreign tables are detected on opening and no commit pays for
/// compiling.
///
/// Without the stability guarantee SQLite compiles a statement anew for every new value that might change
/// its plan. With the partial index this is every read, and it took four fifths of the time.
pub(super) fn prepare(connection: &Connection) -> Result<(), Fault> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let all = [ALL, writes::ALL, blobs::ALL, leases::ALL, upkeep::ALL, waiting::ALL].concat();
    connection.set_prepared_statement_cache_capacity(all.len());
    for sql in all {
        connection.prepare_cached(sql)?;
    }
    Ok(())
}

/// The result of storing a row.
pub(super) type Stored = Result<(), Late>;

/// Why a row was not stored. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// Its step exists already.
    Stale,
    /// Another writer has the thread.
    Lost,
}

impl Late {
    pub(super) fn explain(self, place: Place<'_>, id: CheckpointId) -> StoreError {
        match self {
            Late::Stale => stale(place, id),
            Late::Lost => lease_lost(place.thread),
        }
    }
}

/// Stores a row.
pub(super) fn put(connection: &Connection, put: &Put<'_>, pieces: &PutPieces) -> Result<Stored, Fault> {
    let mut statement = connection.prepare_cached(INSERT)?;
    let one_row = put.segment.is_none() && put.writes.is_empty() && pieces.is_empty();
    let one_statement = one_row && !put.clears_writes;
    if one_statement && insert(connection, &mut statement, put, pieces)? {
        return Ok(Ok(()));
    }
    transaction(connection, Begin::ToWrite, || insert_anywhere(connection, &mut statement, put, pieces))
}

/// Stores a row within a transaction.
pub(super) fn put_within(
    connection: &Connection,
    put: &Put<'_>,
    pieces: &PutPieces,
) -> Result<Stored, Fault> {
    let mut statement = connection.prepare_cached(INSERT)?;
    insert_anywhere(connection, &mut statement, put, pieces)
}

/// Inserts a row, and its place first if that is new.
fn insert_anywhere(
    connection: &Connection,
    statement: &mut CachedStatement<'_>,
    put: &Put<'_>,
    pieces: &PutPieces,
) -> Result<Stored, Fault> {
    if insert(connection, statement, put, pieces)? {
        return Ok(Ok(()));
    }
    if !is_leased(connection, put.place.thread, put.fence)? {
        return Ok(Err(Late::Lost));
    }
    let stored = add_place(connection, put.place)? && insert(connection, statement, put, pieces)?;
    Ok(if stored { Ok(()) } else { Err(Late::Stale) })
}

/// Whether the thread is leased with the fence, or the fence is 0.
pub(super) fn is_leased(connection: &Connection, thread: &str, fence: u64) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached(IS_LEASED)?;
    Ok(statement.query_row(params![thread, as_fence(fence)], |row| row.get(0))?)
}

fn insert(
    connection: &Connection,
    statement: &mut CachedStatement<'_>,
    put: &Put<'_>,
    pieces: &PutPieces,
) -> Result<bool, Fault> {
    let Place { thread, namespace } = put.place;
    let CheckpointId { branch, step } = put.id;
    let step = number(step)?;
    let kind = put.kind.to_number();
    let fence = as_fence(put.fence);
    let (record, count) = (pieces.record.rest(put.record), pieces.record.count());
    let parent =
        put.parent.map(|parent| Ok::<_, StoreError>((parent.branch, number(parent.step)?))).transpose()?;
    let (parent_branch, parent_step) = parent.unzip();
    let values =
        params![thread, namespace, branch, step, kind, record, fence, count, parent_branch, parent_step];
    if statement.execute(values)? == 0 {
        return Ok(false);
    }
    blobs::keep(connection, &Owner::row(put.place, put.id)?, put.record, &pieces.record)?;
    if let Some(segment) = put.segment {
        let rest = pieces.segment.rest(segment);
        let count = pieces.segment.count();
        execute(connection, INSERT_SEGMENT, params![thread, namespace, branch, step, rest, count])?;
        blobs::keep(connection, &Owner::segment(put.place, put.id)?, segment, &pieces.segment)?;
    }
    if put.clears_writes {
        writes::clear(connection, put.place, branch, step.saturating_sub(1).max(0))?;
    }
    if !put.writes.is_empty() {
        writes::put_within(connection, put.own_writes(), &pieces.writes)?;
    }
    Ok(true)
}

/// Gives the place a number; `false` if it has one already.
pub(super) fn add_place(connection: &Connection, place: Place<'_>) -> Result<bool, Fault> {
    Ok(execute(connection, ADD_PLACE, [place.thread, place.namespace])? > 0)
}

pub(super) fn tail(
    connection: &Connection,
    place: Place<'_>,
    at: Option<CheckpointId>,
) -> Result<Option<Tail>, Fault> {
    transaction(connection, Begin::ToRead, || {
        let found = match at {
            Some(id) => exists(connection, place, id)?.then_some(id),
            None => newest(connection, place)?,
        };
        match found {
            Some(id) => tail_of(connection, place, id),
            None => Ok(None),
        }
    })
}

fn tail_of(connection: &Connection, place: Place<'_>, id: CheckpointId) -> Result<Option<Tail>, Fault> {
    let Place { thread, namespace } = place;
    let CheckpointId { branch, step } = id;
    let step = number(step)?;
    let key = params![thread, namespace, branch, step];
    let mut statement = connection.prepare_cached(NEWEST_FULL)?;
    let Some(full) = first(&mut statement, key, |row| Ok(row.get::<_, i64>(0)?))? else {
        return Ok(None);
    };
    let read = |row: &SqlRow<'_>| read_row(connection, place, branch, row);
    let mut rows = all(connection, FULL_AND_SEGMENTS, params![thread, namespace, branch, full, step], read)?;
    let folded = rows.last().map_or(Ok(full), |row| number(row.id.step))?;
    rows.extend(all(connection, DELTAS, params![thread, namespace, branch, folded, step], read)?);
    let writes = all(connection, WRITES, key, |row| read_write(connection, place, id, row, 0))?;
    Ok(Some(Tail { rows, writes }))
}

pub(super) fn row(connection: &Connection, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Fault> {
    let Ok(step) = number(id.step) else { return Ok(None) };
    transaction(connection, Begin::ToRead, || {
        let mut statement = connection.prepare_cached(ROW)?;
        let key = params![place.thread, place.namespace, id.branch, step];
        first(&mut statement, key, |row| read_row(connection, place, id.branch, row))
    })
}

pub(super) fn list(connection: &Connection, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Fault> {
    transaction(connection, Begin::ToRead, || {
        let branch = match query.branch {
            Some(branch) => branch,
            None => newest(connection, place)?.map_or(0, |id| id.branch),
        };
        let last =
            query.before.map_or(i64::MAX, |before| number(before).map_or(i64::MAX, |before| before - 1));
        let limit = query.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let key = params![place.thread, place.namespace, branch, last, limit];
        all(connection, LIST, key, |row| read_row(connection, place, branch, row))
    })
}

pub(super) fn threads(connection: &Connection) -> Result<Vec<String>, Fault> {
    all(connection, THREADS, [], |row| Ok(row.get(0)?))
}

/// The purpose of a transaction. One that writes takes the file's lock at once, so that it cannot fail
/// half-way because the file is locked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    ToRead,
    ToWrite,
}

/// Runs `work` in a transaction, which is rolled back if it fails.
pub(crate) fn transaction<T>(
    connection: &Connection,
    begin: Begin,
    work: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let begin = match begin {
        Begin::ToRead => BEGIN_TO_READ,
        Begin::ToWrite => BEGIN_TO_WRITE,
    };
    execute(connection, begin, [])?;
    let _undo = Undo(connection);
    let done = work()?;
    execute(connection, COMMIT, [])?;
    Ok(done)
}

struct Undo<'a>(&'a Connection);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // The failure is reported already; SQLite may have rolled back already.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

fn exists(connection: &Connection, place: Place<'_>, id: CheckpointId) -> Result<bool, Fault> {
    let Ok(step) = number(id.step) else { return Ok(false) };
    let mut statement = connection.prepare_cached(EXISTS)?;
    Ok(statement.exists(params![place.thread, place.namespace, id.branch, step])?)
}

fn newest(connection: &Connection, place: Place<'_>) -> Result<Option<CheckpointId>, Fault> {
    let mut statement = connection.prepare_cached(NEWEST)?;
    first(&mut statement, [place.thread, place.namespace], |row| {
        Ok(CheckpointId::new(row.get(0)?, read_step(row, 1)?))
    })
}

pub(crate) fn execute(connection: &Connection, sql: &str, values: impl Params) -> Result<usize, Fault> {
    Ok(connection.prepare_cached(sql)?.execute(values)?)
}

pub(crate) fn first<T>(
    statement: &mut CachedStatement<'_>,
    values: impl Params,
    read: impl Fn(&SqlRow<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    statement.query(values)?.next()?.map(read).transpose()
}

pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl Fn(&SqlRow<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(values)?;
    let mut read_so_far = Vec::new();
    while let Some(row) = found.next()? {
        read_so_far.push(read(row)?);
    }
    Ok(read_so_far)
}

fn read_row(connection: &Connection, place: Place<'_>, branch: u32, row: &SqlRow<'_>) -> Result<Row, Fault> {
    let id = CheckpointId::new(branch, read_step(row, 0)?);
    let kind: u8 = row.get(1)?;
    let kind = RowKind::from_number(kind)
        .ok_or_else(|| corrupt(place, id, format_args!("its row is of the unknown kind {kind}")))?;
    let mut record: Vec<u8> = row.get(2)?;
    let pieces: u32 = row.get(3)?;
    if pieces > 0 {
        let owner = match kind {
            RowKind::Segment => Owner::segment(place, id)?,
            _ => Owner::row(place, id)?,
        };
        record = blobs::whole(connection, &owner, &record, pieces)?;
    }
    Ok(Row { id, kind, record })
}

/// Reads task, slot, bytes and the number of pieces from four columns, starting at `first`.
pub(super) fn read_write(
    connection: &Connection,
    place: Place<'_>,
    id: CheckpointId,
    row: &SqlRow<'_>,
    first: usize,
) -> Result<PendingWrite, Fault> {
    let task: Vec<u8> = row.get(first)?;
    let task = <[u8; 16]>::try_from(task)
        .map_err(|task| corrupt(place, id, format_args!("a task id of {} bytes", task.len())))?;
    let mut write = PendingWrite {
        task: TaskId::from_u128(u128::from_be_bytes(task)),
        slot: row.get(first + 1)?,
        bytes: row.get(first + 2)?,
    };
    let pieces: u32 = row.get(first + 3)?;
    if pieces > 0 {
        write.bytes = blobs::whole(connection, &Owner::write(place, id, &write)?, &write.bytes, pieces)?;
    }
    Ok(write)
}

pub(super) fn read_step(row: &SqlRow<'_>, column: usize) -> Result<u64, Fault> {
    let step: i64 = row.get(column)?;
    Ok(u64::try_from(step).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, step))?)
}

/// SQLite's integers are signed.
pub(super) fn number(step: u64) -> Result<i64, StoreError> {
    i64::try_from(step).map_err(|_| {
        let problem = format!("step {step} is above {}, the largest that SQLite can hold", i64::MAX);
        StoreError::new(StoreCode::Store, problem)
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::super::fault::{Content, Home};
    use super::super::schema;
    use super::*;
    use crate::blob::PutPieces;

    #[test]
    fn no_statement_of_a_read_or_a_commit_is_compiled_twice() {
        let connection = Connection::open_in_memory().expect("memory");
        assert!(
            schema::migrate(&connection, &Home::in_memory(Content::Checkpoints), &schema::CHECKPOINTS)
                .is_ok()
        );
        // Statements cached while the tables were created would be compiled again.
        connection.flush_prepared_statement_cache();
        assert!(prepare(&connection).is_ok());
        for thread in ["a", "b"] {
            let place = Place::root(thread);
            for step in 0..3 {
                let id = CheckpointId::new(0, step);
                let kind = if step == 0 { RowKind::Full } else { RowKind::Delta };
                let row = Put::new(place, id, kind, b"record");
                assert!(matches!(put(&connection, &row, &PutPieces::default()), Ok(Ok(()))));
                assert!(tail(&connection, place, None).is_ok_and(|tail| tail.is_some()));
                assert!(tail(&connection, place, Some(id)).is_ok_and(|tail| tail.is_some()));
                assert!(super::row(&connection, place, id).is_ok_and(|row| row.is_some()));
                assert!(list(&connection, place, ListQuery::default()).is_ok());
            }
        }
        for sql in ALL {
            let statement = connection.prepare_cached(sql).expect("a statement");
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }
}
