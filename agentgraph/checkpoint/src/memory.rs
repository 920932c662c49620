//! [`MemorySaver`]: checkpoints in the memory of the process.

mod branch;
mod shared;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use async_trait::async_trait;

use tokio::sync::Notify;

use branch::{Branch, Branches, Kept, WriteKey};
use shared::Shared;

use super::blob::{self, Pieces, PutPieces, SHARE_FROM, of_rewrite};
use crate::blob::Usage;
use crate::catalog::Catalog;
use crate::checkpointer::Checkpointer;
use crate::delegate;
use crate::error::StoreError;
use crate::error::{stale, thread_exists, unknown_thread};
use crate::id::CheckpointId;
use crate::lease::{Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms, lease_lost};
use crate::leases::Leases;
use crate::lock::Lock;
use crate::row::{
    ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, RowKind, Tail, Waiting, WaitingQuery,
};
use crate::stops::StopListeners;
use crate::upkeep::Upkeep;

/// Keeps checkpoints while it lives. For tests, and for interrupts within one process.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Count { n: u64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// async fn add(state: Snapshot<Count>) -> CountUpdate {
///     Count::update().n(state.n + 1)
/// }
/// let graph = StateGraph::new().node("add", add).edge(START, "add").compile()?.checkpointer(MemorySaver::new());
/// for _ in 0..3 {
///     graph.invoke(Count::update()).thread("t").await?;
/// }
/// assert_eq!(graph.state("t").await?.unwrap().values.n, 3);
/// # Ok(())
/// # }
/// ```
///
/// Only this process can access its content, so the hashes of large values are not verified on reads. A
/// clone is another handle of the same store.
#[derive(Clone, Debug)]
pub struct MemorySaver {
    store: Arc<Lock<Store>>,
    /// Locked before `store`, or without it.
    shared: Arc<Lock<Shared>>,
    share_from: usize,
    /// Notified whenever a thread is released.
    released: Arc<Notify>,
    stops: StopListeners,
}

#[derive(Debug, Default)]
struct Store {
    /// In the order of listing, so that a page of waiting threads costs only its own size.
    threads: BTreeMap<String, Thread>,
    /// The last fence that was granted.
    fences: u64,
}

#[derive(Debug, Default)]
struct Thread {
    lease: Option<Held>,
    /// Most threads have one namespace with one branch, so both are searched from the end.
    namespaces: Vec<(String, Branches)>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    fence: u64,
    until: SystemTime,
    asked_to_stop: bool,
}

/// Almost every namespace is empty, and comparing empty strings is not free: the pointer of an empty
/// `String` is dangling, and on processors with masked reads even a comparison of no bytes at such an
/// address costs more than the rest of a commit.
fn equal(name: &str, other: &str) -> bool {
    name.len() == other.len() && (name.is_empty() || name == other)
}

impl Default for MemorySaver {
    fn default() -> Self {
        MemorySaver {
            store: Arc::default(),
            shared: Arc::default(),
            share_from: SHARE_FROM,
            released: Arc::default(),
            stops: StopListeners::default(),
        }
    }
}

impl MemorySaver {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Values of at least `bytes` bytes are stored once, however many checkpoints and threads use them; 64
    /// KiB if not set, `usize::MAX` for never.
    #[must_use]
    pub fn share_values_from(mut self, bytes: usize) -> Self {
        self.share_from = bytes;
        self
    }

    /// Separates the large values from bytes to be stored.
    fn keep(&self, bytes: &[u8], pieces: &Pieces) -> Kept {
        let held = if pieces.is_empty() { Vec::new() } else { self.shared.lock().hold(bytes, pieces) };
        Kept { rest: pieces.rest(bytes).into_owned(), pieces: held }
    }

    fn with_branches<T>(&self, place: Place<'_>, read: impl FnOnce(&Branches) -> T) -> T {
        let store = self.store.lock();
        let namespaces = store.threads.get(place.thread).map_or(&[][..], |thread| &thread.namespaces);
        let found = namespaces.iter().find(|(name, _)| equal(name, place.namespace));
        match found {
            Some((_, branches)) => read(branches),
            None => read(&Branches::default()),
        }
    }

    fn change<T>(
        &self,
        place: Place<'_>,
        fence: u64,
        id: CheckpointId,
        parent: Option<CheckpointId>,
        change: impl FnOnce(&mut Branch) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut store = self.store.lock();
        let thread = match store.threads.get_mut(place.thread) {
            Some(thread) => thread,
            None if parent.is_some() && fence == 0 => return Err(stale(place, id)),
            None if fence == 0 => store.threads.entry(place.thread.to_owned()).or_default(),
            None => return Err(lease_lost(place.thread)),
        };
        thread.check(place.thread, fence)?;
        let namespaces = &mut thread.namespaces;
        let found = namespaces.iter().position(|(name, _)| equal(name, place.namespace));
        if let Some(parent) = parent {
            let branch = found.and_then(|at| namespaces[at].1.get(parent.branch));
            if !branch.is_some_and(|branch| branch.has(parent.step)) {
                return Err(stale(place, id));
            }
        }
        let at = found.unwrap_or_else(|| {
            namespaces.push((place.namespace.to_owned(), Branches::default()));
            namespaces.len() - 1
        });
        change(namespaces[at].1.begun(id.branch))
    }

