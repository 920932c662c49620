//! What an eager run has open: activations, groups of dispatches, and who wrote which channel last. Plain
//! data; it knows neither states nor futures.

pub(crate) mod order;
pub(crate) mod record;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::engine::frontier::Frontier;
use crate::engine::left_over::TaskRemains;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::record::header::StoredState;
use crate::state::{State, WriteKind};
use crate::step::InputValue;
use agentgraph_checkpoint::CheckpointId;

/// Which activation: the number of the commit that made it, and its place among those made there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(in crate::engine) made: u64,
    pub(crate) index: u32,
}

/// One execution of a node, to come or under way.
pub(crate) struct Activation {
    pub(in crate::engine) node: u32,
    /// The node that led to it.
    pub(in crate::engine) from: u32,
    /// Of a dispatch.
    pub(in crate::engine) input: Option<InputValue>,
    /// The checkpoint whose state it reads; none where there is no such checkpoint.
    pub(in crate::engine) read: Option<CheckpointId>,
    /// The number of the commit whose state that is.
    pub(in crate::engine) read_at: u64,
    /// A static interrupt after this node holds it.
    pub(in crate::engine) after: Option<u32>,
    /// The caller was told of the static interrupt that held it.
    pub(in crate::engine) told: bool,
    /// What it asked, and was answered.
    pub(in crate::engine) left: Option<Box<TaskRemains>>,
    /// It failed, and this one stands in its place.
    pub(in crate::engine) handler: Option<Handler>,
    /// What it failed with when it was last called.
    pub(in crate::engine) error: Option<Arc<Failure>>,
    /// Such an error is over, and a pending write may still say it.
    pub(in crate::engine) error_is_over: bool,
    pub(in crate::engine) phase: Phase,
    /// It was open in an earlier call.
    pub(in crate::engine) again: bool,
}

/// Who stands in the place of a task that failed.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(in crate::engine) node: u32,
    pub(in crate::engine) failure: Arc<Failure>,
}

/// How far an activation has come in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Ready,
    Runs,
    /// It waits for an answer, or for somebody to go on.
    Waits,
    /// It did not come to its end, and is not tried again in this call.
    Stands,
}

impl Activation {
    /// The node that acts.
    pub(crate) fn actor(&self) -> u32 {
        self.handler.as_ref().map_or(self.node, |handler| handler.node)
    }

    /// Whether a static interrupt holds it.
    pub(crate) fn is_held<S: State>(&self, core: &RunGraph<S>) -> bool {
        let Some(breaks) = core.breaks.as_ref().filter(|_| !self.told) else { return false };
        self.after.is_some() || breaks.before.get(self.node as usize) == Some(&true)
    }

    pub(crate) fn is_dispatched(&self) -> bool {
        self.input.is_some()
    }

    /// Forgets what it failed with.
    pub(crate) fn forget_error(&mut self) {
        self.error_is_over |= self.error.take().is_some();
    }

    pub(crate) fn left_mut(&mut self) -> &mut TaskRemains {
        self.left.get_or_insert_default()
    }
}

/// The dispatches of one command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// So many are not done.
    pub(in crate::engine) open: u32,
    /// The nodes of those that are, each once, if their edges were not replaced.
    pub(in crate::engine) arrived: Vec<u32>,
}

/// Who wrote a channel last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastWrite {
    pub(in crate::engine) at: u64,
    pub(in crate::engine) by: u32,
    pub(in crate::engine) overwrote: bool,
}

/// The commit to come: its number, and its id if it will be a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextCommit {
    pub(in crate::engine) at: u64,
    pub(in crate::engine) id: Option<CheckpointId>,
}

/// One commit, as a replay needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergeEntry {
    pub(in crate::engine) at: u64,
    /// The activation that ended, and its node.
    pub(in crate::engine) ended: Option<(Key, u32)>,
    /// The joins that fired because their time had come.
    pub(in crate::engine) timed: Vec<u32>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Flow {
    pub(in crate::engine) open: BTreeMap<Key, Activation>,
    /// Those that may start, in the order in which they were made.
    pub(in crate::engine) ready: VecDeque<Key>,
    /// Dispatches, by the commit that made them.
    pub(in crate::engine) groups: HashMap<u64, Group>,
    /// By channel.
    pub(in crate::engine) written: Vec<LastWrite>,
    /// How many of those that are open are not detached.
    pub(in crate::engine) normal: usize,
    /// The number of the last commit.
    pub(in crate::engine) at: u64,
    /// States that open activations read and no checkpoint holds.
    pub(in crate::engine) kept: Vec<StoredState>,
    /// What no record says yet.
    pub(in crate::engine) unsaid: UnsavedChanges,
}

/// Changes since the last record.
#[derive(Default)]
pub(crate) struct UnsavedChanges {
    pub(in crate::engine) begun: Vec<Key>,
    pub(in crate::engine) ended: Vec<Key>,
    pub(in crate::engine) log: Vec<MergeEntry>,
    pub(in crate::engine) writes: Vec<(usize, bool)>,
    pub(in crate::engine) groups: bool,
    pub(in crate::engine) kept: bool,
}

