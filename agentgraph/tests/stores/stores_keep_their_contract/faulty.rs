//! Stores that are correct except for one fault.

use std::sync::{Mutex, Weak};
use std::time::{Duration, SystemTime};

use agentgraph::checkpoint::{
    Catalog, Claim, HearsStops, HeldLease, HeldQuery, LeaseTerms, Leases, ListQuery, PendingWrite, Place,
    Put, PutWrites, Rewrite, Row, RowKind, StoreCode, StoreError, Tail, Upkeep, Usage, Waiting, WaitingQuery,
};
use agentgraph::{CheckpointId, Checkpointer, MemorySaver};

use super::faults::Kind;

/// A store with one fault.
pub(crate) struct FaultyStore {
    kind: Kind,
    inner: MemorySaver,
    memory: Mutex<Memory>,
}

/// The data that some faults need.
#[derive(Default)]
struct Memory {
    puts: u64,
    fences: u64,
    last_written: Option<CheckpointId>,
    namespaces_of_writes: Vec<String>,
    emptied: Vec<String>,
    gone_writes: Vec<(CheckpointId, PendingWrite)>,
    deleted: Vec<(String, u64)>,
    stopped: Vec<String>,
    granted: Vec<(String, u64)>,
    /// The number of values that are wrongly kept, and their bytes.
    kept: (u64, u64),
    /// Whether reads lose large values.
    lost: bool,
    deletes: u64,
}

impl FaultyStore {
    pub(crate) fn new(kind: Kind) -> Self {
        let inner = match kind {
            Kind::KeepsEveryCopy => MemorySaver::new().share_values_from(usize::MAX),
            _ => MemorySaver::new(),
        };
        FaultyStore { kind, inner, memory: Mutex::default() }
    }

    fn has(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap()
    }

    /// Returns the fence to check instead of the given one.
    fn fence(&self, thread: &str, fence: u64, unchecked: bool) -> u64 {
        let passes = self.memory().deleted.iter().any(|(of, old)| of == thread && *old == fence);
        if unchecked || passes { 0 } else { fence }
    }

    async fn is_granted_for_any_thread(&self, fence: u64) -> bool {
        self.memory().granted.iter().any(|(_, granted)| *granted == fence)
    }

    fn place<'a>(&self, place: Place<'a>, changed: &'a mut (String, String)) -> Place<'a> {
        match self.kind {
            Kind::MixesNamespaces => Place::root(place.thread),
            Kind::CutsNamesAtNul => {
                changed.0 = place.thread.split('\0').next().unwrap_or_default().to_owned();
                Place { thread: &changed.0, ..place }
            }
            Kind::FoldsCaseOfNamespaces => {
                changed.1 = place.namespace.to_lowercase();
                Place { namespace: &changed.1, ..place }
            }
            _ => place,
        }
    }

    /// Yields in the middle of a step that should be atomic, if the fault is one of these.
    async fn yield_if(&self, faults: &[Kind]) {
        if faults.contains(&self.kind) {
            tokio::task::yield_now().await;
        }
    }
}

fn damaged(record: &[u8]) -> bool {
    record.len() > 20 && record[5..20] == [0xc1; 15]
}

