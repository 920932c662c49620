//! Encrypting anew: bytes of a thread under older keys, or unencrypted, are encrypted with the current key.

use std::time::{Duration, SystemTime};

use super::origin::PERMISSIONS;
use super::seal::{Label, key_of, open};
use super::{EncryptedSaver, is_taken_back};
use crate::catalog;
use crate::checkpointer::{Checkpointer, page};
use crate::error::corrupt;
use crate::error::{StoreCode, StoreError};
use crate::fold::Folded;
use crate::header::HeaderMap;
use crate::id::CheckpointId;
use crate::lease::{Claim, LeaseTerms, lease_lost};
use crate::leases::leases_of;
use crate::prune::{DELTAS, add, fold};
use crate::row::{ListQuery, PendingWrite, Place, PutWrites, Rewrite, RowKind};
use crate::upkeep;

/// The number of checkpoints that are read and rewritten at a time.
const BATCH: usize = 64;

/// The time for one batch. After it another process may take the thread, and the reseal fails.
const LEASE: Duration = Duration::from_secs(30);

/// One step of work on a checkpoint.
#[derive(Clone, Copy)]
enum Work {
    /// Encrypts its pending writes anew.
    Writes(CheckpointId),
    /// Replaces it by a full under the current key.
    Seal(CheckpointId, RowKind),
    /// Removes the segment beside it.
    Unfold(CheckpointId),
}

/// Reads deltas as fulls, one after the other; each builds on the one before.
#[derive(Default)]
struct Reader {
    at: CheckpointId,
    header: HeaderMap,
    folded: Folded,
}

impl Reader {
    async fn whole(
        &mut self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        id: CheckpointId,
    ) -> Result<Vec<u8>, StoreError> {
        let follows = self.at.branch == id.branch && self.at.step.checked_add(1) == Some(id.step);
        // Before the first delta there is no state to build on.
        if follows && !self.header.is_empty() {
            let row = saver.row(place, id).await?.ok_or_else(|| corrupt(place, id, "it is gone"))?;
            add(place, &mut self.header, &mut self.folded, &row)?;
        } else {
            let tail = saver.get(place, Some(id)).await?.ok_or_else(|| corrupt(place, id, "it is gone"))?;
            (self.header, self.folded) = fold(place, &tail.rows)?;
        }
        self.at = id;
        Ok(self.header.to_record(&self.folded.to_operations()))
    }
}

/// A leased thread during the work. If it is dropped, the lease is released as soon as the store can.
struct Taken<'a, C: Checkpointer> {
    saver: &'a EncryptedSaver<C>,
    thread: &'a str,
    fence: u64,
}

impl<C: Checkpointer> Taken<'_, C> {
    async fn renew(&self) -> Result<(), StoreError> {
        let (_, until) = lease_from(self.saver.services.now());
        if leases_of(&self.saver.inner).renew(self.thread, self.fence, until).await? {
            Ok(())
        } else {
            Err(lease_lost(self.thread))
        }
    }

    /// A lease that cannot be released ends by time.
    async fn give_back(mut self) {
        let _ = leases_of(&self.saver.inner).release(self.thread, self.fence).await;
        self.fence = 0;
    }
}

impl<C: Checkpointer> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        if self.fence > 0 {
            leases_of(&self.saver.inner).let_go(self.thread, self.fence);
        }
    }
}

fn lease_from(now: SystemTime) -> (SystemTime, SystemTime) {
    (now, now.checked_add(LEASE).unwrap_or(now))
}

