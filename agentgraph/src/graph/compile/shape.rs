//! The checked graph as a whole: its paths, their problems, and its layout for running.

use std::collections::HashSet;
use std::sync::Arc;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed};

use super::exclusive::exclusive_sources;
use super::names::{Names, Problems};
use super::resolve::{CommandTargets, ResolvedEdge, RouteShape};
use crate::graph::core::Breaks;
use crate::graph::draw::{Drawing, Line, LineKind};
use crate::graph::problem::{ProblemKind, Warning, WarningKind};
use crate::graph::topology::{DeferredOrder, END_ID, Exits, JoinShape, Rows, Topology, WIDE};
use crate::graph::{DeclaredBreak, DeclaredNode};
use crate::words::START;

/// A graph whose names are resolved, before it is laid out for running. One field per kind of note of the
/// builder.
pub(super) struct Shape {
    pub(super) names: Names,
    pub(super) edges: Vec<ResolvedEdge>,
    pub(super) routes: Vec<RouteShape>,
    pub(super) targets: Vec<CommandTargets>,
    pub(super) breaks: Option<Breaks>,
    pub(super) deferred: Vec<bool>,
    pub(super) on_limit: Option<u32>,
    pub(super) default_handler: Option<u32>,
    pub(super) handlers: Vec<Option<u32>>,
    pub(super) eager: bool,
    /// The names of templates.
    pub(super) templates: Vec<Arc<str>>,
    /// Whether each node keeps its last output.
    pub(super) keeps_output: Vec<bool>,
}

impl Shape {
    /// Whether an edge or route leaves START.
    pub(super) fn has_entry(&self) -> bool {
        let start = self.names.start();
        let has_edge = self.edges.iter().any(|edge| edge.sources.contains(&start));
        has_edge || self.routes.iter().any(|route| route.from == start)
    }

    /// The edges, joins, routes and declared commands as a petgraph graph. END has an index of its own.
    pub(super) fn ways(&self) -> DiGraph<(), ()> {
        let start = self.names.start();
        let end = start + 1;
        let mut ways = DiGraph::with_capacity(end as usize + 1, self.edges.len());
        for _ in 0..=end {
            ways.add_node(());
        }
        let index = |id: u32| NodeIndex::new(if id == END_ID { end as usize } else { id as usize });
        for edge in &self.edges {
            for source in &edge.sources {
                ways.add_edge(index(*source), index(edge.target), ());
            }
        }
        for route in &self.routes {
            for (target, _) in &route.targets {
                ways.add_edge(index(route.from), index(*target), ());
            }
        }
        for (node, targets) in self.targets.iter().enumerate() {
            if let CommandTargets::Declared(targets) = targets {
                for target in targets {
                    ways.add_edge(NodeIndex::new(node), index(*target), ());
                }
            }
        }
        ways
    }

    /// All paths between nodes as a petgraph graph, with START and END; nodes without edges or routes lead to
    /// END.
    fn path_graph(&self) -> (DiGraph<(), ()>, NodeIndex, NodeIndex) {
        let mut ways = self.ways();
        let start = NodeIndex::new(self.names.start() as usize);
        let end = NodeIndex::new(start.index() + 1);
        for (node, handler) in self.handled() {
            ways.add_edge(NodeIndex::new(node), NodeIndex::new(handler as usize), ());
        }
        if let Some(node) = self.on_limit {
            ways.add_edge(start, NodeIndex::new(node as usize), ());
        }
        for node in (0..start.index()).map(NodeIndex::new) {
            if ways.neighbors(node).next().is_none() {
                ways.add_edge(node, end, ());
            }
        }
        (ways, start, end)
    }

    /// The nodes that were declared detached, and those that are reached only through them; empty if there
    /// are none.
    pub(super) fn detached(&self, nodes: &[DeclaredNode]) -> Vec<bool> {
        let declared = |node: usize| nodes.get(node).is_some_and(|node| node.node.settings.detached);
        if !(0..nodes.len()).any(declared) {
            return Vec::new();
        }
        let (ways, start, _) = self.path_graph();
        let goes_anywhere =
            |node: usize| matches!(self.targets.get(node), Some(CommandTargets::Anywhere)) && !declared(node);
        let mut normal = HashSet::from([start.index()]);
        let mut reached = HashSet::new();
        let mut next = vec![start];
        while let Some(node) = next.pop() {
            let targets: Vec<_> = if goes_anywhere(node.index()) {
                (0..nodes.len()).map(NodeIndex::new).collect()
            } else {
                ways.neighbors(node).collect()
            };
            let targets = targets.into_iter().filter(|target| !declared(target.index()));
            next.extend(targets.filter(|target| normal.insert(target.index())));
        }
        let mut search = Dfs::new(&ways, start);
        while let Some(node) = search.next(&ways) {
            reached.insert(node.index());
        }
        let detached = |node: usize| declared(node) || (reached.contains(&node) && !normal.contains(&node));
        (0..nodes.len()).map(detached).collect()
    }

