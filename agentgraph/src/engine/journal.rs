//! The journal of a run: one record per superstep, whose size is that of the change.
//!
//! A [`Journal`] belongs to one run on one thread. It decides between delta and full. A full is written when
//! a reader would have to replay more than twice the live bytes plus 64 KiB; when the state is small and the
//! deltas since the last full weigh as much as a full; and when the graph differs from the one that wrote the
//! record before. Every 1,024 deltas are folded into a segment. `docs/durability.md` shows why this bounds
//! reading and writing.

mod header;
mod notes;
mod pruning;
mod size;
mod waiting;

pub(crate) use pruning::Pruning;
pub(crate) use waiting::DeferredCommit;

use std::sync::Arc;

use crate::context::Memories;
use crate::engine::flow::Flow;
use crate::engine::journal::header::{Repeat, constants, constants_with};
use crate::engine::journal::notes::HeadNotes;
use crate::engine::journal::size::ReplaySize;
use crate::engine::journal::waiting::DeferredCommits;
use crate::engine::kept_outputs::KeptOutputs;
use crate::engine::load::{Replay, RestoredState};
use crate::engine::position::Position;
use crate::engine::task_id::StepPlace;
use crate::engine::unknown_fields::UnknownField;
use crate::error::Error;
use crate::graph::GraphCore;
use crate::graph::run_graph::RunGraph;
use crate::persistence::Persistence;
use crate::record::codec::Codec;
use crate::record::header::StoredCall;
use crate::record::unordered;
use crate::session::Sessions;
use crate::state::StateError;
use crate::typed::{AnySchema, AnyState};
use crate::words::Spent;
use agentgraph_checkpoint::behind::Behind;
use agentgraph_checkpoint::canonical;
use agentgraph_checkpoint::delta::{DeltaWriter, Weight, whole_size};
use agentgraph_checkpoint::engine::{Leased, unreadable};
use agentgraph_checkpoint::fold::Folded;
use agentgraph_checkpoint::frame::{Pairs, complete, open};
use agentgraph_checkpoint::services::{Services, micros};
use agentgraph_checkpoint::{
    CheckpointId, Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, RunId, Source,
};

/// Number of deltas between two folds.
const SEGMENT: u32 = 1024;

/// Bytes that a reader may have to replay beyond twice the live bytes.
const SLACK: u64 = 64 * 1024;

/// A state of fewer live bytes is written anew as soon as the deltas since the last full weigh as much as the
/// next full would. No value of such a state is [`LARGE`](crate::checkpoint::delta::LARGE), so a reader reads
/// one full and few deltas.
const SMALL: u64 = 4 * 1024;

/// Bytes of most records of a small state, fulls too.
const RECORD: usize = 512;

/// Writes the checkpoints of one run.
pub(crate) struct Journal {
    saver: Arc<dyn Checkpointer>,
    codec: Codec,
    /// The queue in front of the saver, for a run that stores in the background.
    behind: Option<Arc<Behind>>,
    head: Head,
    notes: HeadNotes,
    origin: Origin,
    size: ReplaySize,
    unknown: UnknownData,
    next: NextRecord,
    /// The memories that the run names; `None` if its graph has no subgraphs and its thread no memories.
    memories: Option<Arc<Memories>>,
    /// The commits and writes deferred to the end of the call.
    waiting: Option<DeferredCommits>,
    /// Prunes the thread during the run.
    pruning: Option<Pruning>,
}

/// The newest checkpoint of the run, and its place.
struct Head {
    thread: Arc<str>,
    /// Empty for a run that is not inside another run.
    namespace: Arc<str>,
    run: RunId,
    branch: u32,
    /// The last commit; `None` before the first of the thread.
    step: Option<u64>,
    /// Offset between the step used in task ids and the step of the head.
    ahead: u64,
    /// Whether the newest checkpoint has pending writes.
    has_writes: bool,
    /// The call of the task that this run is inside, if another run contains it.
    call: Option<StoredCall>,
}

