//! Leases: the owner of a thread, and whether that owner is alive.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant, SystemTime};

use super::fault::Fault;
use super::rows::check_names;
use super::statements::{Connection, Value};
use super::upkeep::name;
use crate::lease::{Claim, HeldLease, HeldQuery, LeaseTerms};
use crate::lock::Lock;
use crate::row::Place;
use crate::signed::{as_fence, as_time, from_time};

/// How long an owner without any connection counts as alive, if not set. The server closes the connections
/// of a process that dies. A restart or a broken network closes those of a live process too, which
/// reconnects at once and retries several times within this time.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// Microseconds by the server's clock.
macro_rules! server_now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

/// The clocks of two machines differ, so the lease of another saver ends by the server's clock. A saver
/// that asks for a thread of its own uses its own clock. So does one that meets a lease without `ends`,
/// which an older release stored.
const TAKE: &str = concat!(
    "
INSERT INTO @lease (thread, fence, owner, until, length, ends)
VALUES ($1, nextval('@fences'), $2, $3, $4, $4 + ",
    server_now!(),
    ")
ON CONFLICT (thread) DO UPDATE SET fence = excluded.fence, owner = excluded.owner, until = excluded.until,
    length = excluded.length, ends = excluded.ends, stops = false
WHERE $6 OR lease.fence = $7 OR CASE
    WHEN lease.owner = $2 OR lease.ends = 0 THEN lease.until <= $5
    ELSE lease.ends <= ",
    server_now!(),
    " END
RETURNING fence"
);

/// Whether an owner holds a lock as a sign of life. The server lists a lock's number in two halves.
macro_rules! is_seen {
    ($owner:literal) => {
        concat!(
            "EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND ((classid::bigint << 32) | objid::bigint) = ",
            $owner,
            "
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
    };
}

/// Whether the owner of a lease counts as alive. One that gives no sign, which its number shows, counts as
/// alive until its lease ends.
macro_rules! lives {
    () => {
        concat!("(lease.owner < 0 OR ", is_seen!("lease.owner"), ")")
    };
}

/// The rest of a lease by the server's clock; null for a lease that ends by the clock of its saver.
macro_rules! left {
    () => {
        concat!("CASE WHEN owner = $2 OR ends = 0 THEN NULL ELSE ends - ", server_now!(), " END")
    };
}

/// The rest of a lease, and whether its owner lives.
const LOOK: &str =
    concat!("SELECT fence, until, owner, ", left!(), ", ", lives!(), " FROM @lease WHERE thread = $1");

const IS_SEEN: &str = concat!("SELECT ", is_seen!("$1"));

const HOLDS: &str = "SELECT 1 FROM @lease WHERE thread = $1 AND fence = $2";
const RENEW: &str = concat!(
    "UPDATE @lease SET until = $3, ends = length + ",
    server_now!(),
    " WHERE thread = $1 AND fence = $2"
);

const RELEASE: &str = "
WITH gone AS (DELETE FROM @lease WHERE thread = $1 AND fence = $2 RETURNING fence)
SELECT pg_notify($3, '') FROM gone";

/// The leases whose time has not passed.
macro_rules! held {
    ($threads:literal) => {
        concat!(
            "SELECT fence, until, owner, ",
            left!(),
            ", ",
            lives!(),
            ", thread, stops FROM @lease WHERE CASE WHEN owner = $2 OR ends = 0 THEN until > $3 ELSE ends > ",
            server_now!(),
            " END AND ",
            $threads
        )
    };
}

const HELD: &str = held!("thread = $1 LIMIT $4");
const RUNNING: &str = held!("thread >= $1 ORDER BY thread LIMIT $4");
const STOPPING: &str = held!("stops AND thread >= $1 ORDER BY thread LIMIT $4");
const STOP: &str = "UPDATE @lease SET stops = true WHERE thread = $1 AND fence = $2";

/// A new number for an owner of leases: positive, so that it is written the same way signed and unsigned.
pub(super) fn new_owner() -> i64 {
    (RandomState::new().hash_one(std::process::id()) >> 1).max(1) as i64
}

/// Whether the server sees the sign of life of an owner.
pub(super) async fn is_seen(connection: &Connection, owner: i64) -> Result<bool, Fault> {
    Ok(connection.query_one(IS_SEEN, &[&owner]).await?.try_get(0)?)
}

/// How soon an owner that seems dead is checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Owners of leases that were seen without a connection: since when, and when last.
#[derive(Default)]
pub(super) struct Absent(Lock<HashMap<i64, [Instant; 2]>>);

/// Above this the list is cleared; the next request for a thread of such an owner waits once more.
const MOST_ABSENT: usize = 1_000;

impl Absent {
    /// Records that the owner is absent, and returns how long it has been. An owner that was not checked for
    /// a while may have been back in between, so its absence starts again.
    fn note_absence(&self, owner: i64, grace: Duration) -> Duration {
        let mut absent = self.0.lock();
        if absent.len() >= MOST_ABSENT && !absent.contains_key(&owner) {
            absent.clear();
        }
        let now = Instant::now();
        let [since, last] = absent.entry(owner).or_insert([now; 2]);
        if now.duration_since(*last) > grace + LOOK_AGAIN {
            *since = now;
        }
        *last = now;
        now.duration_since(*since)
    }

    fn forget_absence(&self, owner: i64) {
        self.0.lock().remove(&owner);
    }
}

/// The result of a request for a thread.
pub(super) enum Wish {
    Done(Claim),
    /// The owner seems to be dead. Ask again after this time.
    AskAgain(Duration),
}

pub(super) async fn acquire(
    connection: &Connection,
    owner: i64,
    (absent, grace): (&Absent, Duration),
    thread: &str,
    terms: LeaseTerms,
) -> Result<Wish, Fault> {
    check_names(Place::root(thread))?;
    let until = as_time(terms.until);
    let now = as_time(terms.now);
    let length = length(terms);
    // The fence of a lease whose owner was found dead.
    let mut dead = -1;
    loop {
        let values: &[&dyn Value] = &[&thread.as_bytes(), &owner, &until, &length, &now, &terms.seize, &dead];
        if let Some(granted) = connection.query_opt(TAKE, values).await? {
            let fence = granted.try_get::<_, i64>(0)?.unsigned_abs();
            return Ok(Wish::Done(Claim::Granted { fence }));
        }
        // The lease may have been released meanwhile.
        let Some(held) = connection.query_opt(LOOK, &[&thread.as_bytes(), &owner]).await? else {
            continue;
        };
        let (fence, until): (i64, i64) = (held.try_get(0)?, held.try_get(1)?);
        let holder = held.try_get(2)?;
        let left = held.try_get(3)?;
        let lives = held.try_get(4)?;
        if lives {
            absent.forget_absence(holder);
            let until = ends_at(terms.now, left).unwrap_or_else(|| from_time(until));
            return Ok(Wish::Done(Claim::Held { fence: fence.unsigned_abs(), until }));
        }
        let left = grace.saturating_sub(absent.note_absence(holder, grace));
        if !left.is_zero() {
            return Ok(Wish::AskAgain(left.min(LOOK_AGAIN)));
        }
        dead = fence;
    }
}

/// A longer time counts as for ever.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

fn length(terms: LeaseTerms) -> i64 {
    let length = terms.until.duration_since(terms.now).unwrap_or_default();
    i64::try_from(length.min(LONGEST).as_micros()).unwrap_or(i64::MAX)
}

/// The end by the clock of the caller.
fn ends_at(now: SystemTime, left: Option<i64>) -> Option<SystemTime> {
    now.checked_add(Duration::from_micros(left?.max(0).unsigned_abs()))
}

pub(super) async fn holds(connection: &Connection, thread: &str, fence: u64) -> Result<bool, Fault> {
    Ok(connection.query_opt(HOLDS, &[&thread.as_bytes(), &as_fence(fence)]).await?.is_some())
}

pub(super) async fn renew(
    connection: &Connection,
    thread: &str,
    fence: u64,
    until: SystemTime,
) -> Result<bool, Fault> {
    let values: &[&dyn Value] = &[&thread.as_bytes(), &as_fence(fence), &as_time(until)];
    Ok(connection.execute(RENEW, values).await? > 0)
}

pub(super) async fn release(
    connection: &Connection,
    channel: &str,
    thread: &str,
    fence: u64,
) -> Result<(), Fault> {
    connection.query(RELEASE, &[&thread.as_bytes(), &as_fence(fence), &channel]).await?;
    Ok(())
}

/// Asks the owner of the thread to stop; `None` if it has no owner.
pub(super) async fn ask_to_stop(
    connection: &Connection,
    owner: i64,
    absent: (&Absent, Duration),
    thread: &str,
    now: SystemTime,
) -> Result<Option<u64>, Fault> {
    let query = HeldQuery { thread: Some(thread), ..HeldQuery::at(now) };
    let found = held(connection, owner, absent, query).await?;
    let Some(HeldLease { fence, .. }) = found.into_iter().next() else { return Ok(None) };
    // The lease may have ended since it was looked at.
    let asked = connection.execute(STOP, &[&thread.as_bytes(), &as_fence(fence)]).await? > 0;
    Ok(asked.then_some(fence))
}

pub(super) async fn held(
    connection: &Connection,
    owner: i64,
    (absent, grace): (&Absent, Duration),
    query: HeldQuery<'_>,
) -> Result<Vec<HeldLease>, Fault> {
    let sql = match query {
        HeldQuery { thread: Some(_), .. } => HELD,
        HeldQuery { asked_to_stop: true, .. } => STOPPING,
        _ => RUNNING,
    };
    let now = as_time(query.now);
    let mut found = Vec::new();
    // The first name there can be is the empty one; the least name after another is that name with a NUL
    // appended.
    let mut from: Vec<u8> = match (query.thread, query.after) {
        (Some(thread), _) => thread.into(),
        (None, after) => after.map_or_else(Vec::new, |after| [after.as_bytes(), &[0]].concat()),
    };
    // Leases of dead owners do not count, so a page may take several queries.
    loop {
        let left = query.limit.map(|limit| limit - found.len());
        let limit = left.and_then(|left| i64::try_from(left).ok());
        let values: &[&dyn Value] = &[&from, &owner, &now, &limit];
        let rows = connection.query(sql, values).await?;
        for row in &rows {
            let thread: &[u8] = row.try_get(5)?;
            from = [thread, &[0]].concat();
            let (holder, lives) = (row.try_get(2)?, row.try_get(4)?);
            if lives {
                absent.forget_absence(holder);
            } else if absent.note_absence(holder, grace) >= grace {
                continue;
            }
            let lease = HeldLease {
                thread: name(thread.to_vec())?,
                fence: row.try_get::<_, i64>(0)?.unsigned_abs(),
                until: ends_at(query.now, row.try_get(3)?).unwrap_or(from_time(row.try_get(1)?)),
                asked_to_stop: row.try_get(6)?,
            };
            let is_asked_for = (lease.asked_to_stop || !query.asked_to_stop)
                && query.after.is_none_or(|after| *lease.thread > *after);
            found.extend(is_asked_for.then_some(lease));
        }
        let is_whole = limit.is_none_or(|limit| i64::try_from(rows.len()).is_ok_and(|rows| rows < limit));
        if is_whole || query.thread.is_some() || query.limit.is_some_and(|limit| found.len() >= limit) {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_is_counted_anew_after_a_gap_between_checks() {
        let absent = Absent::default();
        let second = Duration::from_secs(1);
        let now = Instant::now();
        let Some(before) = now.checked_sub(10 * second) else { return };
        let seen = |owner, since| {
            absent.0.lock().insert(owner, since);
            absent.note_absence(owner, second)
        };
        assert!(seen(1, [before, now]) >= 10 * second);
        assert_eq!(seen(2, [before, before]), Duration::ZERO);
        absent.forget_absence(1);
        assert_eq!(absent.note_absence(1, second), Duration::ZERO);
    }
}
