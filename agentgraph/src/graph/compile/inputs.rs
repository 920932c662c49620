//! Checks for edges, joins and routes without input that lead to nodes with one.

use super::names::{Names, Problems};
use super::resolve::{ResolvedEdge, RouteShape};
use crate::extract::RequirementKind;
use crate::graph::problem::ProblemKind;
use crate::graph::{CodePlace, DeclaredNode};

/// Adds a problem for each call that leads to a node without the input that the node takes.
///
/// A `branch` and a command may dispatch, so their targets are unknown here. A handler reads the input of the
/// failed task, which is unknown too.
pub(super) fn check_inputs(
    names: &Names,
    nodes: &[DeclaredNode],
    (edges, routes, on_limit): (&[ResolvedEdge], &[RouteShape], Option<(u32, CodePlace)>),
    problems: &mut Problems,
) {
    let input_of = |node: u32| {
        let needs = &nodes.get(node as usize)?.node.settings.requirements;
        needs.iter().find(|need| need.kind == RequirementKind::Input).map(|need| need.name)
    };
    let mut check = |what, node, place| {
        if let Some(input) = input_of(node) {
            problems.add(ProblemKind::NoInput { what, node: names.name(node).to_owned(), input }, place);
        }
    };
    for edge in edges {
        check(if edge.is_join { "join" } else { "edge" }, edge.target, edge.place);
    }
    for route in routes.iter().filter(|route| route.word == "route") {
        for (target, _) in route.targets.iter().filter(|(_, dispatches)| !dispatches) {
            check("route", *target, route.place);
        }
    }
    if let Some((node, place)) = on_limit {
        check("on_limit", node, place);
    }
}