/// The start of the branch.
#[derive(Default)]
struct Origin {
    /// The checkpoint that the branch starts at.
    parent: Option<CheckpointId>,
    /// Whether the head belongs to an earlier run.
    begins: bool,
    /// Whether the branch has no checkpoint yet.
    forks: bool,
}

/// Stored data that this program does not know and carries on.
#[derive(Default)]
struct UnknownData {
    /// Fields that the state does not have; they come after its channels.
    fields: Vec<UnknownField>,
    /// The graph constants of a full, if these fields add to those of the graph.
    constants: Option<Pairs>,
    /// Keys of the header.
    header: Vec<(String, Vec<u8>)>,
}

/// The record that is being written.
struct NextRecord {
    delta: DeltaWriter,
    must_be_full: bool,
    /// Pending writes for its checkpoint.
    writes: Vec<PendingWrite>,
    /// The sum of the updates that it merges, if it must contain it.
    updates: Option<Vec<u8>>,
    /// Its bytes. The buffer is used again by the record after it.
    buffer: Vec<u8>,
}

/// A record to be committed.
pub(super) struct PreparedRecord {
    id: CheckpointId,
    full: bool,
    /// Whether it ends a segment.
    folds: bool,
    /// Whether the thread is pruned after it.
    prunes: bool,
    /// The bytes that a reader of it has to read.
    replay: u64,
    time: u64,
    note: CommitNote,
}

impl PreparedRecord {
    pub(in crate::engine) fn note(&self) -> &CommitNote {
        &self.note
    }
}

/// The reason for a checkpoint.
#[derive(Clone, Default)]
pub(in crate::engine) struct CommitNote {
    pub(in crate::engine) source: Source,
    /// The unfinished run that this one replaces.
    pub(in crate::engine) abandoned: Option<RunId>,
    /// The nodes after which a static interrupt stops the run here.
    pub(in crate::engine) halt: Vec<String>,
    /// Whether the sessions may have changed since the last commit.
    pub(in crate::engine) sessions_used: bool,
}

/// A checkpoint to be written: the position of the run, and the notes beside it.
pub(in crate::engine) struct Commit<'a> {
    note: &'a CommitNote,
    position: &'a Position,
    outputs: &'a KeptOutputs,
    sessions: &'a Sessions,
    /// The amounts that the run has used up, if they are counted.
    spent: Option<Spent>,
    /// The nodes to be skipped next.
    skips: Vec<&'a str>,
}

impl<'a> Commit<'a> {
    pub(in crate::engine) fn new(
        note: &'a CommitNote,
        position: &'a Position,
        outputs: &'a KeptOutputs,
        sessions: &'a Sessions,
        spent: Option<Spent>,
    ) -> Self {
        Commit { note, position, outputs, sessions, spent, skips: position.graph.skips() }
    }

    /// The open work of a run without supersteps; its frontier contains only deferred nodes.
    fn flow(&self) -> Option<&'a Flow> {
        self.position.eager.as_ref().map(|eager| &eager.flow)
    }
}

impl Journal {
    pub(crate) fn new(persistence: &Persistence, thread: Arc<str>, run: RunId, channels: usize) -> Self {
        Journal {
            saver: Arc::clone(&persistence.saver),
            codec: persistence.codec,
            behind: None,
            head: Head {
                thread,
                namespace: Arc::clone(&persistence.namespace),
                run,
                branch: 0,
                step: None,
                ahead: 0,
                has_writes: false,
                call: None,
            },
            notes: HeadNotes::default(),
            origin: Origin::default(),
            size: ReplaySize::default(),
            unknown: UnknownData::default(),
            next: NextRecord {
                delta: DeltaWriter::new(channels),
                must_be_full: true,
                writes: Vec::new(),
                updates: None,
                buffer: Vec::with_capacity(RECORD),
            },
            memories: None,
            waiting: None,
            pruning: None,
        }
    }

