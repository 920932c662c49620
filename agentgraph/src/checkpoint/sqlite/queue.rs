//! How the commits of many runs become one transaction.
//!
//! Who cannot store its row at once pushes a copy here, lets the other runs come to the same point, and waits for its
//! turn to write. Whoever gets the turn commits all that is queued; the others find their answer. So nobody needs a
//! thread or a task of its own, and whoever is dropped while he waits leaves nothing behind: his row is taken out of
//! the queue, or was committed.
//!
//! Knows no awaits. The queue's lock is never held during a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;

use super::fault::{Fault, Home, is_busy};
use super::rows;
use crate::checkpoint::{Place, Put, RowKind, stale};
use crate::context::CheckpointId;
use crate::error::Error;

/// A transaction ends with the row that passes one of these, so that a crowd does not hold the executor for long.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// After so many rows that one run stored by itself it goes through the queue once, which yields: on a runtime with one
/// thread the others could not show themselves otherwise.
const ALONE_FOR: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Arc<Job>>,
    /// The thread of the last commit, if it was of one thread.
    last: Option<String>,
    alone: u32,
}

/// A row that waits, and its answer.
#[derive(Debug)]
struct Job {
    thread: String,
    namespace: String,
    id: CheckpointId,
    fence: u64,
    kind: RowKind,
    record: Vec<u8>,
    segment: Option<Vec<u8>>,
    clears_writes: bool,
    since: Instant,
    answer: Mutex<Answer>,
}

#[derive(Debug)]
enum Answer {
    Awaited,
    Given(Result<(), Error>),
    /// Nobody waits any more. Set under the queue's lock, so that a leader which gives rows back cannot miss it.
    Withdrawn,
}

/// What a commit of the queue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The first rows have their answers; there may be more.
    Committed,
    /// Nothing was queued.
    Empty,
    /// Another process has the file locked; the rows are back in the queue.
    Busy,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run on `thread` seems to be the only one that stores.
    pub(super) fn is_alone(&self, thread: &str) -> bool {
        let waiting = self.waiting();
        waiting.jobs.is_empty() && waiting.alone < ALONE_FOR && waiting.last.as_deref() == Some(thread)
    }

    /// Notes a row that was stored beside the queue, by a run that was alone.
    pub(super) fn stored_alone(&self) {
        self.waiting().alone += 1;
    }

    /// Puts a copy of the row into the queue.
    pub(super) fn push(&self, put: &Put<'_>) -> Ticket<'_> {
        let job = Arc::new(Job::new(put));
        self.waiting().jobs.push_back(Arc::clone(&job));
        Ticket { queue: self, job }
    }

    /// Commits the rows that are queued, or the first of very many. One that lost its race does not hold up the others.
    pub(super) fn commit(&self, connection: &Connection, home: &Home, patience: Duration) -> Progress {
        let jobs = self.take();
        let stored = match &jobs[..] {
            [] => return Progress::Empty,
            [one] => rows::put(connection, &one.put()).map(|stored| vec![stored]),
            several => rows::put_all(connection, several.iter().map(|job| job.put())),
        };
        match stored {
            Ok(stored) => {
                for (job, stored) in jobs.iter().zip(stored) {
                    job.settle(if stored { Ok(()) } else { Err(stale(job.place(), job.id)) });
                }
                Progress::Committed
            }
            Err(Fault::Sqlite(error)) if is_busy(&error) => {
                self.give_back(jobs.into(), error, home, patience)
            }
            Err(_) => self.commit_singly(connection, jobs.into(), home, patience),
        }
    }

    /// For a batch that failed as a whole: each row gets its own transaction, and its own error.
    fn commit_singly(
        &self,
        connection: &Connection,
        mut jobs: VecDeque<Arc<Job>>,
        home: &Home,
        patience: Duration,
    ) -> Progress {
        while let Some(job) = jobs.front() {
            match rows::put(connection, &job.put()) {
                Ok(true) => job.settle(Ok(())),
                Ok(false) => job.settle(Err(stale(job.place(), job.id))),
                Err(Fault::Sqlite(error)) if is_busy(&error) => {
                    return self.give_back(jobs, error, home, patience);
                }
                Err(fault) => job.fail(home, fault),
            }
            jobs.pop_front();
        }
        Progress::Committed
    }

    fn take(&self) -> Vec<Arc<Job>> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fits = waiting.jobs.iter().take(BATCH_ROWS).take_while(|job| {
            let before = bytes;
            bytes += job.bytes();
            before < BATCH_BYTES
        });
        let count = fits.count();
        let jobs: Vec<Arc<Job>> = waiting.jobs.drain(..count).collect();
        waiting.last = match &jobs[..] {
            [one] if waiting.jobs.is_empty() => Some(one.thread.clone()),
            _ => None,
        };
        waiting.alone = 0;
        jobs
    }

    /// Back to the front of the queue, except those whose patience is at its end or who went away.
    fn give_back(
        &self,
        jobs: VecDeque<Arc<Job>>,
        busy: rusqlite::Error,
        home: &Home,
        patience: Duration,
    ) -> Progress {
        let mut waiting = self.waiting();
        for job in jobs.into_iter().rev() {
            if job.since.elapsed() >= patience {
                job.fail(home, Fault::Sqlite(again(&busy)));
            } else if !matches!(*job.answer(), Answer::Withdrawn) {
                waiting.jobs.push_front(job);
            }
        }
        Progress::Busy
    }
}

