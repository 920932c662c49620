//! Faults made by hand. The rules must detect each of them. Most are faults of a store between the engine and
//! the real store; the engine and the watching store both trust it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::leases::leases_of;
use agentgraph::checkpoint::{
    Claim, LeaseTerms, Leases, PendingWrite, Place, Put, PutWrites, RowKind, StoreError, Tail, delegate,
};
use agentgraph::{CheckpointId, Checkpointer, Durability};
use serde::{Deserialize, Serialize};

use super::check::Rule;
use super::child::Mode;
use super::points::Points;
use super::stories::Story;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The watching store logs a mark before it is stored.
    LogsTooSoon,
    /// The watching store logs the marks of a commit after those of the next commit.
    LogsLate,
    /// Tasks end before their effects.
    EffectsAfterTheEnd,
    /// Tasks run twice.
    TasksRunTwice,
    /// Tasks write their marks into the state twice.
    TasksWriteMarksTwice,
    /// A process abandons the run that it finds and starts a new one.
    StartsOver,
    /// `Sync` does not wait for the store.
    BehindInsteadOfSync,
    /// `Exit` stores after every superstep.
    SyncInsteadOfExit,
    /// A commit is stored only together with the next one.
    CommitsLate,
    /// The last delta is not read.
    ForgetsTheLastDelta,
    /// The last delta is read twice.
    ReadsTheLastDeltaTwice,
    /// The last delta is cut to half of its length.
    TearsTheLastDelta,
    /// Results of finished siblings are not stored.
    LosesResults,
    /// Only the first half of several results is stored.
    StoresHalfOfTheResults,
    /// Results are read under the ids of other tasks.
    MixesUpTasks,
    /// Answers are not stored.
    LosesAnswers,
    /// Obsolete pending writes are removed before the commit, in a transaction of their own.
    ClearsWritesFirst,
    /// Commits of subgraphs are not stored.
    LosesSubgraphs,
    /// The store grants every lease and accepts every fence.
    IgnoresFences,
}

impl Fault {
    /// The faults that show when processes run one after the other, each with a durability mode and the rules
    /// that detect it. `IgnoresFences` is not among them, because it needs two processes at a time.
    pub const ALL: [(Fault, Mode, &'static [Rule]); 18] = [
        (Fault::LogsTooSoon, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::LogsLate, Mode::Async, &[Rule::StoredBeforeTheNext]),
        (Fault::EffectsAfterTheEnd, Mode::Sync, &[Rule::StoredAfterwards]),
        (Fault::TasksRunTwice, Mode::Sync, &[Rule::OnceAProcess]),
        (Fault::TasksWriteMarksTwice, Mode::Async, &[Rule::SameEnd]),
        (Fault::StartsOver, Mode::Sync, &[Rule::SameRun]),
        (Fault::BehindInsteadOfSync, Mode::Sync, &[Rule::StoredBeforeTheNext]),
        (Fault::SyncInsteadOfExit, Mode::Exit, &[Rule::AllOrNothing]),
        (Fault::CommitsLate, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::ForgetsTheLastDelta, Mode::Sync, &[Rule::StaysStored]),
        (Fault::ReadsTheLastDeltaTwice, Mode::Sync, &[Rule::StaysStored, Rule::SameEnd]),
        (Fault::TearsTheLastDelta, Mode::Sync, &[Rule::ComesToItsEnd]),
        (Fault::LosesResults, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::StoresHalfOfTheResults, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::MixesUpTasks, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::LosesAnswers, Mode::Sync, &[Rule::NeverAgain]),
        (Fault::ClearsWritesFirst, Mode::Sync, &[Rule::NeverAgain, Rule::StaysStored]),
        (Fault::LosesSubgraphs, Mode::Sync, &[Rule::NeverAgain]),
    ];

    /// Returns the stories in which the fault shows.
    pub fn stories(self) -> Vec<Story> {
        match self {
            Fault::LosesResults | Fault::StoresHalfOfTheResults | Fault::MixesUpTasks => {
                vec![Story::Join, Story::Stumble]
            }
            Fault::ClearsWritesFirst => vec![Story::Questions],
            Fault::LosesAnswers => vec![Story::Questions, Story::QuestionInside],
            Fault::LosesSubgraphs => vec![Story::Subgraph],
            _ => vec![Story::Chain],
        }
    }

    /// Returns the durability that runs really use.
    pub fn durability(self, asked: Durability) -> Durability {
        match self {
            Fault::BehindInsteadOfSync => Durability::Async,
            Fault::SyncInsteadOfExit => Durability::Sync,
            _ => asked,
        }
    }
}

/// A store with a fault.
pub struct Faulty {
    pub inner: Arc<dyn Checkpointer>,
    pub fault: Fault,
    pub points: Arc<Points>,
    /// A commit that is not stored yet, although the engine believes it is.
    pub late: Mutex<Option<LateCommit>>,
    /// The file with the last checkpoint whose pending writes were removed too early. It outlives the
    /// process.
    pub cleared: PathBuf,
}

/// An owned copy of a `Put`.
pub struct LateCommit {
    thread: String,
    namespace: String,
    id: CheckpointId,
    fence: u64,
    kind: RowKind,
    record: Vec<u8>,
    segment: Option<Vec<u8>>,
    clears_writes: bool,
    parent: Option<CheckpointId>,
    writes: Vec<PendingWrite>,
}

impl LateCommit {
    fn of(put: &Put<'_>) -> Self {
        LateCommit {
            thread: put.place.thread.to_owned(),
            namespace: put.place.namespace.to_owned(),
            id: put.id,
            fence: put.fence,
            kind: put.kind,
            record: put.record.to_vec(),
            segment: put.segment.map(<[u8]>::to_vec),
            clears_writes: put.clears_writes,
            parent: put.parent,
            writes: put.writes.to_vec(),
        }
    }