    fn put_now(&self, put: &Put<'_>) -> Result<(), StoreError> {
        if blob::is_small(put, self.share_from) {
            return self.change(put.place, put.fence, put.id, put.parent, |branch| branch.put(put, None));
        }
        let pieces = PutPieces::of(put, self.share_from);
        let record = self.keep(put.record, &pieces.record);
        let segment = self.keep(put.segment.unwrap_or_default(), &pieces.segment);
        let rests = Put { record: &record.rest, segment: put.segment.map(|_| &segment.rest[..]), ..*put };
        let held = Some([record.pieces, segment.pieces]);
        let writes = self.keep_writes(put.own_writes());
        self.change(put.place, put.fence, put.id, put.parent, |branch| {
            branch.put(&rests, held)?;
            branch.put_writes(writes);
            Ok(())
        })
    }

    fn keep_writes(&self, put: PutWrites<'_>) -> Vec<(WriteKey, Kept)> {
        let keep = |write: &PendingWrite| {
            let kept = self.keep(&write.bytes, &Pieces::of(&write.bytes, self.share_from));
            ((put.at.step, write.task, write.slot), kept)
        };
        put.writes.iter().map(keep).collect()
    }

    fn release_now(&self, thread: &str, fence: u64) {
        let mut store = self.store.lock();
        let Some(found) = store.threads.get_mut(thread) else { return };
        if found.lease.is_some_and(|held| held.fence == fence) {
            found.lease = None;
            if found.namespaces.is_empty() {
                store.threads.remove(thread);
            }
            self.released.notify_waiters();
        }
    }
}

impl Thread {
    fn check(&self, name: &str, fence: u64) -> Result<(), StoreError> {
        if fence == 0 || self.lease.is_some_and(|held| held.fence == fence) {
            Ok(())
        } else {
            Err(lease_lost(name))
        }
    }
}

#[async_trait]
impl Checkpointer for MemorySaver {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        Ok(self.with_branches(place, |branches| {
            let (number, branch) = match at {
                Some(id) => (id.branch, branches.get(id.branch)?),
                None => branches.newest()?,
            };
            branch.tail(number, at.map(|id| id.step))
        }))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        Ok(self.with_branches(place, |branches| {
            let branch = branches.get(id.branch)?;
            Some(branch.row(id.branch, branch.find(id.step)?))
        }))
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        self.put_now(&put)
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        Some(self.put_now(put))
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        if put.writes.is_empty() {
            return Ok(());
        }
        let writes = self.keep_writes(put);
        self.change(put.place, put.fence, put.at, None, |branch| {
            branch.put_writes(writes);
            Ok(())
        })
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        Ok(self.with_branches(place, |branches| {
            let asked = match query.branch {
                Some(number) => branches.get(number).map(|branch| (number, branch)),
                None => branches.newest(),
            };
            let Some((number, branch)) = asked else { return Vec::new() };
            let rows = branch.before(query.before).iter().rev().filter(|row| row.kind != RowKind::Segment);
            rows.take(query.limit.unwrap_or(usize::MAX)).map(|row| branch.row(number, row)).collect()
        }))
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        let store = self.store.lock();
        let begun = store
            .threads
            .iter()
            .filter(|(_, thread)| thread.namespaces.iter().any(|(_, branches)| branches.newest().is_some()));
        Ok(begun.map(|(name, _)| name.clone()).collect())
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        self.store.lock().threads.remove(thread);
        self.released.notify_waiters();
        Ok(())
    }

    fn outlives_its_process(&self) -> bool {
        false
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    delegate!(self has: leases, catalog, upkeep);
}

