//! Resolving the builder's names to ids.

use std::any::TypeId;
use std::collections::HashSet;
use std::time::Duration;

use super::names::{Names, Problems};
use crate::graph::core::Breaks;
use crate::graph::problem::ProblemKind;
use crate::graph::sources::JoinPolicy;
use crate::graph::topology::END_ID;
use crate::graph::{Break, CodePlace, DeclaredBreak, DeclaredEdge, DeclaredNode, DeclaredRouter, Sources};
use crate::words::quoted;

/// The targets of a node's commands.
pub(super) enum CommandTargets {
    /// The node returns no commands.
    None,
    /// The node declared these targets.
    Declared(Vec<u32>),
    /// The node declared no targets, so its commands may go anywhere.
    Anywhere,
}

pub(super) fn resolve_command_targets(
    names: &Names,
    nodes: &[DeclaredNode],
    problems: &mut Problems,
) -> Vec<CommandTargets> {
    let resolve = |node: &DeclaredNode, problems: &mut Problems| match &node.node.settings.commands.targets {
        None if node.node.settings.commands.may_be_returned => CommandTargets::Anywhere,
        None => CommandTargets::None,
        Some(targets) => {
            let known = targets.iter().filter_map(|name| {
                names.target("targets", name).map_err(|kind| problems.add(kind, node.place)).ok()
            });
            CommandTargets::Declared(known.collect())
        }
    };
    nodes.iter().map(|node| resolve(node, problems)).collect()
}

pub(super) struct ResolvedEdge {
    pub(super) sources: Vec<u32>,
    pub(super) needed: u32,
    pub(super) timeout: Option<Duration>,
    pub(super) target: u32,
    /// A list of one source is a join only if it has something to wait for.
    pub(super) is_join: bool,
    pub(super) place: CodePlace,
}

pub(super) fn resolve_edges(
    names: &Names,
    declared: &[DeclaredEdge],
    eager: bool,
    problems: &mut Problems,
) -> Vec<ResolvedEdge> {
    let mut edges: Vec<ResolvedEdge> = Vec::with_capacity(declared.len());
    let mut seen = HashSet::new();
    for edge in declared {
        let declared = &edge.from;
        let what = if declared.joins { "join" } else { "edge" };
        let resolved: Vec<_> = declared.names.iter().map(|name| names.source(what, name)).collect();
        let target = names.target(what, &edge.target);
        let mut sources = Vec::with_capacity(resolved.len());
        for source in resolved {
            match source {
                Ok(source) => sources.push(source),
                Err(kind) => problems.add(kind, edge.place),
            }
        }
        let Ok(target) = target.map_err(|kind| problems.add(kind, edge.place)) else { continue };
        if sources.len() < declared.names.len() {
            continue;
        }
        if let Some(problem) = join_problem(&sources, declared) {
            problems.add(ProblemKind::BadJoin { to: edge.target.to_string(), problem }, edge.place);
            continue;
        }
        let mut key = sources.clone();
        key.sort_unstable();
        if !seen.insert((key, target)) {
            let from = quoted(&declared.names, " + ");
            let kind = ProblemKind::DuplicateEdge { from, to: edge.target.to_string() };
            problems.add(kind, edge.place);
            continue;
        }
        let needed = match declared.policy {
            JoinPolicy::All => sources.len(),
            JoinPolicy::AtLeast(sources) => sources,
        };
        let needed = needed as u32;
        let timeout = declared.timeout;
        let is_join = sources.len() > 1 || (eager && declared.joins);
        edges.push(ResolvedEdge { sources, needed, timeout, target, is_join, place: edge.place });
    }
    edges
}

fn join_problem(sources: &[u32], declared: &Sources) -> Option<&'static str> {
    let distinct: HashSet<_> = sources.iter().collect();
    if let JoinPolicy::AtLeast(needed) = declared.policy
        && !(1..=sources.len().max(1)).contains(&needed)
    {
        return Some(
            "waits for an impossible number of sources: use a number from 1 to the number of its sources",
        );
    }
    if declared.timeout.is_some_and(|limit| limit.is_zero()) {
        return Some("has a timeout of zero: it would never wait");
    }
    match sources.len() {
        0 => Some("has no sources: name the nodes it waits for"),
        count if distinct.len() < count => Some("names a source twice: it waits for each once"),
        _ => None,
    }
}

pub(super) struct RouteShape {
    pub(super) from: u32,
    /// The type of the function, if that tells what it does.
    pub(super) function: Option<TypeId>,
    /// Each target, and whether it is dispatched.
    pub(super) targets: Vec<(u32, bool)>,
    pub(super) word: &'static str,
    /// Whether one call may pick several targets.
    pub(super) picks_several: bool,
    pub(super) place: CodePlace,
}

pub(super) fn resolve_routers(
    names: &Names,
    declared: &[DeclaredRouter],
    problems: &mut Problems,
) -> Vec<RouteShape> {
    let mut routes = Vec::with_capacity(declared.len());
    for router in declared {
        let from = names.source(router.word, &router.from).map_err(|kind| problems.add(kind, router.place));
        let targets = router.targets.iter().map(|target| {
            let id = names.target(router.word, &target.name).map_err(|kind| problems.add(kind, router.place));
            (id.unwrap_or(END_ID), target.dispatches)
        });
        let targets = targets.collect();
        routes.push(RouteShape {
            from: from.unwrap_or(END_ID),
            function: router.function,
            targets,
            word: router.word,
            picks_several: router.picks_several,
            place: router.place,
        });
    }
    routes
}

pub(super) fn resolve_breaks(
    names: &Names,
    declared: &[DeclaredBreak],
    problems: &mut Problems,
) -> Option<Breaks> {
    if declared.is_empty() {
        return None;
    }
    let none = vec![false; names.0.len()];
    let mut breaks = Breaks { before: none.clone(), after: none };
    for declared in declared {
        let (what, marks) = match declared.when {
            Break::Before => ("interrupt_before", &mut breaks.before),
            Break::After => ("interrupt_after", &mut breaks.after),
        };
        match names.node(what, &declared.node) {
            Ok(node) => marks[node as usize] = true,
            Err(kind) => problems.add(kind, declared.place),
        }
    }
    Some(breaks)
}

/// The handler of each node's failures. A default handler does not handle its own failures.
pub(super) fn resolve_handlers(
    names: &Names,
    nodes: &[DeclaredNode],
    default: Option<u32>,
    problems: &mut Problems,
) -> Vec<Option<u32>> {
    let mut look_up =
        |name: &str, place| names.node("on_error", name).map_err(|kind| problems.add(kind, place)).ok();
    let handlers = (0..).zip(nodes).map(|(id, node)| match &node.node.settings.on_error {
        Some(own) => look_up(own, node.place),
        None => default.filter(|handler| *handler != id),
    });
    handlers.collect()
}
