//! What comes before what: the order in which deferred nodes are released, and the longest path.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::resolve::CommandTargets;
use super::shape::Shape;
use crate::graph::DeclaredNode;
use crate::graph::problem::{Warning, WarningKind};
use crate::graph::topology::DeferredOrder;
use crate::words::MAX_SUPERSTEPS;

/// A graph whose loops are one *part* each. Parts come after those that they lead to.
struct Parts {
    ways: DiGraph<(), ()>,
    parts: Vec<Vec<NodeIndex>>,
    /// The part of each node.
    of: Vec<usize>,
}

impl Parts {
    fn of(ways: DiGraph<(), ()>) -> Self {
        let parts = kosaraju_scc(&ways);
        let mut of = vec![0; ways.node_count()];
        for (part, nodes) in parts.iter().enumerate() {
            nodes.iter().for_each(|node| of[node.index()] = part);
        }
        Parts { ways, parts, of }
    }

    /// The targets of the nodes of a part, some of which may be in it.
    fn targets(&self, part: usize) -> impl Iterator<Item = usize> {
        self.parts[part].iter().flat_map(|node| self.ways.neighbors(*node)).map(NodeIndex::index)
    }
}

impl Shape {
    /// The order of the deferred nodes, and those that lead to each other.
    ///
    /// Commands without declared targets lead everywhere, and an error leads to its handler. A detached node
    /// leads nowhere, since deferred nodes do not wait for it.
    pub(super) fn deferred_order(&self, detached: &[bool]) -> (DeferredOrder, Vec<Vec<u32>>) {
        let deferred = (0..).zip(&self.deferred).filter(|(_, deferred)| **deferred);
        let deferred: Vec<u32> = deferred.map(|(node, _)| node).collect();
        if deferred.len() < 2 {
            return Default::default();
        }
        let mut ways = self.ways();
        for (node, handler) in self.handled() {
            ways.add_edge(NodeIndex::new(node), NodeIndex::new(handler as usize), ());
        }
        let anywhere = ways.add_node(());
        for (node, targets) in self.targets.iter().enumerate() {
            if let CommandTargets::Anywhere = targets {
                ways.add_edge(NodeIndex::new(node), anywhere, ());
            }
        }
        for node in &deferred {
            ways.add_edge(anywhere, NodeIndex::new(*node as usize), ());
        }
        let is_detached = |node: NodeIndex| detached.get(node.index()).copied().unwrap_or(false);
        ways.retain_edges(|ways, edge| ways.edge_endpoints(edge).is_none_or(|(from, _)| !is_detached(from)));
        let parts = Parts::of(ways);
        // 64 nodes at a time, so that one walk over the graph finds the ways to all of them.
        let words = deferred.len().div_ceil(64);
        let mut leads = vec![0; deferred.len() * words];
        for (word, block) in deferred.chunks(64).enumerate() {
            let bit = |node: usize| match block.binary_search(&(node as u32)) {
                Ok(at) => 1_u64 << at,
                Err(_) => 0,
            };
            let mut reached = vec![0_u64; parts.parts.len()];
            for part in 0..parts.parts.len() {
                reached[part] =
                    parts.targets(part).fold(0, |found, to| found | bit(to) | reached[parts.of[to]]);
            }
            for (at, node) in deferred.iter().enumerate() {
                leads[at * words + word] = reached[parts.of[*node as usize]];
            }
        }
        let mut loops: Vec<Vec<u32>> = vec![Vec::new(); parts.parts.len()];
        deferred.iter().for_each(|node| loops[parts.of[*node as usize]].push(*node));
        loops.retain(|nodes| nodes.len() > 1);
        (DeferredOrder::of(deferred, &leads), loops)
    }

    /// Warns of deferred nodes that lead to each other. Nothing is known of commands without targets, which
    /// have a warning of their own.
    pub(super) fn loop_warnings(&self, nodes: &[DeclaredNode], loops: Vec<Vec<u32>>) -> Vec<Warning> {
        if self.targets.iter().any(|targets| matches!(targets, CommandTargets::Anywhere)) {
            return Vec::new();
        }
        let warning = |deferred: Vec<u32>| {
            let place = deferred.first().and_then(|node| Some(nodes.get(*node as usize)?.place));
            let nodes = deferred.iter().map(|node| self.names.name(*node).to_owned()).collect();
            Warning { kind: WarningKind::DeferredLoop { nodes }, place }
        };
        loops.into_iter().map(warning).collect()
    }

    /// Warns if a path is longer than a call may be. Of a loop one node counts.
    pub(super) fn chain_warning(&self, nodes: &[DeclaredNode]) -> Option<Warning> {
        let start = self.names.start() as usize;
        if start as u64 <= MAX_SUPERSTEPS {
            return None;
        }
        let parts = Parts::of(self.ways());
        // The length of the longest path from each part, and the part where it ends.
        let mut longest: Vec<(u64, usize)> = Vec::with_capacity(parts.parts.len());
        for part in 0..parts.parts.len() {
            let others = parts.targets(part).map(|to| parts.of[to]).filter(|to| *to != part);
            let (length, end) = others.map(|to| longest[to]).max().unwrap_or((0, part));
            let runs = parts.parts[part].iter().any(|node| node.index() < start);
            let end = if length == 0 { part } else { end };
            longest.push((length + u64::from(runs), end));
        }
        let (length, end) = longest[parts.of[start]];
        let last = parts.parts[end].first().and_then(|node| nodes.get(node.index()));
        let last = last.filter(|_| length > MAX_SUPERSTEPS)?;
        let kind = WarningKind::LongChain { last: last.name.to_string(), length };
        Some(Warning { kind, place: Some(last.place) })
    }
}
