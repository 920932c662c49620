//! What must come of a run, worked out one task after the other: no futures, no store, no ids.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::{Log, Shape, line, name};

/// Which activation: the number of the commit that made it, and its place there.
pub type Key = (usize, usize);

#[derive(Clone, Debug)]
pub struct Activation {
    pub node: usize,
    pub input: Option<u32>,
    pub phase: Phase,
    /// So many commits there were when it asked.
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
    /// In the order in which they were done.
    arrived: Vec<usize>,
}

/// A commit as history shows it: the state, and the nodes that are open, in the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub state: Log,
    pub next: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Model<'a> {
    shape: &'a Shape,
    pub open: BTreeMap<Key, Activation>,
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
    /// No further task starts.
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

    /// A call begins.
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
            if self.open[&key].phase == Phase::Ready {
                self.open.get_mut(&key).unwrap().phase = Phase::Runs;
            }
        }
    }

    /// The task at that place of those that run finishes.
    pub fn finish(&mut self, place: usize) {
        let key = self.running.remove(place);
        let one = self.open[&key].clone();
        let shape = &self.shape.nodes[one.node];
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
        state.lines.push(line(one.node, one.input, read));
        if shape.writes_last {
            state.last = line(one.node, one.input, read);
            self.last_written = self.history.len();
        }
        self.open.remove(&key);
        let replaced = shape.replaces && !shape.dispatches.is_empty();
        let mut reached = Vec::new();
        if !replaced {
            reached.extend(shape.edges.iter().map(|target| (*target, None)));
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
        let joined: Vec<usize> = arriving.into_iter().flat_map(|source| self.arrive(source)).collect();
        reached.extend(joined.into_iter().map(|target| (target, None)));
        let dispatches = (0..).zip(&shape.dispatches).map(|(n, target)| (*target, Some(n)));
        reached.extend(dispatches);
        self.settle(&mut reached);
        self.commit(state, reached);
        self.start();
    }

    fn arrive(&mut self, source: usize) -> Vec<usize> {
        let mut fired = Vec::new();
        for (join, (sources, needed, target)) in self.shape.joins.iter().enumerate() {
            if !sources.contains(&source) {
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
            if !round.fired && round.arrived.len() >= *needed {
                round.fired = true;
                fired.push(*target);
            }
            if round.arrived.len() == sources.len() && !deferred {
                *round = Round::default();
            }
        }
        fired
    }

    /// Deferred nodes wait until nothing else is open.
    fn settle(&mut self, reached: &mut Vec<(usize, Option<u32>)>) {
        let waits =
            |(node, input): &(usize, Option<u32>)| input.is_none() && self.shape.nodes[*node].deferred;
        let waiting: Vec<usize> = reached.iter().filter(|one| waits(one)).map(|(node, _)| *node).collect();
        reached.retain(|one| !waits(one));
        self.deferred.extend(waiting);
        if reached.is_empty() && self.open.is_empty() {
            for node in std::mem::take(&mut self.deferred) {
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
        let next = self.open.values().map(|one| name(one.node)).collect();
        self.history.push(Seen { state, next });
    }

    /// The call was dropped: what was asked after the last commit is asked again.
    pub fn dropped(&mut self) {
        let commits = self.history.len();
        let lost = |one: &&mut Activation| one.phase == Phase::Asks && one.asked_at == commits;
        self.open.values_mut().filter(lost).for_each(|one| one.phase = Phase::Ready);
    }

    /// A call came to its end: what was asked is stored.
    pub fn ended(&mut self) {
        self.open.values_mut().for_each(|one| one.asked_at = 0);
    }

    /// How the call ends, when nothing runs any more.
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
        End::Asks(self.open.values().map(|one| one.node).collect())
    }

    /// Answers the one at that place of those that ask.
    pub fn answer(&mut self, place: usize) {
        let one = self.open.values_mut().filter(|one| one.phase == Phase::Asks).nth(place).unwrap();
        one.phase = Phase::Answered;
    }
}
