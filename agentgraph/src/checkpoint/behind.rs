//! A checkpointer whose writes are carried out in order behind whoever asks for them.
//!
//! After a failure everything that is queued for that thread is dropped, since a checkpoint must not stand on one that is
//! not there; the next to settle the thread gets the error.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::{
    Checkpointer, Claim, LeaseTerms, ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, RowKind,
    Tail, Usage, Waiting, WaitingQuery,
};
use crate::context::CheckpointId;
use crate::error::{Code, Error};

/// How many writes may be under way before whoever asks for another has to wait.
const CAPACITY: usize = 256;

/// The queue before a checkpointer.
pub(crate) struct Behind {
    inner: Arc<dyn Checkpointer>,
    jobs: Sender<Job>,
    failed: Arc<Failed>,
    leaving: Arc<Leaving>,
}

/// The leases of runs that were dropped, to be given back when what the runs handed over is stored.
type Leaving = Mutex<Vec<(String, u64)>>;

/// The threads that a write has failed on since they were settled last, with the error until somebody was given it.
type Failed = Mutex<HashMap<String, Option<Error>>>;

enum Job {
    Put(OwnedPut),
    Writes {
        thread: String,
        namespace: String,
        at: CheckpointId,
        fence: u64,
        writes: Vec<PendingWrite>,
    },
    /// Says when everything of a thread before it is done.
    Settle {
        thread: String,
        done: oneshot::Sender<()>,
    },
    /// There is something to be given back.
    LetGo,
}

struct OwnedPut {
    thread: String,
    namespace: String,
    id: CheckpointId,
    fence: u64,
    kind: RowKind,
    record: Vec<u8>,
    segment: Option<Vec<u8>>,
    clears_writes: bool,
}

impl Behind {
    /// Starts the task that carries the writes out. It ends when this is dropped and its queue is empty.
    pub(crate) fn start(inner: Arc<dyn Checkpointer>) -> Result<Self, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| {
            let problem = "`Durability::Async` writes from a tokio task: run it within a tokio runtime";
            Error::new(Code::Store, problem)
        })?;
        let (jobs, received) = channel(CAPACITY);
        let failed = Arc::new(Failed::default());
        let leaving = Arc::new(Leaving::default());
        runtime.spawn(carry_out(Arc::clone(&inner), received, Arc::clone(&failed), Arc::clone(&leaving)));
        Ok(Behind { inner, jobs, failed, leaving })
    }

    /// Waits until everything that was handed over for a thread is stored. Afterwards the thread can be written again.
    ///
    /// # Errors
    /// What failed since the last time.
    pub(crate) async fn settle(&self, thread: &str) -> Result<(), Error> {
        let (done, is_done) = oneshot::channel();
        self.send(Job::Settle { thread: thread.to_owned(), done }).await?;
        is_done.await.map_err(|_| gone())?;
        match lock(&self.failed).remove(thread).flatten() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    async fn send(&self, job: Job) -> Result<(), Error> {
        self.jobs.send(job).await.map_err(|_| gone())
    }

    /// The error of an earlier write, once.
    fn check(&self, thread: &str) -> Result<(), Error> {
        match lock(&self.failed).get_mut(thread) {
            None => Ok(()),
            Some(error) => Err(error.take().unwrap_or_else(|| {
                let problem = "an earlier commit of the run failed, so nothing can be stored after it";
                Error::new(Code::Store, problem).on_thread(Some(thread))
            })),
        }
    }
}

