//! The expected course of a run, computed one task after the other, without futures, store and ids.

use std::collections::{BTreeMap, BTreeSet};

use super::edits::{Graph, Transaction};
use super::shape::{Log, NodeShape, Shape, line, name};

/// The identity of an activation: the number of the commit that made it, and its place in that commit.
pub type Key = (usize, usize);

#[derive(Clone, Debug)]
pub struct Activation {
    pub node: usize,
    pub input: Option<u32>,
    pub phase: Phase,
    /// The number of commits when it asked; 0 once its call has ended.
    asked_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Ready,
    Runs,
    Asks,
    Answered,
}

#[derive(Clone, Debug, Default)]
struct Round {
    arrived: BTreeSet<usize>,
    fired: bool,
}

#[derive(Clone, Debug, Default)]
struct Group {
    open: usize,
    /// The nodes that arrive when the group is complete, in the order in which they finished.
    arrived: Vec<usize>,
}

/// A commit as history shows it: the state, and the nodes that are open, in the order in which they were
/// made.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub state: Log,
    pub next: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Model<'a> {
    shape: &'a Shape,
    pub open: BTreeMap<Key, Activation>,
    pub graph: Graph,
    /// The transactions of the running tasks.
    edited: BTreeMap<Key, Transaction>,
    /// The number of dropped transactions.
    pub dropped_edits: usize,
    rounds: Vec<Round>,
    groups: BTreeMap<usize, Group>,
    deferred: BTreeSet<usize>,
    last_written: usize,
    /// The state after each commit.
    pub history: Vec<Seen>,
    /// The tasks that run, in the order in which they were started.
    pub running: Vec<Key>,
    started: usize,
    limit: usize,
    room: usize,
    /// The reason why no further task starts, if there is one.
    pub stopped: Option<Stopped>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Limit,
    Clash,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Finished,
    Limit,
    Clash,
    Asks(Vec<usize>),
}

impl<'a> Model<'a> {
    pub fn new(shape: &'a Shape) -> Self {
        let mut model = Model {
            shape,
            open: BTreeMap::new(),
            graph: Graph::of(shape),
            edited: BTreeMap::new(),
            dropped_edits: 0,
            rounds: vec![Round::default(); shape.joins.len()],
            groups: BTreeMap::new(),
            deferred: BTreeSet::new(),
            last_written: 0,
            history: Vec::new(),
            running: Vec::new(),
            started: 0,
            limit: 0,
            room: 0,
            stopped: None,
        };
        let mut reached: Vec<(usize, Option<u32>)> =
            shape.entries.iter().map(|entry| (*entry, None)).collect();
        model.settle(&mut reached);
        model.commit(Log::default(), reached);
        model
    }

    pub fn state(&self) -> &Log {
        &self.history[self.history.len() - 1].state
    }

    /// Begins a call. `limit` is the number of tasks that may start, `room` that of tasks that run at once.
    pub fn call(&mut self, limit: usize, room: usize) {
        (self.started, self.limit, self.room, self.stopped) = (0, limit, room, None);
        self.running.clear();
        for one in self.open.values_mut().filter(|one| one.phase == Phase::Runs) {
            one.phase = Phase::Ready;
        }
        self.start();
    }

    fn start(&mut self) {
        let may = |one: &Activation| matches!(one.phase, Phase::Ready | Phase::Answered);
        let waiting = self.open.iter().filter(|(key, one)| may(one) && !self.running.contains(key));
        let may: Vec<Key> = waiting.map(|(key, _)| *key).collect();
        for key in may {
            if self.stopped.is_some() || self.running.len() >= self.room {
                return;
            }
            if self.started == self.limit {
                self.stopped = Some(Stopped::Limit);
                return;
            }
            self.started += 1;
            self.running.push(key);
            let edits = self.node(self.open[&key].node).edits;
            self.edited.insert(key, self.graph.propose(&edits));
            if self.open[&key].phase == Phase::Ready {
                self.open.get_mut(&key).unwrap().phase = Phase::Runs;
            }
        }
    }

