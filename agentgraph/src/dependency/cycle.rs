//! Whether an edge would close a cycle, without walking the graph where that can be told otherwise.
//!
//! Every node has a place in an order in which all edges lead forward. An edge that leads forward as well closes no cycle,
//! and nothing is searched. For one that leads back, only what lies between its ends can matter: it is searched from both
//! ends in turn, so that the smaller side decides, and that side is moved past the other end, so that the order is one
//! again. What is done is not searched where every node waits for all its dependencies: nothing that is done waits for
//! anything that is not.

use std::collections::HashMap;

use super::base::Pair;
use super::layer::{Graph, Layer};

/// The room between two nodes of the base, in places.
const ROOM: u32 = 30;

/// The place of a temporary node that has none yet: behind all others.
const FRESH: u64 = 1 << 62;

/// How far apart moved nodes stand where there is room.
const STEP: u64 = 1 << 18;

/// What was found out about an edge.
pub(crate) enum Verdict {
    /// It closes this one, which begins with its source and its target.
    ClosesCycle(Vec<u32>),
    /// It closes none, and these nodes move to these places.
    Fits(Vec<(u32, u64)>),
    /// It closes none, and there is no room left to keep the order.
    NoRoom,
}

/// Judges an edge that is not there, between different nodes.
pub(crate) fn judge(graph: Graph<'_>, edge: Pair, is_done: &dyn Fn(u32) -> bool) -> Verdict {
    let search = Search { graph, is_done, strict: graph.is_strict(), ordered: graph.is_ordered() };
    search.judge(edge)
}

/// Notes in a layer what was found out about an edge that was added to it.
pub(crate) fn keep(layer: &mut Layer, verdict: Verdict) {
    match verdict {
        Verdict::Fits(moved) => layer.places.extend(moved),
        Verdict::NoRoom => layer.unordered = true,
        Verdict::ClosesCycle(_) => {}
    }
}

struct Search<'a> {
    graph: Graph<'a>,
    is_done: &'a dyn Fn(u32) -> bool,
    strict: bool,
    ordered: bool,
}

/// One end of the search.
struct Side {
    /// And from which node it was found.
    seen: HashMap<u32, u32>,
    /// In the order found.
    found: Vec<u32>,
    looked_at: usize,
}

impl Side {
    fn from(node: u32) -> Self {
        Side { seen: HashMap::from([(node, node)]), found: vec![node], looked_at: 0 }
    }

    fn next(&mut self) -> Option<u32> {
        let node = self.found.get(self.looked_at).copied();
        self.looked_at += 1;
        node
    }

    fn add(&mut self, node: u32, by: u32) {
        self.seen.entry(node).or_insert_with(|| {
            self.found.push(node);
            by
        });
    }

    /// How a node was found, back to where the search began.
    fn way(&self, mut node: u32) -> Vec<u32> {
        let mut way = vec![node];
        while let Some(by) = self.seen.get(&node).filter(|by| **by != node) {
            node = *by;
            way.push(node);
        }
        way
    }
}

impl Search<'_> {
    fn place(&self, node: u32) -> u64 {
        let base = || self.graph.base.rank.get(node as usize).map(|rank| (u64::from(*rank) + 1) << ROOM);
        self.graph.place(node).or_else(base).unwrap_or(FRESH)
    }

    fn judge(&self, (from, to): Pair) -> Verdict {
        let (low, high) = (self.place(to), self.place(from));
        if self.ordered && high < low {
            return Verdict::Fits(Vec::new());
        }
        let (mut back, mut forth) = (Side::from(from), Side::from(to));
        loop {
            let Some(node) = back.next() else { return self.moved_before(to, &back) };
            let mut meets = None;
            self.graph.each_before(node, &mut |source| {
                if forth.seen.contains_key(&source) {
                    meets = Some((source, node));
                }
                let past = self.strict && (self.is_done)(source);
                if !past && (!self.ordered || self.place(source) >= low) {
                    back.add(source, node);
                }
            });
            if let Some(edge) = meets {
                return Verdict::ClosesCycle(cycle(from, edge, &back, &forth));
            }
            let Some(node) = forth.next() else { return self.moved_behind(from, &forth) };
            self.graph.each_after(node, &mut |target| {
                if back.seen.contains_key(&target) {
                    meets = Some((node, target));
                }
                if !self.ordered || self.place(target) <= high {
                    forth.add(target, node);
                }
            });
            if let Some(edge) = meets {
                return Verdict::ClosesCycle(cycle(from, edge, &back, &forth));
            }
        }
    }

    /// Moves what leads to the edge before its target.
    fn moved_before(&self, to: u32, side: &Side) -> Verdict {
        let mut low = 0;
        for node in &side.found {
            self.graph.each_before(*node, &mut |source| {
                let past = self.strict && (self.is_done)(source);
                if !past && !side.seen.contains_key(&source) {
                    low = low.max(self.place(source));
                }
            });
        }
        self.spread(side, low, self.place(to))
    }

    /// Moves what follows from the edge behind its source.
    fn moved_behind(&self, from: u32, side: &Side) -> Verdict {
        let mut high = u64::MAX;
        for node in &side.found {
            self.graph.each_after(*node, &mut |target| {
                if !side.seen.contains_key(&target) {
                    high = high.min(self.place(target));
                }
            });
        }
        self.spread(side, self.place(from), high)
    }

    /// Gives the nodes of a side places between two others, in the order they have.
    fn spread(&self, side: &Side, low: u64, high: u64) -> Verdict {
        let room = high.saturating_sub(low) / (side.found.len() as u64 + 1);
        if !self.ordered || room == 0 {
            return Verdict::NoRoom;
        }
        let mut nodes = side.found.clone();
        nodes.sort_by_key(|node| self.place(*node));
        let places = (1..).map(|at| low + at * room.min(STEP));
        Verdict::Fits(nodes.into_iter().zip(places).collect())
    }
}

/// The cycle through an edge at which both searches met, from the source of the edge that closes it.
fn cycle(from: u32, (last, next): Pair, back: &Side, forth: &Side) -> Vec<u32> {
    let mut way = forth.way(last);
    way.push(from);
    way.reverse();
    way.extend(back.way(next));
    way
}
