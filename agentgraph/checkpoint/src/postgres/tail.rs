//! The rows and writes of a checkpoint, in one statement: one round trip, and one moment of the database
//! without a transaction.

use super::blobs::with_pieces;
use super::fault::Fault;
use super::rows::{as_id, number, read_row, read_write};
use super::statements::Connection;
use crate::id::CheckpointId;
use crate::row::{Place, Tail};

/// The numbers of the parts, in the order in which they are read: the full and the segments after it, the
/// deltas after these, the pending writes. All have the same columns; those of the task are null in a row,
/// the kind is null in a write.
macro_rules! tail {
    ($head:literal) => {
        concat!(
            "
WITH head AS MATERIALIZED (
    SELECT place, branch, step FROM @checkpoint
    WHERE place = (SELECT id FROM @place WHERE thread = $1 AND namespace = $2) AND part = 0 AND ",
            $head,
            " ORDER BY branch DESC, step DESC LIMIT 1
),
base AS MATERIALIZED (
    SELECT head.*, (
        SELECT step FROM @checkpoint AS old WHERE old.place = head.place AND old.branch = head.branch
            AND old.step <= head.step AND kind = 0 AND kind <> 1 ORDER BY old.step DESC LIMIT 1
    ) AS beginning FROM head
),
known AS MATERIALIZED (
    SELECT base.*, (
        SELECT step FROM @checkpoint AS old WHERE old.place = base.place AND old.branch = base.branch
            AND old.step BETWEEN beginning AND base.step AND kind <> 1 ORDER BY old.step DESC LIMIT 1
    ) AS folded FROM base WHERE beginning IS NOT NULL
)
SELECT checkpoint.step, kind, record, pieces",
            with_pieces!("checkpoint", "set_byte('\\x00', 0, checkpoint.part)"),
            ", 0 AS number, known.branch, NULL::bytea AS task, NULL::bigint AS slot
FROM known JOIN @checkpoint USING (place, branch)
WHERE checkpoint.step BETWEEN beginning AND known.step AND kind <> 1
UNION ALL SELECT checkpoint.step, kind, record, pieces",
            with_pieces!("checkpoint", "set_byte('\\x00', 0, checkpoint.part)"),
            ", 1, known.branch, NULL, NULL
FROM known JOIN @checkpoint USING (place, branch)
WHERE checkpoint.step > folded AND checkpoint.step <= known.step AND part = 0 AND kind = 1
UNION ALL SELECT pending.step, NULL, pending.bytes, pieces",
            with_pieces!(
                "pending",
                "('\\x02'::bytea || pending.task || substring(int8send(pending.slot) FROM 5))"
            ),
            ", 2, known.branch, pending.task, pending.slot FROM known JOIN @pending USING (place, branch, step)
ORDER BY number, step, kind, task, slot"
        )
    };
}

const NEWEST: &str = tail!("true");
const AT: &str = tail!("branch = $3 AND step = $4");

pub(super) async fn tail(
    connection: &Connection,
    place: Place<'_>,
    at: Option<CheckpointId>,
) -> Result<Option<Tail>, Fault> {
    let (thread, namespace) = (place.thread.as_bytes(), place.namespace.as_bytes());
    let at = match at.map(|id| (i64::from(id.branch), number(id.step))) {
        Some((branch, Ok(step))) => Some((branch, step)),
        Some((_, Err(_))) => return Ok(None),
        None => None,
    };
    let found = match &at {
        None => connection.query(NEWEST, &[&thread, &namespace]).await?,
        Some((branch, step)) => connection.query(AT, &[&thread, &namespace, branch, step]).await?,
    };
    let mut tail = Tail::default();
    for row in &found {
        let id = as_id(row.try_get(BRANCH)?, row.try_get(0)?);
        match row.try_get::<_, i32>(BRANCH - 1)? {
            0 | 1 => tail.rows.push(read_row(place, id.branch, row)?),
            _ => tail.writes.push(read_write(place, id, row, [BRANCH + 1, BRANCH + 2, 2])?),
        }
    }
    Ok((!tail.rows.is_empty()).then_some(tail))
}

/// The column of the branch, after step, kind, bytes, four columns of pieces, and the number of the part.
const BRANCH: usize = 8;
