//! The unanswered requests.
//!
//! If little is pending, the search starts with the pending writes. If much is pending, as with very many
//! waiting threads, it goes by the names of the threads, so that a page costs its own size and not the size
//! of the rest.

use rusqlite::{Connection, Row as SqlRow, params, types::Value};

use super::fault::Fault;
use super::rows::{Begin, all, first, read_step, read_write, statements, transaction};
use crate::id::CheckpointId;
use crate::row::{PendingWrite, Place, Waiting, WaitingQuery};

/// Slots of requests are odd. The last slots and those of task 0 have other uses; slot 0 of task 0 is the
/// note of a run that stopped.
macro_rules! is_open {
    () => {
        "(
            (asks.slot = 0 AND asks.task = zeroblob(16))
            OR (asks.slot % 2 = 1 AND asks.slot < ?1 AND asks.task <> zeroblob(16)
                AND NOT EXISTS (
                    SELECT 1 FROM pending AS answer WHERE answer.place = asks.place AND answer.branch = asks.branch
                        AND answer.step = asks.step AND answer.task = asks.task AND answer.slot = asks.slot + 1
                        AND answer.bytes NOT IN (x'c0', x'd602df1730a2c0'))))
        AND EXISTS (
            SELECT 1 FROM checkpoint AS at WHERE at.place = asks.place AND at.branch = asks.branch
                AND at.step = asks.step)
        AND NOT EXISTS (
            SELECT 1 FROM checkpoint AS newer WHERE newer.place = asks.place
                AND (newer.branch, newer.step) > (asks.branch, asks.step))"
    };
}

/// `CROSS JOIN` forces SQLite to keep the order.
macro_rules! open {
    ($tables:literal, $threads:literal) => {
        concat!(
            "SELECT place.thread, place.namespace, asks.branch, asks.step, asks.task, asks.slot, asks.bytes, asks.pieces FROM ",
            $tables,
            " WHERE asks.place = place.id AND ",
            $threads,
            " AND ",
            is_open!()
        )
    };
}

statements! {
    /// Whether more is pending than can be scanned in negligible time.
    IS_CROWDED = "SELECT 1 FROM pending LIMIT 1 OFFSET 10000";
    FEW = "WITH open AS (", open!("pending AS asks CROSS JOIN place", "place.thread >= ?2"),
        ") SELECT * FROM open WHERE thread IN (SELECT DISTINCT thread FROM open ORDER BY thread LIMIT ?3)
    ORDER BY thread, namespace, task, slot";

    /// The last thread of a full page.
    LAST_OF_PAGE = "SELECT DISTINCT place.thread FROM place WHERE place.thread >= ?2
        AND EXISTS (SELECT 1 FROM pending AS asks WHERE asks.place = place.id AND ", is_open!(),
        ") ORDER BY place.thread LIMIT 1 OFFSET ?3";
    PAGE = open!("place CROSS JOIN pending AS asks", "place.thread BETWEEN ?2 AND ?3"),
        " ORDER BY place.thread, place.namespace, asks.task, asks.slot";
}

pub(super) fn waiting(connection: &Connection, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, Fault> {
    // The least name after another one is that name with a NUL appended.
    let from = query.after.map_or(String::new(), |after| format!("{after}\0"));
    let limit = query.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let special = PendingWrite::SPECIAL;
    if limit == 0 {
        return Ok(Vec::new());
    }
    transaction(connection, Begin::ToRead, || {
        let read = |row: &SqlRow<'_>| read(connection, row);
        if query.limit.is_none() || !connection.prepare_cached(IS_CROWDED)?.exists([])? {
            return all(connection, FEW, params![special, from, limit], read);
        }
        let mut statement = connection.prepare_cached(LAST_OF_PAGE)?;
        let last =
            first(&mut statement, params![special, from, limit - 1], |row| Ok(row.get::<_, String>(0)?))?;
        // In SQLite every text sorts before every blob.
        let last = last.map_or(Value::Blob(Vec::new()), Value::Text);
        all(connection, PAGE, params![special, from, last], read)
    })
}

fn read(connection: &Connection, row: &SqlRow<'_>) -> Result<Waiting, Fault> {
    let (thread, namespace): (String, String) = (row.get(0)?, row.get(1)?);
    let at = CheckpointId::new(row.get(2)?, read_step(row, 3)?);
    let place = Place { thread: &thread, namespace: &namespace };
    let request = read_write(connection, place, at, row, 4)?;
    Ok(Waiting { at, request, thread, namespace })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sqlite::open;

    /// Two places for each of about 50 000 threads, one in the root namespace and one in `sub`. Seven of
    /// eight places have a request, and two of eight have an answer to it, so three of four threads wait.
    const CROWD: &str = "
        WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100000)
        INSERT INTO place (id, thread, namespace) SELECT n, printf('t%06d', n / 2), iif(n % 2, 'sub', '') FROM number;
        INSERT INTO checkpoint (place, branch, step, part, kind, record) SELECT id, 0, 0, 0, 0, x'61' FROM place;
        INSERT INTO pending (place, branch, step, task, slot, bytes)
        SELECT id, 0, 0, x'00000000000000000000000000000007', 1, x'62' FROM place WHERE id % 8 <> 0;
        INSERT INTO pending (place, branch, step, task, slot, bytes)
        SELECT id, 0, 0, x'00000000000000000000000000000007', 2, x'63' FROM place WHERE id % 8 IN (1, 2);";

    #[tokio::test]
    async fn the_cost_of_a_page_is_bounded_among_100_000_places() {
        let saver = open::in_memory().unwrap();
        saver.connection.with(assert_page_cost_is_bounded).await;
    }

    fn assert_page_cost_is_bounded(connection: &Connection) {
        connection.execute_batch(CROWD).unwrap();
        let after = |after: Option<&str>, limit| waiting(connection, WaitingQuery { after, limit }).unwrap();
        let everything = after(None, None);
        assert!(everything.len() > 60_000, "{}", everything.len());
        let mut paged: Vec<Waiting> = Vec::new();
        loop {
            let page = after(paged.last().map(|last| &*last.thread), Some(20_000));
            let threads = page.chunk_by(|one, next| one.thread == next.thread).count();
            paged.extend(page);
            // A page that is not full is the last one.
            if threads < 20_000 {
                break;
            }
        }
        assert!(paged == everything, "{} of {}", paged.len(), everything.len());
        for from in ["", "t025000\0", "t049995"] {
            let steps = |sql, last: Value| {
                let mut statement = connection.prepare_cached(sql).unwrap();
                statement.reset_status(StatementStatus::VmStep);
                let read =
                    statement.query_map(params![PendingWrite::SPECIAL, from, last], |_| Ok(())).unwrap();
                assert!(read.count() <= 30);
                statement.get_status(StatementStatus::VmStep)
            };
            let choosing = steps(LAST_OF_PAGE, Value::Integer(9));
            let fetching = steps(PAGE, Value::Text(format!("{}9", &from[..from.len().min(6)])));
            assert!(choosing < 5_000 && fetching < 10_000, "{choosing} and {fetching} steps from {from:?}");
        }
    }
}
