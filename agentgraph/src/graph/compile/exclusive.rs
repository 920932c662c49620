//! Joins that can never fire, since a route takes only one of the branches that they wait for.
//!
//! A source *hangs on* a target of a route if every path from START to the source uses that target of that
//! route. If the route is called at most once in a run and picks one target, two sources that hang on
//! different targets never both run. Paths out of the join itself do not count: it would have to fire first.
//! Commands without targets and temporary nodes cannot be judged and give no warning.

use std::collections::{BTreeSet, HashMap};

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::resolve::{CommandTargets, ResolvedEdge, RouteShape};
use super::shape::Shape;
use crate::graph::problem::{Warning, WarningKind};
use crate::graph::topology::END_ID;

/// Limit of examined paths and dominators; the rest of a larger graph is not judged.
const LOOKED_AT: usize = 20_000_000;

pub(super) fn exclusive_sources(shape: &Shape) -> Vec<Warning> {
    let joins: Vec<(usize, &ResolvedEdge)> =
        shape.edges.iter().enumerate().filter(|(_, edge)| waits_for_several(edge)).collect();
    if joins.is_empty() || !shape.routes.iter().any(chooses) || !shape.templates.is_empty() {
        return Vec::new();
    }
    let mut budget = LOOKED_AT;
    let Some(whole) = Reach::of(shape, None, &mut budget) else { return Vec::new() };
    let parts = whole.parts();
    let mut warnings = Vec::new();
    for (at, edge) in joins {
        let part = |node: u32| parts.get(node as usize);
        let is_on_a_cycle =
            edge.target != END_ID && edge.sources.iter().any(|source| part(*source) == part(edge.target));
        let without = if is_on_a_cycle {
            match Reach::of(shape, Some(at), &mut budget) {
                None => break,
                without => without,
            }
        } else {
            None
        };
        let Some(found) = without.as_ref().unwrap_or(&whole).exclusive(edge, &mut budget) else { continue };
        let name = |node: u32| shape.names.name(node).to_owned();
        let (router, first, second) = found;
        let route = shape.names.name(shape.routes[router].from);
        let kind = WarningKind::ExclusiveSources {
            to: name(edge.target),
            route: route.to_owned(),
            first: name(first),
            second: name(second),
        };
        warnings.push(Warning { kind, place: Some(edge.place) });
    }
    warnings
}

fn waits_for_several(edge: &ResolvedEdge) -> bool {
    edge.is_join
        && edge.sources.len() > 1
        && edge.needed as usize == edge.sources.len()
        && edge.timeout.is_none()
}

fn distinct_targets(route: &RouteShape) -> BTreeSet<u32> {
    route.targets.iter().map(|(target, _)| *target).collect()
}

/// Whether a route picks one of several targets.
fn chooses(route: &RouteShape) -> bool {
    !route.picks_several && distinct_targets(route).len() > 1
}

/// Reachability through paths, optionally without the paths out of one join.
struct Reach {
    ways: DiGraph<(), ()>,
    dominators: Dominators<NodeIndex>,
    /// For each vertex that is not a node: its route, and the target that it leads to.
    choices: HashMap<NodeIndex, (usize, u32)>,
    /// Whether each node, START included, runs at most once in a run.
    once: Vec<bool>,
    /// The source of each route.
    sources: Vec<u32>,
}

impl Reach {
    fn of(shape: &Shape, without: Option<usize>, budget: &mut usize) -> Option<Self> {
        let start = shape.names.start();
        let mut ways = DiGraph::new();
        for _ in 0..=start {
            ways.add_node(());
        }
        let index = |id: u32| NodeIndex::new(id as usize);
        let edges = shape.edges.iter().enumerate().filter(|(at, edge)| is_path(*at, edge, without));
        for (_, edge) in edges {
            for source in &edge.sources {
                ways.add_edge(index(*source), index(edge.target), ());
            }
        }
        let mut choices = HashMap::new();
        for (router, route) in shape.routes.iter().enumerate() {
            for target in distinct_targets(route).into_iter().filter(|target| *target != END_ID) {
                let choice = ways.add_node(());
                ways.add_edge(index(route.from), choice, ());
                ways.add_edge(choice, index(target), ());
                choices.insert(choice, (router, target));
            }
        }
        for (node, target) in others(shape) {
            ways.add_edge(index(node), index(target), ());
        }
        *budget = budget.checked_sub(ways.edge_count() + ways.node_count())?;
        let dominators = simple_fast(&ways, index(start));
        let sources = shape.routes.iter().map(|route| route.from).collect();
        Some(Reach { ways, dominators, choices, once: once(shape, without), sources })
    }

