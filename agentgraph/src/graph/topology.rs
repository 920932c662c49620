//! The shape of a compiled graph, by dense ids: what a step looks at.
//!
//! Nodes have the ids 0, 1, .. in order of declaration; START comes after the last. Nothing here is of the
//! size of the graph at run time except the arrays themselves, which are only read.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The id of END, as a target.
pub(crate) const END_ID: u32 = u32::MAX;

/// Lists of numbers, one per row, in two flat arrays.
#[derive(Debug, Default)]
pub(crate) struct Rows<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Rows<T> {
    pub(crate) fn of(rows: Vec<Vec<T>>) -> Self {
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut items = Vec::with_capacity(rows.iter().map(Vec::len).sum());
        starts.push(0);
        for row in rows {
            items.extend(row);
            starts.push(items.len() as u32);
        }
        Rows { starts, items }
    }

    /// So many rows of items that each name their row, in the order in which a row's items come.
    pub(crate) fn grouped(rows: u32, items: impl Iterator<Item = (u32, T)> + Clone) -> Self
    where
        T: Default,
    {
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
#[derive(Debug, Default)]
pub(crate) struct Topology {
    /// How many nodes; also the id of START.
    pub(crate) nodes: u32,
    /// The targets of plain edges; END is left out, since it asks for nothing.
    pub(crate) successors: Rows<u32>,
    /// The rows of `successors` that are too long to be searched from end to end, as sets.
    pub(crate) wide: HashMap<u32, HashSet<u32>>,
    /// For each source: the join and the source's place in it.
    pub(crate) join_sources: Rows<(u32, u32)>,
    pub(crate) joins: Vec<Join>,
    pub(crate) join_words: u32,
    /// Some join has a timeout, so that merges look at the clock.
    pub(crate) times_joins: bool,
    /// The deferred nodes; empty if there are none.
    pub(crate) deferred: Vec<bool>,
    /// For each source: its routers.
    pub(crate) routers: Rows<u32>,
    /// For each source: what it has beside plain edges.
    pub(crate) exits: Vec<Exits>,
}

/// A join: its target, its sources, when it fires, and where its bits stand in the run's table.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) sources: Vec<u32>,
    pub(crate) target: u32,
    /// So many sources make it fire.
    pub(in crate::graph) needed: u32,
    pub(in crate::graph) timeout: Option<Duration>,
    /// Its target is deferred: what arrives before that is released belongs to the same round.
    pub(in crate::graph) deferred: bool,
    pub(in crate::graph) first_word: u32,
}

impl Join {
    /// How many words its bits take.
    pub(crate) fn words(&self) -> usize {
        self.sources.len().div_ceil(64)
    }
}

/// What leaves a node beside plain edges: most nodes have nothing, and a step asks this once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exits {
    pub(crate) joins: bool,
    pub(crate) routers: bool,
    /// A router that names its targets, which may be wrong ones.
    pub(crate) fallible_routers: bool,
    /// What the node gives is kept, to be used again.
    pub(crate) keeps_output: bool,
    /// An update of the node is not just applied and its edges followed: one of the two above.
    pub(crate) special: bool,
    /// An edge to END, which asks for nothing.
    pub(in crate::graph) ends: bool,
}

/// Rows with more targets than this are also kept as sets.
pub(crate) const WIDE: usize = 32;

impl Topology {
    /// Whether there is a plain edge. In a time that does not grow with the graph.
    pub(crate) fn has_edge(&self, from: u32, to: u32) -> bool {
        if to == END_ID {
            return self.exits(from).ends;
        }
        match self.wide.get(&from) {
            Some(row) => row.contains(&to),
            None => self.successors.row(from).contains(&to),
        }
    }

    #[inline]
    pub(crate) fn is_deferred(&self, node: u32) -> bool {
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
