//! Committing: one record a superstep, its size that of the change.
//!
//! A [`Journal`] belongs to one run on one thread. It decides between delta and full: a full is written when what a
//! reader would have to replay passes twice the live bytes plus 64 KiB, and whenever the graph differs from the one that
//! wrote the record before. It folds every 1,024 deltas into a segment.

use std::sync::Arc;

use crate::checkpoint::behind::Behind;
use crate::checkpoint::codec::Codec;
use crate::checkpoint::delta::{DeltaWriter, encode, text};
use crate::checkpoint::fold::Folded;
use crate::checkpoint::format::{
    Bytes, Header, HeaderWriter, Source, StoredCall, StoredDispatch, StoredJoin, micros, open,
};
use crate::checkpoint::{Checkpointer, PendingWrite, Place, Put, PutWrites, RowKind, unreadable};
use crate::context::{CheckpointId, RunId, Spent};
use crate::engine::eager::Flow;
use crate::engine::load::{Replayed, Restored};
use crate::engine::plan::{Frontier, StepPlace};
use crate::engine::reuse::KeptOutputs;
use crate::error::{Code, Error};
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

/// What a call that stores at its end has not stored yet.
#[derive(Default)]
struct Waiting {
    /// The last commit it would have made.
    commit: Option<Waited>,
    /// Writes on the checkpoint that stands, until a commit makes them obsolete.
    writes: Vec<PendingWrite>,
    /// By how much task ids move on with the commits that were put off.
    moves: u64,
    /// Whether they do, and where they begin to.
    moves_from: Option<u64>,
}

impl Waiting {
    /// [`moves`](Self::moves) after one more commit.
    fn next_move(&self) -> u64 {
        self.moves_from.map_or(self.moves, |from| self.moves.max(from).saturating_add(1))
    }
}

/// A commit that was put off.
#[derive(Default)]
pub(crate) struct Waited {
    pub(crate) source: Source,
    pub(crate) abandoned: Option<RunId>,
    pub(crate) halt: Vec<String>,
}

