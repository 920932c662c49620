//! The journal of a run: one record a superstep, its size that of the change.
//!
//! A [`Journal`] belongs to one run on one thread. It decides between delta and full: a full is written when what a
//! reader would have to replay passes twice the live bytes plus 64 KiB, and whenever the graph differs from the one that
//! wrote the record before. It folds every 1,024 deltas into a segment.

mod header;
mod waiting;

pub(crate) use waiting::Waited;

use std::sync::Arc;

use crate::checkpoint::behind::Behind;
use crate::checkpoint::codec::Codec;
use crate::checkpoint::delta::DeltaWriter;
use crate::checkpoint::fold::Folded;
use crate::checkpoint::format::{Source, StoredCall, micros, open};
use crate::checkpoint::{Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, unreadable};
use crate::context::{CheckpointId, RunId, Spent};
use crate::engine::eager::Flow;
use crate::engine::journal::header::Repeat;
use crate::engine::journal::waiting::Waiting;
use crate::engine::load::{Replayed, Restored};
use crate::engine::plan::{Frontier, StepPlace};
use crate::engine::reuse::KeptOutputs;
use crate::error::Error;
use crate::graph::joins::Joins;
use crate::graph::run_graph::RunGraph;
use crate::graph::{GraphCore, Persistence};
use crate::services::Services;
use crate::session::Sessions;
use crate::state::State;

/// Deltas between two folds.
const SEGMENT: u32 = 1024;

/// What may be replayed beyond twice the live bytes.
const SLACK: u64 = 64 * 1024;

/// A value of at least so many bytes that did not change since it was stored is referred to, not repeated.
const LARGE: u64 = 4 * 1024;

/// Writes the checkpoints of one run.
pub(crate) struct Journal<S: State> {
    pub(crate) saver: Arc<dyn Checkpointer>,
    pub(crate) codec: Codec<S>,
    pub(crate) thread: Arc<str>,
    /// Empty for a run that no other run holds.
    pub(crate) namespace: Arc<str>,
    pub(crate) branch: u32,
    /// The last commit; `None` before the first of the thread.
    pub(crate) head: Option<u64>,
    pub(crate) run: RunId,
    pub(crate) delta: DeltaWriter,
    /// The bytes that reading the head takes.
    pub(crate) replay: u64,
    /// The deltas after the newest full or segment.
    pub(crate) deltas: u32,
    /// The next record must be a full.
    pub(crate) must_be_full: bool,
    /// Pending writes stand on the head.
    pub(crate) has_writes: bool,
    /// What older records said that this release does not know.
    pub(crate) unknown: Vec<(String, Vec<u8>)>,
    /// The head says that joins are half full.
    pub(crate) had_open_joins: bool,
    /// The head says that deferred nodes wait.
    pub(crate) had_deferred: bool,
    /// How many temporary edits the head says, and which nodes it says are skipped.
    edits: usize,
    skips: Vec<String>,
    /// The edits that the head says are those of a run before.
    foreign_edits: bool,
    /// How many of the edits the newest full or segment says, if it says those of this run and was written in this call.
    folded_edits: Option<usize>,
    /// By how much the number that task ids are made of is ahead of the head's own.
    pub(crate) ahead: u64,
    /// Whose call this run is, if another run holds it.
    pub(crate) call: Option<StoredCall>,
    /// The sum of the updates that the next record merges, if the record must say it.
    pub(crate) wrote: Option<Vec<u8>>,
    /// The checkpoint that the branch began at.
    parent: Option<CheckpointId>,
    /// Nothing stands on the branch yet.
    forks: bool,
    /// What tasks have left behind on the checkpoint that is committed next.
    carried: Vec<PendingWrite>,
    /// What is not stored before the call ends.
    waiting: Option<Waiting>,
    /// The queue before the saver, for a run that stores behind itself.
    behind: Option<Arc<Behind>>,
    record: Vec<u8>,
}

