//! Leases in the file: the owner of a thread, and whether that owner is alive.

use std::time::SystemTime;

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::owner::Owner;
use super::rows::{execute, first, statements};
use crate::lease::{Claim, HeldLease, HeldQuery, LeaseTerms};
use crate::signed::{as_fence, as_time, from_time};

statements! {
    /// Skips the row if the thread is leased.
    TAKE = "INSERT OR IGNORE INTO lease (thread, owner, until) VALUES (?1, ?2, ?3)";
    LOOK = "SELECT fence, owner, until FROM lease WHERE thread = ?1";
    RENEW = "UPDATE lease SET until = ?3 WHERE fence = ?2 AND thread = ?1";
    RELEASE = "DELETE FROM lease WHERE fence = ?2 AND thread = ?1";
    FORGET = "DELETE FROM lease WHERE thread = ?1";
    STOP = "UPDATE lease SET stops = 1 WHERE fence = ?2 AND thread = ?1";

    /// `stops <> 0` is a constraint of its own, so that the partial index is used.
    STOPPING = "
SELECT thread, fence, owner, until, stops FROM lease
WHERE stops <> 0 AND thread >= ?1 AND until > ?2 ORDER BY thread";
    RUNNING = "
SELECT thread, fence, owner, until, stops FROM lease WHERE thread >= ?1 AND until > ?2 ORDER BY thread";
    HELD = "
SELECT thread, fence, owner, until, stops FROM lease WHERE thread = ?1 AND until > ?2";
}

/// Takes a thread. Needs a transaction only if the thread is leased; a single statement is one by itself.
pub(super) fn take(
    connection: &Connection,
    owner: &Owner,
    thread: &str,
    terms: LeaseTerms,
) -> Result<Claim, Fault> {
    let until = as_time(terms.until);
    if execute(connection, TAKE, params![thread, owner.name(), until])? > 0 {
        return Ok(Claim::Granted { fence: last_fence(connection) });
    }
    let mut statement = connection.prepare_cached(LOOK)?;
    let found = first(&mut statement, [thread], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
    })?;
    if let Some((fence, holder, held_until)) = found {
        // Time alone frees no thread of a living owner, since a clock may jump: the caller decides.
        let may_hold = held_until > as_time(terms.now) || owner.shows_life(&holder);
        if may_hold && owner.may_be_alive(&holder) && !terms.seize {
            return Ok(Claim::Held { fence: fence.unsigned_abs(), until: from_time(held_until) });
        }
        // If another saver took the thread since the check, its lease exists and the insertion is skipped.
        execute(connection, RELEASE, params![thread, fence])?;
    }
    match execute(connection, TAKE, params![thread, owner.name(), until])? {
        0 => take(connection, owner, thread, terms),
        _ => Ok(Claim::Granted { fence: last_fence(connection) }),
    }
}

fn last_fence(connection: &Connection) -> u64 {
    connection.last_insert_rowid().unsigned_abs()
}

/// `false` if the lease no longer exists.
pub(super) fn renew(
    connection: &Connection,
    thread: &str,
    fence: u64,
    until: SystemTime,
) -> Result<bool, Fault> {
    Ok(execute(connection, RENEW, params![thread, as_fence(fence), as_time(until)])? > 0)
}

pub(super) fn release(connection: &Connection, thread: &str, fence: u64) -> Result<(), Fault> {
    execute(connection, RELEASE, params![thread, as_fence(fence)])?;
    Ok(())
}

/// Asks the owner of the thread to stop; `None` if it has no owner.
pub(super) fn ask_to_stop(
    connection: &Connection,
    owner: &Owner,
    thread: &str,
    now: SystemTime,
) -> Result<Option<u64>, Fault> {
    let query = HeldQuery { thread: Some(thread), ..HeldQuery::at(now) };
    let Some(HeldLease { fence, .. }) = held(connection, owner, query)?.pop() else { return Ok(None) };
    // The lease may have ended since it was looked at.
    let asked = execute(connection, STOP, params![thread, as_fence(fence)])? > 0;
    Ok(asked.then_some(fence))
}

pub(super) fn held(
    connection: &Connection,
    owner: &Owner,
    query: HeldQuery<'_>,
) -> Result<Vec<HeldLease>, Fault> {
    let (sql, name) = match query {
        HeldQuery { thread: Some(thread), .. } => (HELD, thread),
        // The first name there can be is the empty one.
        HeldQuery { asked_to_stop: true, after, .. } => (STOPPING, after.unwrap_or_default()),
        HeldQuery { after, .. } => (RUNNING, after.unwrap_or_default()),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![name, as_time(query.now)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if query.limit.is_some_and(|limit| found.len() >= limit) {
            break;
        }
        let lease = HeldLease {
            thread: row.get(0)?,
            fence: row.get::<_, i64>(1)?.unsigned_abs(),
            until: from_time(row.get(3)?),
            asked_to_stop: row.get(4)?,
        };
        let is_asked_for = (lease.asked_to_stop || !query.asked_to_stop)
            && query.after.is_none_or(|after| *lease.thread > *after);
        if is_asked_for && owner.may_be_alive(&row.get::<_, String>(2)?) {
            found.push(lease);
        }
    }
    Ok(found)
}

/// Ends any lease of the thread.
pub(super) fn forget(connection: &Connection, thread: &str) -> Result<(), Fault> {
    execute(connection, FORGET, [thread])?;
    Ok(())
}

/// Whether the thread's lease still has this fence.
pub(super) fn holds(connection: &Connection, thread: &str, fence: u64) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached(LOOK)?;
    let found = first(&mut statement, [thread], |row| Ok(row.get::<_, i64>(0)?))?;
    Ok(found == Some(as_fence(fence)))
}
