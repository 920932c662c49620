//! The model of edited runs: a graph of names in lists, which is copied before a change that may be undone.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use agentgraph::edit::GraphEdit;
use agentgraph::{END, START};

/// The edits of a node at each of its visits, which are counted from 1.
pub type Scripts = BTreeMap<(String, usize), Vec<GraphEdit>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Join {
    pub sources: Vec<String>,
    pub to: String,
    pub arrived: BTreeSet<String>,
    /// Whether the target was removed. Another node of the same name may exist.
    pub is_dead: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// In task order.
    pub nodes: Vec<String>,
    pub edges: Vec<(String, String)>,
    pub joins: Vec<Join>,
    /// The nodes that keep their outputs.
    pub keeps: BTreeSet<String>,
    pub skips: BTreeSet<String>,
    /// The names of all temporary nodes, removed ones included.
    pub temporary: BTreeSet<String>,
    /// The joins that may fire: a source has arrived or was removed.
    pub touched: BTreeSet<usize>,
}

/// The result of a run.
#[derive(Debug, Default, PartialEq)]
pub struct RunResult {
    pub seen: Vec<String>,
    /// Every tried edit: the node, the edit, and whether it was accepted.
    pub tried: Vec<(String, String, bool)>,
    /// The nodes whose edits were dropped.
    pub dropped: Vec<String>,
    /// The targets of stuck joins, each with the sources that have arrived.
    pub stuck: Vec<(String, Vec<String>)>,
    /// The plain edges at the end, sorted.
    pub edges: Vec<(String, String)>,
    pub finished: bool,
}

impl Graph {
    fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node == name)
    }

    /// Applies an edit if it fits. Returns whether it does.
    fn edit(&mut self, edit: &GraphEdit, kept: &BTreeMap<String, String>) -> bool {
        let edge = |from: &String, to: &String| (from.clone(), to.clone());
        match edit {
            GraphEdit::AddNode { name, .. } => {
                let fits = !self.has(name);
                if fits {
                    self.nodes.push(name.clone());
                    self.temporary.insert(name.clone());
                    self.keeps.remove(name);
                }
                fits
            }
            GraphEdit::AddEdge { from, to } | GraphEdit::PrependEdge { from, to } => {
                let ends = (self.has(from) || from == START) && (self.has(to) || to == END);
                let fits = ends && !self.edges.contains(&edge(from, to));
                if fits {
                    self.edges.push(edge(from, to));
                }
                fits
            }
            GraphEdit::RemoveEdge { from, to } => {
                if !((self.has(from) || from == START) && (self.has(to) || to == END)) {
                    return false;
                }
                let plain = self.edges.contains(&edge(from, to));
                self.edges.retain(|other| *other != edge(from, to));
                let taken = self.take_source(from, |join| join.to == *to);
                plain || taken
            }
            GraphEdit::RemoveNode { name } => {
                let fits = self.has(name);
                self.nodes.retain(|node| node != name);
                self.edges.retain(|(from, to)| from != name && to != name);
                self.take_source(name, |_| true);
                for join in self.joins.iter_mut().filter(|join| join.to == *name) {
                    join.arrived.clear();
                    join.is_dead = true;
                }
                self.skips.remove(name);
                fits
            }
            GraphEdit::Skip { nodes } => {
                let can =
                    |node: &String| self.has(node) && self.keeps.contains(node) && kept.contains_key(node);
                let fits = nodes.iter().all(can);
                if fits {
                    self.skips.extend(nodes.iter().cloned());
                }
                fits
            }
            _ => false,
        }
    }

    /// Removes a source from the joins for which `of` is true. Returns whether there was one.
    fn take_source(&mut self, source: &str, of: impl Fn(&Join) -> bool) -> bool {
        let mut taken = false;
        for (at, join) in self.joins.iter_mut().enumerate() {
            if of(join) && !join.is_dead && join.sources.iter().any(|one| one == source) {
                join.sources.retain(|one| one != source);
                join.arrived.remove(source);
                self.touched.insert(at);
                taken = true;
            }
        }
        taken
    }

    /// Fires a join if all its sources have arrived.
    fn judge(&mut self, at: usize, next: &mut BTreeSet<String>) {
        let join = &mut self.joins[at];
        let all = join.sources.iter().all(|source| join.arrived.contains(source));
        if all && !join.arrived.is_empty() && !join.is_dead {
            join.arrived.clear();
            if join.to != END {
                next.insert(join.to.clone());
            }
        }
    }

    /// Adds the targets of a node's edges to `next` and records its arrivals at joins, which are judged after
    /// the whole superstep.
    fn follow(&mut self, node: &str, next: &mut BTreeSet<String>) {
        let targets = self.edges.iter().filter(|(from, to)| from == node && to != END);
        next.extend(targets.map(|(_, to)| to.clone()));
        for at in 0..self.joins.len() {
            let join = &mut self.joins[at];
            if !join.is_dead && join.sources.iter().any(|source| source == node) {
                join.arrived.insert(node.to_owned());
                self.touched.insert(at);
            }
        }
    }
}

