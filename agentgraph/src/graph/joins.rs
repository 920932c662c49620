//! The progress of a run's joins.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::topology::{JoinShape, Topology};
use crate::record::header::StoredStuck;

/// The progress of one run's joins. Two allocations for a graph with joins, one more when the first of them
/// waits, none for a graph without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joins {
    /// A bit for each source that arrived in the round, then as many bits for the superstep that is being
    /// merged.
    arrived: Vec<u64>,
    rounds: Vec<Round>,
    /// The joins that the current superstep may fire: sources arrive at them, or were removed from them.
    touched: Vec<u32>,
    /// The joins with an open round, so that a commit examines no others. A set, since thousands may wait
    /// while one of them ends its round.
    open: BTreeSet<u32>,
    /// The open rounds with a timeout that have not fired, by the time at which they do: no step examines
    /// those that merely wait.
    waiting: BTreeSet<(u64, u32)>,
    /// The sources that are not waited for, by join and place: temporary edits removed them.
    pruned: HashMap<u32, Vec<u32>>,
    /// Joins of subgraphs that were still waiting when their subgraph ended, in the order of the calls.
    inside: Vec<StoredStuck>,
}

/// The round of one join.
#[derive(Clone, Copy, Debug)]
struct Round {
    missing: u32,
    fired: bool,
    /// The time at which it fires with the arrived sources, in microseconds since 1970.
    due: Option<u64>,
}

/// A round that has started and is not over.
pub(crate) struct OpenRound<'a> {
    /// The number of the join.
    pub(crate) at: u32,
    pub(crate) join: &'a JoinShape,
    /// The places of the sources that arrived.
    pub(crate) arrived: Vec<u32>,
    pub(crate) fired: bool,
    pub(crate) due: Option<u64>,
}

impl Joins {
    /// The joins that still waited when subgraphs called by this run ended.
    pub(crate) fn stuck_inside(&self) -> &[StoredStuck] {
        &self.inside
    }

    pub(crate) fn note_stuck_inside(&mut self, stuck: impl IntoIterator<Item = StoredStuck>) {
        self.inside.extend(stuck);
    }

    pub(crate) fn into_stuck_inside(self) -> Vec<StoredStuck> {
        self.inside
    }

    pub(crate) fn of(topology: &Topology) -> Self {
        Joins {
            arrived: vec![0; 2 * topology.join_words as usize],
            rounds: topology.joins.iter().map(Round::of).collect(),
            touched: Vec::new(),
            open: BTreeSet::new(),
            waiting: BTreeSet::new(),
            pruned: HashMap::new(),
            inside: Vec::new(),
        }
    }

    /// Lets one source arrive alone, at `now` microseconds: in an eager run, or in a superstep of one task.
    /// Returns true if the join fires.
    pub(crate) fn arrive(&mut self, topology: &Topology, join: u32, place: u32, now: u64) -> bool {
        let shape = &topology.joins[join as usize];
        if !self.pruned.is_empty() && self.is_pruned(join, place) {
            return false;
        }
        let fired = self.rounds[join as usize].fired;
        let word = (shape.first_word + place / 64) as usize;
        let bit = 1_u64 << (place % 64);
        if self.arrived[word] & bit != 0 {
            if !fired || shape.deferred {
                return false;
            }
            // The source arrives again in a round that has fired, so the next round starts with it.
            self.end_round(shape, join);
        }
        self.arrived[word] |= bit;
        self.add(shape, join, 1, now);
        self.judge(shape, join)
    }

    /// Adds a source to the arrivals of this superstep, which [`fire_touched`](Self::fire_touched) applies.
    pub(crate) fn gather(&mut self, topology: &Topology, join: u32, place: u32) {
        if !self.pruned.is_empty() && self.is_pruned(join, place) {
            return;
        }
        let first = (topology.join_words + topology.joins[join as usize].first_word) as usize;
        let word = &mut self.arrived[first + place as usize / 64];
        if *word == 0 {
            self.touched.push(join);
        }
        *word |= 1 << (place % 64);
    }