impl<C: Checkpointer> EncryptedSaver<C> {
    /// Encrypts the bytes of a thread that are under other keys, or unencrypted, with the current key, so
    /// that this thread no longer needs an older key. Returns the number of checkpoints encrypted anew.
    /// Fails with [`StoreCode::ThreadBusy`] if the thread is busy.
    ///
    /// A store can replace a row by a full only, so deltas become fulls, each of which takes the space of a
    /// whole state. Prune first, so that little is left to encrypt: with
    /// [`Retention::keep_latest_per_thread`](crate::Retention) it is one checkpoint a thread. Earlier
    /// copies of the thread are threads of their own.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::checkpoint::{Checkpointer, EncryptedSaver, EncryptionKey, KeyRing, Retention};
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { #[reduce(append)] said: Vec<String> }
    /// # async fn reply() -> ChatUpdate { Chat::update().said(["aha"]) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let old = EncryptionKey::from_bytes([1; 32]);
    /// # let new = EncryptionKey::from_bytes([2; 32]);
    /// # let store = MemorySaver::new();
    /// # let graph = StateGraph::new().node("reply", reply).edge(START, "reply").compile()?;
    /// # let before = KeyRing::new("spring", old.clone())?;
    /// # let first = graph.clone().checkpointer(EncryptedSaver::new(store.clone(), before));
    /// # first.invoke(Chat::update().said(["tea"])).thread("t-1").await?;
    /// let keys = KeyRing::new("autumn", new.clone())?.older("spring", old)?;
    /// let saver = EncryptedSaver::new(store.clone(), keys);
    /// let graph = graph.checkpointer(saver.clone());
    ///
    /// graph.prune(Retention::keep_last(5)).await?;
    /// for thread in saver.threads().await? {
    ///     saver.reseal(&thread).await?;
    /// }
    /// // From here on the old key is not needed.
    /// # let graph = graph.checkpointer(EncryptedSaver::new(store, KeyRing::new("autumn", new)?));
    /// assert_eq!(graph.state("t-1").await?.unwrap().values.said, ["tea", "aha"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If something of the thread cannot be read, or the store fails. Checkpoints encrypted until then stay
    /// encrypted with the current key.
    pub async fn reseal(&self, thread: &str) -> Result<u64, StoreError> {
        // The rows after a delta that becomes a full must not change between the read and the rewrite.
        let taken = self.take(thread).await?;
        let sealed = self.reseal_thread(&taken).await;
        taken.give_back().await;
        sealed
    }

    async fn reseal_thread(&self, taken: &Taken<'_, C>) -> Result<u64, StoreError> {
        let Taken { thread, fence, .. } = *taken;
        let mut done = 0;
        for namespace in catalog::namespaces(self, thread).await? {
            let place = Place { thread, namespace: &namespace };
            for branch in catalog::branches(&self.inner, place).await? {
                for some in self.work(place, branch).await?.chunks(BATCH) {
                    taken.renew().await?;
                    done += self.carry_out(place, fence, some).await?;
                }
                self.drop_early_writes(place, fence, branch).await?;
            }
        }
        self.drop_permissions(thread).await?;
        Ok(done)
    }

    async fn take<'a>(&'a self, thread: &'a str) -> Result<Taken<'a, C>, StoreError> {
        let (now, until) = lease_from(self.services.now());
        match leases_of(&self.inner).acquire(thread, LeaseTerms { now, until, seize: false }).await? {
            Claim::Granted { fence } => Ok(Taken { saver: self, thread, fence }),
            Claim::Held { .. } => {
                let problem =
                    "the thread is busy, so it was not encrypted again: try again when its run has ended";
                Err(StoreError::new(StoreCode::ThreadBusy, problem).on_thread(thread))
            }
        }
    }

    /// The work on a branch, newest first. In this order every checkpoint is readable after each step.
    async fn work(&self, place: Place<'_>, branch: u32) -> Result<Vec<Work>, StoreError> {
        let mut rows = Vec::new();
        let mut before = None;
        loop {
            let query = ListQuery { branch: Some(branch), before, limit: Some(BATCH) };
            let read = page(&self.inner, place, query).await?;
            let Some(oldest) = read.last() else { break };
            before = Some(oldest.id.step);
            let label = |id, kind| Label::row(place.thread, place, id, kind);
            rows.extend(
                read.iter()
                    .map(|row| (row.id, row.kind, self.is_current(&label(row.id, row.kind), &row.record))),
            );
        }
        let mut work = Vec::new();
        let last = rows.first().map(|(id, ..)| *id);
        // The deltas since a delta that becomes a full: a segment that starts before it would be read after
        // it.
        let mut since = None::<usize>;
        for (id, kind, current) in rows.into_iter().rev() {
            let many = kind == RowKind::Delta && since.is_some_and(|deltas| deltas + 1 >= DELTAS);
            if !current || many {
                since = Some(0);
                work.push(Work::Seal(id, kind));
            } else if kind == RowKind::Full {
                since = None;
            } else if let Some(deltas) = &mut since {
                *deltas += 1;
                work.push(Work::Unfold(id));
            }
        }
        work.extend(last.map(Work::Writes));
        work.reverse();
        Ok(work)
    }

    fn is_current(&self, label: &Label, sealed: &[u8]) -> bool {
        key_of(sealed) == Some(self.keys.current().as_bytes()) && open(&self.keys, label, sealed).is_ok()
    }

    /// Returns the number of checkpoints encrypted.
    async fn carry_out(&self, place: Place<'_>, fence: u64, work: &[Work]) -> Result<u64, StoreError> {
        let mut fulls = Vec::new();
        let mut unfold = Vec::new();
        let mut reader = Reader::default();
        for work in work.iter().rev() {
            match *work {
                Work::Writes(at) => self.reseal_writes(place, fence, at).await?,
                Work::Unfold(id) => unfold.push(id),
                Work::Seal(id, RowKind::Full) => {
                    fulls.extend(self.row(place, id).await?.map(|row| (id, row.record)));
                }
                Work::Seal(id, _) => fulls.push((id, reader.whole(self, place, id).await?)),
            }
        }
        let sealed = fulls.len() as u64;
        if !fulls.is_empty() || !unfold.is_empty() {
            upkeep::rewrite(self, Rewrite { place, fence, fulls: &fulls, unfold: &unfold, gone: &[] })
                .await?;
        }
        Ok(sealed)
    }

    async fn reseal_writes(&self, place: Place<'_>, fence: u64, at: CheckpointId) -> Result<(), StoreError> {
        let Some(mut tail) = self.inner.get(place, Some(at)).await? else { return Ok(()) };
        let label = |write: &PendingWrite| Label::write(place.thread, place, at, write);
        tail.writes.retain(|write| !is_taken_back(write) && !self.is_current(&label(write), &write.bytes));
        if tail.writes.is_empty() {
            return Ok(());
        }
        tail.rows.clear();
        let mut origins = super::Origins::default();
        for write in &mut tail.writes {
            self.open_write(place, at, write, &mut origins).await?;
        }
        self.put_writes(PutWrites { place, at, fence, writes: &tail.writes }).await
    }

    /// Pending writes on future steps cannot be read, and would later surface under a removed key.
    async fn drop_early_writes(&self, place: Place<'_>, fence: u64, branch: u32) -> Result<(), StoreError> {
        let newest = ListQuery { branch: Some(branch), limit: Some(1), ..ListQuery::default() };
        let Some(newest) = self.inner.list(place, newest).await?.first().map(|row| row.id.step) else {
            return Ok(());
        };
        let gone = [(branch, newest.saturating_add(1)..u64::MAX)];
        upkeep::rewrite(&self.inner, Rewrite { place, fence, fulls: &[], unfold: &[], gone: &gone }).await
    }

    /// Everything is bound to the thread itself by now. Permissions of other copies stay: a copy may be
    /// under way.
    async fn drop_permissions(&self, thread: &str) -> Result<(), StoreError> {
        let place = Place { thread, namespace: PERMISSIONS };
        let rows = self.inner.list(place, ListQuery::default()).await?;
        let own = rows.iter().filter(|row| open(&self.keys, &Label::permission(thread), &row.record).is_ok());
        let gone: Vec<_> = own.map(|row| (0, row.id.step..row.id.step.saturating_add(1))).collect();
        if gone.is_empty() {
            Ok(())
        } else {
            let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone };
            upkeep::rewrite(&self.inner, rewrite).await
        }
    }
}
