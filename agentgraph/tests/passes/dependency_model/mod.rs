//! The reference model: a pass without counters, in which every step reads the whole graph.

mod course;
pub(crate) mod drive;
mod gates;
mod random;

use std::collections::{BTreeMap, HashMap, HashSet};

use agentgraph::dependency::Join;
pub(crate) use course::Course;
pub(crate) use random::shapes;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    AddNode(String, Join),
    AddEdge(String, String),
    PrependEdge(String, String),
    RemoveEdge(String, String),
    RemoveNode(String),
    Skip(Vec<String>),
}

/// A graph, and the edits that its nodes make.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: Vec<(String, Join)>,
    pub(crate) edges: Vec<(String, String)>,
    pub(crate) orders: Vec<(String, String)>,
    pub(crate) edits: HashMap<String, Vec<Edit>>,
    pub(crate) before: Vec<Edit>,
}

impl Shape {
    /// Returns the shape in which each node waits for all its dependencies.
    pub(crate) fn strict(mut self) -> Self {
        self.nodes.iter_mut().for_each(|(_, join)| *join = Join::All);
        self
    }

    /// Returns the shape in which each temporary node has the join of the template.
    pub(crate) fn with_templates(mut self) -> Self {
        for edit in self.edits.values_mut().flatten().chain(&mut self.before) {
            if let Edit::AddNode(_, join) = edit {
                *join = Join::All;
            }
        }
        self
    }
}

/// Returns the output of a node: its name and those of its dependencies.
pub(crate) fn output<'a>(name: &str, deps: impl Iterator<Item = &'a str>) -> String {
    format!("{name}({})", deps.collect::<Vec<_>>().join(","))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    Pruned,
    WaitsFor(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) order: Vec<(String, String)>,
    pub(crate) not_run: Vec<(String, Reason)>,
    pub(crate) refused: Vec<String>,
}

/// Nodes by number, in order of declaration; temporary ones after them.
#[derive(Clone)]
struct Graph {
    names: Vec<String>,
    joins: Vec<Join>,
    removed: HashSet<usize>,
    /// The dependencies of each, in order.
    sources: Vec<Vec<usize>>,
    /// The nodes that depend on each, in order.
    targets: Vec<Vec<usize>>,
    /// The nodes that each is ordered after.
    before: Vec<Vec<usize>>,
    /// Whether each is a root: a permanent node that is declared without dependencies, or a temporary one
    /// that never got any.
    root: Vec<bool>,
    skips: HashSet<usize>,
    /// The temporary edges that exist, each with whether it was prepended.
    added: Vec<(usize, usize, bool)>,
    /// The removed edges that were not temporary.
    cut: HashSet<(usize, usize)>,
}

pub(crate) struct Model {
    graph: Graph,
    edits: HashMap<String, Vec<Edit>>,
    kept: BTreeMap<String, String>,
}

/// One pass under way.
#[derive(Clone)]
struct Pass {
    graph: Graph,
    /// Every node that has ever entered, in order.
    queue: Vec<usize>,
    done: Vec<usize>,
    /// The nodes that have started and are not done.
    running: HashSet<usize>,
    kept: BTreeMap<String, String>,
    permanent: usize,
}

impl Model {
    pub(crate) fn of(shape: &Shape) -> Self {
        let names: Vec<String> = shape.nodes.iter().map(|(name, _)| name.clone()).collect();
        let at = |name: &String| names.iter().position(|known| known == name).unwrap();
        let mut graph = Graph {
            joins: shape.nodes.iter().map(|(_, join)| *join).collect(),
            removed: HashSet::new(),
            sources: vec![Vec::new(); names.len()],
            targets: vec![Vec::new(); names.len()],
            before: vec![Vec::new(); names.len()],
            root: vec![true; names.len()],
            skips: HashSet::new(),
            added: Vec::new(),
            cut: HashSet::new(),
            names: names.clone(),
        };
        for (from, to) in &shape.edges {
            graph.sources[at(to)].push(at(from));
            graph.targets[at(from)].push(at(to));
            graph.root[at(to)] = false;
        }
        for (from, to) in &shape.orders {
            graph.before[at(to)].push(at(from));
        }
        Model { graph, edits: shape.edits.clone(), kept: BTreeMap::new() }
    }

