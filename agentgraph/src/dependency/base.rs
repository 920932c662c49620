//! The shape of a compiled dependency graph, by dense ids. A pass does not change it.

use std::collections::HashMap;

use crate::graph::topology::Rows;

/// The dependencies that a node waits for.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::dependency::Join;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let report = |deps: Deps<String>| deps.names().collect::<Vec<_>>().join("+");
/// let graph = DependencyGraph::<String>::new()
///     .node("ask", |edits: PassEdits<String>| async move {
///         edits.remove_edge("ask", "no")?;
///         Ok::<_, agentgraph::BoxError>("yes".to_owned())
///     })
///     .node("yes", || "taken".to_owned())
///     .node("no", || "not taken".to_owned())
///     .node("report", DependencyNode::of(report).join(Join::AllNotPruned))
///     .edge("ask", "yes")
///     .edge("ask", "no")
///     .edge("yes", "report")
///     .edge("no", "report")
///     .compile()?;
/// let outputs = graph.invoke(()).finish().await?;
/// assert_eq!(outputs["report"], "yes");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Join {
    /// All of them. If one will not run in this pass, the node will not run either.
    #[default]
    All,
    /// All that run in this pass, and at least one. Dependencies that were pruned, or wait for a pruned node,
    /// are left out.
    AllNotPruned,
    /// The first one that is done. The dependencies that are done by then are those of the node in this pass.
    Any,
}

impl Join {
    /// Its name in fingerprints.
    pub(super) fn name(self) -> &'static str {
        match self {
            Join::All => "all",
            Join::AllNotPruned => "all_not_pruned",
            Join::Any => "any",
        }
    }
}

/// Rows of incoming edges that are longer are also stored sorted, so that an edge is found without a linear
/// search.
const WIDE: usize = 32;

/// Edges in both directions, and facts about the whole graph.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// The number of nodes.
    pub(in crate::dependency) nodes: u32,
    /// The dependencies of each node, in the order of its edges.
    pub(in crate::dependency) sources: Rows<u32>,
    /// The nodes that depend on each node, in the order of its edges.
    pub(in crate::dependency) targets: Rows<u32>,
    /// Order-only edges, in the same way.
    pub(in crate::dependency) before: Rows<u32>,
    pub(in crate::dependency) after: Rows<u32>,
    /// Empty if all nodes wait for all dependencies.
    joins: Vec<Join>,
    /// The place of each node in an order in which every edge leads forward.
    pub(in crate::dependency) rank: Vec<u32>,
    /// The number of bits between two places of that order, for nodes that edits put there.
    pub(in crate::dependency) room: u32,
    /// The sorted dependencies of nodes with many.
    wide: HashMap<u32, Box<[u32]>>,
}

/// An edge: from, to.
pub(super) type Pair = (u32, u32);

/// All edges of a graph.
#[derive(Clone, Copy, Default)]
pub(super) struct Edges<'a> {
    /// The data edges, as they were added.
    pub(in crate::dependency) all: &'a [Pair],
    /// The places in `all` of those that come before the earlier dependencies of their nodes.
    pub(in crate::dependency) prepended: &'a [u32],
    /// The order-only edges.
    pub(in crate::dependency) orders: &'a [Pair],
}

impl Edges<'_> {
    /// The data edges, so that those into one node are in the order of its dependencies.
    fn by_dependency(&self) -> impl Iterator<Item = Pair> + Clone {
        let first = self.prepended.iter().rev().map(|at| self.all[*at as usize]);
        let mut prepended = self.prepended.iter().copied().peekable();
        let others = (0_u32..).zip(self.all).filter(move |(at, _)| prepended.next_if_eq(at).is_none());
        first.chain(others.map(|(_, pair)| *pair))
    }
}

