//! Combines the commits of many runs into one transaction.
//!
//! A call that cannot store its row at once pushes a copy here and yields, so that other runs reach the
//! same point. The first call that gets the connection commits the whole queue; the others find their
//! answers. So no thread or task is needed, and a call that is dropped while it waits leaves nothing
//! behind: its row is removed from the queue, or was committed.
//!
//! Nothing here awaits. The queue's lock is never held during a commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;

use super::fault::{Fault, Home, is_busy};
use super::owner::Owner;
use super::{leases, rows};
use crate::blob::PutPieces;
use crate::error::StoreError;
use crate::lease::{Claim, LeaseTerms};
use crate::lock::Lock;
use crate::owned::OwnedPut;
use crate::row::Put;

/// A transaction ends with the row that exceeds one of these, so that a long queue does not block the
/// executor for long.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// After this many rows stored without the queue, a run goes through the queue once, which yields: on a
/// runtime with one thread the other runs could not be noticed otherwise.
const ALONE_FOR: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Lock<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Arc<Job>>,
    /// The thread of the last commit, if all its rows had one thread.
    last: Option<String>,
    alone: u32,
}

/// A queued request, and its answer.
#[derive(Debug)]
struct Job {
    thread: String,
    deed: Deed,
    since: Instant,
    answer: Lock<Answer>,
}

#[derive(Debug)]
enum Deed {
    Put(OwnedPut, PutPieces),
    Take(LeaseTerms),
    Release { fence: u64 },
}

/// The result of a request; a request for a thread gets a claim.
pub(super) type Outcome = Result<Option<Claim>, StoreError>;

#[derive(Debug)]
enum Answer {
    Awaited,
    Given(Outcome),
    /// The caller no longer waits. Set under the queue's lock, so that a leader which returns rows to the
    /// queue cannot miss it.
    Withdrawn,
}

/// The result of committing the queue.
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
    /// Whether a run on `thread` seems to be the only one that stores.
    pub(super) fn is_alone(&self, thread: &str) -> bool {
        let waiting = self.waiting.lock();
        waiting.jobs.is_empty() && waiting.alone < ALONE_FOR && waiting.last.as_deref() == Some(thread)
    }

    /// Counts a row that was stored without the queue.
    pub(super) fn stored_alone(&self) {
        self.waiting.lock().alone += 1;
    }

    /// Queues a copy of the row.
    pub(super) fn push(&self, put: &Put<'_>, pieces: PutPieces) -> Ticket<'_> {
        self.push_job(put.place.thread, Deed::Put(OwnedPut::of(put), pieces))
    }

    /// Queues the request for a lease.
    pub(super) fn push_take(&self, thread: &str, terms: LeaseTerms) -> Ticket<'_> {
        self.push_job(thread, Deed::Take(terms))
    }

    /// Queues the release of a lease.
    pub(super) fn push_release(&self, thread: &str, fence: u64) -> Ticket<'_> {
        self.push_job(thread, Deed::Release { fence })
    }

    /// Queues a release that no call waits for: it is carried out with the next commit.
    pub(super) fn release_later(&self, thread: &str, fence: u64) {
        self.waiting.lock().jobs.push_back(Job::new(thread, Deed::Release { fence }));
    }

    fn push_job(&self, thread: &str, deed: Deed) -> Ticket<'_> {
        let job = Job::new(thread, deed);
        self.waiting.lock().jobs.push_back(Arc::clone(&job));
        Ticket { queue: self, job }
    }

    /// Commits the queue, or its first rows if there are very many. A row that lost its race does not stop
    /// the others.
    pub(super) fn commit(
        &self,
        connection: &Connection,
        owner: &Owner,
        home: &Home,
        patience: Duration,
    ) -> Progress {
        let jobs = self.take();
        let stored = match &jobs[..] {
            [] => return Progress::Empty,
            [one] => one.carry_out(connection, owner).map(|outcome| vec![outcome]),
            several => rows::transaction(connection, rows::Begin::ToWrite, || {
                several.iter().map(|job| job.carry_out_within(connection, owner)).collect()
            }),
        };
        match stored {
            Ok(outcomes) => {
                for (job, outcome) in jobs.iter().zip(outcomes) {
                    self.settle(job, outcome);
                }
                Progress::Committed
            }
            Err(Fault::Sqlite(error)) if is_busy(&error) => {
                self.give_back(jobs.into(), error, home, patience)
            }
            Err(_) => self.commit_singly(connection, owner, jobs.into(), home, patience),
        }
    }

    /// After a batch failed as a whole: each row gets its own transaction, and its own error.
    fn commit_singly(
        &self,
        connection: &Connection,
        owner: &Owner,
        mut jobs: VecDeque<Arc<Job>>,
        home: &Home,
        patience: Duration,
    ) -> Progress {
        while let Some(job) = jobs.front() {
            match job.carry_out(connection, owner) {
                Ok(outcome) => self.settle(job, outcome),
                Err(Fault::Sqlite(error)) if is_busy(&error) => {
                    return self.give_back(jobs, error, home, patience);
                }
                Err(fault) => job.fail(home, fault),
            }
            jobs.pop_front();
        }
        Progress::Committed
    }

    /// Releases a granted lease whose caller has stopped waiting.
    fn settle(&self, job: &Job, outcome: Outcome) {
        if let Some(fence) = job.settle(outcome) {
            self.release_later(&job.thread, fence);
        }
    }

    fn take(&self) -> Vec<Arc<Job>> {
        let mut waiting = self.waiting.lock();
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

    /// Returns rows to the front of the queue, except those whose caller timed out or was dropped.
    fn give_back(
        &self,
        jobs: VecDeque<Arc<Job>>,
        busy: rusqlite::Error,
        home: &Home,
        patience: Duration,
    ) -> Progress {
        let mut waiting = self.waiting.lock();
        for job in jobs.into_iter().rev() {
            if job.since.elapsed() >= patience {
                job.fail(home, Fault::Sqlite(copy_error(&busy)));
            } else if !matches!(*job.answer.lock(), Answer::Withdrawn) {
                waiting.jobs.push_front(job);
            }
        }
        Progress::Busy
    }
}