#[async_trait::async_trait]
impl Checkpointer for FaultyStore {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        let mut changed = Default::default();
        let place = self.place(place, &mut changed);
        let at = match self.kind {
            Kind::NewestBranchIsTheLastWritten if at.is_none() => self.memory().last_written,
            _ => at,
        };
        let found = self.inner.get(place, at).await?;
        if self.has(Kind::PanicsOnNothing) && found.is_none() {
            panic!("nothing is there");
        }
        let Some(mut tail) = found else {
            if self.has(Kind::ShowsTailsWithoutAFull) {
                let rows = self.inner.list(place, ListQuery::default()).await?;
                return Ok((!rows.is_empty()).then_some(Tail { rows, writes: Vec::new() }));
            }
            return Ok(None);
        };
        let id = tail.rows.last().unwrap().id;
        match self.kind {
            Kind::LosesTheLastDelta if tail.rows.len() > 1 => drop(tail.rows.pop()),
            Kind::BeginsWithTheFirstFull => {
                let mut rows = self.inner.list(place, ListQuery::default()).await?;
                rows.retain(|row| row.id.step <= id.step);
                rows.reverse();
                tail.rows = rows;
            }
            Kind::LosesSegments => tail.rows.retain(|row| row.kind != RowKind::Segment),
            Kind::ReadsSegmentsAfterAFull if id.step == 3 => {
                let record = b"b".to_vec();
                tail.rows.insert(1, Row { id: CheckpointId::new(0, 1), kind: RowKind::Segment, record });
            }
            Kind::KeepsWritesOfRemovedSteps => {
                let kept = self
                    .memory()
                    .gone_writes
                    .iter()
                    .filter(|(at, _)| *at == id)
                    .map(|(_, write)| write.clone())
                    .collect::<Vec<_>>();
                tail.writes.extend(kept);
            }
            Kind::AddsWritesTwice => {
                let again =
                    tail.writes.iter().filter(|write| write.bytes == b"new").cloned().collect::<Vec<_>>();
                tail.writes.extend(again);
            }
            Kind::ShowsHalfACommit => {
                // Returns the writes of a newer commit with the rows of this one.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                if let Some(newer) = self.inner.get(place, None).await? {
                    tail.writes = newer.writes;
                }
            }
            Kind::KeepsSegmentsOfFulls if tail.rows[0].record == b"abc" => {
                let record = b"de".to_vec();
                tail.rows.push(Row { id: CheckpointId::new(0, 4), kind: RowKind::Segment, record });
            }
            _ if self.memory().lost => tail.rows.iter_mut().for_each(|row| row.record.truncate(100)),
            _ => {}
        }
        Ok(Some(tail))
    }

    async fn row(&self, place: Place<'_>, id: CheckpointId) -> Result<Option<Row>, StoreError> {
        let mut changed = Default::default();
        self.inner.row(self.place(place, &mut changed), id).await
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let mut changed = Default::default();
        let place = self.place(put.place, &mut changed);
        let mut record = put.record.to_vec();
        match self.kind {
            Kind::CutsLongRecords => record.truncate(1 << 20),
            Kind::DropsAByte => drop(record.pop()),
            Kind::HidesCutOffRecords if put.id.step == 2 => {
                let before = self.inner.row(place, CheckpointId::new(0, 1)).await?.unwrap();
                record = before.record;
            }
            Kind::DropsDamagedRecords if damaged(&record) => return Ok(()),
            Kind::MakesNewFormatsOld if record[0] == 250 => record[0] = 2,
            _ => {}
        }
        let unchecked = match self.kind {
            Kind::ChecksNoFenceOfRows => true,
            Kind::ChecksNoFenceAfterRelease => true,
            Kind::ChecksFencesOfAnyThread => self.is_granted_for_any_thread(put.fence).await,
            Kind::CopiesLeases => put.place.thread == "u",
            _ => false,
        };
        let fence = self.fence(put.place.thread, put.fence, unchecked);
        let id = match self.kind {
            Kind::CountsStepsInFourBytes => CheckpointId::new(put.id.branch, put.id.step & 0xffff_ffff),
            _ => put.id,
        };
        let put = Put { place, id, record: &record, fence, ..put };
        let number = {
            let mut memory = self.memory();
            memory.puts += 1;
            memory.puts
        };
        match self.kind {
            Kind::LosesEveryTenthRow if number % 10 == 9 => return Ok(()),
            Kind::RequiresALease if put.fence == 0 => {
                return Err(StoreError::new(StoreCode::LeaseLost, "who are you?"));
            }
            Kind::EndsLeasesByTimeAlone if number == 2 && put.fence > 0 => {
                return Err(StoreError::new(StoreCode::LeaseLost, "your time has passed"));
            }
            _ => {}
        }
        if self.has(Kind::LosesValuesInARace) && self.memory().deletes > 0 && record.len() > 100_000 {
            self.memory().lost = true;
        }
        self.yield_if(&[Kind::LetsBothWritersWin]).await;
        let clears_writes = put.clears_writes
            && !self.has(Kind::NeverClearsWrites)
            && !(self.has(Kind::NeverClearsWithASegment) && put.segment.is_some());
        let mut parent = put.parent;
        let mut writes = put.writes;
        match self.kind {
            Kind::IgnoresTheParent => parent = None,
            Kind::IgnoresTheParentWithASegment if put.segment.is_some() => parent = None,
            Kind::LosesWritesOfCommits => writes = &[],
            Kind::StoresWritesOfTheRefused if put.fence == 0 => {
                self.inner.put_writes(put.own_writes()).await?;
            }
            _ => {}
        }
        let stored = self.inner.put(Put { clears_writes, parent, writes, ..put }).await;
        match (self.kind, stored) {
            (
                Kind::OverwritesRows | Kind::AcceptsStepsBelowTheNewest | Kind::LetsBothWritersWin,
                Err(error),
            ) if error.code() == StoreCode::Stale => Ok(()),
            (Kind::AcceptsTheSameRowAgain, Err(error)) => {
                let there = self.inner.row(put.place, put.id).await?;
                if there.is_some_and(|row| row.record == put.record) { Ok(()) } else { Err(error) }
            }
            (_, Ok(())) => {
                self.memory().last_written = Some(put.id);
                Ok(())
            }
            (Kind::KeepsValuesOfRefused, failed) if put.record.len() > 100_000 => {
                self.memory().kept.0 += 1;
                failed
            }
            (_, failed) => failed,
        }
    }

    fn try_put(&self, put: &Put<'_>) -> Option<Result<(), StoreError>> {
        match self.kind {
            Kind::ReportsEveryTryPutAsStored => {
                let stored = self.inner.try_put(put)?;
                Some(stored.or(Ok(())))
            }
            Kind::IgnoresTheParentInTryPut => self.inner.try_put(&Put { parent: None, ..*put }),
            _ => None,
        }
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let mut changed = Default::default();
        let place = self.place(put.place, &mut changed);
        let unchecked = match self.kind {
            Kind::ChecksNoFenceOfWrites => true,
            Kind::ChecksFencesOfAnyThread => self.is_granted_for_any_thread(put.fence).await,
            _ => false,
        };
        let fence = self.fence(put.place.thread, put.fence, unchecked);
        if self.has(Kind::BeginsThreadsWithWrites) {
            let id = CheckpointId::new(0, 0);
            let begin = Put::new(place, id, RowKind::Full, b"");
            let _ = self.inner.put(begin).await;
        }
        if self.has(Kind::ListsWaitingOnOldCheckpoints) {
            self.memory().gone_writes.extend(put.writes.iter().map(|write| (put.at, write.clone())));
        }
        self.memory().namespaces_of_writes.push(place.namespace.to_owned());
        if self.has(Kind::LosesWritesInARace) {
            let before = self.inner.get(place, Some(put.at)).await?.map_or(0, |tail| tail.writes.len());
            tokio::task::yield_now().await;
            let now = self.inner.get(place, Some(put.at)).await?.map_or(0, |tail| tail.writes.len());
            if now != before {
                return Ok(());
            }
        }
        if self.has(Kind::KeepsValuesOfReplacedWrites) {
            let bytes = put.writes.iter().map(|write| write.bytes.len() as u64);
            self.memory().kept.1 += bytes.filter(|bytes| *bytes > 100_000).sum::<u64>();
        }
        let mut writes = put.writes.to_vec();
        if self.has(Kind::KeepsTheFirstOfTwoWrites) {
            writes.reverse();
        }
        self.inner.put_writes(PutWrites { place, fence, writes: &writes, ..put }).await
    }

    async fn list(&self, place: Place<'_>, query: ListQuery) -> Result<Vec<Row>, StoreError> {
        let mut changed = Default::default();
        let mut rows = self.inner.list(self.place(place, &mut changed), query).await?;
        if self.has(Kind::ListsOldestFirst) {
            rows = self.inner.list(place, ListQuery::default()).await?;
            rows.reverse();
            rows.truncate(query.limit.unwrap_or(usize::MAX));
        }
        match self.kind {
            Kind::ListsBranchesWithoutLimit if query.branch.is_some() => {
                let mut unlimited = query;
                unlimited.limit = None;
                rows = self.inner.list(place, unlimited).await?;
            }
            Kind::ListsAPageOfABranch if query.branch.is_some() && query.limit.is_none() => {
                rows.truncate(1_000)
            }
            _ => {}
        }
        if self.has(Kind::WrapsLargeNumbers) && query.before.is_some_and(|before| before > i64::MAX as u64) {
            rows.clear();
        }
        Ok(rows)
    }

    async fn threads(&self) -> Result<Vec<String>, StoreError> {
        let mut threads = self.inner.threads().await?;
        threads.extend(self.memory().emptied.clone());
        Ok(threads)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
        if self.has(Kind::ForgetsNamespacesWhenDeleting) {
            let gone = [(0, 0..u64::MAX), (1, 0..u64::MAX)];
            let rewrite =
                Rewrite { place: Place::root(thread), fence: 0, fulls: &[], unfold: &[], gone: &gone };
            return self.inner.rewrite(rewrite).await;
        }
        if self.has(Kind::KeepsLeasesOfTheDeleted) {
            let mut memory = self.memory();
            let of_thread = memory.granted.iter().filter(|(of, _)| of == thread).cloned().collect::<Vec<_>>();
            memory.deleted.extend(of_thread);
        }
        match self.kind {
            Kind::LosesValuesWithAThread => self.memory().lost = true,
            Kind::KeepsValuesForEver => self.memory().kept = (1, 500_000),
            Kind::LosesValuesInARace => {
                self.memory().deletes += 1;
                tokio::task::yield_now().await;
                self.memory().deletes -= 1;
            }
            _ => {}
        }
        self.inner.delete_thread(thread).await
    }

    fn outlives_its_process(&self) -> bool {
        !self.has(Kind::TellsNobodyOfStops)
    }

    fn keeps_secrets(&self) -> bool {
        false
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn catalog(&self) -> Option<&dyn Catalog> {
        Some(self)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }
}