impl Flow {
    /// Makes an activation of every place that a commit leads to: `after` if a static interrupt holds them.
    pub(crate) fn make<S: State>(
        &mut self,
        core: &RunGraph<S>,
        next: &mut Frontier,
        commit: NextCommit,
        from: u32,
        after: Option<u32>,
    ) {
        let pulled = next.pulled.drain(..).map(|node| (node, None));
        let dispatched = next.dispatched.drain(..).map(|dispatch| (dispatch.node, Some(dispatch.input)));
        let first = self.open.range(Key { made: commit.at, index: 0 }..).count() as u32;
        for (index, (node, input)) in (first..).zip(pulled.chain(dispatched)) {
            let activation = Activation {
                node,
                from,
                input,
                read: commit.id,
                read_at: commit.at,
                after,
                told: false,
                left: None,
                handler: None,
                error: None,
                error_is_over: false,
                phase: Phase::Ready,
                again: false,
            };
            self.begin(Key { made: commit.at, index }, activation, core.is_detached(node));
        }
    }

    /// Forgets what the caller was told, for a branch that begins before that.
    pub(crate) fn forget_left(&mut self) {
        self.open.values_mut().for_each(|activation| activation.told = false);
    }

    /// Notes a commit that merges nothing.
    pub(crate) fn pass(&mut self, commit: NextCommit) {
        self.unsaid.log.push(MergeEntry { at: commit.at, ..MergeEntry::default() });
        self.at = commit.at;
    }

    /// Adds an activation that is to start.
    pub(crate) fn begin(&mut self, key: Key, activation: Activation, detached: bool) {
        // Damaged records may name one twice.
        if self.open.contains_key(&key) {
            return;
        }
        self.normal += usize::from(!detached);
        if activation.is_dispatched() {
            self.groups.entry(key.made).or_default().open += 1;
        }
        self.ready.push_back(key);
        self.unsaid.begun.push(key);
        self.open.insert(key, activation);
    }

    /// Takes one out that has ended. Gives the nodes that arrive at their joins by that: itself, unless it is
    /// of a group, which arrives as a whole. `arrives` if its edges were not replaced.
    pub(crate) fn end(&mut self, key: Key, detached: bool, arrives: bool) -> Vec<u32> {
        let Some(activation) = self.open.remove(&key) else { return Vec::new() };
        self.normal = self.normal.saturating_sub(usize::from(!detached));
        self.unsaid.ended.push(key);
        self.forget_kept(key.made);
        if !activation.is_dispatched() {
            return Vec::new();
        }
        let Some(group) = self.groups.get_mut(&key.made) else { return Vec::new() };
        group.open = group.open.saturating_sub(1);
        let actor = activation.actor();
        if arrives && !group.arrived.contains(&actor) {
            group.arrived.push(actor);
        }
        self.unsaid.groups = true;
        match group.open {
            0 => self.groups.remove(&key.made).map(|group| group.arrived).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Lets go of a state that nobody reads any more.
    fn forget_kept(&mut self, made: u64) {
        let is_read = |open: &BTreeMap<Key, Activation>| open.keys().any(|key| key.made == made);
        if self.kept.iter().any(|kept| kept.made == made) && !is_read(&self.open) {
            self.kept.retain(|kept| kept.made != made);
            self.unsaid.kept = true;
        }
    }

    /// Notes that the record of an activation has to say something new.
    pub(crate) fn change(&mut self, key: Key) {
        if !self.unsaid.begun.contains(&key) {
            self.unsaid.begun.push(key);
        }
    }

    /// Finds the channel that an update may not write, since a commit that its task could not know has: which
    /// one, by whom, and how this one writes it. Two that overwrite are too many for any channel.
    pub(crate) fn clash<S: State>(
        &self,
        core: &RunGraph<S>,
        read_at: u64,
        update: &S::Update,
    ) -> Option<(usize, u32, WriteKind)> {
        let channels = S::channels(&core.schema);
        let mut found = None;
        S::writes(&core.schema, update, &mut |channel, kind| {
            let Some(written) = self.written.get(channel).filter(|written| written.at > read_at) else {
                return;
            };
            let clashes = channels[channel].exclusive || (kind == WriteKind::Overwrite && written.overwrote);
            if clashes && found.is_none() {
                found = Some((channel, written.by, kind));
            }
        });
        found
    }

    /// The channels that an update writes, of those of which it must be known who wrote them: with `true` if
    /// it overwrites.
    pub(crate) fn watched<S: State>(core: &RunGraph<S>, update: &S::Update, writes: &mut Vec<(usize, bool)>) {
        let channels = S::channels(&core.schema);
        S::writes(&core.schema, update, &mut |channel, kind| {
            let overwrites = kind == WriteKind::Overwrite;
            if channels[channel].exclusive || overwrites {
                writes.push((channel, overwrites));
            }
        });
    }

    /// Notes who wrote channels in the commit `at`.
    pub(crate) fn note_writes(&mut self, channels: usize, writes: &[(usize, bool)], at: u64, by: u32) {
        if writes.is_empty() {
            return;
        }
        self.written.resize(channels, LastWrite::default());
        for (channel, overwrote) in writes {
            if let Some(written) = self.written.get_mut(*channel) {
                *written = LastWrite { at, by, overwrote: *overwrote };
            }
        }
    }

    /// The oldest state that is read: whoever wrote before it can clash with nobody.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.open.values().map(|activation| activation.read_at).min()
    }

    /// Notes that the record of all this is in the store.
    pub(crate) fn said(&mut self) {
        let UnsavedChanges { begun, ended, log, writes, groups, kept } = &mut self.unsaid;
        begun.clear();
        ended.clear();
        log.clear();
        writes.clear();
        *groups = false;
        *kept = false;
    }
}