#[async_trait]
impl Leases for MemorySaver {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        let mut store = self.store.lock();
        let Store { threads, fences } = &mut *store;
        let found = match threads.get_mut(thread) {
            Some(found) => found,
            None => threads.entry(thread.to_owned()).or_default(),
        };
        match found.lease {
            Some(Held { fence, until, .. }) if !terms.seize && until > terms.now => {
                Ok(Claim::Held { fence, until })
            }
            before => {
                *fences += 1;
                found.lease = Some(Held { fence: *fences, until: terms.until, asked_to_stop: false });
                if before.is_some() {
                    self.released.notify_waiters();
                }
                Ok(Claim::Granted { fence: *fences })
            }
        }
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        let mut store = self.store.lock();
        let held = store.threads.get_mut(thread).and_then(|thread| thread.lease.as_mut());
        let held = held.filter(|held| held.fence == fence);
        Ok(held.map(|held| held.until = until).is_some())
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        self.release_now(thread, fence);
        Ok(())
    }

    fn let_go(&self, thread: &str, fence: u64) {
        self.release_now(thread, fence);
    }

    async fn released(&self, thread: &str, fence: u64) {
        loop {
            let rings = self.released.notified();
            let held = self.store.lock().threads.get(thread).and_then(|thread| thread.lease);
            if held.is_none_or(|held| held.fence != fence) {
                return;
            }
            rings.await;
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        let asked = {
            let mut store = self.store.lock();
            let held = store.threads.get_mut(thread).and_then(|thread| thread.lease.as_mut());
            held.filter(|held| held.until > now).map(|held| {
                held.asked_to_stop = true;
                held.fence
            })
        };
        if let Some(fence) = asked {
            self.stops.tell(thread, fence);
        }
        Ok(asked)
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        let store = self.store.lock();
        let range = match (query.thread, query.after) {
            (Some(thread), _) => (Bound::Included(thread), Bound::Included(thread)),
            (None, Some(after)) => (Bound::Excluded(after), Bound::Unbounded),
            (None, None) => (Bound::Unbounded, Bound::Unbounded),
        };
        let leases = store.threads.range::<str, _>(range).filter_map(|(name, thread)| {
            let Held { fence, until, asked_to_stop } = thread.lease?;
            let is_asked_for = until > query.now
                && (asked_to_stop || !query.asked_to_stop)
                && query.after < Some(name.as_str());
            is_asked_for.then(|| HeldLease { thread: name.clone(), fence, until, asked_to_stop })
        });
        Ok(leases.take(query.limit.unwrap_or(usize::MAX)).collect())
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        self.stops.add(listener);
    }
}

#[async_trait]
impl Catalog for MemorySaver {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let store = self.store.lock();
        let from = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = Vec::new();
        let mut threads = 0;
        for (thread, of_thread) in store.threads.range::<str, _>((from, Bound::Unbounded)) {
            if threads >= query.limit.unwrap_or(usize::MAX) {
                break;
            }
            let before = found.len();
            let mut namespaces: Vec<_> = of_thread.namespaces.iter().collect();
            namespaces.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (namespace, branches) in namespaces {
                let Some((number, newest)) = branches.newest() else { continue };
                let waiting = newest.waiting(number).into_iter();
                found.extend(waiting.map(|(at, request)| {
                    let thread = thread.clone();
                    let namespace = namespace.clone();
                    Waiting { thread, namespace, at, request }
                }));
            }
            threads += usize::from(found.len() > before);
        }
        Ok(found)
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let store = self.store.lock();
        let namespaces = store.threads.get(thread).map_or(&[][..], |thread| &thread.namespaces);
        let begun = namespaces.iter().filter(|(_, branches)| branches.newest().is_some());
        let mut names: Vec<String> = begun.map(|(name, _)| name.clone()).collect();
        names.sort();
        Ok(names)
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        Ok(self.with_branches(place, |branches| branches.with_rows().map(|(number, _)| number).collect()))
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        let store = self.store.lock();
        let places = store.threads.values().flat_map(|thread| &thread.namespaces);
        places.flat_map(|(_, branches)| branches.all()).for_each(|branch| branch.count(&mut usage));
        drop(store);
        (usage.values, usage.value_bytes) = self.shared.lock().count();
        Ok(usage)
    }
}

#[async_trait]
impl Upkeep for MemorySaver {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut store = self.store.lock();
        if store.threads.get(to).is_some_and(|thread| !thread.namespaces.is_empty()) {
            return Err(thread_exists(to));
        }
        let source = store.threads.get(from).filter(|thread| !thread.namespaces.is_empty());
        let namespaces = source.ok_or_else(|| unknown_thread(from))?.namespaces.clone();
        store.threads.entry(to.to_owned()).or_default().namespaces = namespaces;
        Ok(())
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        let Place { thread, namespace } = rewrite.place;
        let pieces = of_rewrite(&rewrite, self.share_from);
        let fulls = rewrite.fulls.iter().zip(&pieces);
        let kept: Vec<Kept> = fulls.map(|((_, record), pieces)| self.keep(record, pieces)).collect();
        let mut store = self.store.lock();
        let Some(found) = store.threads.get_mut(thread) else {
            return if rewrite.fence == 0 { Ok(()) } else { Err(lease_lost(thread)) };
        };
        found.check(thread, rewrite.fence)?;
        let Some(at) = found.namespaces.iter().position(|(name, _)| equal(name, namespace)) else {
            return Ok(());
        };
        if !found.namespaces[at].1.rewrite(&rewrite, &kept) {
            found.namespaces.swap_remove(at);
        }
        if found.namespaces.is_empty() && found.lease.is_none() {
            store.threads.remove(thread);
        }
        Ok(())
    }

    /// Removed rows are freed at once.
    async fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
