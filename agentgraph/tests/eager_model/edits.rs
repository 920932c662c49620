//! Temporary edits as data, and a graph that they change: edges in lists, copied whenever something may have
//! to be undone.

use std::collections::{BTreeMap, BTreeSet};

use agentgraph::edit::Edits;

use super::shape::{Shape, name};

/// The template of temporary nodes.
pub const TEMPLATE: &str = "plain";

/// By the numbers in names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    AddNode(usize),
    AddEdge(usize, usize),
    PrependEdge(usize, usize),
    RemoveEdge(usize, usize),
    RemoveNode(usize),
}

impl Edit {
    /// Makes it, whatever comes of that.
    pub fn make(self, edits: &Edits) {
        let _ = match self {
            Edit::AddNode(node) => edits.add_node(name(node), TEMPLATE, node),
            Edit::AddEdge(from, to) => edits.add_edge(name(from), name(to)),
            Edit::PrependEdge(from, to) => edits.prepend_edge(name(from), name(to)),
            Edit::RemoveEdge(from, to) => edits.remove_edge(name(from), name(to)),
            Edit::RemoveNode(node) => edits.remove_node(name(node)),
        };
    }
}

/// What a task has edited, and how many edits it could see.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    edits: Vec<Edit>,
    seen: usize,
}

/// A graph by ids: those of the shape, and behind them the temporary nodes that there are or were.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The number in the name of each.
    pub names: Vec<usize>,
    there: BTreeMap<usize, usize>,
    pub removed: BTreeSet<usize>,
    pub edges: Vec<Vec<usize>>,
    /// Sources, and the target.
    joins: Vec<(Vec<usize>, usize)>,
    /// The sources that joins do not wait for.
    pub pruned: BTreeSet<(usize, usize)>,
    /// What has changed it, in order.
    log: Vec<Edit>,
}

impl Graph {
    pub fn of(shape: &Shape) -> Self {
        let count = shape.nodes.len();
        Graph {
            names: (0..count).collect(),
            there: (0..count).map(|node| (node, node)).collect(),
            removed: BTreeSet::new(),
            edges: shape.nodes.iter().map(|node| node.edges.clone()).collect(),
            joins: shape.joins.iter().map(|(sources, _, target)| (sources.clone(), *target)).collect(),
            pruned: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    pub fn successors(&self, node: usize) -> Vec<usize> {
        match self.removed.contains(&node) {
            true => Vec::new(),
            false => self.edges[node].iter().copied().filter(|to| !self.removed.contains(to)).collect(),
        }
    }

    /// The edges between nodes that are there, by name and sorted.
    pub fn shown(&self) -> Vec<(String, String)> {
        let all = (0..self.names.len())
            .flat_map(|from| self.successors(from).into_iter().map(move |to| (from, to)));
        let mut shown: Vec<_> =
            all.map(|(from, to)| (name(self.names[from]), name(self.names[to]))).collect();
        shown.sort();
        shown
    }

    /// What a task that tries these comes to.
    pub fn propose(&self, edits: &[Edit]) -> Transaction {
        let mut own = self.clone();
        let fits = edits.iter().copied().filter(|edit| own.edit(*edit)).collect();
        Transaction { edits: fits, seen: self.log.len() }
    }

    /// Makes all of them or none. False if they were dropped.
    pub fn merge(&mut self, transaction: &Transaction) -> bool {
        let mut merged = self.clone();
        for edit in &transaction.edits {
            if merged.edit(*edit) {
                merged.log.push(*edit);
            } else if !self.log[transaction.seen..].contains(edit) {
                return false;
            }
        }
        *self = merged;
        true
    }

    fn edit(&mut self, edit: Edit) -> bool {
        let id = |name: &usize| self.there.get(name).copied();
        match edit {
            Edit::AddNode(name) => {
                if id(&name).is_some() {
                    return false;
                }
                self.there.insert(name, self.names.len());
                self.names.push(name);
                self.edges.push(Vec::new());
                true
            }
            Edit::AddEdge(from, to) | Edit::PrependEdge(from, to) => {
                let (Some(from), Some(to)) = (id(&from), id(&to)) else { return false };
                if self.edges[from].contains(&to) {
                    return false;
                }
                let place = if matches!(edit, Edit::PrependEdge(..)) { 0 } else { self.edges[from].len() };
                self.edges[from].insert(place, to);
                true
            }
            Edit::RemoveEdge(from, to) => {
                let (Some(from), Some(to)) = (id(&from), id(&to)) else { return false };
                let plain = self.edges[from].contains(&to);
                self.edges[from].retain(|other| *other != to);
                self.prune(from, |target| target == to) || plain
            }
            Edit::RemoveNode(name) => {
                let Some(node) = self.there.remove(&name) else { return false };
                self.removed.insert(node);
                self.prune(node, |_| true);
                true
            }
        }
    }

    fn prune(&mut self, source: usize, of: impl Fn(usize) -> bool) -> bool {
        let before = self.pruned.len();
        let joins = self.joins.iter().enumerate();
        let waiting = joins.filter(|(_, (sources, target))| sources.contains(&source) && of(*target));
        self.pruned.extend(waiting.map(|(join, _)| (join, source)));
        self.pruned.len() > before
    }
}
