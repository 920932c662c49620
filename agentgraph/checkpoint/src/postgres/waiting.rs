//! The unanswered requests.
//!
//! If little is pending, the search starts with the pending writes. If much is pending, as with very many
//! waiting threads, it goes by the names of the threads, so that a page costs its own size and not the size
//! of the rest. Large values are fetched only for the requests on the page.

use super::blobs::with_pieces;
use super::fault::Fault;
use super::rows::{as_id, read_write};
use super::statements::Connection;
use super::upkeep::name;
use crate::row::{PendingWrite, Place, Waiting, WaitingQuery};

/// Whether more is pending than can be scanned in negligible time.
const IS_CROWDED: &str = "SELECT 1 FROM @pending LIMIT 1 OFFSET 10000";

/// Slots of requests are odd. The last slots and those of task 0 have other uses; slot 0 of task 0 is the
/// note of a run that stopped.
macro_rules! is_open {
    () => {
        "(
            (asks.slot = 0 AND asks.task = decode(repeat('00', 16), 'hex'))
            OR (asks.slot % 2 = 1 AND asks.slot < $1 AND asks.task <> decode(repeat('00', 16), 'hex')
                AND NOT EXISTS (
                    SELECT 1 FROM @pending AS answer WHERE answer.place = asks.place AND answer.branch = asks.branch
                        AND answer.step = asks.step AND answer.task = asks.task AND answer.slot = asks.slot + 1
                        AND answer.bytes NOT IN ('\\xc0'::bytea, '\\xd602df1730a2c0'::bytea))))
        AND EXISTS (
            SELECT 1 FROM @checkpoint AS at WHERE at.place = asks.place AND at.branch = asks.branch
                AND at.step = asks.step)
        AND NOT EXISTS (
            SELECT 1 FROM @checkpoint AS newer WHERE newer.place = asks.place
                AND (newer.branch, newer.step) > (asks.branch, asks.step))"
    };
}

/// The columns of a request, after its thread and namespace.
macro_rules! asks {
    () => {
        concat!(
            "asks.branch, asks.step, asks.task, asks.slot, asks.bytes, asks.pieces",
            with_pieces!("asks", "('\\x02'::bytea || asks.task || substring(int8send(asks.slot) FROM 5))")
        )
    };
}

/// Counts threads in one pass over the requests, however wrong the server's estimate of their number is.
const FEW: &str = concat!(
    "WITH asks AS (
        SELECT place.thread, place.namespace, asks.*, dense_rank() OVER (ORDER BY place.thread) AS nth
        FROM @pending AS asks JOIN @place ON place.id = asks.place
        WHERE place.thread >= $2 AND ",
    is_open!(),
    ")
    SELECT thread, namespace, ",
    asks!(),
    " FROM asks WHERE nth <= $3 ORDER BY thread, namespace, task, slot"
);

/// The last thread of a full page. The inner limit forces the server to keep the order.
const LAST_OF_PAGE: &str = concat!(
    "SELECT DISTINCT place.thread FROM @place CROSS JOIN LATERAL (
        SELECT 1 FROM @pending AS asks WHERE asks.place = place.id AND ",
    is_open!(),
    " LIMIT 1) AS one WHERE place.thread >= $2 ORDER BY place.thread LIMIT 1 OFFSET $3"
);

const PAGE: &str = concat!(
    "SELECT thread, namespace, ",
    asks!(),
    " FROM @place CROSS JOIN LATERAL (
        SELECT * FROM @pending AS asks WHERE asks.place = place.id AND ",
    is_open!(),
    " OFFSET 0) AS asks WHERE thread >= $2 AND ($3::bytea IS NULL OR thread <= $3)
    ORDER BY thread, namespace, task, slot"
);

pub(super) async fn waiting(connection: &Connection, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, Fault> {
    // The least name after another one is that name with a NUL appended.
    let from = query.after.map_or(Vec::new(), |after| [after.as_bytes(), &[0]].concat());
    let limit = query.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let special = i64::from(PendingWrite::SPECIAL);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let found = if query.limit.is_none() || connection.query_opt(IS_CROWDED, &[]).await?.is_none() {
        connection.query(FEW, &[&special, &from, &limit]).await?
    } else {
        let last = connection.query_opt(LAST_OF_PAGE, &[&special, &from, &(limit - 1)]).await?;
        let last: Option<Vec<u8>> = last.map(|last| last.try_get(0)).transpose()?;
        connection.query(PAGE, &[&special, &from, &last]).await?
    };
    let waiting = found.iter().map(|row| {
        let thread = name(row.try_get(0)?)?;
        let namespace = name(row.try_get(1)?)?;
        let at = as_id(row.try_get(2)?, row.try_get(3)?);
        let request = read_write(Place { thread: &thread, namespace: &namespace }, at, row, [4, 5, 6])?;
        Ok(Waiting { thread, namespace, at, request })
    });
    waiting.collect()
}