    fn put(&self) -> Put<'_> {
        Put {
            place: Place { thread: &self.thread, namespace: &self.namespace },
            id: self.id,
            fence: self.fence,
            kind: self.kind,
            record: &self.record,
            segment: self.segment.as_deref(),
            clears_writes: self.clears_writes,
            parent: self.parent,
            writes: &self.writes,
        }
    }
}

impl Faulty {
    async fn store_late(&self) -> Result<(), StoreError> {
        let late = self.late.lock().unwrap().take();
        match late {
            None => Ok(()),
            Some(late) => self.inner.put(late.put()).await,
        }
    }

    /// Notes that the pending writes of the checkpoint before this one are removed.
    fn note_cleared(&self, put: &Put<'_>) {
        if let Some(before) = put.id.step.checked_sub(1) {
            std::fs::write(&self.cleared, format!("{} {}", put.id.branch, before)).unwrap();
        }
        self.points.pass("between clearing and a commit");
    }

    fn was_cleared(&self, id: CheckpointId) -> bool {
        let cleared = std::fs::read_to_string(&self.cleared).unwrap_or_default();
        cleared == format!("{} {}", id.branch, id.step)
    }

    fn spoil(&self, place: Place<'_>, tail: &mut Tail) {
        let at_root = place.namespace.is_empty();
        match self.fault {
            Fault::ForgetsTheLastDelta if at_root && tail.rows.len() > 1 => {
                tail.rows.pop();
                tail.writes.clear();
            }
            Fault::ReadsTheLastDeltaTwice => {
                let last = tail.rows.last().filter(|row| row.kind == RowKind::Delta).cloned();
                tail.rows.extend(last);
            }
            Fault::TearsTheLastDelta => {
                if let Some(row) = tail.rows.last_mut().filter(|row| row.kind == RowKind::Delta) {
                    row.record.truncate(row.record.len() / 2);
                }
            }
            Fault::MixesUpTasks => {
                for write in &mut tail.writes {
                    write.task = TaskId::from_u128(write.task.to_u128() ^ 1);
                }
            }
            Fault::ClearsWritesFirst if tail.rows.last().is_some_and(|row| self.was_cleared(row.id)) => {
                tail.writes.clear();
            }
            _ => {}
        }
    }

    /// Returns the writes that the fault lets through.
    fn kept(&self, writes: &[PendingWrite]) -> Vec<PendingWrite> {
        let is_answer = |write: &&PendingWrite| write.slot > 0 && write.slot.is_multiple_of(2);
        match self.fault {
            Fault::LosesResults => writes.iter().filter(|write| write.slot > 0).cloned().collect(),
            Fault::LosesAnswers => writes.iter().filter(|write| !is_answer(write)).cloned().collect(),
            Fault::StoresHalfOfTheResults => writes[..writes.len().div_ceil(2)].to_vec(),
            _ => writes.to_vec(),
        }
    }
}

#[async_trait::async_trait]
impl Checkpointer for Faulty {
    async fn get(&self, place: Place<'_>, at: Option<CheckpointId>) -> Result<Option<Tail>, StoreError> {
        self.store_late().await?;
        let mut tail = self.inner.get(place, at).await?;
        if let Some(tail) = &mut tail {
            self.spoil(place, tail);
        }
        Ok(tail)
    }

    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        match self.fault {
            Fault::LosesSubgraphs if !put.place.namespace.is_empty() => return Ok(()),
            Fault::CommitsLate => {
                self.store_late().await?;
                *self.late.lock().unwrap() = Some(LateCommit::of(&put));
                return Ok(());
            }
            Fault::ClearsWritesFirst if put.clears_writes => self.note_cleared(&put),
            Fault::BehindInsteadOfSync => {
                // Long enough for the run to get ahead even of a fast store.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
            }
            Fault::IgnoresFences => return self.inner.put(Put { fence: 0, ..put }).await,
            _ => {}
        }
        self.inner.put(put).await
    }

    async fn put_writes(&self, put: PutWrites<'_>) -> Result<(), StoreError> {
        let kept = self.kept(put.writes);
        let fence = if self.fault == Fault::IgnoresFences { 0 } else { put.fence };
        self.inner.put_writes(PutWrites { writes: &kept, fence, ..put }).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    delegate!(self => &self.inner; row, list, threads, delete_thread, outlives_its_process, keeps_secrets);
    delegate!(self => &self.inner; catalog, upkeep);
}

#[async_trait::async_trait]
impl Leases for Faulty {
    async fn acquire(&self, thread: &str, terms: LeaseTerms) -> Result<Claim, StoreError> {
        if self.fault == Fault::IgnoresFences {
            let terms = LeaseTerms { seize: true, ..terms };
            return leases_of(&*self.inner).acquire(thread, terms).await;
        }
        leases_of(&*self.inner).acquire(thread, terms).await
    }

    async fn renew(&self, thread: &str, fence: u64, until: SystemTime) -> Result<bool, StoreError> {
        if self.fault == Fault::IgnoresFences {
            return Ok(true);
        }
        leases_of(&*self.inner).renew(thread, fence, until).await
    }

    async fn release(&self, thread: &str, fence: u64) -> Result<(), StoreError> {
        self.store_late().await?;
        leases_of(&*self.inner).release(thread, fence).await
    }

    delegate!(self => &self.inner; let_go, released, ask_to_stop, held, hear_stops);
}
