//! [`Checkpointer`]: the core of every store, with access to its extensions.

mod catalog;
mod leases;
mod upkeep;

pub use catalog::Catalog;
pub use leases::Leases;
pub use upkeep::Upkeep;

use async_trait::async_trait;

use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::row::{ListQuery, Place, Put, PutWrites, Row, Tail, check_id};

/// A store for checkpoints. All calls may come from many threads at once.
///
/// A failing store returns [`StoreCode::Store`]; a lost race [`StoreCode::Stale`] (see
/// [`stale`](crate::stale)); a writer whose lease was taken by another writer gets [`StoreCode::LeaseLost`]
/// (see [`lease_lost`](crate::lease_lost)). With the feature `conformance`, `checkpoint::conformance` tests
/// whether a store keeps this contract.
///
/// A call may be dropped at each of its awaits, and it may not be polled for long after one: a run pauses
/// while its stream is not read. So a store must not hold anything across an await that other calls wait
/// for, such as a fair lock, which is handed to the first waiter even if that one is not polled.
///
/// # Extensions
///
/// A store may lack some abilities. Each is a trait, and each has a method here that returns it, or `None`:
///
/// | extension | without it |
/// |---|---|
/// | [`Leases`] | two processes may run one thread at a time, and the slower one fails with [`StoreCode::Stale`] |
/// | [`Catalog`] | a graph cannot list the threads that wait, nor prune threads |
/// | [`Upkeep`] | a graph can neither copy threads nor prune them |
///
/// These methods have no default, nor have those of the extensions, nor
/// [`outlives_its_process`](Self::outlives_its_process) and [`keeps_secrets`](Self::keeps_secrets): a
/// wrapper that forgot to delegate one would report something wrong about the inner store.
///
/// # A small store
///
/// The core alone, over two maps:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Mutex, MutexGuard, PoisonError};
///
/// use agentgraph_checkpoint::{
///     Catalog, CheckpointId, Checkpointer, Leases, ListQuery, PendingWrite, Place, Put, PutWrites, Row, RowKind,
///     StoreError, Tail, TaskId, Upkeep, lease_lost, stale,
/// };
///
/// #[derive(Default)]
/// struct SmallStore(Mutex<BTreeMap<(String, String), Kept>>);
///
/// /// The rows and pending writes of one place.
/// #[derive(Clone, Default)]
/// struct Kept {
///     rows: BTreeMap<(CheckpointId, RowKind), Vec<u8>>,
///     writes: BTreeMap<(CheckpointId, TaskId, u32), Vec<u8>>,
/// }
///
/// impl Kept {
///     /// Fulls and deltas of a branch, the oldest first; of the newest branch if none is named.
///     fn steps(&self, branch: Option<u32>) -> Vec<Row> {
///         let newest = self.rows.last_key_value().map(|((id, _), _)| id.branch);
///         let rows = self.rows.iter().filter(|((id, _), _)| Some(id.branch) == branch.or(newest));
///         let steps = rows.filter(|((_, kind), _)| *kind != RowKind::Segment);
///         steps.map(|((id, kind), record)| Row { id: *id, kind: *kind, record: record.clone() }).collect()
///     }
///
///     fn tail(&self, at: Option<CheckpointId>) -> Option<Tail> {
///         let mut steps = self.steps(at.map(|at| at.branch));
///         steps.retain(|row| at.is_none_or(|at| row.id <= at));
///         let at = steps.last().map(|row| row.id).filter(|last| at.is_none_or(|at| at == *last))?;
///         let mut rows = steps.split_off(steps.iter().rposition(|row| row.kind == RowKind::Full)?);
///         let full = rows[0].id;
///         let segments = self.rows.iter().filter(|((id, kind), _)| {
///             *kind == RowKind::Segment && full <= *id && *id <= at
///         });
///         let segments: Vec<Row> = segments
///             .map(|((id, kind), record)| Row { id: *id, kind: *kind, record: record.clone() })
///             .collect();
///         // Segments replace the deltas up to the last segment.
///         let folded = segments.last().map_or(full, |last| last.id);
///         rows.retain(|row| row.id == full || row.id > folded);
///         rows.splice(1..1, segments);
///         let writes = self.writes.range((at, TaskId::from_u128(0), 0)..).take_while(|((of, ..), _)| *of == at);
///         let writes = writes.map(|(key, bytes)| PendingWrite { task: key.1, slot: key.2, bytes: bytes.clone() });
///         Some(Tail { rows, writes: writes.collect() })
///     }
///
///     fn write(&mut self, put: PutWrites<'_>) {
///         let writes = put.writes.iter().cloned();
///         self.writes.extend(writes.map(|write| ((put.at, write.task, write.slot), write.bytes)));
///     }
/// }
///
/// impl SmallStore {
///     fn places(&self) -> MutexGuard<'_, BTreeMap<(String, String), Kept>> {
///         self.0.lock().unwrap_or_else(PoisonError::into_inner)
///     }
///
///     fn kept(&self, place: Place<'_>) -> Kept {
///         let key = (place.thread.to_owned(), place.namespace.to_owned());
///         self.places().get(&key).cloned().unwrap_or_default()
///     }
///
///     /// A store without leases has granted no fence, so it refuses all but 0.
///     fn change(
///         &self,
///         place: Place<'_>,
///         fence: u64,
///         change: impl FnOnce(&mut Kept) -> Result<(), StoreError>,
///     ) -> Result<(), StoreError> {
///         if fence != 0 {
///             return Err(lease_lost(place.thread));
///         }
///         change(self.places().entry((place.thread.to_owned(), place.namespace.to_owned())).or_default())
///     }
/// }
///
/// #[async_trait::async_trait]
/// impl Checkpointer for SmallStore {
///     async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
///         Ok(self.kept(place).tail(at))
///     }
///
///     async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
///         Ok(self.kept(place).steps(Some(id.branch)).into_iter().find(|row| row.id == id))
///     }
///
///     async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
///         self.change(put.place, put.fence, |kept| {
///             let is_late = kept.steps(Some(put.id.branch)).last().is_some_and(|last| last.id >= put.id);
///             let is_there = |id: CheckpointId| kept.steps(Some(id.branch)).iter().any(|row| row.id == id);
///             if is_late || put.parent.is_some_and(|parent| !is_there(parent)) {
///                 return Err(stale(put.place, put.id));
///             }
///             kept.rows.insert((put.id, put.kind), put.record.to_vec());
///             if let Some(segment) = put.segment {
///                 kept.rows.insert((put.id, RowKind::Segment), segment.to_vec());
///             }
///             if let (true, Some(before)) = (put.clears_writes, put.id.step.checked_sub(1)) {
///                 let before = CheckpointId::new(put.id.branch, before);
///                 kept.writes.retain(|(at, ..), _| *at != before);
///             }
///             kept.write(put.own_writes());
///             Ok(())
///         })
///     }
///
///     async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
///         self.change(put.place, put.fence, |kept| Ok(kept.write(put)))
///     }
///
///     async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
///         let steps = self.kept(place).steps(query.branch).into_iter().rev();
///         let before = steps.filter(|row| query.before.is_none_or(|before| row.id.step < before));
///         Ok(before.take(query.limit.unwrap_or(usize::MAX)).collect())
///     }
///
///     async fn threads(&self) -> Result<Vec<String>, StoreError> {
///         let places = self.places();
///         let begun = places.iter().filter(|(_, kept)| !kept.rows.is_empty());
///         let mut threads: Vec<String> = begun.map(|((thread, _), _)| thread.clone()).collect();
///         threads.dedup();
///         Ok(threads)
///     }
///
///     async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
///         self.places().retain(|(of, _), _| of != thread);
///         Ok(())
///     }
///
///     fn outlives_its_process(&self) -> bool { false }
///     fn keeps_secrets(&self) -> bool { false }
///     fn leases(&self) -> Option<&dyn Leases> { None }
///     fn catalog(&self) -> Option<&dyn Catalog> { None }
///     fn upkeep(&self) -> Option<&dyn Upkeep> { None }
/// }
///
/// # #[cfg(feature = "conformance")]
/// # {
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // With the feature `conformance`: every clause that needs no extension holds.
/// use agentgraph_checkpoint::conformance;
///
/// let mut clauses = conformance::clauses();
/// clauses.retain(|clause| clause.needs().is_empty());
/// let report = conformance::check(&clauses, || async { Ok(SmallStore::default()) }).await;
/// assert!(report.holds(), "{report}");
/// # }
/// # main()
/// # }
/// ```
///
/// # A wrapper around another store
///
/// A wrapper writes the methods that it changes, and [`delegate!`](crate::delegate) the others.
#[async_trait]
pub trait Checkpointer: Send + Sync + 'static {
    /// The rows that make up the checkpoint `at`, oldest first, starting with a full; and its pending
    /// writes. Without `at`, the newest checkpoint of the newest branch. `None` if there is none.
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError>;

    /// The row of one full or delta, without the rows it builds on.
    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError>;

    /// Stores a checkpoint in one transaction with its segment and its pending writes, and removes the
    /// pending writes that it makes obsolete: those of the step before, on the same branch.
    ///
    /// Must fail, and change nothing, with [`StoreCode::LeaseLost`] if [`fence`](Put::fence) is neither 0
    /// nor the fence of the thread's lease, and with [`StoreCode::Stale`] if the branch has this step or a
    /// later one already, or if the [`parent`](Put::parent) is missing.
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError>;

    /// [`put`](Checkpointer::put) for a store that needs no await for it; `None` means "call `put`".
    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        let _ = put;
        None
    }

    /// Stores pending writes of a checkpoint, all or none. A write with the task and slot of an earlier one
    /// replaces it.
    ///
    /// Must fail with [`StoreCode::LeaseLost`] as [`put`](Checkpointer::put) does.
    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError>;

    /// The fulls and deltas of a thread, newest first.
    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError>;

    /// The names of all threads, in alphabetical order.
    async fn threads(&self) -> Result<Vec<String>, StoreError>;

    /// Removes everything of a thread, including its lease. No error if the thread does not exist.
    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError>;

    /// Whether stored data outlives this process. `false` for a store in the memory of this process, whose
    /// leases need no renewal.
    fn outlives_its_process(&self) -> bool;

    /// Whether the stored bytes are unreadable without a key: `true` for a store that encrypts. A store
    /// that [outlives its process](Checkpointer::outlives_its_process) and returns `false` is refused for a
    /// state with channels marked `secret`.
    fn keeps_secrets(&self) -> bool;

    /// The leases. `None`: every writer is granted every thread, with the fence 0, which is never checked.
    fn leases(&self) -> Option<&dyn Leases>;

    /// The catalog. `None`: calls that need one fail with [`StoreCode::Store`], and branches are
    /// [searched](crate::listed_branches) one by one.
    fn catalog(&self) -> Option<&dyn Catalog>;

    /// The upkeep. `None`: calls that copy or prune fail with [`StoreCode::Store`].
    fn upkeep(&self) -> Option<&dyn Upkeep>;
}

/// [`Checkpointer::list`] for callers that read backwards page by page. Fails if a page does not lie before
/// the last one: such a caller would loop for ever.
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
    let problem = "the checkpointer lists checkpoints in the wrong order: report it to its author";
    Err(StoreError::new(StoreCode::Store, problem).on_thread(place.thread))
}