    /// Continues after a checkpoint that was read.
    pub(crate) fn continue_from(
        &mut self,
        core: &GraphCore,
        replayed: &Replay,
        restored: &RestoredState,
        has_writes: bool,
    ) {
        let header = &replayed.header;
        self.head.branch = replayed.id.branch;
        self.head.step = Some(replayed.id.step);
        self.head.run = header.run;
        self.size = ReplaySize::of(replayed);
        self.next.must_be_full = !restored.same_fields || header.fingerprint != core.stored.fingerprint;
        self.head.has_writes = has_writes;
        self.notes = HeadNotes::of(header);
        self.head.ahead = header.ahead;
        self.head.call = header.call;
        let named = Some(&header.memories).filter(|named| !named.is_empty());
        self.memories = named.map(|named| Arc::new(Memories::of(named.clone())));
        self.origin.parent = header.parent.map(|(branch, step)| CheckpointId::new(branch, step));
        self.unknown.header.clone_from(&header.unknown);
        for (channel, weight) in restored.weights.iter().enumerate() {
            self.next.delta.set_weight(channel, *weight);
        }
        for (channel, field) in (restored.weights.len()..).zip(&restored.unknown) {
            let live = whole_size(channel, field.value.len() as u64);
            self.next.delta.set_weight(channel, Weight { live, whole_at: field.whole_at });
        }
        if !restored.unknown.is_empty() {
            self.unknown.fields.clone_from(&restored.unknown);
            let carried = restored.unknown.iter().map(|field| &*field.name);
            self.unknown.constants = Some(constants_with(core, carried));
        }
    }

    /// The part of a full that is constant for a graph.
    fn constants<'a>(&'a self, core: &'a GraphCore) -> &'a Pairs {
        self.unknown.constants.as_ref().unwrap_or_else(|| constants(core))
    }

    /// Starts a new run on the state of an earlier one.
    pub(crate) fn begin_run(&mut self, run: RunId) {
        self.head.run = run;
        self.origin.begins = true;
        self.forget_edits();
    }

    /// Whether the head is a record of this run, so that pending writes of the run can be added to it.
    pub(super) fn has_begun(&self) -> bool {
        !self.origin.begins && !self.origin.forks
    }

    /// Makes the next record contain all temporary edits of the run, whatever the head contains.
    pub(super) fn forget_edits(&mut self) {
        self.notes.forget_edits();
    }

    /// Continues from the checkpoint that was read, on a branch of its own, which starts with a full.
    pub(crate) fn fork(&mut self, branch: u32) {
        self.origin.parent = self.checkpoint();
        self.origin.forks = true;
        self.head.branch = branch;
        self.next.must_be_full = true;
        self.head.has_writes = false;
    }