/// A record that is to be committed.
pub(crate) struct Prepared {
    id: CheckpointId,
    full: bool,
    /// It ends a segment.
    folds: bool,
    /// The bytes that reading it will take.
    replay: u64,
    time: u64,
    pub(crate) source: Source,
    pub(crate) abandoned: Option<RunId>,
    pub(crate) halt: Vec<String>,
    pub(crate) sessions_used: bool,
}

/// What a commit says beside the state.
pub(crate) struct Commit<'a, S: State> {
    pub(crate) source: Source,
    pub(crate) frontier: &'a Frontier,
    pub(crate) joins: &'a Joins,
    pub(crate) abandoned: Option<RunId>,
    /// The nodes after which a static interrupt stops the run here.
    pub(crate) halt: &'a [String],
    pub(crate) sessions: &'a Sessions,
    /// They may have changed since the last commit.
    pub(crate) sessions_used: bool,
    /// What the run has used up, if that is counted.
    pub(crate) spent: Option<Spent>,
    /// What a run without supersteps has open; its frontier holds what is deferred only.
    pub(crate) flow: Option<&'a Flow>,
    /// The nodes that are skipped next.
    pub(crate) skips: &'a [&'a str],
    pub(crate) outputs: &'a KeptOutputs<S>,
}

impl<S: State> Journal<S> {
    pub(crate) fn new(persistence: &Persistence<S>, thread: Arc<str>, run: RunId, channels: usize) -> Self {
        Journal {
            saver: Arc::clone(&persistence.saver),
            codec: persistence.codec,
            thread,
            namespace: Arc::clone(&persistence.namespace),
            branch: 0,
            head: None,
            run,
            delta: DeltaWriter::new(channels),
            replay: 0,
            deltas: 0,
            must_be_full: true,
            has_writes: false,
            unknown: Vec::new(),
            had_open_joins: false,
            had_deferred: false,
            edits: 0,
            skips: Vec::new(),
            foreign_edits: false,
            folded_edits: None,
            ahead: 0,
            call: None,
            wrote: None,
            parent: None,
            forks: false,
            carried: Vec::new(),
            waiting: None,
            behind: None,
            record: Vec::new(),
        }
    }

    /// Goes on behind a checkpoint that was read.
    pub(crate) fn go_on(
        &mut self,
        core: &GraphCore<S>,
        replayed: &Replayed,
        restored: &Restored<S>,
        has_writes: bool,
    ) {
        let header = &replayed.header;
        self.branch = replayed.id.branch;
        self.head = Some(replayed.id.step);
        self.run = header.run;
        self.replay = replayed.replay;
        self.deltas = replayed.deltas;
        self.must_be_full = !restored.same_fields || header.fingerprint != core.fingerprint;
        self.has_writes = has_writes;
        self.had_open_joins = !header.joins.is_empty();
        self.had_deferred = !header.deferred.is_empty();
        (self.edits, self.skips) = (header.overlay.len(), header.skips.clone());
        self.ahead = header.ahead;
        self.call = header.call;
        self.parent = header.parent.map(|(branch, step)| CheckpointId::new(branch, step));
        self.unknown.clone_from(&header.unknown);
        for (channel, weight) in restored.weights.iter().enumerate() {
            self.delta.set_weight(channel, *weight);
        }
    }

    /// A new run begins: the next record says its temporary edits, whatever the head says.
    pub(crate) fn forget_edits(&mut self) {
        self.foreign_edits |= self.edits > 0 || !self.skips.is_empty();
        self.folded_edits = None;
        self.edits = 0;
    }

    /// Goes on from the checkpoint that was read on a branch of its own, which begins with a full.
    pub(crate) fn fork(&mut self, branch: u32) {
        self.parent = self.checkpoint();
        self.forks = true;
        self.branch = branch;
        self.must_be_full = true;
        self.has_writes = false;
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { thread: &self.thread, namespace: &self.namespace }
    }

    /// The checkpoint that stands.
    pub(crate) fn checkpoint(&self) -> Option<CheckpointId> {
        self.head.map(|step| CheckpointId::new(self.branch, step))
    }

