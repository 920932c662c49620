//! What every store does: [`Checkpointer`].

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::blob::Usage;
use crate::error::{StoreCode, StoreError, cannot, corrupt};
use crate::forward::forwards;
use crate::id::CheckpointId;
use crate::lease::{Claim, LeaseTerms};
use crate::row::{ListQuery, Place, Put, PutWrites, Rewrite, Row, Tail, Waiting, WaitingQuery, check_id};

/// Nobody looks for more than so many branches one by one.
const MOST_BRANCHES: u32 = 1 << 16;

/// A store for checkpoints. All calls may come from many threads at once.
///
/// A failing store answers with [`StoreCode::Store`]; a lost race with [`StoreCode::Stale`] (see
/// [`stale`](crate::stale)); a writer whose lease is another's by now with [`StoreCode::LeaseLost`] (see
/// [`lease_lost`](crate::lease_lost)). With the feature `conformance`, `checkpoint::conformance` says whether
/// a store does what is asked of it here.
///
/// A call may be dropped at each of its awaits, and it may not be polled for long after one: a run stands
/// still while its stream is not read. So a store keeps nothing over an await that others wait for; a fair
/// lock, which is handed to who waits first, is such a thing.
///
/// The methods with a body are abilities that a store may lack: without leases nothing keeps two processes
/// from running one thread (the slower is stale), and what cannot be copied or rewritten cannot be pruned.
#[async_trait]
pub trait Checkpointer: Send + Sync + 'static {
    /// The rows that make up the checkpoint `at`, oldest first, beginning with a full; and the pending writes
    /// on it. Without `at`, the newest checkpoint of the newest branch. `None` if there is none.
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError>;

    /// The row of one full or delta, without what it stands on.
    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError>;

    /// Stores a checkpoint, in one transaction with its segment, with the pending writes it comes with, and
    /// with the removal of those it makes obsolete (those of the step before it, on its branch).
    ///
    /// Must fail, and change nothing, with [`StoreCode::LeaseLost`] if [`fence`](Put::fence) is neither 0 nor
    /// that of the thread's lease, and with [`StoreCode::Stale`] if the branch has this step already, or a
    /// later one, or if the [`parent`](Put::parent) is not there.
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError>;

    /// [`put`](Checkpointer::put) for a store that needs no await for it; `None` means "call `put`".
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        let _ = put;
        None
    }

    /// Stores pending writes on a checkpoint, all or none. A write with the task and slot of an earlier one
    /// replaces it.
    ///
    /// Must fail with [`StoreCode::LeaseLost`] as [`put`](Checkpointer::put) does.
    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError>;

    /// The fulls and deltas of a thread, newest first.
    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError>;

    /// The names of all threads, in alphabetical order.
    async fn threads(&self) -> Result<Vec<String>, StoreError>;

    /// Removes everything of a thread, its lease too. No error if there is none.
    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError>;

    /// Whether another process can come upon what was stored: `false` of a store that is gone with this one,
    /// whose leases need no renewal.
    fn outlives_its_process(&self) -> bool {
        true
    }

    /// Whether nobody can read what was stored who only has the store: `true` of one that encrypts. A graph
    /// whose state has channels marked `secret` can be kept by no other one that
    /// [outlives its process](Checkpointer::outlives_its_process).
    fn keeps_secrets(&self) -> bool {
        false
    }

    /// Takes a thread for one writer, unless another one has it and its time has not passed. Fences are
    /// greater than 0, and greater than every fence this store ever gave for the thread, also when the thread
    /// was deleted in between.
    ///
    /// A store without leases grants every wish with the fence 0, which is never checked.
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        let _ = (thread, terms);
        Ok(Claim::Granted { fence: 0 })
    }

    /// Makes a lease last until another time; `false` if the thread is another's by now, or was released or
    /// deleted. A lease whose time has passed and that nobody took is renewed like any other.
    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        let _ = (thread, fence, until);
        Ok(true)
    }

    /// Gives a thread back. No error if it is another's by now.
    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        let _ = (thread, fence);
        Ok(())
    }

    /// [`release`](Checkpointer::release) for a run that was dropped and cannot await: at once, or with one
    /// of the store's next calls. In a store with leases that does neither the thread stays busy until the
    /// lease's time has passed.
    fn let_go(&self, thread: &str, fence: u64) {
        let _ = (thread, fence);
    }

    /// Waits until the lease with that fence is no longer the thread's, as far as the store can know. May
    /// return before, though not again and again: whoever waits asks for the thread each time. He does so now
    /// and then by himself, too, so a store that cannot know need not return.
    async fn released(&self, thread: &str, fence: u64) {
        let _ = (thread, fence);
        std::future::pending().await
    }

    /// The requests that nobody has answered, across threads: pending writes on the newest checkpoint of
    /// their place whose slot is odd, of a task that is not 0, with a slot below
    /// [`PendingWrite::SPECIAL`](crate::PendingWrite::SPECIAL), and with no answer in the next slot (an
    /// answer of the one byte `0xc0` was taken back). Among them are the notes that a run stopped for
    /// somebody without a question: task 0, slot 0, which no answer ends. In order of thread, namespace, task
    /// and slot.
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let _ = query;
        Err(cannot("", "say which threads wait"))
    }

    /// The namespaces that hold rows of a thread, in alphabetical order; the root's is empty.
    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        Err(cannot(thread, "say which namespaces a thread has"))
    }

    /// The branches of a place that hold rows, from the least to the greatest.
    ///
    /// A store that does not say is asked for one after the other.
    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        let newest = self.list(place, ListQuery { limit: Some(1), ..ListQuery::default() }).await?;
        let Some(newest) = newest.first().map(|row| row.id) else { return Ok(Vec::new()) };
        check_id(place, newest)?;
        if newest.branch > MOST_BRANCHES {
            return Err(corrupt(place, newest, "the number of its branch is that of no branch"));
        }
        let mut found = Vec::new();
        for branch in 0..newest.branch {
            let query = ListQuery { branch: Some(branch), limit: Some(1), ..ListQuery::default() };
            if !self.list(place, query).await?.is_empty() {
                found.push(branch);
            }
        }
        found.push(newest.branch);
        Ok(found)
    }

    /// Copies everything of a thread but its lease, in one transaction.
    ///
    /// Must fail with [`StoreCode::ThreadExists`] (see [`thread_exists`](crate::thread_exists)), and change
    /// nothing, if `to` has anything.
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let _ = to;
        Err(cannot(from, "copy a thread"))
    }

    /// Removes rows, and puts fulls in the place of others, in one transaction: what pruning comes to.
    ///
    /// Must fail with [`StoreCode::LeaseLost`] as [`put`](Checkpointer::put) does.
    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        Err(cannot(rewrite.place.thread, "be pruned"))
    }

    /// Gives back to the system what removed rows took, as far as that is not done by itself.
    async fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What the store holds, in numbers. May look at every row.
    async fn usage(&self) -> Result<Usage, StoreError> {
        Err(cannot("", "say what it holds"))
    }
}

forwards!(($) to_the_one_inside:);

impl<C: Checkpointer + ?Sized> Checkpointer for Arc<C> {
    to_the_one_inside!(self => (**self));
}

/// [`Checkpointer::list`], for those who go back page by page: with a store that does not go back they would
/// never end.
pub async fn page(
    saver: &dyn Checkpointer,
    place: Place<'_>,
    query: ListQuery,
) -> Result<Vec<Row>, StoreError> {
    let rows = saver.list(place, query).await?;
    rows.iter().try_for_each(|row| check_id(place, row.id))?;
    let goes_back = rows.windows(2).all(|pair| pair[0].id.step > pair[1].id.step);
    let begins_before = query.before.is_none_or(|before| rows.first().is_none_or(|row| row.id.step < before));
    if goes_back && begins_before {
        return Ok(rows);
    }
    let problem = "the checkpointer of this graph lists checkpoints in another order than it must";
    Err(StoreError::new(StoreCode::Store, problem).on_thread(place.thread))
}