    /// The place of the tasks of the next checkpoint.
    pub(super) fn next_place(&self) -> StepPlace<'_> {
        StepPlace { parent: self.next_id().step.saturating_add(self.head.ahead), ..self.step_place() }
    }

    /// Uses the run, and the thread if given, of another run for the places of tasks. Returns the former run
    /// and thread.
    pub(super) fn swap_identity(&mut self, run: RunId, thread: Option<Arc<str>>) -> (RunId, Arc<str>) {
        let thread = thread.unwrap_or_else(|| Arc::clone(&self.head.thread));
        (std::mem::replace(&mut self.head.run, run), std::mem::replace(&mut self.head.thread, thread))
    }

    /// Writes the current value of a channel into the open record.
    pub(super) fn record_channel(
        &mut self,
        state: &AnyState,
        schema: &AnySchema,
        channel: usize,
    ) -> Result<(), StateError> {
        (self.codec.record_channel)(state.seen(), schema, channel, &mut self.next.delta)
    }

    /// Sets the sum of the updates that the next record must contain.
    pub(super) fn set_updates_sum(&mut self, sum: Option<Vec<u8>>) {
        self.next.updates = sum;
    }

    /// Notes that pending writes were added to the head elsewhere.
    pub(super) fn note_writes(&mut self) {
        self.head.has_writes = true;
    }

    /// Uses this fence for everything stored from now on.
    pub(crate) fn set_fence(&mut self, fence: u64) {
        self.saver = Arc::new(Leased { inner: Arc::clone(&self.saver), fence });
    }

    /// Starts a new thread on that branch.
    pub(crate) fn begin_on(&mut self, branch: u32) {
        self.head.branch = branch;
    }

    /// Marks the records as belonging to a call of a task.
    pub(crate) fn set_call(&mut self, call: StoredCall) {
        self.head.call = Some(call);
    }

    /// Sets the run of the following records, whatever the run of earlier ones.
    pub(crate) fn set_run(&mut self, run: RunId) {
        self.head.run = run;
    }

    /// Makes the next record a full.
    pub(crate) fn write_whole(&mut self) {
        self.next.must_be_full = true;
    }

    pub(crate) fn saver(&self) -> Arc<dyn Checkpointer> {
        Arc::clone(&self.saver)
    }

    pub(super) fn codec(&self) -> &Codec {
        &self.codec
    }

    pub(super) fn thread(&self) -> &str {
        &self.head.thread
    }

    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.head.namespace
    }

    /// The call that this run is inside, if another run contains it.
    pub(crate) fn call(&self) -> Option<StoredCall> {
        self.head.call
    }

    pub(crate) fn memories(&self) -> Option<&Arc<Memories>> {
        self.memories.as_ref()
    }

    /// The memories that the run names, for a graph with subgraphs.
    pub(crate) fn share_memories(&mut self) -> Arc<Memories> {
        Arc::clone(self.memories.get_or_insert_default())
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { thread: &self.head.thread, namespace: &self.head.namespace }
    }

    /// The current checkpoint.
    pub(crate) fn checkpoint(&self) -> Option<CheckpointId> {
        self.head.step.map(|step| CheckpointId::new(self.head.branch, step))
    }

    /// The place of the next superstep's tasks.
    pub(super) fn step_place(&self) -> StepPlace<'_> {
        let Head { thread, namespace, run, branch, .. } = &self.head;
        let put_off = self.waiting.as_ref().filter(|waiting| waiting.commit.is_some());
        let parent = match put_off {
            None => self.head.step.unwrap_or(0).saturating_add(self.head.ahead),
            Some(waiting) => self.next_id().step.saturating_add(self.ahead_by(waiting)),
        };
        StepPlace { thread, namespace, run: *run, branch: *branch, parent }
    }

    /// The step used in the ids of what the next commit makes.
    pub(super) fn upcoming(&self) -> u64 {
        let moves = self.waiting.as_ref().map_or(0, DeferredCommits::next_move);
        self.next_id().step.saturating_add(self.head.ahead).saturating_add(moves)
    }

    /// [`ahead`](Self::ahead) after the deferred commits are stored.
    fn ahead_by(&self, waiting: &DeferredCommits) -> u64 {
        self.head.ahead.saturating_add(waiting.moves)
    }

    /// The codec and writer with which a merge records its changes.
    pub(super) fn recorder(&mut self) -> (&Codec, &mut DeltaWriter) {
        (&self.codec, &mut self.next.delta)
    }

    /// Opens the record of the next checkpoint, so that a merge can write its changes into it.
    pub(super) fn begin(&mut self) {
        let id = self.next_id();
        self.next.delta.begin(id);
    }

    pub(super) fn next_id(&self) -> CheckpointId {
        CheckpointId::new(self.head.branch, self.head.step.map_or(0, |head| head.saturating_add(1)))
    }

    /// Builds the record of the merged changes, to be committed next.
    #[inline]
    pub(in crate::engine) fn prepare(
        &mut self,
        services: &dyn Services,
        commit: &Commit<'_>,
    ) -> Result<PreparedRecord, Error> {
        let id = self.next_id();
        let time = micros(services.now());
        // Taken out, since encoding borrows the journal. The allocation serves every commit.
        let mut record = std::mem::take(&mut self.next.buffer);
        let written = self.write_record(&mut record, time, commit);
        self.next.buffer = record;
        let (full, replay) = written?;
        // Pruning may have left more than `SEGMENT` deltas.
        let folds = !full && self.size.deltas + 1 >= SEGMENT;
        let prunes = self.pruning.as_ref().is_some_and(|pruning| pruning.is_due(id, self.next.delta.live()));
        Ok(PreparedRecord { id, full, folds, prunes, replay, time, note: commit.note.clone() })
    }

    /// Writes the record as a full or a delta. Returns whether it is a full, and the bytes that a reader has
    /// to read.
    fn write_record(
        &mut self,
        record: &mut Vec<u8>,
        time: u64,
        commit: &Commit<'_>,
    ) -> Result<(bool, u64), Error> {
        let core = &commit.position.graph;
        let changes = self.next.delta.bytes().len() as u64;
        let live = self.next.delta.live();
        let mut replay = self.size.replay + changes;
        let mut full = self.next.must_be_full || replay > 2 * live + SLACK;
        if full {
            self.encode(record, time, commit, Repeat::Everything)?;
        } else if live < SMALL && self.size.may_outweigh(self.constants(core).size() + live, changes) {
            self.encode(record, time, commit, Repeat::Everything)?;
            full = self.size.outweighs(record.len() as u64 + live, changes);
        }
        if full {
            let referred = self.record_whole(core, &commit.position.state)?;
            replay = referred + self.next.delta.bytes().len() as u64;
        } else {
            self.encode(record, time, commit, Repeat::Changes)?;
        }
        if canonical::is_on() {
            unordered::check_changes(&self.codec, &core.schema, self.next.delta.bytes())?;
        }
        let kind = if full { RowKind::Full } else { RowKind::Delta };
        complete(record, kind, self.next.delta.bytes());
        Ok((full, replay))
    }

    /// Commits the record if the store needs no await. Most commits end here, without an async function.
    #[inline]
    pub(in crate::engine) fn try_commit(
        &mut self,
        prepared: &PreparedRecord,
        commit: &Commit<'_>,
    ) -> Result<bool, Error> {
        // A fold reads the store first, and pruning follows the commit: both have to be awaited.
        if prepared.folds || prepared.prunes {
            return Ok(false);
        }
        match self.saver.try_put(&self.put(prepared, None)) {
            None => Ok(false),
            Some(stored) => {
                stored?;
                self.note_committed(prepared, commit);
                Ok(true)
            }
        }
    }

    /// Commits the record. On success the checkpoint is in the store and nothing before it is pending.
    pub(in crate::engine) async fn commit(
        &mut self,
        prepared: &PreparedRecord,
        commit: &Commit<'_>,
    ) -> Result<(), Error> {
        let segment = if prepared.folds { Some(self.fold(prepared.time, commit).await?) } else { None };
        self.saver.put(self.put(prepared, segment.as_deref())).await?;
        self.note_committed(prepared, commit);
        if prepared.prunes {
            self.prune(prepared.id).await;
        }
        Ok(())
    }

    fn put<'a>(&'a self, prepared: &PreparedRecord, segment: Option<&'a [u8]>) -> Put<'a> {
        Put {
            place: self.place(),
            id: prepared.id,
            // The saver of a run with a lease is a `Leased`, which replaces it.
            fence: 0,
            kind: if prepared.full { RowKind::Full } else { RowKind::Delta },
            record: &self.next.buffer,
            segment,
            clears_writes: self.head.has_writes,
            parent: if self.origin.forks { self.origin.parent } else { self.checkpoint() },
            writes: &self.next.writes,
        }
    }

    fn note_committed(&mut self, prepared: &PreparedRecord, commit: &Commit<'_>) {
        self.size.stored(prepared.replay, self.next.buffer.len() as u64, (prepared.full, prepared.folds));
        if let Some(pruning) = &mut self.pruning {
            pruning.stored(self.next.buffer.len() as u64);
        }
        self.head.step = Some(prepared.id.step);
        self.next.must_be_full = false;
        (self.origin.begins, self.origin.forks) = (false, false);
        self.head.has_writes = !self.next.writes.is_empty();
        self.next.writes.clear();
        self.next.updates = None;
        if let Some(memories) = &self.memories {
            memories.committed();
        }
        self.notes.stored(commit, prepared.full || prepared.folds);
    }

    /// Replaces the operations by those of a full record. Returns the number of bytes that it refers to in
    /// other records.
    fn record_whole(&mut self, core: &RunGraph, state: &AnyState) -> Result<u64, Error> {
        let id = self.next_id();
        self.next.delta.begin(id);
        let mut referred = 0;
        let channels = core.schema.channels();
        let stored = channels.iter().enumerate().filter(|(_, channel)| channel.is_stored());
        for (channel, _) in stored {
            match self.next.delta.refer_if_large(channel, id) {
                0 => (self.codec.record_channel)(state.seen(), &core.schema, channel, &mut self.next.delta)?,
                live => referred += live,
            }
        }
        for (channel, field) in (channels.len()..).zip(&self.unknown.fields) {
            match self.next.delta.refer_if_large(channel, id) {
                0 => self.next.delta.channel(channel).set_encoded(&field.value),
                live => referred += live,
            }
        }
        Ok(referred)
    }

    /// The deltas since the last fold, with the one about to be stored, as one record.
    async fn fold(&self, time: u64, commit: &Commit<'_>) -> Result<Vec<u8>, Error> {
        let place = self.place();
        let head = self.checkpoint().unwrap_or_default();
        let tail = self.saver.get(place, Some(head)).await?.unwrap_or_default();
        let mut folded = Folded::default();
        for row in tail.rows.iter().filter(|row| row.kind == RowKind::Delta) {
            let view = open(row.kind, &row.record).map_err(|error| unreadable(place, row.id, error))?;
            folded.apply(view.operations, None).map_err(|error| unreadable(place, row.id, error))?;
        }
        folded
            .apply(self.next.delta.bytes(), None)
            .map_err(|error| unreadable(place, self.next_id(), error))?;
        let mut record = Vec::new();
        self.encode(&mut record, time, commit, Repeat::Run)?;
        complete(&mut record, RowKind::Segment, &folded.to_operations());
        Ok(record)
    }

    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Hands everything over to a queue from now on.
    pub(crate) fn hand_over_to(&mut self, behind: Arc<Behind>) {
        self.saver = Arc::clone(&behind) as Arc<dyn Checkpointer>;
        self.behind = Some(behind);
    }

    /// Waits until the queue has stored everything that was handed over.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        match &self.behind {
            None => Ok(()),
            Some(behind) => Ok(behind.settle(&self.head.thread).await?),
        }
    }

    /// Stores pending writes on the current checkpoint.
    pub(super) async fn put_writes(&mut self, writes: &[PendingWrite]) -> Result<(), Error> {
        if let Some(waiting) = &mut self.waiting {
            waiting.writes.extend_from_slice(writes);
            return Ok(());
        }
        match self.checkpoint() {
            Some(at) if !writes.is_empty() => {
                self.saver.put_writes(PutWrites::new(self.place(), at, writes)).await?;
                self.head.has_writes = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stores a write on the checkpoint in the store, also in a call that stores at its end.
    pub(super) async fn put_write_now(&mut self, write: PendingWrite) -> Result<(), Error> {
        let Some(at) = self.checkpoint() else { return Ok(()) };
        self.saver.put_writes(PutWrites::new(self.place(), at, &[write])).await?;
        self.head.has_writes = true;
        Ok(())
    }

    /// Stores writes on a checkpoint of another namespace of the thread.
    pub(super) async fn put_writes_in(
        &self,
        namespace: &str,
        at: CheckpointId,
        writes: &[PendingWrite],
    ) -> Result<(), Error> {
        let place = Place { thread: &self.head.thread, namespace };
        Ok(self.saver.put_writes(PutWrites::new(place, at, writes)).await?)
    }

    /// Sets the pending writes that are stored with the next commit.
    pub(super) fn carry(&mut self, writes: Vec<PendingWrite>) {
        self.next.writes = writes;
    }
}