    /// Where the next superstep's tasks stand.
    pub(crate) fn step_place(&self) -> StepPlace<'_> {
        let Journal { thread, namespace, run, branch, .. } = self;
        let put_off = self.waiting.as_ref().filter(|waiting| waiting.commit.is_some());
        let parent = match put_off {
            None => self.head.unwrap_or(0).saturating_add(self.ahead),
            Some(waiting) => self.next_id().step.saturating_add(self.ahead_by(waiting)),
        };
        StepPlace { thread, namespace, run: *run, branch: *branch, parent }
    }

    /// The number that ids of what the next commit makes are made of.
    pub(crate) fn upcoming(&self) -> u64 {
        let moves = self.waiting.as_ref().map_or(0, Waiting::next_move);
        self.next_id().step.saturating_add(self.ahead).saturating_add(moves)
    }

    /// [`ahead`](Self::ahead), once what was put off is stored.
    fn ahead_by(&self, waiting: &Waiting) -> u64 {
        self.ahead.saturating_add(waiting.moves)
    }

    /// What a merge writes its changes with.
    pub(crate) fn recorder(&mut self) -> (&Codec<S>, &mut DeltaWriter) {
        (&self.codec, &mut self.delta)
    }

    /// Opens the record of the next checkpoint, so that a merge can write its changes into it.
    pub(crate) fn begin(&mut self) {
        let id = self.next_id();
        self.delta.begin(id);
    }

    pub(crate) fn next_id(&self) -> CheckpointId {
        CheckpointId::new(self.branch, self.head.map_or(0, |head| head + 1))
    }

    /// Makes the record of what the merge wrote, to be committed next.
    #[inline]
    pub(crate) fn prepare(
        &mut self,
        core: &RunGraph<S>,
        state: &S,
        services: &dyn Services,
        commit: &Commit<'_, S>,
    ) -> Result<Prepared, Error> {
        let id = self.next_id();
        let would_replay = self.replay + self.delta.bytes().len() as u64;
        let full = self.must_be_full || would_replay > 2 * self.delta.live() + SLACK;
        let replay = match full {
            true => self.record_whole(core, state, id)? + self.delta.bytes().len() as u64,
            false => would_replay,
        };
        let time = micros(services.now());
        let mut record = std::mem::take(&mut self.record);
        let repeat = if full { Repeat::Everything } else { Repeat::Changes };
        let encoded = self.encode(&mut record, core, time, commit, repeat);
        self.record = record;
        encoded?;
        // Pruning may have left more.
        let folds = !full && self.deltas + 1 >= SEGMENT;
        let Commit { source, abandoned, sessions_used, .. } = *commit;
        let halt = Vec::new();
        Ok(Prepared { id, full, folds, replay, time, source, abandoned, halt, sessions_used })
    }

    /// Commits it if the store needs no await for it. Most commits end here, without an async function.
    #[inline]
    pub(crate) fn try_commit(
        &mut self,
        core: &RunGraph<S>,
        prepared: &Prepared,
        commit: &Commit<'_, S>,
    ) -> Result<bool, Error> {
        if prepared.folds {
            return Ok(false);
        }
        match self.saver.try_put(&self.put(prepared, None)) {
            None => Ok(false),
            Some(stored) => {
                stored?;
                self.stands(core, prepared, commit);
                Ok(true)
            }
        }
    }

    /// Commits it. On success the checkpoint is in the store and nothing before it is pending.
    pub(crate) async fn commit(
        &mut self,
        core: &RunGraph<S>,
        prepared: &Prepared,
        commit: &Commit<'_, S>,
    ) -> Result<(), Error> {
        let segment = match prepared.folds {
            true => Some(self.fold(core, prepared.time, commit).await?),
            false => None,
        };
        self.saver.put(self.put(prepared, segment.as_deref())).await?;
        self.stands(core, prepared, commit);
        Ok(())
    }

    fn put<'a>(&'a self, prepared: &Prepared, segment: Option<&'a [u8]>) -> Put<'a> {
        Put {
            place: self.place(),
            id: prepared.id,
            fence: 0,
            kind: if prepared.full { RowKind::Full } else { RowKind::Delta },
            record: &self.record,
            segment,
            clears_writes: self.has_writes,
            parent: if self.forks { self.parent } else { self.checkpoint() },
            writes: &self.carried,
        }
    }

    fn stands(&mut self, core: &RunGraph<S>, prepared: &Prepared, commit: &Commit<'_, S>) {
        self.replay = prepared.replay;
        self.deltas = if prepared.full || prepared.folds { 0 } else { self.deltas + 1 };
        self.head = Some(prepared.id.step);
        self.must_be_full = false;
        self.forks = false;
        self.has_writes = !self.carried.is_empty();
        self.carried.clear();
        self.wrote = None;
        self.foreign_edits = false;
        self.edits = core.log().len();
        if prepared.full || prepared.folds {
            self.folded_edits = Some(self.edits);
        }
        if self.skips != commit.skips {
            self.skips = commit.skips.iter().map(|node| (*node).to_owned()).collect();
        }
        self.had_open_joins = commit.joins.any_open();
        self.had_deferred = !commit.frontier.deferred.is_empty();
    }

    /// Replaces the operations by those of a full record. Returns the bytes that stand in other records.
    fn record_whole(&mut self, core: &RunGraph<S>, state: &S, id: CheckpointId) -> Result<u64, Error> {
        self.delta.begin(id);
        let mut referred = 0;
        let channels = S::channels(&core.schema).iter().enumerate();
        for (channel, _) in channels.filter(|(_, channel)| channel.is_stored()) {
            let weight = self.delta.weight_of(channel);
            match weight.whole_at {
                Some(record) if weight.live >= LARGE && record != id => {
                    self.delta.channel(channel).refer(record);
                    referred += weight.live;
                }
                _ => (self.codec.record_channel)(state, &core.schema, channel, &mut self.delta)?,
            }
        }
        Ok(referred)
    }

    /// The deltas since the last fold, with the one that is about to be stored, as one record.
    async fn fold(&self, core: &RunGraph<S>, time: u64, commit: &Commit<'_, S>) -> Result<Vec<u8>, Error> {
        let place = self.place();
        let head = self.checkpoint().unwrap_or_default();
        let tail = self.saver.get(place, Some(head)).await?.unwrap_or_default();
        let mut folded = Folded::default();
        for row in tail.rows.iter().filter(|row| row.kind == RowKind::Delta) {
            let view = open(&row.record).map_err(|error| unreadable(place, row.id, error))?;
            folded.apply(view.operations, None).map_err(|error| unreadable(place, row.id, error))?;
        }
        folded.apply(self.delta.bytes(), None).map_err(|error| unreadable(place, self.next_id(), error))?;
        let mut record = Vec::new();
        self.encode(&mut record, core, time, commit, Repeat::Run)?;
        record.extend_from_slice(&folded.to_operations());
        Ok(record)
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Hands everything over to a queue from now on.
    pub(crate) fn hand_over_to(&mut self, behind: Arc<Behind>) {
        self.saver = Arc::clone(&behind) as Arc<dyn Checkpointer>;
        self.behind = Some(behind);
    }

    /// Waits for what was handed over.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        match &self.behind {
            None => Ok(()),
            Some(behind) => behind.settle(&self.thread).await,
        }
    }

    /// Stores what tasks left behind on the checkpoint that stands.
    pub(crate) async fn put_writes(&mut self, writes: &[PendingWrite]) -> Result<(), Error> {
        if let Some(waiting) = &mut self.waiting {
            waiting.writes.extend_from_slice(writes);
            return Ok(());
        }
        match self.checkpoint() {
            Some(at) if !writes.is_empty() => {
                self.saver.put_writes(PutWrites::new(self.place(), at, writes)).await?;
                self.has_writes = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stores with the next commit what tasks have left behind on it.
    pub(crate) fn carry(&mut self, writes: Vec<PendingWrite>) {
        self.carried = writes;
    }
}
