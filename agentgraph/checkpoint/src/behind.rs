//! A checkpointer that carries out writes in order, in the background of its callers.
//!
//! Each thread has a lane while it has writes under way: a task that carries out one write after the other.
//! So a store that is slow for one thread does not delay the runs of others, and a runtime that shuts down
//! ends only the lanes of its own runs.
//!
//! After a failure every queued write of the thread is dropped, since a checkpoint must not build on a
//! missing one. The next call that settles the thread returns the error.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::owned::OwnedPut;
use crate::catalog::{self, Catalog};
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::leases::{Leases, leases_of};
use crate::lock::Lock;
use crate::row::{ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, Tail};
use crate::upkeep::{self, Upkeep};

/// The most writes of a thread that may be under way; further callers wait.
const CAPACITY: usize = 256;

/// A checkpointer with one lane for each thread.
pub struct Behind {
    inner: Arc<dyn Checkpointer>,
    traffic: Arc<Traffic>,
}

#[derive(Default)]
struct Traffic {
    /// Locked before `failed`, or without it.
    lanes: Lock<HashMap<String, Lane>>,
    /// The threads with a failed write since they were last settled, each with the error until a caller has
    /// received it.
    failed: Lock<HashMap<String, Option<StoreError>>>,
}

/// The sending side of one thread's task. Jobs are sent while the lanes are locked, so a task that finds no
/// job under that lock may end.
struct Lane {
    jobs: UnboundedSender<Handed>,
    room: Arc<Semaphore>,
    leaving: Arc<Leaving>,
}

/// The fences of leases of dropped runs. A lease is released when all writes of its run are stored.
type Leaving = Lock<Vec<u64>>;

/// A job, and the permit that it holds until it is done.
struct Handed {
    job: Job,
    _room: Option<OwnedSemaphorePermit>,
}

enum Job {
    Put(OwnedPut),
    Writes {
        namespace: String,
        at: CheckpointId,
        fence: u64,
        writes: Vec<PendingWrite>,
    },
    /// Is answered when every job before it is done.
    Settle(oneshot::Sender<()>),
}

impl Behind {
    /// The first write starts a lane, and only that needs a runtime.
    pub fn new(inner: Arc<dyn Checkpointer>) -> Self {
        Behind { inner, traffic: Arc::default() }
    }

    /// Waits until every queued write of a thread is stored. Afterwards the thread accepts writes again.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub async fn settle(&self, thread: &str) -> Result<(), StoreError> {
        let (done, is_done) = oneshot::channel();
        // Without a lane nothing is under way, and dropping the sender ends the wait at once.
        if let Some(lane) = self.traffic.lanes.lock().get(thread) {
            let _ = lane.jobs.send(Handed { job: Job::Settle(done), _room: None });
        } else {
            drop(done);
        }
        // A task that ends early has recorded its lost writes as a failure.
        let _ = is_done.await;
        match self.traffic.failed.lock().remove(thread).flatten() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Uses the lane of a thread, and opens it if there is none. Returns the error of an earlier write
    /// instead, once.
    fn with_lane<T>(&self, thread: &str, use_it: impl FnOnce(&Lane) -> T) -> Result<T, StoreError> {
        let mut lanes = self.traffic.lanes.lock();
        self.traffic.check(thread)?;
        if let Some(lane) = lanes.get(thread) {
            return Ok(use_it(lane));
        }
        let runtime = runtime()?;
        let (jobs, received) = unbounded_channel();
        let room = Arc::new(Semaphore::new(CAPACITY));
        let leaving = Arc::new(Leaving::default());
        let lane = Lane { jobs, room, leaving: Arc::clone(&leaving) };
        let used = use_it(&lane);
        lanes.insert(thread.to_owned(), lane);
        // A runtime that is shutting down drops the task at once, and the drop takes this lock.
        drop(lanes);
        let saver = Arc::clone(&self.inner);
        let traffic = Arc::downgrade(&self.traffic);
        let thread = thread.to_owned();
        let line =
            Line { saver, traffic, thread, jobs: received, leaving, busy: false, failed: false, left: false };
        runtime.spawn(line.carry_out());
        Ok(used)
    }