    /// The strongly connected component of each vertex.
    fn parts(&self) -> Vec<usize> {
        let mut parts = vec![0; self.ways.node_count()];
        for (part, members) in tarjan_scc(&self.ways).into_iter().enumerate() {
            members.into_iter().for_each(|member| parts[member.index()] = part);
        }
        parts
    }

    /// A route, and two of its targets that different sources of the join hang on.
    fn exclusive(&self, join: &ResolvedEdge, budget: &mut usize) -> Option<(usize, u32, u32)> {
        let mut picked: HashMap<usize, u32> = HashMap::new();
        for source in &join.sources {
            for vertex in self.dominators.dominators(NodeIndex::new(*source as usize))? {
                *budget = budget.checked_sub(1)?;
                let Some((router, target)) = self.choices.get(&vertex) else { continue };
                if !self.once[self.sources[*router] as usize] {
                    continue;
                }
                let first = *picked.entry(*router).or_insert(*target);
                if first != *target {
                    return Some((*router, first, *target));
                }
            }
        }
        None
    }
}

fn is_path(at: usize, edge: &ResolvedEdge, without: Option<usize>) -> bool {
    without != Some(at) && edge.target != END_ID
}

/// Paths by commands, to handlers, and to the node for the limit.
fn others(shape: &Shape) -> Vec<(u32, u32)> {
    let commands = (0..).zip(&shape.targets).flat_map(|(node, targets)| {
        let targets: &[u32] = match targets {
            CommandTargets::Declared(targets) => targets,
            CommandTargets::None | CommandTargets::Anywhere => &[],
        };
        targets.iter().map(move |target| (node, *target))
    });
    let handlers = shape.handled().map(|(node, handler)| (node as u32, handler));
    let limit = shape.on_limit.map(|node| (shape.names.start(), node));
    commands.chain(handlers).chain(limit).filter(|(_, target)| *target != END_ID).collect()
}

/// Whether each node runs at most once in a run: one path leads to it, and it is taken at most once.
fn once(shape: &Shape, without: Option<usize>) -> Vec<bool> {
    let start = shape.names.start() as usize;
    let mut ways = vec![0_u32; start + 1];
    let mut waits_for: Vec<&[u32]> = vec![&[]; start + 1];
    let mut add = |target: u32, sources| {
        if let Some(count) = ways.get_mut(target as usize) {
            *count += 1;
            waits_for[target as usize] = sources;
        }
    };
    for (_, edge) in shape.edges.iter().enumerate().filter(|(at, edge)| is_path(*at, edge, without)) {
        add(edge.target, &edge.sources[..]);
    }
    for route in &shape.routes {
        for target in distinct_targets(route) {
            add(target, std::slice::from_ref(&route.from));
            // The route may pick the target twice.
            (0..u32::from(route.picks_several)).for_each(|_| add(target, &[]));
        }
    }
    for (_, target) in others(shape) {
        // A command may go there several times.
        (0..2).for_each(|_| add(target, &[]));
    }
    let mut missing: Vec<usize> = waits_for.iter().map(|sources| sources.len()).collect();
    let mut leads_to: Vec<Vec<u32>> = vec![Vec::new(); start + 1];
    for (target, sources) in (0..).zip(&waits_for).filter(|(target, _)| ways[*target as usize] == 1) {
        sources.iter().for_each(|source| leads_to[*source as usize].push(target));
    }
    let mut once = vec![false; start + 1];
    let mut next = vec![start as u32];
    while let Some(node) = next.pop() {
        once[node as usize] = true;
        for target in &leads_to[node as usize] {
            missing[*target as usize] -= 1;
            if missing[*target as usize] == 0 {
                next.push(*target);
            }
        }
    }
    once
}