#[async_trait::async_trait]
impl Leases for FaultyStore {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        let mut terms = terms;
        match self.kind {
            Kind::GrantsEveryLease => terms.seize = true,
            Kind::NeverSeizes => terms.seize = false,
            Kind::LeasesForEver => terms.until += Duration::from_secs(1 << 30),
            Kind::LeasesInARace => {
                let looked = LeaseTerms { until: terms.now, ..terms };
                if let Claim::Granted { .. } = self.inner.acquire(thread, looked).await? {
                    tokio::task::yield_now().await;
                    terms.seize = true;
                }
            }
            _ => {}
        }
        let claim = self.inner.acquire(thread, terms).await?;
        if let Claim::Granted { fence } = claim {
            let mut memory = self.memory();
            memory.granted.push((thread.to_owned(), fence));
            memory.fences = fence;
        }
        Ok(claim)
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        match self.kind {
            Kind::NeverRenews => Ok(true),
            _ => self.inner.renew(thread, fence, until).await,
        }
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        match self.kind {
            Kind::IgnoresRelease => Ok(()),
            _ => self.inner.release(thread, fence).await,
        }
    }

    fn let_go(&self, thread: &str, fence: u64) {
        if !self.has(Kind::IgnoresLetGo) {
            self.inner.let_go(thread, fence);
        }
    }

    async fn released(&self, thread: &str, fence: u64) {
        if !self.has(Kind::ReportsReleaseAtOnce) {
            self.inner.released(thread, fence).await;
        }
    }

    async fn ask_to_stop(&self, thread: &str, now: SystemTime) -> Result<Option<u64>, StoreError> {
        if self.has(Kind::IgnoresStops) {
            let query = HeldQuery { thread: Some(thread), ..HeldQuery::at(now) };
            return Ok(self.inner.held(query).await?.first().map(|lease| lease.fence));
        }
        let asked = self.inner.ask_to_stop(thread, now).await?;
        if let (Some(fence), Kind::StopsEndTheLease) = (asked, self.kind) {
            self.inner.release(thread, fence).await?;
        }
        self.memory().stopped.extend(asked.map(|_| thread.to_owned()));
        Ok(asked)
    }

    async fn held(&self, query: HeldQuery<'_>) -> Result<Vec<HeldLease>, StoreError> {
        let query = match self.kind {
            Kind::ListsEndedLeases => HeldQuery { now: SystemTime::UNIX_EPOCH, ..query },
            Kind::IgnoresTheHeldQuery => HeldQuery::at(query.now),
            _ => query,
        };
        let mut held = self.inner.held(query).await?;
        if self.has(Kind::InheritsStops) {
            let memory = self.memory();
            held.iter_mut().for_each(|lease| lease.asked_to_stop = memory.stopped.contains(&lease.thread));
        }
        Ok(held)
    }

    fn hear_stops(&self, listener: Weak<dyn HearsStops>) {
        if !self.has(Kind::TellsNobodyOfStops) {
            self.inner.hear_stops(listener);
        }
    }
}