    /// May be dropped while it waits for room; nothing is sent then.
    async fn send(&self, thread: &str, job: Job) -> Result<(), StoreError> {
        let room = self.with_lane(thread, |lane| Arc::clone(&lane.room))?;
        let room = room.acquire_owned().await.map_err(|_| task_ended(thread))?;
        self.hand_over(thread, job, room)
    }

    fn hand_over(&self, thread: &str, job: Job, room: OwnedSemaphorePermit) -> Result<(), StoreError> {
        let handed = Handed { job, _room: Some(room) };
        if self.with_lane(thread, |lane| lane.jobs.send(handed).is_ok())? {
            Ok(())
        } else {
            Err(task_ended(thread))
        }
    }
}

/// The runtime that lanes are spawned on.
pub fn runtime() -> Result<Handle, StoreError> {
    Handle::try_current().map_err(|_| {
        let problem = "`Durability::Async` writes from a tokio task: run it within a tokio runtime";
        StoreError::new(StoreCode::Store, problem)
    })
}

/// The error of a task that ended too early.
fn task_ended(thread: &str) -> StoreError {
    let problem = "checkpoints were not stored: the task that stores them ended, since its runtime was shut down or the \
                   checkpointer panicked; read the thread again before you continue";
    StoreError::new(StoreCode::Store, problem).on_thread(thread)
}

impl Traffic {
    fn check(&self, thread: &str) -> Result<(), StoreError> {
        match self.failed.lock().get_mut(thread) {
            None => Ok(()),
            Some(error) => Err(error.take().unwrap_or_else(|| {
                let problem = "an earlier commit of the run failed, so nothing can be stored after it";
                StoreError::new(StoreCode::Store, problem).on_thread(thread)
            })),
        }
    }
}

/// The task of one thread. It ends when nothing is under way.
struct Line {
    saver: Arc<dyn Checkpointer>,
    /// Dropped together with the graph; its last writes are stored nevertheless.
    traffic: Weak<Traffic>,
    thread: String,
    jobs: UnboundedReceiver<Handed>,
    leaving: Arc<Leaving>,
    /// A write is under way.
    busy: bool,
    /// A write has failed since the thread was last settled.
    failed: bool,
    /// The lane was removed, so no job can arrive.
    left: bool,
}

impl Line {
    async fn carry_out(mut self) {
        loop {
            match self.jobs.try_recv() {
                Ok(handed) => self.do_one(handed).await,
                Err(_) => {
                    self.give_back().await;
                    if self.try_end_lane() {
                        return;
                    }
                }
            }
        }
    }

    /// Ends the lane and returns true, unless a new job has arrived.
    fn try_end_lane(&mut self) -> bool {
        let traffic = self.traffic.upgrade();
        let mut lanes = traffic.as_ref().map(|traffic| traffic.lanes.lock());
        self.left = self.jobs.is_empty() && self.leaving.lock().is_empty();
        if let Some(lanes) = lanes.as_mut().filter(|_| self.left) {
            lanes.remove(&self.thread);
        }
        self.left
    }

    async fn do_one(&mut self, Handed { job, _room }: Handed) {
        self.busy = matches!(job, Job::Put(_) | Job::Writes { .. });
        let stored = match job {
            Job::Settle(done) => {
                self.give_back().await;
                self.failed = false;
                // The caller may have stopped waiting.
                let _ = done.send(());
                Ok(())
            }
            Job::Put(_) | Job::Writes { .. } if self.failed => Ok(()),
            Job::Put(put) => self.saver.put(put.borrowed(&self.thread)).await,
            Job::Writes { namespace, at, fence, writes } => {
                let place = Place { thread: &self.thread, namespace: &namespace };
                self.saver.put_writes(PutWrites { place, at, fence, writes: &writes }).await
            }
        };
        self.busy = false;
        if let Err(error) = stored {
            self.failed = true;
            if let Some(traffic) = self.traffic.upgrade() {
                traffic.failed.lock().insert(self.thread.clone(), Some(error));
            }
        }
    }