    /// Finishes the running task at `place`.
    pub fn finish(&mut self, place: usize) {
        let key = self.running.remove(place);
        let one = self.open[&key].clone();
        let shape = self.node(one.node);
        let edited = self.edited.remove(&key).unwrap();
        if shape.asks && one.phase != Phase::Answered {
            let asked_at = self.history.len();
            let one = self.open.get_mut(&key).unwrap();
            (one.phase, one.asked_at) = (Phase::Asks, asked_at);
            return self.start();
        }
        if shape.writes_last && self.last_written > key.0 {
            self.open.get_mut(&key).unwrap().phase = Phase::Ready;
            self.stopped = Some(Stopped::Clash);
            return;
        }
        let read = self.history[key.0].state.lines.len();
        let mut state = self.state().clone();
        let number = self.graph.names[one.node];
        state.lines.push(line(number, one.input, read));
        if shape.writes_last {
            state.last = line(number, one.input, read);
            self.last_written = self.history.len();
        }
        self.open.remove(&key);
        let replaced = shape.replaces && !shape.dispatches.is_empty();
        let (removed, pruned) = self.merge_edits(&edited);
        let mut reached: Vec<(usize, Option<u32>)> =
            pruned.into_iter().map(|target| (target, None)).collect();
        if !replaced {
            reached.extend(self.graph.successors(one.node).into_iter().map(|target| (target, None)));
        }
        let mut arriving = Vec::new();
        match one.input {
            None if !replaced => arriving.push(one.node),
            None => {}
            Some(_) => {
                let group = self.groups.get_mut(&key.0).unwrap();
                group.open -= 1;
                if !replaced && !group.arrived.contains(&one.node) {
                    group.arrived.push(one.node);
                }
                if group.open == 0 {
                    arriving = self.groups.remove(&key.0).unwrap().arrived;
                }
            }
        }
        arriving.extend(self.cancel(&removed));
        let joined: Vec<usize> = arriving.into_iter().flat_map(|source| self.arrive(source)).collect();
        reached.extend(joined.into_iter().map(|target| (target, None)));
        let dispatches = (0..).zip(&shape.dispatches).map(|(n, target)| (*target, Some(n)));
        reached.extend(dispatches);
        reached.retain(|(node, _)| !self.graph.removed.contains(node));
        self.deferred.retain(|node| !self.graph.removed.contains(node));
        self.settle(&mut reached);
        self.commit(state, reached);
        self.start();
    }

    fn node(&self, node: usize) -> NodeShape {
        self.shape.nodes.get(node).cloned().unwrap_or_default()
    }

    /// Merges a transaction. Returns the removed nodes, and the targets of the joins that fire because they
    /// lost a source.
    fn merge_edits(&mut self, edited: &Transaction) -> (BTreeSet<usize>, Vec<usize>) {
        let before = self.graph.clone();
        self.dropped_edits += usize::from(!self.graph.merge(edited));
        let removed: BTreeSet<usize> = self.graph.removed.difference(&before.removed).copied().collect();
        for (join, (_, _, target)) in self.shape.joins.iter().enumerate() {
            if removed.contains(target) {
                self.rounds[join] = Round::default();
            }
        }
        let pruned: Vec<(usize, usize)> = self.graph.pruned.difference(&before.pruned).copied().collect();
        for (join, source) in &pruned {
            let round = &mut self.rounds[*join];
            round.arrived.remove(source);
            if round.arrived.is_empty() {
                *round = Round::default();
            }
        }
        let touched: BTreeSet<usize> = pruned.into_iter().map(|(join, _)| join).collect();
        let waited = touched.into_iter().filter(|join| !self.rounds[*join].arrived.is_empty());
        let fired: Vec<usize> =
            waited.collect::<Vec<_>>().into_iter().filter_map(|join| self.judge(join)).collect();
        (removed, fired)
    }

    /// Removes the activations of these nodes that have not begun. Returns the nodes of the groups that are
    /// complete without them.
    fn cancel(&mut self, removed: &BTreeSet<usize>) -> Vec<usize> {
        let begun = |key: &Key, one: &Activation| {
            self.running.contains(key) || matches!(one.phase, Phase::Asks | Phase::Answered)
        };
        let gone = self.open.iter().filter(|(key, one)| removed.contains(&one.node) && !begun(key, one));
        let gone: Vec<Key> = gone.map(|(key, _)| *key).collect();
        let mut arrived = Vec::new();
        for key in gone {
            if self.open.remove(&key).unwrap().input.is_none() {
                continue;
            }
            let group = self.groups.get_mut(&key.0).unwrap();
            group.open -= 1;
            if group.open == 0 {
                arrived.extend(self.groups.remove(&key.0).unwrap().arrived);
            }
        }
        arrived
    }

