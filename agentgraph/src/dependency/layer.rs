//! Changes to the graph of one pass: a layer over the base, and over that the layer of a transaction in
//! progress. A layer contains only differences, so the base never changes and a dropped layer leaves nothing
//! behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::base::{Base, Join, Pair};

/// Differences from the layers below. Added nodes have the ids that follow those below.
#[derive(Clone, Debug, Default)]
pub(super) struct EditLayer {
    /// The id of the first added node.
    pub(in crate::dependency) first: u32,
    pub(in crate::dependency) added: Vec<AddedNode>,
    /// The meaning of names in this layer: another node, or `None` for a removed one.
    names: HashMap<Arc<str>, Option<u32>>,
    /// The removed nodes, with their names.
    gone: HashMap<u32, Arc<str>>,
    ends: HashMap<u32, NodeEdges>,
    edges: HashSet<Pair>,
    cut: HashSet<Pair>,
    /// The places of nodes in the order of the graph, if they differ from those below.
    pub(in crate::dependency) places: HashMap<u32, u64>,
    /// Whether the places are no longer an order.
    pub(in crate::dependency) unordered: bool,
    pub(in crate::dependency) skips: HashSet<u32>,
    /// Whether an added node does not wait for all its dependencies.
    lenient: bool,
}

/// A temporary node.
#[derive(Clone, Debug)]
pub(super) struct AddedNode {
    pub(in crate::dependency) name: Arc<str>,
    pub(in crate::dependency) join: Join,
}

/// The temporary edges of a node.
#[derive(Clone, Debug, Default)]
struct NodeEdges {
    /// Dependencies added in front; the last of them is the first dependency.
    front: Vec<u32>,
    back: Vec<u32>,
    out: Vec<u32>,
    /// Whether it had a dependency in this layer: without one it is then no root.
    had_sources: bool,
}

impl EditLayer {
    /// An empty layer whose nodes start at that id.
    pub(super) fn starting_at(first: u32) -> Self {
        EditLayer { first, ..EditLayer::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.edges.is_empty()
            && self.cut.is_empty()
            && self.gone.is_empty()
            && self.skips.is_empty()
    }

    /// The id after its last node.
    pub(super) fn end(&self) -> u32 {
        self.first + self.added.len() as u32
    }

    pub(super) fn add_node(&mut self, name: Arc<str>, join: Join) -> u32 {
        let id = self.end();
        self.names.insert(Arc::clone(&name), Some(id));
        self.added.push(AddedNode { name, join });
        self.lenient |= join != Join::All;
        id
    }

    pub(super) fn add_edge(&mut self, (from, to): Pair, front: bool) {
        let ends = self.ends.entry(to).or_default();
        if front {
            ends.front.push(from)
        } else {
            ends.back.push(from)
        }
        ends.had_sources = true;
        self.ends.entry(from).or_default().out.push(to);
        self.edges.insert((from, to));
    }

    /// Removes an existing edge.
    pub(super) fn remove_edge(&mut self, (from, to): Pair) {
        if !self.edges.remove(&(from, to)) {
            self.cut.insert((from, to));
            self.ends.entry(to).or_default().had_sources = true;
            return;
        }
        let without = |list: &mut Vec<u32>, node| {
            if let Some(at) = list.iter().rposition(|known| *known == node) {
                list.remove(at);
            }
        };
        if let Some(ends) = self.ends.get_mut(&to) {
            without(&mut ends.front, from);
            without(&mut ends.back, from);
        }
        if let Some(ends) = self.ends.get_mut(&from) {
            without(&mut ends.out, to);
        }
    }

    /// Whether it added that edge, at that end of the dependencies.
    pub(super) fn has_added(&self, (from, to): Pair, front: bool) -> bool {
        let ends = self.ends.get(&to);
        ends.is_some_and(|ends| if front { &ends.front } else { &ends.back }.contains(&from))
    }

    pub(super) fn has_cut(&self, edge: Pair) -> bool {
        self.cut.contains(&edge)
    }

    /// Adopts the places of nodes from a layer whose edges were added here.
    pub(super) fn adopt_places(&mut self, layer: EditLayer) {
        self.places.extend(layer.places);
        self.unordered |= layer.unordered;
    }

    /// The removed nodes whose names now belong to other nodes.
    pub(super) fn replaced(&self) -> HashSet<u32> {
        let last: HashMap<&str, u32> =
            self.added.iter().map(|added| &*added.name).zip(self.first..).collect();
        let by_another =
            |(node, name): &(&u32, &Arc<str>)| last.get(&***name).is_some_and(|last| last > node);
        self.gone.iter().filter(by_another).map(|(node, _)| *node).collect()
    }

    /// Removes the name of a node. The caller removes its edges.
    pub(super) fn remove_node(&mut self, name: Arc<str>, node: u32) {
        self.names.insert(Arc::clone(&name), None);
        self.gone.insert(node, name);
    }
}

/// The graph with some layers over the base.
#[derive(Clone, Copy)]
pub(super) struct Graph<'a> {
    pub(in crate::dependency) base: &'a Base,
    /// The lowest first; at most two.
    pub(in crate::dependency) layers: &'a [&'a EditLayer],
}

