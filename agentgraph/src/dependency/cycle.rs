//! Cycle checks for added edges, without walking the graph where possible.
//!
//! Every node has a place in an order in which all edges lead forward. A new edge that leads forward as well
//! closes no cycle, and nothing is searched. For an edge that leads back, only the nodes between its ends can
//! matter. They are searched from both ends in turn, so that the smaller side decides; that side is then
//! moved past the other end, which restores the order. If edits have used up the room between two places, the
//! temporary nodes between the same two nodes of the base are spread out again, which makes room for as many
//! halvings as there are bits. Finished nodes are not searched if every node waits for all its dependencies:
//! a finished node then waits for no unfinished one.

use std::collections::HashMap;

use super::base::Pair;
use super::layer::{EditLayer, Graph};

/// The place of a temporary node that has none yet: after all others.
const FRESH: u64 = 1 << 62;

/// The result of checking an edge.
pub(super) enum Verdict {
    /// The edge closes this cycle, which starts with its source and its target.
    ClosesCycle(Vec<u32>),
    /// The edge closes no cycle, and these nodes move to these places.
    Fits(Vec<(u32, u64)>),
    /// The edge closes no cycle, but there are more nodes between two of the base than places: the order is
    /// given up.
    NoRoom,
}

/// Checks an edge that does not exist, between different nodes.
pub(super) fn judge(graph: Graph<'_>, edge: Pair, is_done: &dyn Fn(u32) -> bool) -> Verdict {
    let search = Search { graph, is_done, strict: graph.is_strict(), ordered: graph.is_ordered() };
    search.judge(edge)
}