    fn arrive(&mut self, source: usize) -> Vec<usize> {
        let mut fired = Vec::new();
        for (join, (sources, _, target)) in self.shape.joins.iter().enumerate() {
            let takes = sources.contains(&source) && !self.graph.pruned.contains(&(join, source));
            if !takes || self.graph.removed.contains(target) {
                continue;
            }
            let deferred = self.shape.nodes[*target].deferred;
            let round = &mut self.rounds[join];
            if round.arrived.contains(&source) {
                if !round.fired || deferred {
                    continue;
                }
                *round = Round::default();
            }
            round.arrived.insert(source);
            fired.extend(self.judge(join));
        }
        fired
    }

    /// Fires a join if enough sources have arrived, and ends its round if all have.
    fn judge(&mut self, join: usize) -> Option<usize> {
        let (sources, needed, target) = &self.shape.joins[join];
        let waited_for =
            sources.iter().filter(|source| !self.graph.pruned.contains(&(join, **source))).count();
        let round = &mut self.rounds[join];
        let fires = !round.fired && round.arrived.len() >= (*needed).min(waited_for);
        round.fired |= fires;
        if round.arrived.len() == waited_for && !self.shape.nodes[*target].deferred {
            *round = Round::default();
        }
        (fires && !self.graph.removed.contains(target)).then_some(*target)
    }

    /// Holds back deferred nodes until nothing else is open.
    fn settle(&mut self, reached: &mut Vec<(usize, Option<u32>)>) {
        let waits = |(node, input): &(usize, Option<u32>)| input.is_none() && self.node(*node).deferred;
        let waiting: Vec<usize> = reached.iter().filter(|one| waits(one)).map(|(node, _)| *node).collect();
        reached.retain(|one| !waits(one));
        self.deferred.extend(waiting);
        if reached.is_empty() && self.open.is_empty() {
            // One that another waiting one leads to waits on, unless it leads back.
            let leads = |from: usize, to: usize| self.graph.leads(self.shape, from, to);
            let waits = |node: &usize| {
                self.deferred.iter().any(|other| leads(*other, *node) && !leads(*node, *other))
            };
            let (held, released): (BTreeSet<usize>, BTreeSet<usize>) =
                self.deferred.iter().copied().partition(waits);
            self.deferred = held;
            for node in released {
                for (join, (_, _, target)) in self.shape.joins.iter().enumerate() {
                    if *target == node && self.rounds[join].fired {
                        self.rounds[join] = Round::default();
                    }
                }
                reached.push((node, None));
            }
        }
    }

    fn commit(&mut self, state: Log, reached: Vec<(usize, Option<u32>)>) {
        let made = self.history.len();
        let group = reached.iter().filter(|(_, input)| input.is_some()).count();
        if group > 0 {
            self.groups.insert(made, Group { open: group, arrived: Vec::new() });
        }
        for (index, (node, input)) in reached.into_iter().enumerate() {
            self.open.insert((made, index), Activation { node, input, phase: Phase::Ready, asked_at: 0 });
        }
        let next = self.open.values().map(|one| name(self.graph.names[one.node])).collect();
        self.history.push(Seen { state, next });
    }

    /// Drops the call: questions that were asked after the last commit are asked again.
    pub fn dropped(&mut self) {
        let commits = self.history.len();
        let lost = |one: &&mut Activation| one.phase == Phase::Asks && one.asked_at == commits;
        self.open.values_mut().filter(lost).for_each(|one| one.phase = Phase::Ready);
    }

    /// Ends the call: its questions are stored.
    pub fn ended(&mut self) {
        self.open.values_mut().for_each(|one| one.asked_at = 0);
    }

    /// Returns how the call ends. No task may be running.
    pub fn end(&self) -> End {
        assert!(self.running.is_empty());
        if self.stopped == Some(Stopped::Clash) {
            return End::Clash;
        }
        if self.open.is_empty() {
            return End::Finished;
        }
        if self.open.values().any(|one| one.phase != Phase::Asks) {
            return End::Limit;
        }
        End::Asks(self.open.values().map(|one| self.graph.names[one.node]).collect())
    }

    /// Answers the open question at `place`.
    pub fn answer(&mut self, place: usize) {
        let one = self.open.values_mut().filter(|one| one.phase == Phase::Asks).nth(place).unwrap();
        one.phase = Phase::Answered;
    }
}
