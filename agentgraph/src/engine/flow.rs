//! The open work of an eager run: activations, groups of dispatches, and the last writer of each channel.
//! Plain data, without states or futures.

pub(crate) mod order;
pub(crate) mod record;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::engine::frontier::Frontier;
use crate::engine::left_over::TaskRemains;
use crate::failure::Failure;
use crate::graph::run_graph::RunGraph;
use crate::record::header::StoredState;
use crate::state::WriteKind;
use crate::step::InputValue;
use crate::typed::AnyUpdate;
use agentgraph_checkpoint::CheckpointId;

/// Key of an activation: the number of the commit that made it, and its index among the activations of that
/// commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(in crate::engine) made: u64,
    pub(crate) index: u32,
}

/// One execution of a node, planned or under way. One field per key that its record may have.
#[derive(Default)]
pub(crate) struct Activation {
    pub(in crate::engine) node: u32,
    /// The node that led to it.
    pub(in crate::engine) from: u32,
    /// The input of a dispatch.
    pub(in crate::engine) input: Option<InputValue>,
    /// The checkpoint whose state it reads; `None` if that state is in no checkpoint.
    pub(in crate::engine) read: Option<CheckpointId>,
    /// The number of the commit whose state it reads.
    pub(in crate::engine) read_at: u64,
    /// The node that ended before it, if a static interrupt after that node blocks it.
    pub(in crate::engine) after: Option<u32>,
    /// Whether the static interrupt that blocked it was reported to the caller.
    pub(in crate::engine) told: bool,
    /// Its questions and answers.
    pub(in crate::engine) left: Option<Box<TaskRemains>>,
    /// The handler that replaces it after its failure.
    pub(in crate::engine) handler: Option<Handler>,
    /// The failure of its last call.
    pub(in crate::engine) error: Option<Arc<Failure>>,
    /// Whether its failure is over while a pending write may still contain it.
    pub(in crate::engine) error_is_over: bool,
    pub(in crate::engine) phase: Phase,
    /// Whether it was open in an earlier call.
    pub(in crate::engine) again: bool,
}

/// The handler of a failed task.
#[derive(Clone)]
pub(super) struct Handler {
    pub(in crate::engine) node: u32,
    pub(in crate::engine) failure: Arc<Failure>,
}

/// The progress of an activation in this call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Ready,
    Runs,
    /// It waits for an answer, or for a call that continues past a static interrupt.
    Waits,
    /// It did not reach its end, and is not tried again in this call.
    Unfinished,
}

impl Activation {
    /// The node that acts: the handler, if there is one.
    pub(super) fn actor(&self) -> u32 {
        self.handler.as_ref().map_or(self.node, |handler| handler.node)
    }

    /// Whether a static interrupt blocks it.
    pub(super) fn is_held(&self, core: &RunGraph) -> bool {
        let Some(breaks) = core.rules.breaks.as_ref().filter(|_| !self.told) else { return false };
        self.after.is_some() || breaks.before.get(self.node as usize) == Some(&true)
    }

    pub(super) fn is_dispatched(&self) -> bool {
        self.input.is_some()
    }

    pub(super) fn forget_error(&mut self) {
        self.error_is_over |= self.error.take().is_some();
    }

    pub(super) fn remains_mut(&mut self) -> &mut TaskRemains {
        self.left.get_or_insert_default()
    }
}

/// The dispatches of one command.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// The number of dispatches that are not done.
    pub(in crate::engine) open: u32,
    /// The nodes of the finished dispatches, each once, if their edges were not replaced.
    pub(in crate::engine) arrived: Vec<u32>,
}

/// The last write of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastWrite {
    pub(in crate::engine) at: u64,
    pub(in crate::engine) by: u32,
    pub(in crate::engine) overwrote: bool,
}

/// The next commit: its number, and its id if it will be a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextCommit {
    pub(in crate::engine) at: u64,
    pub(in crate::engine) id: Option<CheckpointId>,
}

/// One commit, as a replay needs it.
#[derive(Clone, Debug, Default)]
pub(super) struct MergeEntry {
    pub(in crate::engine) at: u64,
    /// The activation that ended, and its node.
    pub(in crate::engine) ended: Option<(Key, u32)>,
    /// The joins that fired because they were due.
    pub(in crate::engine) timed: Vec<u32>,
}

/// The open work of an eager run.
#[derive(Default)]
pub(super) struct Flow {
    pub(in crate::engine) open: BTreeMap<Key, Activation>,
    /// The activations that may start, in the order in which they were made.
    pub(in crate::engine) ready: VecDeque<Key>,
    /// The groups of dispatches, by the commit that made them.
    pub(in crate::engine) groups: HashMap<u64, Group>,
    /// The last write of each channel.
    pub(in crate::engine) written: Vec<LastWrite>,
    /// The number of open activations that are not detached.
    pub(in crate::engine) normal: usize,
    /// The number of the last commit.
    pub(in crate::engine) at: u64,
    /// States that open activations read and no checkpoint stores.
    pub(in crate::engine) kept: Vec<StoredState>,
    /// Changes that no record contains yet.
    pub(in crate::engine) unsaved: UnsavedChanges,
}