    pub(super) fn warnings(&self, nodes: &[DeclaredNode]) -> Vec<Warning> {
        let mut warnings = self.repeated_routers();
        warnings.extend(self.path_warnings(nodes));
        warnings
    }

    /// The routers whose function is that of an earlier one of the same node.
    fn repeated_routers(&self) -> Vec<Warning> {
        let mut seen = HashSet::new();
        let known = self.routes.iter().filter_map(|route| Some((route, route.function?)));
        let repeated = known.filter(|(route, function)| !seen.insert((route.from, *function)));
        let warnings = repeated.map(|(route, _)| {
            let from = match self.names.name(route.from) {
                START => START.trim_matches('_').to_uppercase(),
                node => format!("node `{node}`"),
            };
            Warning { kind: WarningKind::RepeatedRouter { from, what: route.word }, place: Some(route.place) }
        });
        warnings.collect()
    }

    /// The warnings about what can be reached.
    fn path_warnings(&self, nodes: &[DeclaredNode]) -> Vec<Warning> {
        let undeclared =
            nodes.iter().zip(&self.targets).find(|(_, targets)| matches!(targets, CommandTargets::Anywhere));
        if let Some((node, _)) = undeclared {
            let kind = WarningKind::UndeclaredTargets { node: node.name.to_string() };
            return vec![Warning { kind, place: Some(node.place) }];
        }
        let (ways, start, end) = self.path_graph();
        let reached = reach(Dfs::new(&ways, start), |dfs| dfs.next(&ways));
        let back = Reversed(&ways);
        let ends = reach(Dfs::new(back, end), |dfs| dfs.next(back));
        let mut warnings = Vec::new();
        for (id, node) in nodes.iter().enumerate() {
            let name = node.name.to_string();
            let kind = match (reached.contains(&id), ends.contains(&id)) {
                (false, _) => WarningKind::Unreachable { node: name },
                (true, false) => WarningKind::NoWayToEnd { node: name },
                (true, true) => continue,
            };
            warnings.push(Warning { kind, place: Some(node.place) });
        }
        for edge in self.edges.iter().filter(|edge| edge.is_join) {
            if let Some(source) = edge.sources.iter().find(|source| !reached.contains(&(**source as usize))) {
                let to = self.names.name(edge.target).to_owned();
                let source_node = self.names.name(*source).to_owned();
                let kind = WarningKind::JoinNeverFires { to, source_node };
                warnings.push(Warning { kind, place: Some(edge.place) });
            }
        }
        warnings.extend(exclusive_sources(self));
        warnings
    }

    /// The nodes with a handler, and the handler of each.
    pub(super) fn handled(&self) -> impl Iterator<Item = (usize, u32)> {
        self.handlers.iter().enumerate().filter_map(|(node, handler)| Some((node, (*handler)?)))
    }

    pub(super) fn drawing(&self, nodes: &[DeclaredNode]) -> Drawing {
        let mut lines = Vec::new();
        let mut add = |from, to, kind| lines.push(Line { from, to, kind });
        for edge in &self.edges {
            let kind = if edge.is_join { LineKind::Join } else { LineKind::Edge };
            edge.sources.iter().for_each(|source| add(*source, Some(edge.target), kind));
        }
        for route in &self.routes {
            for (target, dispatches) in &route.targets {
                let kind = if *dispatches { LineKind::Dispatch } else { LineKind::Route };
                add(route.from, Some(*target), kind);
            }
        }
        for (node, targets) in (0..).zip(&self.targets) {
            match targets {
                CommandTargets::None => {}
                CommandTargets::Declared(targets) => {
                    targets.iter().for_each(|to| add(node, Some(*to), LineKind::Command));
                }
                CommandTargets::Anywhere => add(node, None, LineKind::Command),
            }
        }
        self.handled().for_each(|(node, handler)| add(node as u32, Some(handler), LineKind::Error));
        let graphs = nodes.iter().map(|node| node.node.settings.graph.is_some()).collect();
        Drawing { names: self.names.0.to_vec(), graphs, lines }
    }