/// Copies the error for another row that it stopped.
fn copy_error(busy: &rusqlite::Error) -> rusqlite::Error {
    match busy {
        rusqlite::Error::SqliteFailure(error, message) => {
            rusqlite::Error::SqliteFailure(*error, message.clone())
        }
        _ => rusqlite::Error::InvalidQuery,
    }
}

impl Job {
    fn new(thread: &str, deed: Deed) -> Arc<Self> {
        let thread = thread.to_owned();
        let since = Instant::now();
        Arc::new(Job { thread, deed, since, answer: Lock::new(Answer::Awaited) })
    }

    fn carry_out(&self, connection: &Connection, owner: &Owner) -> Result<Outcome, Fault> {
        match &self.deed {
            Deed::Put(put, pieces) => {
                let put = put.borrowed(&self.thread);
                Ok(put_outcome(&put, rows::put(connection, &put, pieces)?))
            }
            _ => self.carry_out_within(connection, owner),
        }
    }

    fn carry_out_within(&self, connection: &Connection, owner: &Owner) -> Result<Outcome, Fault> {
        match &self.deed {
            Deed::Put(put, pieces) => {
                let put = put.borrowed(&self.thread);
                Ok(put_outcome(&put, rows::put_within(connection, &put, pieces)?))
            }
            Deed::Take(terms) => Ok(Ok(Some(leases::take(connection, owner, &self.thread, *terms)?))),
            Deed::Release { fence } => {
                leases::release(connection, &self.thread, *fence)?;
                Ok(Ok(None))
            }
        }
    }

    fn bytes(&self) -> usize {
        match &self.deed {
            Deed::Put(put, _) => put.bytes(),
            Deed::Take(_) | Deed::Release { .. } => 0,
        }
    }

    /// Returns the fence of a granted lease that no caller waits for.
    fn settle(&self, outcome: Outcome) -> Option<u64> {
        let mut answer = self.answer.lock();
        if matches!(*answer, Answer::Withdrawn) {
            return granted(&outcome);
        }
        *answer = Answer::Given(outcome);
        None
    }

    fn fail(&self, home: &Home, fault: Fault) {
        self.settle(Err(home.explain(fault).on_thread(&self.thread)));
    }
}

fn granted(outcome: &Outcome) -> Option<u64> {
    match outcome {
        Ok(Some(Claim::Granted { fence })) => Some(*fence),
        _ => None,
    }
}

fn put_outcome(put: &Put<'_>, stored: rows::Stored) -> Outcome {
    match stored {
        Ok(()) => Ok(None),
        Err(late) => Err(late.explain(put.place, put.id)),
    }
}

/// A caller's place in the queue. Dropping it removes the row from the queue.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    queue: &'a Queue,
    job: Arc<Job>,
}

impl Ticket<'_> {
    /// The answer, once.
    pub(super) fn take(&self) -> Option<Outcome> {
        let mut answer = self.job.answer.lock();
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
        if matches!(*self.job.answer.lock(), Answer::Withdrawn) {
            return;
        }
        let mut waiting = self.queue.waiting.lock();
        let left = std::mem::replace(&mut *self.job.answer.lock(), Answer::Withdrawn);
        waiting.jobs.retain(|job| !Arc::ptr_eq(job, &self.job));
        drop(waiting);
        if let Answer::Given(outcome) = left
            && let Some(fence) = granted(&outcome)
        {
            self.queue.release_later(&self.job.thread, fence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Content;
    use super::*;
    use crate::id::CheckpointId;
    use crate::row::{Place, RowKind};

    /// Outside of tests this needs two threads: the waiter drops its ticket while the leader, on another
    /// thread, finds the file locked.
    #[tokio::test]
    async fn a_row_whose_ticket_was_dropped_during_a_commit_is_not_queued_again() {
        let queue = Queue::default();
        let home = Home::in_memory(Content::Checkpoints);
        let put = |thread| Put::new(Place::root(thread), CheckpointId::new(0, 0), RowKind::Full, b"x");
        let tickets = ["a", "b", "c"].map(|thread| queue.push(&put(thread), PutPieces::default()));
        let taken = queue.take();
        let late = queue.push(&put("d"), PutPieces::default());
        let [a, b, c] = tickets;
        drop(b);
        let busy = rusqlite::Error::InvalidQuery;
        assert_eq!(queue.give_back(taken.into(), busy, &home, Duration::MAX), Progress::Busy);
        let order: Vec<String> = queue.take().iter().map(|job| job.thread.clone()).collect();
        assert_eq!(order, ["a", "c", "d"]);
        drop((a, c, late));
    }
}