/// The error once more, for another of those whom it stopped.
fn again(busy: &rusqlite::Error) -> rusqlite::Error {
    match busy {
        rusqlite::Error::SqliteFailure(error, message) => {
            rusqlite::Error::SqliteFailure(*error, message.clone())
        }
        _ => rusqlite::Error::InvalidQuery,
    }
}

impl Job {
    fn new(put: &Put<'_>) -> Self {
        Job {
            thread: put.place.thread.to_owned(),
            namespace: put.place.namespace.to_owned(),
            id: put.id,
            fence: put.fence,
            kind: put.kind,
            record: put.record.to_owned(),
            segment: put.segment.map(<[u8]>::to_vec),
            clears_writes: put.clears_writes,
            since: Instant::now(),
            answer: Mutex::new(Answer::Awaited),
        }
    }

    fn place(&self) -> Place<'_> {
        Place { thread: &self.thread, namespace: &self.namespace }
    }

    fn put(&self) -> Put<'_> {
        Put {
            place: self.place(),
            id: self.id,
            fence: self.fence,
            kind: self.kind,
            record: &self.record,
            segment: self.segment.as_deref(),
            clears_writes: self.clears_writes,
        }
    }

    fn bytes(&self) -> usize {
        self.record.len() + self.segment.as_ref().map_or(0, Vec::len)
    }

    fn answer(&self) -> MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, outcome: Result<(), Error>) {
        *self.answer() = Answer::Given(outcome);
    }

    fn fail(&self, home: &Home, fault: Fault) {
        self.settle(Err(home.explain(fault).on_thread(Some(&self.thread))));
    }
}

/// The claim of one who waits. Dropped, it takes the row out of the queue.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    queue: &'a Queue,
    job: Arc<Job>,
}

impl Ticket<'_> {
    /// The answer, once.
    pub(super) fn take(&self) -> Option<Result<(), Error>> {
        let mut answer = self.job.answer();
        match std::mem::replace(&mut *answer, Answer::Withdrawn) {
            Answer::Given(outcome) => Some(outcome),
            before => {
                *answer = before;
                None
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if matches!(*self.job.answer(), Answer::Withdrawn) {
            return;
        }
        let mut waiting = self.queue.waiting();
        *self.job.answer() = Answer::Withdrawn;
        waiting.jobs.retain(|job| !Arc::ptr_eq(job, &self.job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs two threads when it happens: the waiter goes while the leader, elsewhere, finds the file locked.
    #[tokio::test]
    async fn a_row_whose_owner_left_during_a_commit_is_not_given_back() {
        let (queue, home) = (Queue::default(), Home::Memory);
        let put = |thread| Put {
            place: Place::root(thread),
            id: CheckpointId::new(0, 0),
            fence: 0,
            kind: RowKind::Full,
            record: b"x",
            segment: None,
            clears_writes: false,
        };
        let tickets = ["a", "b", "c"].map(|thread| queue.push(&put(thread)));
        let taken = queue.take();
        let late = queue.push(&put("d"));
        let [a, b, c] = tickets;
        drop(b);
        let busy = rusqlite::Error::InvalidQuery;
        assert_eq!(queue.give_back(taken.into(), busy, &home, Duration::MAX), Progress::Busy);
        let order: Vec<String> = queue.take().iter().map(|job| job.thread.clone()).collect();
        assert_eq!(order, ["a", "c", "d"]);
        drop((a, c, late));
    }
}