    /// Runs a pass, one node after the other; `None` if an edit in `before` is refused.
    pub(crate) fn pass(&mut self, before: &[Edit]) -> Option<Report> {
        let mut course = Course::begin(self, before)?;
        let mut refused = Vec::new();
        while let Some((name, _)) = course.start() {
            let edits = self.edits.get(&name).filter(|_| course.is_permanent(&name));
            for (at, edit) in edits.into_iter().flatten().enumerate() {
                if !course.edit(&name, edit) {
                    refused.push(format!("{name}{at}"));
                }
            }
            course.end(&name);
        }
        self.kept = course.kept();
        Some(Report { refused, ..course.report() })
    }
}

impl Pass {
    fn enter(&mut self, node: usize) {
        if !self.queue.contains(&node) {
            self.queue.push(node);
        }
    }

    /// Enters the nodes from `first` on that have no dependencies.
    fn enter_roots(&mut self, first: usize) {
        for node in first..self.graph.names.len() {
            if self.graph.sources[node].is_empty() && self.graph.root[node] {
                self.enter(node);
            }
        }
    }

    fn is_ready(&self, node: usize) -> bool {
        let sources = &self.graph.sources[node];
        let done = |source: &&usize| self.done.contains(source);
        let lost = |source: &&usize| self.is_lost(**source);
        let has_some = sources.is_empty() || sources.iter().any(|source| done(&source));
        let enough = match self.graph.joins[node] {
            Join::All => sources.iter().all(|source| done(&source)),
            Join::Any => has_some,
            _ => has_some && sources.iter().all(|source| done(&source) || lost(&source)),
        };
        let before = &self.graph.before[node];
        enough && !self.is_lost(node) && before.iter().all(|source| done(&source) || lost(&source))
    }

    /// Whether a node cannot run any more in the current graph.
    fn is_lost(&self, node: usize) -> bool {
        if self.done.contains(&node) || self.running.contains(&node) {
            return false;
        }
        let sources = &self.graph.sources[node];
        let starved = match self.graph.joins[node] {
            Join::All => sources.iter().any(|source| self.is_lost(*source)),
            _ => !sources.is_empty() && sources.iter().all(|source| self.is_lost(*source)),
        };
        starved || self.is_cut(node)
    }

    /// Whether a node was removed, or lost all its dependencies.
    fn is_cut(&self, node: usize) -> bool {
        self.graph.removed.contains(&node) || (self.graph.sources[node].is_empty() && !self.graph.root[node])
    }

    /// Whether a node is cut, or all its dependencies are pruned.
    fn is_pruned(&self, node: usize) -> bool {
        let sources = &self.graph.sources[node];
        let all = !sources.is_empty()
            && sources.iter().all(|source| !self.done.contains(source) && self.is_pruned(*source));
        self.is_cut(node) || all
    }

    fn finish(&mut self, node: usize) {
        self.running.remove(&node);
        self.done.push(node);
        for target in self.graph.targets[node].clone() {
            if !self.done.contains(&target) {
                self.enter(target);
            }
        }
    }

    fn not_run(&self) -> Vec<(String, Reason)> {
        let names = &self.graph.names;
        let replaced = |node: usize| names[node + 1..].contains(&names[node]);
        let missed = (0..names.len()).filter(|node| !self.done.contains(node) && !replaced(*node));
        let reason = |node: usize| {
            if self.is_pruned(node) {
                Reason::Pruned
            } else {
                let lost = self.graph.sources[node].iter().filter(|source| self.is_lost(**source));
                Reason::WaitsFor(lost.map(|source| self.graph.names[*source].clone()).collect())
            }
        };
        missed.map(|node| (self.graph.names[node].clone(), reason(node))).collect()
    }