#[async_trait::async_trait]
impl Catalog for FaultyStore {
    async fn waiting(&self, query: WaitingQuery<'_>) -> Result<Vec<Waiting>, StoreError> {
        let mut waiting = self.inner.waiting(query).await?;
        let is_listed: Option<fn(&PendingWrite) -> bool> = match self.kind {
            Kind::ListsAnsweredAsWaiting => Some(|write| write.slot % 2 == 1),
            Kind::ListsKeptResultsAsWaiting => Some(|write| write.slot >= PendingWrite::KEPT),
            _ => None,
        };
        if let Some(is_listed) = is_listed {
            for thread in self.inner.threads().await? {
                let tail = self.inner.get(Place::root(&thread), None).await?.unwrap();
                let at = tail.rows.last().unwrap().id;
                let listed = tail.writes.into_iter().filter(is_listed);
                waiting.extend(listed.map(|request| Waiting {
                    thread: thread.clone(),
                    namespace: String::new(),
                    at,
                    request,
                }));
            }
        }
        if let (Kind::ListsWaitingOnOldCheckpoints, Some((at, request))) =
            (self.kind, self.memory().gone_writes.first())
        {
            let thread = "t".to_owned();
            let namespace = String::new();
            waiting.insert(0, Waiting { thread, namespace, at: *at, request: request.clone() });
        }
        if self.has(Kind::OmitsStopsWithoutAnInterrupt) {
            waiting.retain(|one| one.request.slot != 0);
        }
        Ok(waiting)
    }