impl<'a> Graph<'a> {
    /// The highest layer, and the graph without it.
    fn split_top(self) -> Option<(&'a EditLayer, Graph<'a>)> {
        let (top, layers) = self.layers.split_last()?;
        Some((top, Graph { layers, ..self }))
    }

    /// The meaning of a name in the layers; `None` if no layer contains it, so that the base decides.
    pub(super) fn named(self, name: &str) -> Option<Option<u32>> {
        self.layers.iter().rev().find_map(|layer| layer.names.get(name).copied())
    }

    pub(super) fn is_gone(self, node: u32) -> bool {
        self.layers.iter().any(|layer| layer.gone.contains_key(&node))
    }

    pub(super) fn added(self, node: u32) -> Option<&'a AddedNode> {
        let mut layers = self.layers.iter().rev();
        let layer = layers.find(|layer| node >= layer.first)?;
        layer.added.get((node - layer.first) as usize)
    }

    pub(super) fn join(self, node: u32) -> Join {
        if node < self.base.nodes {
            self.base.join(node)
        } else {
            self.added(node).map(|added| added.join).unwrap_or_default()
        }
    }

    pub(super) fn is_strict(self) -> bool {
        self.base.is_strict() && !self.layers.iter().any(|layer| layer.lenient)
    }

    pub(super) fn is_ordered(self) -> bool {
        !self.layers.iter().any(|layer| layer.unordered)
    }

    pub(super) fn place(self, node: u32) -> Option<u64> {
        self.layers.iter().rev().find_map(|layer| layer.places.get(&node).copied())
    }

    /// The places of nodes that differ from those of the base, in no order.
    pub(super) fn each_place(self, each: &mut dyn FnMut(u32, u64)) {
        for (at, layer) in self.layers.iter().enumerate() {
            let above = &self.layers[at + 1..];
            let places = layer.places.iter();
            places
                .filter(|(node, _)| !above.iter().any(|above| above.places.contains_key(node)))
                .for_each(|(node, place)| each(*node, *place));
        }
    }

    /// Whether there is that data edge between two existing nodes.
    pub(super) fn has_edge(self, edge: Pair) -> bool {
        match self.split_top() {
            None => self.base.has_edge(edge.0, edge.1),
            Some((top, below)) => {
                top.edges.contains(&edge) || (!top.cut.contains(&edge) && below.has_edge(edge))
            }
        }
    }

    /// Whether the node never had a dependency.
    pub(super) fn is_root(self, node: u32) -> bool {
        if node < self.base.nodes {
            self.base.sources.row(node).is_empty()
        } else {
            !self.layers.iter().any(|layer| layer.ends.get(&node).is_some_and(|ends| ends.had_sources))
        }
    }

    /// The dependencies of a node, in the order of its edges.
    pub(super) fn each_source(self, node: u32, each: &mut dyn FnMut(u32)) {
        let Some((top, below)) = self.split_top() else {
            self.base.sources.row(node).iter().copied().for_each(each);
            return;
        };
        let ends = top.ends.get(&node);
        if let Some(ends) = ends {
            ends.front.iter().rev().copied().for_each(&mut *each);
        }
        if top.cut.is_empty() {
            below.each_source(node, each)
        } else {
            below.each_source(node, &mut |source| {
                if !top.cut.contains(&(source, node)) {
                    each(source);
                }
            })
        }
        if let Some(ends) = ends {
            ends.back.iter().copied().for_each(each);
        }
    }

    /// The nodes that depend on a node, in the order of its edges.
    pub(super) fn each_target(self, node: u32, each: &mut dyn FnMut(u32)) {
        let Some((top, below)) = self.split_top() else {
            self.base.targets.row(node).iter().copied().for_each(each);
            return;
        };
        if top.cut.is_empty() {
            below.each_target(node, each)
        } else {
            below.each_target(node, &mut |target| {
                if !top.cut.contains(&(node, target)) {
                    each(target);
                }
            })
        }
        if let Some(ends) = top.ends.get(&node) {
            ends.out.iter().copied().for_each(each);
        }
    }

    /// The dependencies of a node, as a list.
    pub(super) fn sources(self, node: u32) -> Vec<u32> {
        let mut sources = Vec::new();
        self.each_source(node, &mut |source| sources.push(source));
        sources
    }

    pub(super) fn targets(self, node: u32) -> Vec<u32> {
        let mut targets = Vec::new();
        self.each_target(node, &mut |target| targets.push(target));
        targets
    }

    /// The nodes that must end before a node starts, by edges of either kind.
    pub(super) fn each_before(self, node: u32, each: &mut dyn FnMut(u32)) {
        self.each_source(node, each);
        self.base.before.row(node).iter().copied().for_each(each);
    }

    /// The nodes that must not start before a node ends.
    pub(super) fn each_after(self, node: u32, each: &mut dyn FnMut(u32)) {
        self.each_target(node, each);
        self.base.after.row(node).iter().copied().for_each(each);
    }
}