/// How much a header repeats of what earlier ones said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// Nothing: a delta.
    Changes,
    /// What deltas change: a segment, which is read instead of them.
    Run,
    /// All: a full.
    Everything,
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

    fn encode(
        &self,
        record: &mut Vec<u8>,
        core: &RunGraph<S>,
        time: u64,
        commit: &Commit<'_, S>,
        repeat: Repeat,
    ) -> Result<(), Error> {
        let mut header = HeaderWriter::begin(record);
        header.number("time", time);
        if commit.flow.is_none() {
            let mut written = Ok(());
            header.raw("next", |bytes| written = write_frontier(bytes, core, commit.frontier));
            written?;
        }
        if commit.source != Source::Loop {
            header.value("source", &commit.source);
        }
        if let Some(abandoned) = &commit.abandoned {
            header.value("abandoned", abandoned);
        }
        if !commit.halt.is_empty() {
            header.value("halt", commit.halt);
        }
        let changes = repeat == Repeat::Changes;
        if !changes || commit.source != Source::Loop {
            header.value("run", &self.run);
            if let Some(call) = &self.call {
                header.value("call", call);
            }
        }
        if let Some(flow) = commit.flow {
            flow.write(&mut header, core, !changes || commit.source != Source::Loop)?;
        }
        if let Some(wrote) = self.wrote.as_ref().filter(|_| repeat != Repeat::Run) {
            header.raw("wrote", |bytes| drop(rmp::encode::write_bin(bytes, wrote)));
        }
        if !changes && self.ahead > 0 {
            header.number("ahead", self.ahead);
        }
        if let Some(spent) = &commit.spent {
            header.value("spent", spent);
        }
        if !changes || self.had_open_joins || commit.joins.any_open() {
            header.value("joins", &stored_joins(core, commit.joins));
        }
        if !commit.frontier.deferred.is_empty() || (changes && self.had_deferred) {
            let names = commit.frontier.deferred.iter().map(|node| core.name(*node));
            header.value("deferred", &names.collect::<Vec<_>>());
        }
        self.encode_edits(&mut header, core, commit, repeat);
        if !commit.sessions.is_empty() && (!changes || commit.sessions_used) {
            header.value("session", &commit.sessions.encode()?);
        }
        if repeat == Repeat::Everything {
            write_constants::<S>(&mut header, core, &self.unknown);
            if let Some(parent) = self.parent {
                header.value("parent", &(parent.branch, parent.step));
            }
        }
        header.finish(if repeat == Repeat::Run { &[] } else { self.delta.bytes() });
        Ok(())
    }

    fn encode_edits(
        &self,
        header: &mut HeaderWriter<'_>,
        core: &RunGraph<S>,
        commit: &Commit<'_, S>,
        repeat: Repeat,
    ) {
        let (log, whole) = (core.log(), repeat != Repeat::Changes || self.foreign_edits);
        // A full begins with nothing, and a segment with what the full or segment before it says.
        let replaces = self.foreign_edits || repeat == Repeat::Run;
        let said = match repeat {
            Repeat::Changes => Some(self.edits).filter(|_| !self.foreign_edits),
            Repeat::Run => self.folded_edits,
            Repeat::Everything => None,
        };
        match said.and_then(|said| log.get(said..)) {
            Some([]) => {}
            Some(added) => header.value("edits", added),
            None if log.is_empty() && !replaces => {}
            None => header.value("overlay", log),
        }
        if whole && (!commit.skips.is_empty() || replaces) || !whole && self.skips != commit.skips {
            header.value("skips", commit.skips);
        }
        let all = repeat != Repeat::Changes;
        if commit.outputs.has_changed() || (all && !commit.outputs.is_empty()) {
            header.value("outputs", &commit.outputs.to_store(core, all));
        }
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

    /// Puts off what is to be stored until [`end_waiting`](Self::end_waiting).
    ///
    /// Task ids are made of the head, which does not move meanwhile. Where they name what runs inside of a task, they must
    /// all the same be other ones in every superstep, and other ones than those of a call that was killed: then they move
    /// on from `moves_from`, a random number.
    pub(crate) fn wait_for_the_end(&mut self, moves_from: Option<u64>) {
        self.waiting = Some(Waiting { moves_from, ..Waiting::default() });
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Notes a commit that would have been made here.
    pub(crate) fn put_off(&mut self, commit: Waited) {
        let Some(waiting) = &mut self.waiting else { return };
        waiting.writes.clear();
        waiting.moves = waiting.next_move();
        let Waited { source, abandoned, .. } = waiting.commit.take().unwrap_or_default();
        // A call within another run begins where it says so: the sum of its updates is read back to there.
        let begins = source == Source::Input && self.call.is_some();
        let source = if begins { source } else { commit.source };
        waiting.commit = Some(Waited { source, abandoned: commit.abandoned.or(abandoned), ..commit });
    }

    /// Stores from now on. Gives the commit that is to be made first; without one, what was to be written is.
    pub(crate) async fn end_waiting(&mut self) -> Result<Option<Waited>, Error> {
        let Some(waiting) = self.waiting.take() else { return Ok(None) };
        if waiting.commit.is_some() {
            self.must_be_full = true;
            self.ahead = self.ahead_by(&waiting);
            return Ok(waiting.commit);
        }
        self.put_writes(&waiting.writes).await?;
        Ok(None)
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

fn write_constants<S: State>(
    header: &mut HeaderWriter<'_>,
    core: &RunGraph<S>,
    unknown: &[(String, Vec<u8>)],
) {
    let defaults = Header::default();
    let fields: Vec<&str> = S::channels(&core.schema).iter().map(|channel| &*channel.name).collect();
    header.value("fields", &fields);
    header.value("fingerprint", &core.fingerprint);
    header.value("discipline", core.discipline());
    header.value("schema", &core.migrations.version);
    header.value("fence", &defaults.fence);
    header.value("codec", &defaults.codec);
    for (key, value) in unknown {
        header.raw(key, |bytes| bytes.extend_from_slice(value));
    }
}

/// The frontier as a list of names; a dispatch is a map. Written by hand: it is in every record.
fn write_frontier<S: State>(
    bytes: &mut Vec<u8>,
    core: &RunGraph<S>,
    frontier: &Frontier,
) -> Result<(), Error> {
    // Writing to a Vec does not fail.
    match frontier.len() {
        few @ 0..16 => bytes.push(0x90 | few as u8),
        many => drop(rmp::encode::write_array_len(bytes, many as u32)),
    }
    for node in &frontier.pulled {
        text(bytes, core.name(*node)).map_err(|error| Error::new(Code::Encode, error.to_string()))?;
    }
    for dispatch in &frontier.dispatched {
        let (node, from) = (core.name(dispatch.node), core.name(dispatch.from));
        let input = dispatch.input.encode_for(node).map_err(|error| error.at_node(from))?;
        let stored = StoredDispatch {
            node: node.to_owned(),
            from: from.to_owned(),
            index: dispatch.index,
            input: Bytes(input),
            limits: dispatch.input.stored_limits(),
        };
        encode(bytes, &stored).map_err(|error| Error::new(Code::Encode, error.to_string()))?;
    }
    Ok(())
}

fn stored_joins<S: State>(core: &RunGraph<S>, joins: &Joins) -> Vec<StoredJoin> {
    let name = |node: &u32| core.name(*node).to_owned();
    let open = joins.open(&core.topology).map(|round| StoredJoin {
        sources: round.join.sources.iter().map(name).collect(),
        to: name(&round.join.target),
        arrived: round.arrived.iter().map(|place| name(&round.join.sources[*place as usize])).collect(),
        fired: round.fired,
        due: round.due,
    });
    open.collect()
}