/// The runtime ended the task.
fn gone() -> Error {
    Error::new(Code::Store, "the task that stores checkpoints is gone: its runtime was shut down")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn carry_out(
    saver: Arc<dyn Checkpointer>,
    mut jobs: Receiver<Job>,
    failed: Arc<Failed>,
    leaving: Arc<Leaving>,
) {
    let _last = LastHand { saver: Arc::clone(&saver), leaving: Arc::clone(&leaving) };
    while let Some(job) = jobs.recv().await {
        if jobs.is_empty() && matches!(job, Job::LetGo) {
            give_back(&*saver, &leaving, |_| true).await;
        }
        let (thread, stored) = match job {
            Job::LetGo => continue,
            Job::Settle { thread, done } => {
                give_back(&*saver, &leaving, |of| of == thread).await;
                // Nobody may wait any more.
                let _ = done.send(());
                continue;
            }
            Job::Put(put) if lock(&failed).contains_key(&put.thread) => continue,
            Job::Writes { thread, .. } if lock(&failed).contains_key(&thread) => continue,
            Job::Put(put) => {
                let stored = saver.put(put.borrowed()).await;
                (put.thread, stored)
            }
            Job::Writes { thread, namespace, at, fence, writes } => {
                let place = Place { thread: &thread, namespace: &namespace };
                let stored = saver.put_writes(PutWrites { place, at, fence, writes: &writes }).await;
                (thread, stored)
            }
        };
        if let Err(error) = stored {
            lock(&failed).insert(thread, Some(error));
        }
        if jobs.is_empty() {
            give_back(&*saver, &leaving, |_| true).await;
        }
    }
}

/// Gives back what is left when the task ends, also when its runtime is shut down.
struct LastHand {
    saver: Arc<dyn Checkpointer>,
    leaving: Arc<Leaving>,
}

impl Drop for LastHand {
    fn drop(&mut self) {
        let_all_go(&*self.saver, &self.leaving);
    }
}

fn let_all_go(saver: &dyn Checkpointer, leaving: &Leaving) {
    for (thread, fence) in std::mem::take(&mut *lock(leaving)) {
        saver.let_go(&thread, fence);
    }
}

async fn give_back(saver: &dyn Checkpointer, leaving: &Leaving, which: impl Fn(&str) -> bool) {
    let now: Vec<(String, u64)> = lock(leaving).extract_if(.., |(thread, _)| which(thread)).collect();
    for (thread, fence) in now {
        // A lease that cannot be given back ends by time.
        let _ = saver.release(&thread, fence).await;
    }
}

impl OwnedPut {
    fn of(put: &Put<'_>) -> Self {
        OwnedPut {
            thread: put.place.thread.to_owned(),
            namespace: put.place.namespace.to_owned(),
            id: put.id,
            fence: put.fence,
            kind: put.kind,
            record: put.record.to_vec(),
            segment: put.segment.map(<[u8]>::to_vec),
            clears_writes: put.clears_writes,
        }
    }

    fn borrowed(&self) -> Put<'_> {
        Put {
            place: Place { thread: &self.thread, namespace: &self.namespace },
            id: self.id,
            fence: self.fence,
            kind: self.kind,
            record: &self.record,
            segment: self.segment.as_deref(),
            clears_writes: self.clears_writes,
        }
    }
}

/// Writes are handed over; reads see everything that was.
#[async_trait]
impl Checkpointer for Behind {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, Error> {
        self.settle(place.thread).await?;
        self.inner.get(place, at).await
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, Error> {
        self.settle(place.thread).await?;
        self.inner.row(place, id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), Error> {
        self.check(put.place.thread)?;
        self.send(Job::Put(OwnedPut::of(&put))).await
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), Error>> {
        if let Err(error) = self.check(put.place.thread) {
            return Some(Err(error));
        }
        let room = self.jobs.try_reserve().ok()?;
        room.send(Job::Put(OwnedPut::of(put)));
        Some(Ok(()))
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), Error> {
        let PutWrites { place, at, fence, writes } = put;
        self.check(place.thread)?;
        let (thread, namespace) = (place.thread.to_owned(), place.namespace.to_owned());
        self.send(Job::Writes { thread, namespace, at, fence, writes: writes.to_vec() }).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, Error> {
        self.settle(place.thread).await?;
        self.inner.list(place, query).await
    }

    async fn threads(&self) -> Result<Vec<String>, Error> {
        self.inner.threads().await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        // What failed to be stored is to be deleted anyway.
        let _ = self.settle(thread).await;
        self.inner.delete_thread(thread).await
    }

    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, Error> {
        self.inner.acquire(thread, terms).await
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, Error> {
        self.inner.renew(thread, fence, until).await
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), Error> {
        self.inner.release(thread, fence).await
    }

    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(query).await
    }

    fn outlives_its_process(&self) -> bool {
        self.inner.outlives_its_process()
    }

    fn keeps_secrets(&self) -> bool {
        self.inner.keeps_secrets()
    }

    fn let_go(&self, thread: &str, fence: u64) {
        lock(&self.leaving).push((thread.to_owned(), fence));
        // If there is no room, somebody is at work and will see it; if nobody is there any more, there is nothing to wait for.
        if let Err(TrySendError::Closed(_)) = self.jobs.try_send(Job::LetGo) {
            let_all_go(&*self.inner, &self.leaving);
        }
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, Error> {
        self.settle(thread).await?;
        self.inner.namespaces(thread).await
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), Error> {
        self.settle(rewrite.place.thread).await?;
        self.inner.rewrite(rewrite).await
    }

    async fn usage(&self) -> Result<Usage, Error> {
        self.inner.usage().await
    }
}