    async fn namespaces(&self, thread: &str) -> Result<Vec<String>, StoreError> {
        let mut names = self.inner.namespaces(thread).await?;
        if self.has(Kind::ListsNamespacesOfWrites) {
            names.extend(self.memory().namespaces_of_writes.clone());
        }
        Ok(names)
    }

    async fn branches(&self, place: Place<'_>) -> Result<Vec<u32>, StoreError> {
        let mut branches = self.inner.branches(place).await?;
        if self.has(Kind::CountsBranchesWithWrites) {
            branches.dedup_by_key(|branch| *branch > 0);
            branches.push(2);
        }
        Ok(branches)
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        if self.has(Kind::ReportsNoUsage) {
            return Ok(Usage::default());
        }
        let mut usage = self.inner.usage().await?;
        let (values, bytes) = self.memory().kept;
        usage.values += values;
        usage.value_bytes += bytes;
        Ok(usage)
    }
}

#[async_trait::async_trait]
impl Upkeep for FaultyStore {
    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), StoreError> {
        match self.kind {
            Kind::CopiesOntoOthers => self.inner.delete_thread(to).await?,
            Kind::CopiesOntoWrites if self.inner.namespaces(to).await?.is_empty() => {
                self.inner.delete_thread(to).await?;
            }
            Kind::CopiesNothing if self.inner.namespaces(from).await?.is_empty() => return Ok(()),
            Kind::CopiesInARace => {
                let there = self.inner.threads().await?.iter().any(|thread| thread == to);
                tokio::task::yield_now().await;
                if !there {
                    self.inner.delete_thread(to).await?;
                }
            }
            _ => {}
        }
        self.inner.copy_thread(from, to).await?;
        if self.has(Kind::CopiesWithoutWrites) {
            let gone = [CheckpointId::new(1, 1), CheckpointId::new(0, 4)];
            for (namespace, id) in ["", "n"].into_iter().zip(gone) {
                let place = Place { thread: to, namespace };
                let row = self.inner.row(place, id).await?.unwrap();
                let steps = [(id.branch, id.step..id.step + 1)];
                let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &steps };
                self.inner.rewrite(rewrite).await?;
                let kind = row.kind;
                let record = &row.record[..];
                let put = Put::new(place, id, kind, record);
                self.inner.put(put).await?;
            }
        }
        Ok(())
    }

    async fn rewrite(&self, rewrite: Rewrite<'_>) -> Result<(), StoreError> {
        let mut rewrite = rewrite;
        if self.has(Kind::RewritesWithOldFences) {
            rewrite.fence = 0;
        }
        if self.has(Kind::KeepsEmptyPlaces) && rewrite.place.namespace.is_empty() {
            self.memory().emptied.push(rewrite.place.thread.to_owned());
        }
        if self.has(Kind::KeepsWritesOfRemovedSteps) {
            let at = CheckpointId::new(0, 3);
            if let Some(tail) = self.inner.get(rewrite.place, Some(CheckpointId::new(0, 1))).await? {
                self.memory().gone_writes.extend(tail.writes.into_iter().map(|write| (at, write)));
            }
        }
        self.inner.rewrite(rewrite).await
    }

    async fn compact(&self) -> Result<(), StoreError> {
        if self.has(Kind::CompactsAwayWrites) {
            let gone = [(0, 2..3)];
            let rewrite = Rewrite { place: Place::root("t"), fence: 0, fulls: &[], unfold: &[], gone: &gone };
            self.inner.rewrite(rewrite).await?;
        }
        self.inner.compact().await
    }
}