/// Runs a graph from its beginning for at most `steps` supersteps.
pub fn run(mut graph: Graph, scripts: &Scripts, steps: usize) -> RunResult {
    let mut result = RunResult::default();
    let mut kept = BTreeMap::<String, String>::new();
    let mut visits = BTreeMap::<String, usize>::new();
    let mut next = BTreeSet::new();
    graph.follow(START, &mut next);
    for at in std::mem::take(&mut graph.touched) {
        graph.judge(at, &mut next);
    }
    for _ in 0..steps {
        let frontier: Vec<String> = graph.nodes.iter().filter(|node| next.contains(*node)).cloned().collect();
        if frontier.is_empty() {
            break;
        }
        let mut said = Vec::new();
        let mut transactions = Vec::new();
        for node in &frontier {
            if graph.skips.contains(node) {
                said.push((node.clone(), kept[node].clone()));
                continue;
            }
            let visit = visits.entry(node.clone()).or_default();
            *visit += 1;
            said.push((node.clone(), format!("{node}.{visit}")));
            let mut own = graph.clone();
            let script = scripts.get(&(node.clone(), *visit)).cloned().unwrap_or_default();
            let accepted: Vec<GraphEdit> = script
                .into_iter()
                .filter(|edit| {
                    let fits = own.edit(edit, &kept);
                    result.tried.push((node.clone(), edit.to_string(), fits));
                    fits
                })
                .collect();
            transactions.push((node.clone(), accepted));
        }
        let used: Vec<String> = frontier.iter().filter(|node| graph.skips.contains(*node)).cloned().collect();
        let mut so_far: Vec<GraphEdit> = Vec::new();
        for (by, edits) in transactions {
            let mut tried = graph.clone();
            if edits.iter().all(|edit| tried.edit(edit, &kept) || so_far.contains(edit)) {
                graph = tried;
                so_far.extend(edits);
            } else {
                result.dropped.push(by);
            }
        }
        for node in used {
            graph.skips.remove(&node);
        }
        next = BTreeSet::new();
        for (node, words) in said {
            // The node that ran may have been removed, and another node may have its name.
            let still = graph.has(&node)
                && !so_far.iter().any(|edit| matches!(edit, GraphEdit::RemoveNode { name } if *name == node));
            if still {
                graph.follow(&node, &mut next);
            }
            if graph.keeps.contains(&node) {
                kept.insert(node, words.clone());
            }
            result.seen.push(words);
        }
        for at in std::mem::take(&mut graph.touched) {
            graph.judge(at, &mut next);
        }
        next.retain(|node| graph.has(node));
    }
    result.finished = next.is_empty();
    result.stuck = graph
        .joins
        .iter()
        .filter(|join| !join.arrived.is_empty())
        .map(|join| (join.to.clone(), join.arrived.iter().cloned().collect()))
        .collect();
    result.edges = graph.edges;
    result.edges.sort();
    result
}