/// Applies the result for an added edge to the layer that contains it.
pub(super) fn keep(layer: &mut EditLayer, verdict: Verdict) {
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
    /// The nodes found, each with the node from which it was found.
    seen: HashMap<u32, u32>,
    /// The nodes found, in order.
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

    /// The path from a node back to the start of the search.
    fn path_to_start(&self, mut node: u32) -> Vec<u32> {
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
        let base = || {
            self.graph.base.rank.get(node as usize).map(|rank| (u64::from(*rank) + 1) << self.graph.base.room)
        };
        self.graph.place(node).or_else(base).unwrap_or(FRESH)
    }

    fn judge(&self, (from, to): Pair) -> Verdict {
        let low = self.place(to);
        let high = self.place(from);
        if self.ordered && high < low {
            return Verdict::Fits(Vec::new());
        }
        let mut back = Side::from(from);
        let mut forth = Side::from(to);
        loop {
            let Some(node) = back.next() else { return self.move_before(to, &back) };
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
            let Some(node) = forth.next() else { return self.move_behind(from, &forth) };
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

    /// Moves the nodes that lead to the edge before its target.
    fn move_before(&self, to: u32, side: &Side) -> Verdict {
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

    /// Moves the nodes that follow the edge behind its source.
    fn move_behind(&self, from: u32, side: &Side) -> Verdict {
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

    /// Assigns places between two others to the nodes of a side, in their order.
    fn spread(&self, side: &Side, low: u64, high: u64) -> Verdict {
        if !self.ordered {
            return Verdict::NoRoom;
        }
        let mut nodes = side.found.clone();
        nodes.sort_by_key(|node| self.place(*node));
        let room = high.saturating_sub(low) / (nodes.len() as u64 + 1);
        if room == 0 {
            return self.make_room(side, nodes, low);
        }
        // Edits of a chain mostly append after its last node, so the free room is left at the end.
        let step = room.min(1 << (self.graph.base.room / 2));
        let places = (1..).map(|at| low + at * step);
        Verdict::Fits(nodes.into_iter().zip(places).collect())
    }

    /// Puts these nodes after a place, and spreads out all temporary nodes between the same two nodes of the
    /// base as evenly as possible.
    fn make_room(&self, side: &Side, nodes: Vec<u32>, low: u64) -> Verdict {
        let (begin, end) = self.gap(low);
        let mut others = Vec::new();
        self.graph.each_place(&mut |node, place| {
            if begin < place && place < end && !side.seen.contains_key(&node) {
                others.push((place, node));
            }
        });
        others.sort_unstable();
        let behind = others.split_off(others.partition_point(|(place, _)| *place <= low));
        let of = |others: Vec<(u64, u32)>| others.into_iter().map(|(_, node)| node);
        let order: Vec<u32> = of(others).chain(nodes).chain(of(behind)).collect();
        match (end - begin) / (order.len() as u64 + 1) {
            0 => Verdict::NoRoom,
            room => Verdict::Fits(order.into_iter().zip((1..).map(|at| begin + at * room)).collect()),
        }
    }

    /// The places around that place which unmoved nodes have.
    fn gap(&self, place: u64) -> (u64, u64) {
        let room = self.graph.base.room;
        match place >> room {
            _ if place >= FRESH => (FRESH, u64::MAX),
            before if before < u64::from(self.graph.base.nodes) => (before << room, (before + 1) << room),
            _ => (u64::from(self.graph.base.nodes) << room, FRESH),
        }
    }
}

/// The cycle through an edge at which both searches met, from the source of the edge that closes it.
fn cycle(from: u32, (last, next): Pair, back: &Side, forth: &Side) -> Vec<u32> {
    let mut way = forth.path_to_start(last);
    way.push(from);
    way.reverse();
    way.extend(back.path_to_start(next));
    way
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::dependency::base::{Base, Edges, Join};

    fn chain(nodes: u32) -> Base {
        let edges: Vec<Pair> = (1..nodes).map(|node| (node - 1, node)).collect();
        Base::of(nodes, Edges { all: &edges, ..Edges::default() }, Vec::new()).unwrap()
    }

    /// A graph under edit, with a count of the dependencies that its searches have examined.
    struct Edited {
        base: Base,
        layer: EditLayer,
        looked_at: Cell<usize>,
    }

    impl Edited {
        fn of(base: Base) -> Self {
            Edited { layer: EditLayer::starting_at(base.nodes), base, looked_at: Cell::new(0) }
        }

        fn graph<T>(&self, look: impl FnOnce(Graph<'_>) -> T) -> T {
            look(Graph { base: &self.base, layers: &[&self.layer] })
        }

        fn node(&mut self) -> u32 {
            let name: Arc<str> = format!("t{}", self.layer.end()).into();
            self.layer.add_node(name, Join::All)
        }

        /// Adds an edge, and returns whether it fits.
        fn edge(&mut self, edge: Pair) -> bool {
            let is_done = |_| {
                self.looked_at.set(self.looked_at.get() + 1);
                false
            };
            let verdict = self.graph(|graph| judge(graph, edge, &is_done));
            let fits = !matches!(verdict, Verdict::ClosesCycle(_));
            keep(&mut self.layer, verdict);
            if fits {
                self.layer.add_edge(edge, false);
            }
            fits
        }

        fn leads(&self, from: u32, to: u32) -> bool {
            let mut seen = vec![from];
            let mut at = 0;
            while let Some(node) = seen.get(at).copied() {
                for target in self.graph(|graph| graph.targets(node)) {
                    if !seen.contains(&target) {
                        seen.push(target);
                    }
                }
                at += 1;
            }
            seen.contains(&to)
        }

        fn is_in_order(&self) -> bool {
            self.graph(|graph| {
                let search = Search { graph, is_done: &|_| false, strict: true, ordered: true };
                let nodes = 0..self.layer.end();
                nodes
                    .flat_map(|node| graph.targets(node).into_iter().map(move |target| (node, target)))
                    .all(|(node, target)| search.place(node) < search.place(target))
            })
        }
    }

    #[test]
    fn edits_stay_cheap_after_many_nodes_between_the_same_two() {
        for towards_the_end in [false, true] {
            let mut edited = Edited::of(chain(10_000));
            let mut from = 100;
            let mut to = 101;
            for _ in 0..400 {
                let node = edited.node();
                assert!(edited.edge((from, node)) && edited.edge((node, to)));
                if towards_the_end { from = node } else { to = node }
            }
            assert!(edited.is_in_order());
            let before = edited.looked_at.take();
            assert!(before <= 4 * 800, "{before}");
            for at in 0..250 {
                assert!(edited.edge((5_000 + 10 * at, 5_002 + 10 * at)));
                assert!(!edited.edge((5_002 + 10 * at, 5_000 + 10 * at)));
            }
            let after = edited.looked_at.take();
            assert!(after <= 8 * 500, "{after}");
        }
    }

    proptest! {
        /// `room` is a number of bits: 5 to 7 leave few free places between two nodes, 58 leave plenty.
        #[test]
        fn an_edge_is_refused_if_and_only_if_it_closes_a_cycle(
            nodes in 1_u32..6,
            temporary in 0_u32..12,
            edges in prop::collection::vec((0_u32..18, 0_u32..18), 0..60),
            room in prop_oneof![5_u32..8, Just(58_u32)],
        ) {
            let mut edited = Edited::of(chain(nodes));
            edited.base.room = room;
            for _ in 0..temporary {
                edited.node();
            }
            let end = edited.layer.end();
            for (from, to) in edges {
                let edge = (from % end, to % end);
                if edge.0 != edge.1 && !edited.graph(|graph| graph.has_edge(edge)) {
                    prop_assert_eq!(edited.edge(edge), !edited.leads(edge.1, edge.0));
                    prop_assert!(edited.layer.unordered || edited.is_in_order());
                }
            }
            prop_assert!(!edited.layer.unordered);
        }
    }
}
