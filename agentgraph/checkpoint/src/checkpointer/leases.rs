//! [`Leases`]: which writer may write a thread.

use std::sync::Weak;
use std::time::SystemTime;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms};

/// The leases of a store, returned by [`leases`](crate::Checkpointer::leases): a thread has one writer at a
/// time. A write without the fence of the thread's lease is refused by [`put`](crate::Checkpointer::put),
/// [`put_writes`](crate::Checkpointer::put_writes) and [`rewrite`](crate::Upkeep::rewrite), except with the
/// fence 0, which is not checked.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// use agentgraph_checkpoint::{Claim, HeldQuery, LeaseTerms, Leases, MemorySaver};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentgraph_checkpoint::StoreError> {
/// let store = MemorySaver::new();
/// let until = UNIX_EPOCH + Duration::from_secs(30);
/// let terms = LeaseTerms { now: UNIX_EPOCH, until, seize: false };
/// let Claim::Granted { fence } = store.acquire("t-1", terms).await? else { panic!("it has no owner") };
/// assert_eq!(store.acquire("t-1", terms).await?, Claim::Held { fence, until });
///
/// assert_eq!(store.ask_to_stop("t-1", UNIX_EPOCH).await?, Some(fence));
/// assert!(store.held(HeldQuery::at(UNIX_EPOCH)).await?[0].asked_to_stop);
///
/// store.release("t-1", fence).await?;
/// assert!(matches!(store.acquire("t-1", terms).await?, Claim::Granted { .. }));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes a thread for one writer, unless another one has it and its time has not passed. Fences are
    /// greater than 0, and greater than every fence this store ever granted for the thread, even if the
    /// thread was deleted in between.
    ///
    /// If the time has passed and the store knows that the other writer is alive, it may answer
    /// [`Claim::Held`] with that past time: the clock may have jumped. A caller that gets this answer gives
    /// the writer time to renew the lease, and [seizes](LeaseTerms::seize) the thread if it does not.
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError>;

    /// Extends a lease to another time; `false` if another writer has the thread, or if it was released or
    /// deleted. A lease whose time has passed and that no other writer took can be renewed.
    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError>;

    /// Releases a thread. No error if another writer has it.
    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError>;

    /// [`release`](Leases::release) for a run that was dropped and cannot await: at once, or with one of
    /// the store's next calls. In a store that does neither, the thread stays busy until the lease's time
    /// has passed.
    fn let_go(&self, thread: &str, fence: u64);

    /// Waits until the lease with this fence has ended, as far as the store can know. May return early, but
    /// not in a busy loop: the engine asks for the thread after each return. The engine also asks at
    /// intervals, so a store that cannot know may wait for ever.
    async fn released(&self, thread: &str, fence: u64);

    /// Asks the writer that has the thread at `now` to stop, and returns its fence; `None` if the
    /// thread has no owner. Asking again changes nothing.
    ///
    /// The request belongs to that fence: it ends with the lease, and no later writer of the thread sees it.
    /// The lease stays valid, since the writer stores what it has done before it stops.
    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError>;

    /// The leases that are held, in the alphabetical order of their threads. The lease of a writer that is
    /// known to be dead is not listed.
    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError>;

    /// Adds a listener, which is told of each [request to stop](Leases::ask_to_stop) that is made through
    /// this value. A listener that was dropped is forgotten.
    ///
    /// Runs in other processes find the requests by polling [`held`](Leases::held). A store that ends with
    /// its process is not polled, so it must tell its listeners; for any other store that is an optimisation.
    fn hear_stops(&self, listener: Weak<dyn HearsStops>);
}
