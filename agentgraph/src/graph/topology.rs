//! The shape of a compiled graph, by dense ids, as a superstep reads it.
//!
//! Nodes have the ids 0, 1, .. in order of declaration; START comes after the last. At run time these arrays
//! are only read, and nothing else has the size of the graph.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The id of END, as a target.
pub(crate) const END_ID: u32 = u32::MAX;

/// Lists of numbers, one per row, in two flat arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Rows<T> {
    pub(super) fn of(rows: Vec<Vec<T>>) -> Self {
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut items = Vec::with_capacity(rows.iter().map(Vec::len).sum());
        starts.push(0);
        for row in rows {
            items.extend(row);
            starts.push(items.len() as u32);
        }
        Rows { starts, items }
    }

    /// Groups items by their row, and keeps the order of the items in a row.
    pub(crate) fn grouped(rows: u32, items: impl Iterator<Item = (u32, T)> + Clone) -> Self
    where
        T: Default,
    {
        if items.clone().next().is_none() {
            return Rows { starts: Vec::new(), items: Vec::new() };
        }
        let mut starts = vec![0; rows as usize + 1];
        for (row, _) in items.clone() {
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows as usize {
            starts[row + 1] += starts[row];
        }
        let mut sorted = vec![T::default(); starts[rows as usize] as usize];
        let mut next = starts.clone();
        for (row, item) in items {
            let at = &mut next[row as usize];
            sorted[*at as usize] = item;
            *at += 1;
        }
        Rows { starts, items: sorted }
    }

    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[T] {
        let row = row as usize;
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => &self.items[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

/// Plain edges, joins and the places of the routers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    /// The number of nodes; also the id of START.
    pub(crate) nodes: u32,
    /// The targets of plain edges, without END, which needs no task.
    pub(crate) successors: Rows<u32>,
    /// The rows of `successors` that are too long for a linear search, as sets.
    pub(crate) wide: HashMap<u32, HashSet<u32>>,
    /// For each source: its joins, and its place in each.
    pub(crate) join_sources: Rows<(u32, u32)>,
    pub(crate) joins: Vec<JoinShape>,
    pub(crate) join_words: u32,
    /// Whether some join has a timeout, so that merges read the clock.
    pub(crate) times_joins: bool,
    /// Whether each node is deferred; empty if none is.
    pub(crate) deferred: Vec<bool>,
    pub(crate) deferred_order: DeferredOrder,
    /// The routers of each source.
    pub(crate) routers: Rows<u32>,
    /// The exits of each source beside plain edges.
    pub(crate) exits: Vec<Exits>,
}

/// Which deferred nodes wait for which others: for those that lead to them, unless they lead back.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeferredOrder {
    /// The deferred nodes, in order of declaration.
    nodes: Vec<u32>,
    /// For each of them a row of bits: those that it waits for, by their places. Empty if none waits.
    before: Vec<u64>,
}

impl DeferredOrder {
    /// `leads`: for each of the nodes a row of bits, those that it leads to.
    pub(super) fn of(nodes: Vec<u32>, leads: &[u64]) -> Self {
        let words = nodes.len().div_ceil(64);
        let leads_to = |from: usize, to: usize| leads[from * words + to / 64] & (1 << (to % 64)) != 0;
        let mut before = vec![0; leads.len()];
        let mut any = false;
        for from in 0..nodes.len() {
            for word in 0..words {
                let mut targets = leads[from * words + word];
                while targets != 0 {
                    let to = word * 64 + targets.trailing_zeros() as usize;
                    targets &= targets - 1;
                    if !leads_to(to, from) {
                        before[to * words + from / 64] |= 1 << (from % 64);
                        any = true;
                    }
                }
            }
        }
        if any { DeferredOrder { nodes, before } } else { DeferredOrder::default() }
    }

    /// Those of the waiting nodes that another waiting one still leads to. At least one is not among them:
    /// of nodes that lead to each other, none waits for another.
    pub(super) fn held_back(&self, waiting: &[u32]) -> Vec<u32> {
        if self.before.is_empty() {
            return Vec::new();
        }
        let words = self.nodes.len().div_ceil(64);
        let place = |node: &u32| self.nodes.binary_search(node).ok();
        let mut bits = vec![0; words];
        for place in waiting.iter().filter_map(place) {
            bits[place / 64] |= 1 << (place % 64);
        }
        let waits = |at: usize| self.before[at * words..][..words].iter().zip(&bits).any(|(a, b)| a & b != 0);
        waiting.iter().filter(|node| place(node).is_some_and(waits)).copied().collect()
    }
}

/// A join: its target, its sources, its rule for firing, and the place of its bits in the run's table.
#[derive(Clone, Debug)]
pub(crate) struct JoinShape {
    pub(crate) sources: Vec<u32>,
    pub(crate) target: u32,
    /// The number of sources that make it fire.
    pub(in crate::graph) needed: u32,
    pub(in crate::graph) timeout: Option<Duration>,
    /// Whether its target is deferred: sources that arrive before the release belong to the same round.
    pub(in crate::graph) deferred: bool,
    pub(in crate::graph) first_word: u32,
}

impl JoinShape {
    /// The number of words of its bits.
    pub(super) fn words(&self) -> usize {
        self.sources.len().div_ceil(64)
    }
}

/// The exits of a node beside plain edges. Most nodes have none, so a superstep checks this once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exits {
    pub(crate) joins: bool,
    pub(crate) routers: bool,
    /// Whether a router names its targets, which may be wrong ones.
    pub(crate) fallible_routers: bool,
    /// Whether the node's output is kept to be used again.
    pub(crate) keeps_output: bool,
    /// Whether an update of the node needs more than being applied and following edges: fallible routers or a
    /// kept output.
    pub(crate) special: bool,
    /// Whether the node has an edge to END, which needs no task.
    pub(in crate::graph) ends: bool,
}

/// Rows with more targets than this are also kept as sets.
pub(super) const WIDE: usize = 32;

impl Topology {
    /// Whether there is a plain edge. The time does not grow with the graph.
    pub(super) fn has_edge(&self, from: u32, to: u32) -> bool {
        if to == END_ID {
            return self.exits(from).ends;
        }
        match self.wide.get(&from) {
            Some(row) => row.contains(&to),
            None => self.successors.row(from).contains(&to),
        }
    }

    #[inline]
    pub(super) fn is_deferred(&self, node: u32) -> bool {
        self.deferred.get(node as usize).copied().unwrap_or(false)
    }

    pub(crate) fn start(&self) -> u32 {
        self.nodes
    }

    #[inline]
    pub(crate) fn exits(&self, node: u32) -> Exits {
        self.exits.get(node as usize).copied().unwrap_or_default()
    }
}
