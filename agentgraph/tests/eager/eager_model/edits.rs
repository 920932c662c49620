//! Temporary edits as data, and the graph that they change. The graph keeps its edges in lists and is copied
//! before a change that may be undone.

use std::collections::{BTreeMap, BTreeSet};

use agentgraph::edit::Edits;

use super::shape::{Shape, name};

/// The template of temporary nodes.
pub const TEMPLATE: &str = "plain";

/// A temporary edit. Nodes are given by the numbers in their names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    AddNode(usize),
    AddEdge(usize, usize),
    PrependEdge(usize, usize),
    RemoveEdge(usize, usize),
    RemoveNode(usize),
}

impl Edit {
    /// Tries the edit. A rejection is ignored.
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

/// The accepted edits of a task, and the number of applied edits that it could see.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    edits: Vec<Edit>,
    seen: usize,
}

/// A graph by ids: first the nodes of the shape, then the temporary nodes, removed ones included.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The number in the name of each node.
    pub names: Vec<usize>,
    /// The ids of the nodes that exist, by the numbers in their names.
    existing: BTreeMap<usize, usize>,
    pub removed: BTreeSet<usize>,
    pub edges: Vec<Vec<usize>>,
    /// The sources and the target of each.
    joins: Vec<(Vec<usize>, usize)>,
    /// The joins and their sources that they do not wait for any more.
    pub pruned: BTreeSet<(usize, usize)>,
    /// The applied edits, in order.
    log: Vec<Edit>,
}

impl Graph {
    pub fn of(shape: &Shape) -> Self {
        let count = shape.nodes.len();
        Graph {
            names: (0..count).collect(),
            existing: (0..count).map(|node| (node, node)).collect(),
            removed: BTreeSet::new(),
            edges: shape.nodes.iter().map(|node| node.edges.clone()).collect(),
            joins: shape.joins.iter().map(|(sources, _, target)| (sources.clone(), *target)).collect(),
            pruned: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    /// Whether some path leads from a node to another. Commands of temporary nodes have no declared targets,
    /// so they lead everywhere.
    pub fn leads(&self, shape: &Shape, from: usize, to: usize) -> bool {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if self.removed.contains(&node) {
                continue;
            }
            let Some(compiled) = shape.nodes.get(node) else { return true };
            let dispatched = compiled.dispatches.iter().filter_map(|name| self.existing.get(name).copied());
            let joins = self.joins.iter().enumerate();
            let joins = joins
                .filter(|(join, (from, _))| from.contains(&node) && !self.pruned.contains(&(*join, node)));
            let joins = joins.map(|(_, (_, to))| *to).filter(|to| !self.removed.contains(to));
            let targets = self.successors(node).into_iter().chain(dispatched).chain(joins);
            next.extend(targets.filter(|target| reached.insert(*target)));
        }
        reached.contains(&to)
    }

    pub fn successors(&self, node: usize) -> Vec<usize> {
        if self.removed.contains(&node) {
            Vec::new()
        } else {
            self.edges[node].iter().copied().filter(|to| !self.removed.contains(to)).collect()
        }
    }

    /// Returns the edges between existing nodes as pairs of names, sorted.
    pub fn shown(&self) -> Vec<(String, String)> {
        let all = (0..self.names.len())
            .flat_map(|from| self.successors(from).into_iter().map(move |to| (from, to)));
        let mut shown: Vec<_> =
            all.map(|(from, to)| (name(self.names[from]), name(self.names[to]))).collect();
        shown.sort();
        shown
    }

    /// Returns the transaction of a task that tries these edits.
    pub fn propose(&self, edits: &[Edit]) -> Transaction {
        let mut own = self.clone();
        let fits = edits.iter().copied().filter(|edit| own.edit(*edit)).collect();
        Transaction { edits: fits, seen: self.log.len() }
    }

    /// Applies all edits of a transaction or none. Returns whether they were applied. An edit that another
    /// transaction has applied since counts as applied.
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

    /// Applies an edit. Returns whether it fits.
    fn edit(&mut self, edit: Edit) -> bool {
        let id = |name: &usize| self.existing.get(name).copied();
        match edit {
            Edit::AddNode(name) => {
                if id(&name).is_some() {
                    return false;
                }
                self.existing.insert(name, self.names.len());
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
                let Some(node) = self.existing.remove(&name) else { return false };
                self.removed.insert(node);
                self.prune(node, |_| true);
                true
            }
        }
    }

    /// Removes a source from the joins to some targets. Returns whether a join waited for it.
    fn prune(&mut self, source: usize, of: impl Fn(usize) -> bool) -> bool {
        let before = self.pruned.len();
        let joins = self.joins.iter().enumerate();
        let waiting = joins.filter(|(_, (sources, target))| sources.contains(&source) && of(*target));
        self.pruned.extend(waiting.map(|(join, _)| (join, source)));
        self.pruned.len() > before
    }
}
