//! Storing the results of durable steps while their tasks run.
//!
//! A step puts its result into the cell of its task and waits. Each loop looks for such results where it
//! waits for its tasks, and stores them as pending writes: see [`crate::context::DurableStep`].

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::context::{Control, NewOnce, OnceStorage};
use crate::engine::journal::Journal;
use crate::error::Error;
use agentgraph_checkpoint::PendingWrite;

/// Where a run with this journal keeps the results of durable steps. A run that stores only at its end keeps
/// none.
pub(crate) fn once_storage(journal: Option<&Journal>) -> OnceStorage {
    match journal {
        Some(journal) if !journal.waits() => OnceStorage::Kept,
        Some(_) => OnceStorage::AtTheEnd,
        None => OnceStorage::InMemory,
    }
}

/// The output of `work`; `None` as soon as results of durable steps wait to be stored, after which `work` is
/// awaited again.
pub(crate) async fn or_unstored<T>(
    control: &Control,
    work: &mut (impl Future<Output = T> + Unpin),
) -> Option<T> {
    // The work first: a durable step puts its result into the cell while its task is polled.
    poll_fn(|cx| match Pin::new(&mut *work).poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if control.has_unstored() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Stores pending writes. Those of the results `new` are in the store when their steps are woken.
pub(super) async fn put_writes(
    journal: &mut Journal,
    control: &Control,
    writes: &[PendingWrite],
    new: &[NewOnce],
) -> Result<(), Error> {
    journal.put_writes(writes).await?;
    if !new.is_empty() {
        // With `Durability::Async` the writes are still queued. A step may not continue before its result is
        // stored: what follows in the node relies on it.
        journal.settle().await?;
        control.mark_stored(new);
    }
    Ok(())
}

/// Awaits `work` while a task continues. Returns the task's output too, if it ended meanwhile.
pub(crate) async fn beside<W, T>(
    work: impl Future<Output = W>,
    task: &mut (impl Future<Output = T> + Unpin),
) -> (W, Option<T>) {
    let mut work = pin!(work);
    let mut ended = None;
    let done = poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        // A future is not polled again after it has ended.
        if ended.is_none()
            && let Poll::Ready(result) = Pin::new(&mut *task).poll(cx)
        {
            ended = Some(result);
        }
        Poll::Pending
    });
    (done.await, ended)
}
