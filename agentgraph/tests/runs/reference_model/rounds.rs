//! The progress of each join of a thread: its round, when it fires and when it ends.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::{Edge, EdgeSource, Shape, source_name, target_name};

/// The open rounds, by edge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounds(BTreeMap<usize, Round>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Round {
    arrived: BTreeSet<EdgeSource>,
    fired: bool,
    due: Option<u64>,
}

/// A join that waits: the path of its graph, its target, the sources that arrived and those missing.
pub type Stuck = (String, &'static str, Vec<&'static str>, Vec<&'static str>);

/// The sources that arrive in one superstep, each with the edge it arrives at.
pub type Arrivals = BTreeSet<(usize, EdgeSource)>;

impl Rounds {
    /// Adds the arrivals of one superstep. Returns the targets of the edges that fire.
    pub fn arrive(&mut self, shape: &Shape, arrivals: &Arrivals, now: u64) -> Vec<usize> {
        let edges: BTreeSet<usize> = arrivals.iter().map(|(edge, _)| *edge).collect();
        let of = |edge| arrivals.iter().filter(move |(at, _)| *at == edge).map(|(_, from)| *from).collect();
        let fired: Vec<usize> =
            edges.into_iter().filter(|edge| self.arrive_at(shape, *edge, of(*edge), now)).collect();
        fired.into_iter().filter_map(|edge| shape.edges[edge].to).collect()
    }

    /// Adds the arrivals at one edge. Returns whether the edge fires.
    fn arrive_at(&mut self, shape: &Shape, at: usize, set: BTreeSet<EdgeSource>, now: u64) -> bool {
        let edge = &shape.edges[at];
        let deferred = leads_to_deferred(shape, edge);
        let is_over = |round: &Round| round.fired && !round.arrived.is_disjoint(&set);
        if !deferred && self.0.get(&at).is_some_and(is_over) {
            self.0.remove(&at);
        }
        let due = edge.timeout.map(|limit| now + limit);
        let round = self.0.entry(at).or_insert_with(|| Round { due, ..Round::default() });
        round.arrived.extend(set);
        let fires = !round.fired && round.arrived.len() >= edge.needed;
        round.fired |= fires;
        if !deferred && round.arrived.len() == edge.from.len() {
            self.0.remove(&at);
        }
        fires
    }

    /// Fires the joins whose timeout has passed, or every join with a timeout if nothing else can run.
    /// Returns their targets.
    pub fn due(&mut self, shape: &Shape, now: u64, nothing_else: bool) -> Vec<usize> {
        let waiting = self.0.iter_mut().filter(|(_, round)| !round.fired);
        let due = waiting.filter(|(_, round)| round.due.is_some_and(|due| nothing_else || due <= now));
        due.filter_map(|(at, round)| {
            round.fired = true;
            shape.edges[*at].to
        })
        .collect()
    }

    /// Ends the rounds that fired a deferred node, which now runs.
    pub fn release(&mut self, shape: &Shape, node: usize) {
        self.0.retain(|at, round| !round.fired || shape.edges[*at].to != Some(node));
    }

    /// Returns the joins that wait for a source, in the graph at this path.
    pub fn stuck(&self, shape: &Shape, path: &str) -> Vec<Stuck> {
        let waiting = self.0.iter().filter(|(_, round)| !round.fired);
        let stuck = waiting.map(|(at, round)| {
            let edge = &shape.edges[*at];
            let (here, missing): (Vec<EdgeSource>, Vec<EdgeSource>) =
                edge.from.iter().partition(|from| round.arrived.contains(from));
            let names = |from: Vec<EdgeSource>| from.into_iter().map(source_name).collect();
            (path.to_owned(), target_name(edge.to), names(here), names(missing))
        });
        stuck.collect()
    }
}

fn leads_to_deferred(shape: &Shape, edge: &Edge) -> bool {
    edge.to.is_some_and(|to| shape.nodes[to].defers)
}