    fn find(&self, name: &str) -> Option<usize> {
        (0..self.graph.names.len())
            .rev()
            .find(|node| self.graph.names[*node] == name && !self.graph.removed.contains(node))
    }

    /// Applies an edit; `None` if it is refused.
    fn edit(&mut self, edit: &Edit) -> Option<()> {
        match edit {
            Edit::AddNode(name, join) => {
                if self.find(name).is_some() {
                    return None;
                }
                let graph = &mut self.graph;
                graph.names.push(name.clone());
                graph.joins.push(*join);
                graph.root.push(true);
                graph.sources.push(Vec::new());
                graph.targets.push(Vec::new());
                graph.before.push(Vec::new());
            }
            Edit::AddEdge(from, to) => self.add_edge(from, to, false)?,
            Edit::PrependEdge(from, to) => self.add_edge(from, to, true)?,
            Edit::RemoveEdge(from, to) => {
                let from = self.find(from)?;
                let to = self.find(to)?;
                let is_there = self.graph.sources[to].contains(&from);
                if !is_there || self.done.contains(&from) || self.done.contains(&to) {
                    return None;
                }
                self.cut(from, to);
            }
            Edit::RemoveNode(name) => {
                let node = self.find(name)?;
                if self.done.contains(&node) || self.running.contains(&node) {
                    return None;
                }
                self.graph.sources[node].clone().into_iter().for_each(|from| self.cut(from, node));
                self.graph.targets[node].clone().into_iter().for_each(|to| self.cut(node, to));
                self.graph.removed.insert(node);
            }
            Edit::Skip(names) => {
                let nodes: Vec<usize> = names.iter().map(|name| self.find(name)).collect::<Option<_>>()?;
                let fits = |node: &usize| {
                    !self.done.contains(node)
                        && !self.running.contains(node)
                        && *node < self.permanent
                        && self.kept.contains_key(&self.graph.names[*node])
                };
                if !nodes.iter().all(fits) {
                    return None;
                }
                self.graph.skips.extend(nodes);
            }
        }
        Some(())
    }

    fn cut(&mut self, from: usize, to: usize) {
        let known = self.graph.added.len();
        self.graph.added.retain(|(a, b, _)| (*a, *b) != (from, to));
        if self.graph.added.len() == known {
            self.graph.cut.insert((from, to));
        }
        self.graph.sources[to].retain(|source| *source != from);
        self.graph.targets[from].retain(|target| *target != to);
    }

    fn add_edge(&mut self, from: &str, to: &str, front: bool) -> Option<()> {
        let from = self.find(from)?;
        let to = self.find(to)?;
        let known = self.graph.sources[to].contains(&from);
        if known || from == to || self.done.contains(&to) || self.leads(to, from) {
            return None;
        }
        let at = if front { 0 } else { self.graph.sources[to].len() };
        self.graph.sources[to].insert(at, from);
        self.graph.targets[from].push(to);
        self.graph.added.push((from, to, front));
        if to >= self.permanent {
            self.graph.root[to] = false;
        }
        if self.done.contains(&from) {
            self.enter(to);
        }
        Some(())
    }

    /// Whether a path of edges and orders leads from one node to another.
    fn leads(&self, from: usize, to: usize) -> bool {
        let after = |node: usize| {
            (0..self.graph.names.len()).filter(move |other| self.graph.before[*other].contains(&node))
        };
        let mut seen = HashSet::from([from]);
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            let targets: Vec<usize> = self.graph.targets[node].iter().copied().chain(after(node)).collect();
            next.extend(targets.into_iter().filter(|target| seen.insert(*target)));
        }
        seen.contains(&to)
    }
}