    pub(super) fn topology(&self, deferred_order: DeferredOrder) -> Topology {
        let rows = self.names.0.len() + 1;
        let mut successors = vec![Vec::new(); rows];
        let mut join_sources = vec![Vec::new(); rows];
        let mut routers = vec![Vec::new(); rows];
        let mut exits = vec![Exits::default(); rows];
        let mut joins = Vec::new();
        let mut join_words = 0;
        for edge in &self.edges {
            match &edge.sources[..] {
                [source] if !edge.is_join && edge.target != END_ID => {
                    successors[*source as usize].push(edge.target);
                }
                [source] if !edge.is_join => exits[*source as usize].ends = true,
                sources => {
                    for (place, source) in sources.iter().enumerate() {
                        join_sources[*source as usize].push((joins.len() as u32, place as u32));
                    }
                    joins.push(JoinShape {
                        sources: sources.to_vec(),
                        target: edge.target,
                        needed: edge.needed,
                        timeout: edge.timeout,
                        deferred: self.deferred.get(edge.target as usize).copied().unwrap_or(false),
                        first_word: join_words,
                    });
                    join_words += sources.len().div_ceil(64) as u32;
                }
            }
        }
        for (router, route) in self.routes.iter().enumerate() {
            routers[route.from as usize].push(router as u32);
            exits[route.from as usize].routers = true;
            exits[route.from as usize].fallible_routers |= route.word == "branch";
        }
        for (source, joins) in join_sources.iter().enumerate() {
            exits[source].joins = !joins.is_empty();
        }
        for (exits, keeps) in exits.iter_mut().zip(&self.keeps_output) {
            exits.keeps_output = *keeps;
        }
        for exits in &mut exits {
            exits.special = exits.fallible_routers || exits.keeps_output;
        }
        let wide = successors.iter().enumerate().filter(|(_, row)| row.len() > WIDE);
        let wide = wide.map(|(source, row)| (source as u32, row.iter().copied().collect()));
        Topology {
            nodes: self.names.start(),
            wide: wide.collect(),
            successors: Rows::of(successors),
            join_sources: Rows::of(join_sources),
            times_joins: joins.iter().any(|join: &JoinShape| join.timeout.is_some()),
            joins,
            join_words,
            deferred: self.deferred.to_vec(),
            deferred_order,
            routers: Rows::of(routers),
            exits,
        }
    }
}

pub(super) fn check_detached(
    shape: &Shape,
    nodes: &[DeclaredNode],
    detached: &[bool],
    breaks: &[DeclaredBreak],
    problems: &mut Problems,
) {
    let is_detached = |node: u32| detached.get(node as usize).copied().unwrap_or(false);
    let mut add = |node: u32, problem, place| {
        problems.add(ProblemKind::Detached { node: shape.names.name(node).to_owned(), problem }, place);
    };
    for (id, node) in (0..).zip(nodes) {
        if node.node.settings.detached && !shape.eager {
            add(id, "which only a node of an eager graph can be: add `.eager()` to the builder", node.place);
        }
    }
    for edge in shape.edges.iter().filter(|edge| edge.is_join) {
        let (detached, normal): (Vec<u32>, Vec<u32>) =
            edge.sources.iter().partition(|node| is_detached(**node));
        if let (Some(node), false) = (detached.first(), normal.is_empty()) {
            add(*node, "and a join would wait for it beside nodes that are not", edge.place);
        }
    }
    for declared in breaks {
        match shape.names.0.id(&declared.node) {
            Some(node) if is_detached(node) => {
                add(
                    node,
                    "so no call waits for it, and an interrupt there would never be answered",
                    declared.place,
                );
            }
            _ => {}
        }
    }
}

fn reach<D>(mut search: D, mut next: impl FnMut(&mut D) -> Option<NodeIndex>) -> HashSet<usize> {
    let mut found = HashSet::new();
    while let Some(node) = next(&mut search) {
        found.insert(node.index());
    }
    found
}