    /// If this is dropped while it waits, `drop` releases the leases that remain in the list.
    async fn give_back(&self) {
        while let Some(fence) = self.next_to_leave() {
            // A lease that cannot be released ends by time.
            let _ = leases_of(&*self.saver).release(&self.thread, fence).await;
            self.leaving.lock().retain(|leaving| *leaving != fence);
        }
    }

    fn next_to_leave(&self) -> Option<u64> {
        self.leaving.lock().first().copied()
    }
}

/// Records the writes lost when a runtime shuts down, and releases the remaining leases.
impl Drop for Line {
    fn drop(&mut self) {
        if let Some(traffic) = self.traffic.upgrade().filter(|_| !self.left) {
            let mut lanes = traffic.lanes.lock();
            self.jobs.close();
            let mut lost = self.busy;
            while let Ok(handed) = self.jobs.try_recv() {
                lost |= matches!(handed.job, Job::Put(_) | Job::Writes { .. });
            }
            if lost {
                traffic
                    .failed
                    .lock()
                    .entry(self.thread.clone())
                    .or_insert_with(|| Some(task_ended(&self.thread)));
            }
            lanes.remove(&self.thread);
        }
        for fence in std::mem::take(&mut *self.leaving.lock()) {
            leases_of(&*self.saver).let_go(&self.thread, fence);
        }
    }
}

/// Writes are queued; reads wait for every queued write of the thread.
#[async_trait]
impl Checkpointer for Behind {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.settle(place.thread).await?;
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        self.settle(place.thread).await?;
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.send(put.place.thread, Job::Put(OwnedPut::of(&put))).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        let thread = put.place.thread;
        match self.with_lane(thread, |lane| Arc::clone(&lane.room).try_acquire_owned()) {
            Ok(room) => Some(self.hand_over(thread, Job::Put(OwnedPut::of(put)), room.ok()?)),
            Err(error) => Some(Err(error)),
        }
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let PutWrites { place, at, fence, writes } = put;
        let namespace = place.namespace.to_owned();
        let writes = writes.to_vec();
        self.send(place.thread, Job::Writes { namespace, at, fence, writes }).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        self.settle(place.thread).await?;
        self.inner.list(place, query).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        // A failed write is to be deleted anyway.
        let _ = self.settle(thread).await;
        self.inner.delete_thread(thread).await
    }

    delegate!(self over &*self.inner; leases, catalog, upkeep);
    delegate!(self => &*self.inner; threads, outlives_its_process, keeps_secrets);
}

/// A dropped run releases its thread when its queued writes are stored.
#[async_trait]
impl Leases for Behind {
    fn let_go(&self, thread: &str, fence: u64) {
        let lanes = self.traffic.lanes.lock();
        match lanes.get(thread) {
            Some(lane) => lane.leaving.lock().push(fence),
            None => {
                drop(lanes);
                leases_of(&*self.inner).let_go(thread, fence);
            }
        }
    }

    delegate!(self => &*self.inner; acquire, renew, release, released, ask_to_stop, held, hear_stops);
}

#[async_trait]
impl Catalog for Behind {
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        self.settle(thread).await?;
        catalog::namespaces(&*self.inner, thread).await
    }

    delegate!(self => &*self.inner; waiting, branches, usage);
}

#[async_trait]
impl Upkeep for Behind {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.settle(from).await?;
        self.settle(to).await?;
        upkeep::copy_thread(&*self.inner, from, to).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        self.settle(rewrite.place.thread).await?;
        upkeep::rewrite(&*self.inner, rewrite).await
    }

    delegate!(self => &*self.inner; compact);
}