impl Base {
    /// # Errors
    /// The nodes of a cycle, in its order.
    pub(super) fn of(nodes: u32, edges: Edges<'_>, joins: Vec<Join>) -> Result<Self, Vec<u32>> {
        let orders = edges.orders;
        let sources = edges.by_dependency().map(|(from, to)| (to, from));
        let reversed = |pairs: &[Pair]| Rows::grouped(nodes, pairs.iter().map(|(from, to)| (*to, *from)));
        let forward = |pairs: &[Pair]| Rows::grouped(nodes, pairs.iter().copied());
        let mut base = Base {
            nodes,
            sources: Rows::grouped(nodes, sources),
            targets: forward(edges.all),
            before: reversed(orders),
            after: forward(orders),
            joins: if joins.iter().all(|join| *join == Join::All) { Vec::new() } else { joins },
            rank: Vec::new(),
            // All these places are less than the place of a node that has none yet.
            room: 61 - nodes.max(1).ilog2(),
            wide: HashMap::new(),
        };
        base.rank = base.ranks()?;
        for node in 0..nodes {
            let row = base.sources.row(node);
            if row.len() > WIDE {
                let mut sorted: Box<[u32]> = row.into();
                sorted.sort_unstable();
                base.wide.insert(node, sorted);
            }
        }
        Ok(base)
    }

    #[inline]
    pub(super) fn join(&self, node: u32) -> Join {
        self.joins.get(node as usize).copied().unwrap_or_default()
    }

    /// Whether every node waits for all its dependencies.
    pub(super) fn is_strict(&self) -> bool {
        self.joins.is_empty()
    }

    /// Whether there is that data edge.
    pub(super) fn has_edge(&self, from: u32, to: u32) -> bool {
        match self.wide.get(&to) {
            Some(sorted) => sorted.binary_search(&from).is_ok(),
            None => self.sources.row(to).contains(&from),
        }
    }

    /// Nodes without dependencies, in order of declaration. Order-only edges do not count.
    pub(crate) fn roots(&self) -> impl Iterator<Item = u32> {
        (0..self.nodes).filter(|node| self.sources.row(*node).is_empty())
    }

    /// A topological order, found by repeatedly removing nodes that wait for nothing.
    fn ranks(&self) -> Result<Vec<u32>, Vec<u32>> {
        let count = |node| (self.sources.row(node).len() + self.before.row(node).len()) as u32;
        let mut waits: Vec<u32> = (0..self.nodes).map(count).collect();
        let mut order: Vec<u32> = (0..self.nodes).filter(|node| waits[*node as usize] == 0).collect();
        let mut rank = vec![0; self.nodes as usize];
        let mut taken = 0;
        while let Some(node) = order.get(taken).copied() {
            rank[node as usize] = taken as u32;
            taken += 1;
            for target in self.targets.row(node).iter().chain(self.after.row(node)) {
                let waits = &mut waits[*target as usize];
                *waits -= 1;
                if *waits == 0 {
                    order.push(*target);
                }
            }
        }
        if taken == self.nodes as usize { Ok(rank) } else { Err(self.cycle(&waits)) }
    }

    /// A cycle among the nodes that still wait. Each of them has a dependency that waits as well, so
    /// following these leads back to a node seen before.
    fn cycle(&self, waits: &[u32]) -> Vec<u32> {
        let stays = |node: &u32| waits[*node as usize] > 0;
        let mut seen = vec![u32::MAX; waits.len()];
        let mut way = Vec::new();
        let mut node = (0..self.nodes).find(stays);
        while let Some(here) = node {
            if let Some(begin) = way.get(seen[here as usize] as usize..) {
                let mut cycle: Vec<u32> = begin.to_vec();
                cycle.reverse();
                let first = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
                cycle.rotate_left(first);
                return cycle;
            }
            seen[here as usize] = way.len() as u32;
            way.push(here);
            let mut sources = self.sources.row(here).iter().chain(self.before.row(here));
            node = sources.find(|source| stays(source)).copied();
        }
        way
    }
}