#[derive(Default)]
pub(super) struct UnsavedChanges {
    pub(in crate::engine) begun: Vec<Key>,
    pub(in crate::engine) ended: Vec<Key>,
    pub(in crate::engine) log: Vec<MergeEntry>,
    pub(in crate::engine) writes: Vec<(usize, bool)>,
    pub(in crate::engine) groups: bool,
    pub(in crate::engine) kept: bool,
}

impl Flow {
    /// Makes an activation for each place that a commit leads to. `after` is the node of a static interrupt
    /// that blocks them.
    pub(super) fn make(
        &mut self,
        core: &RunGraph,
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
                ..Activation::default()
            };
            self.begin(Key { made: commit.at, index }, activation, core.is_detached(node));
        }
    }

    /// Forgets which interrupts were reported, for a branch that starts before the report.
    pub(super) fn forget_left(&mut self) {
        self.open.values_mut().for_each(|activation| activation.told = false);
    }

    /// Logs a commit that merges nothing.
    pub(super) fn pass(&mut self, commit: NextCommit) {
        self.unsaved.log.push(MergeEntry { at: commit.at, ..MergeEntry::default() });
        self.at = commit.at;
    }

    /// Adds an activation that is to start.
    fn begin(&mut self, key: Key, activation: Activation, detached: bool) {
        // Damaged records may name an activation twice.
        if self.open.contains_key(&key) {
            return;
        }
        self.normal += usize::from(!detached);
        if activation.is_dispatched() {
            self.groups.entry(key.made).or_default().open += 1;
        }
        self.ready.push_back(key);
        self.unsaved.begun.push(key);
        self.open.insert(key, activation);
    }

    /// Removes an ended activation. If it is the last dispatch of a group, returns the nodes of the group,
    /// which now arrive at their joins. `arrives`: its edges were not replaced.
    pub(super) fn end(&mut self, key: Key, detached: bool, arrives: bool) -> Vec<u32> {
        let Some(activation) = self.open.remove(&key) else { return Vec::new() };
        self.normal = self.normal.saturating_sub(usize::from(!detached));
        self.unsaved.ended.push(key);
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
        self.unsaved.groups = true;
        match group.open {
            0 => self.groups.remove(&key.made).map(|group| group.arrived).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Drops a kept state that no open activation reads any more.
    fn forget_kept(&mut self, made: u64) {
        let is_read = |open: &BTreeMap<Key, Activation>| open.keys().any(|key| key.made == made);
        if self.kept.iter().any(|kept| kept.made == made) && !is_read(&self.open) {
            self.kept.retain(|kept| kept.made != made);
            self.unsaved.kept = true;
        }
    }

    /// Marks an activation as changed, so that the next record contains it.
    pub(super) fn change(&mut self, key: Key) {
        if !self.unsaved.begun.contains(&key) {
            self.unsaved.begun.push(key);
        }
    }

    /// Finds a channel of an update that was written since the task read its state, and that may not be
    /// written again: the channel, its last writer, and the kind of this write. Two overwrites clash in every
    /// channel.
    pub(super) fn clash(
        &self,
        core: &RunGraph,
        read_at: u64,
        update: &AnyUpdate,
    ) -> Option<(usize, u32, WriteKind)> {
        let channels = core.schema.channels();
        let mut found = None;
        core.schema.writes(update, &mut |channel, kind| {
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

    /// The written channels whose last writer must be known: exclusive ones and overwritten ones, with `true`
    /// for an overwrite.
    pub(super) fn watched(core: &RunGraph, update: &AnyUpdate, writes: &mut Vec<(usize, bool)>) {
        let channels = core.schema.channels();
        core.schema.writes(update, &mut |channel, kind| {
            let overwrites = kind == WriteKind::Overwrite;
            if channels[channel].exclusive || overwrites {
                writes.push((channel, overwrites));
            }
        });
    }

    /// Records the writer of channels in the commit `at`.
    pub(super) fn note_writes(&mut self, channels: usize, writes: &[(usize, bool)], at: u64, by: u32) {
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

    /// The oldest commit whose state an open activation reads. Writes before it cannot clash with anything.
    fn oldest(&self) -> Option<u64> {
        self.open.values().map(|activation| activation.read_at).min()
    }

    /// Clears the changes, after the record that contains them is stored.
    pub(super) fn mark_saved(&mut self) {
        let UnsavedChanges { begun, ended, log, writes, groups, kept } = &mut self.unsaved;
        begun.clear();
        ended.clear();
        log.clear();
        writes.clear();
        *groups = false;
        *kept = false;
    }
}