    /// Applies the gathered arrivals, each join's sources as one set, and fires the joins that wait for
    /// nothing more.
    pub(crate) fn fire_touched(&mut self, topology: &Topology, now: u64, mut fire: impl FnMut(u32)) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for join in touched.drain(..) {
            let shape = &topology.joins[join as usize];
            self.count_arrivals(topology, shape, join, now);
            let has_begun = self.rounds[join as usize].missing < shape.sources.len() as u32;
            if has_begun && self.judge(shape, join) {
                fire(shape.target);
            }
        }
        self.touched = touched;
    }

    fn count_arrivals(&mut self, topology: &Topology, shape: &JoinShape, join: u32, now: u64) {
        let words = shape.first_word as usize..shape.first_word as usize + shape.words();
        let (arrived, gathered) = self.arrived.split_at(topology.join_words as usize);
        let repeats = words.clone().any(|word| arrived[word] & gathered[word] != 0);
        if repeats && self.rounds[join as usize].fired && !shape.deferred {
            // A source arrives again in a round that has fired, so the next round starts with the whole set.
            self.end_round(shape, join);
        }
        let (arrived, gathered) = self.arrived.split_at_mut(topology.join_words as usize);
        let mut new = 0;
        for word in words {
            let set = std::mem::take(&mut gathered[word]);
            new += (set & !arrived[word]).count_ones();
            arrived[word] |= set;
        }
        if new > 0 {
            self.add(shape, join, new, now);
        }
    }

    /// Counts sources whose bits were set. The first of them starts the round.
    fn add(&mut self, shape: &JoinShape, join: u32, new: u32, now: u64) {
        let round = &mut self.rounds[join as usize];
        if round.missing == shape.sources.len() as u32 {
            self.open.insert(join);
            round.due = shape.timeout.map(|limit| due(now, limit));
            self.waiting.extend(round.due.map(|due| (due, join)));
        }
        round.missing -= new;
    }

    /// Whether a join fires with the arrived sources. Ends its round if these are all.
    fn judge(&mut self, shape: &JoinShape, join: u32) -> bool {
        let gone = self.pruned.get(&join).map_or(0, |places| places.len() as u32);
        let all = shape.sources.len() as u32;
        let Round { missing, fired, .. } = self.rounds[join as usize];
        let fires = !fired && all - missing >= shape.needed.min(all - gone);
        if fires {
            self.set_fired(join);
        }
        if missing == gone && !shape.deferred {
            self.end_round(shape, join);
        }
        fires
    }

    pub(crate) fn is_pruned(&self, join: u32, place: u32) -> bool {
        self.pruned.get(&join).is_some_and(|places| places.contains(&place))
    }

    /// Stops waiting for a source, and removes its arrival. The join may fire for that reason.
    pub(crate) fn prune(&mut self, topology: &Topology, join: u32, place: u32) {
        if self.is_pruned(join, place) {
            return;
        }
        let shape = &topology.joins[join as usize];
        self.pruned.entry(join).or_default().push(place);
        self.touched.push(join);
        let word = &mut self.arrived[(shape.first_word + place / 64) as usize];
        let bit = 1_u64 << (place % 64);
        let all = shape.sources.len() as u32;
        if *word & bit != 0 {
            *word &= !bit;
            self.rounds[join as usize].missing += 1;
        }
        if self.rounds[join as usize].missing == all {
            self.end_round(shape, join);
        }
    }

    /// Ends the rounds of joins into a removed node.
    pub(crate) fn end_rounds_into(&mut self, topology: &Topology, node: u32) {
        for join in self.open.clone() {
            let shape = &topology.joins[join as usize];
            if shape.target == node {
                self.end_round(shape, join);
            }
        }
    }

    /// Fires the joins that are due. If nothing else can run, all joins with a timeout fire, since nothing
    /// can arrive any more.
    pub(crate) fn fire_due(
        &mut self,
        topology: &Topology,
        now: u64,
        nothing_else: bool,
        mut fire: impl FnMut(u32, u32),
    ) {
        let waiting = self.waiting.iter().take_while(|(due, _)| nothing_else || *due <= now);
        let mut due: Vec<u32> = waiting.map(|(_, join)| *join).collect();
        // In order of declaration, whichever was due first.
        due.sort_unstable();
        for join in due {
            self.set_fired(join);
            fire(join, topology.joins[join as usize].target);
        }
    }

    /// Fires a join that an earlier run of the same steps fired when it was due. Returns false if it does not
    /// wait.
    pub(crate) fn fire_again(&mut self, join: u32) -> bool {
        let waits = self.open.contains(&join) && !self.rounds[join as usize].fired;
        if waits {
            self.set_fired(join);
        }
        waits
    }

    fn set_fired(&mut self, join: u32) {
        let round = &mut self.rounds[join as usize];
        round.fired = true;
        if let Some(due) = round.due {
            self.waiting.remove(&(due, join));
        }
    }

    /// The time at which the first join with a timeout fires, in microseconds since 1970.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Ends the rounds that led to a deferred node which is released now.
    pub(crate) fn release(&mut self, topology: &Topology, node: u32) {
        for join in self.open.clone() {
            let shape = &topology.joins[join as usize];
            if shape.target == node && self.rounds[join as usize].fired {
                self.end_round(shape, join);
            }
        }
    }

    /// Restores a round from a checkpoint.
    pub(crate) fn restore(
        &mut self,
        topology: &Topology,
        join: u32,
        places: &[u32],
        fired: bool,
        due: Option<u64>,
    ) {
        let shape = &topology.joins[join as usize];
        for place in places {
            self.arrived[(shape.first_word + place / 64) as usize] |= 1 << (place % 64);
        }
        let missing = shape.sources.len() as u32 - places.len() as u32;
        self.rounds[join as usize] = Round { missing, fired, due };
        self.open.insert(join);
        self.waiting.extend(due.filter(|_| !fired).map(|due| (due, join)));
    }

    fn end_round(&mut self, shape: &JoinShape, join: u32) {
        self.open.remove(&join);
        let ended = std::mem::replace(&mut self.rounds[join as usize], Round::of(shape));
        if let Some(due) = ended.due {
            self.waiting.remove(&(due, join));
        }
        self.arrived[shape.first_word as usize..][..shape.words()].fill(0);
    }

    /// Whether any round has started and is not over.
    pub(crate) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The open rounds, in order of declaration.
    pub(crate) fn open<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = OpenRound<'a>> {
        self.open.iter().map(|&at| {
            let join = &topology.joins[at as usize];
            let round = self.rounds[at as usize];
            let arrived = (0..join.sources.len() as u32).filter(|place| {
                let word = self.arrived[(join.first_word + place / 64) as usize];
                word & (1 << (place % 64)) != 0
            });
            OpenRound { at, join, arrived: arrived.collect(), fired: round.fired, due: round.due }
        })
    }
}

impl Round {
    fn of(join: &JoinShape) -> Self {
        Round { missing: join.sources.len() as u32, fired: false, due: None }
    }
}

fn due(now: u64, limit: Duration) -> u64 {
    now.saturating_add(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
}
