//! The drawing of a dependency graph as Mermaid text.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use super::edits::{PassDesk, Transaction};
use super::outputs::{Output, Outputs, PassInput};
use super::wiring::Wiring;
use crate::graph::{EdgeKind, GraphTopology, TopologyEdge, TopologyNode, escape};
use crate::words::GraphEdit;

/// Nodes have the ids `n0`, `n1`, .., so that a name may contain any character.
pub(crate) fn mermaid<O, S>(wiring: &Wiring<O, S>) -> String {
    let base = &wiring.base;
    let mut text = String::from("flowchart TD\n");
    for (id, name) in wiring.names.iter().enumerate() {
        declare(&mut text, id, name);
    }
    for node in 0..base.nodes {
        for source in base.sources.row(node) {
            let _ = writeln!(text, "    n{source} --> n{node}");
        }
        for source in base.before.row(node) {
            let _ = writeln!(text, "    n{source} -.-> n{node}");
        }
    }
    text
}

fn declare(text: &mut String, id: usize, name: &str) {
    let _ = writeln!(text, "    n{id}[\"{}\"]", escape(name));
}

/// The graph of a pass, with its edits.
struct Edited<O, S> {
    desk: PassDesk<O, S>,
    skipped: HashSet<u32>,
}

impl<O: Output, S: PassInput> Edited<O, S> {
    fn of<'a>(wiring: &Arc<Wiring<O, S>>, edits: impl IntoIterator<Item = &'a GraphEdit>) -> Self {
        let desk = PassDesk::new(Arc::clone(wiring), Vec::new(), false);
        let mut skipped = HashSet::new();
        for edit in edits {
            let edit = match edit {
                GraphEdit::Skip { nodes } => {
                    skipped.extend(nodes.iter().filter_map(|node| desk.find(node)));
                    continue;
                }
                // The function of the node does not matter here.
                GraphEdit::AddNode { name, .. } => {
                    let template = None;
                    let args = serde_json::Value::Null;
                    GraphEdit::AddNode { name: name.clone(), template, args }
                }
                edit => edit.clone(),
            };
            // An edit that does not fit was made in another version of the graph, and is left out.
            drop(desk.settle_before(&mut Transaction::of(vec![edit])));
        }
        Edited { desk, skipped }
    }
}

/// The drawing with the changes of a pass.
pub(crate) fn mermaid_of<O: Output, S: PassInput>(
    wiring: &Arc<Wiring<O, S>>,
    outputs: &Outputs<O, S>,
) -> String {
    let Edited { desk, skipped } = Edited::of(wiring, outputs.edits());
    let ran: HashSet<&str> = outputs.names().collect();
    let missed = outputs.not_run().iter().filter(|missed| !ran.contains(&*missed.node));
    let missed: HashSet<u32> = missed.filter_map(|missed| desk.find(&missed.node)).collect();
    let pass = desk.pass();
    let added: Vec<&str> = pass.plan.overlay.added.iter().map(|added| &*added.name).collect();
    let names: Vec<&str> = wiring.names.iter().map(|name| &**name).chain(added).collect();
    let mut text = String::from("flowchart TD\n");
    names.iter().enumerate().for_each(|(id, name)| declare(&mut text, id, name));
    pass.plan.look(|graph| {
        for node in 0..names.len() as u32 {
            let cut = wiring.base.sources.row(node).iter().filter(|source| !graph.has_edge((**source, node)));
            for source in cut {
                let _ = writeln!(text, "    n{source} --x n{node}");
            }
            for source in graph.sources(node) {
                let _ = if wiring.base.has_edge(source, node) {
                    writeln!(text, "    n{source} --> n{node}")
                } else {
                    writeln!(text, "    n{source} -.->|added| n{node}")
                };
            }
            for source in wiring.base.before.row(node) {
                let _ = writeln!(text, "    n{source} -.-> n{node}");
            }
        }
        let is_gray = |node: &usize| {
            let node = *node as u32;
            graph.is_gone(node) || missed.contains(&node) || skipped.contains(&node)
        };
        let temporary = wiring.names.len()..names.len();
        style(&mut text, "temporary", "stroke-dasharray: 5 5", temporary);
        style(&mut text, "idle", "fill:#ddd,color:#888", (0..names.len()).filter(is_gray));
    });
    text
}

/// The topology of a pass, for display.
pub(crate) fn topology_of<'a, O: Output, S: PassInput>(
    wiring: &Arc<Wiring<O, S>>,
    edits: impl IntoIterator<Item = &'a GraphEdit>,
) -> GraphTopology {
    let Edited { desk, skipped } = Edited::of(wiring, edits);
    let pass = desk.pass();
    let added = pass.plan.overlay.added.iter().map(|added| &added.name);
    let names: Vec<&Arc<str>> = wiring.names.iter().chain(added).collect();
    let name = |node: u32| names[node as usize].to_string();
    let is_temporary = |node: u32| node as usize >= wiring.names.len();
    pass.plan.look(|graph| {
        let there = || (0..names.len() as u32).filter(|node| !graph.is_gone(*node));
        let nodes = there().map(|node| TopologyNode {
            name: name(node),
            is_graph: false,
            is_temporary: is_temporary(node),
            is_skipped: skipped.contains(&node),
        });
        let edge = |from, to, kind, is_temporary| TopologyEdge {
            from: name(from),
            to: Some(name(to)),
            kind,
            is_temporary,
        };
        let mut edges = Vec::new();
        let mut temporary = Vec::new();
        for node in there() {
            for source in graph.sources(node) {
                if wiring.base.has_edge(source, node) {
                    edges.push(edge(source, node, EdgeKind::Edge, false))
                } else {
                    temporary.push(edge(source, node, EdgeKind::Edge, true))
                }
            }
            let before = wiring.base.before.row(node).iter().filter(|source| !graph.is_gone(**source));
            edges.extend(before.map(|source| edge(*source, node, EdgeKind::Order, false)));
        }
        edges.extend(temporary);
        GraphTopology { nodes: nodes.collect(), edges }
    })
}

fn style(text: &mut String, class: &str, look: &str, nodes: impl Iterator<Item = usize>) {
    let nodes: Vec<String> = nodes.map(|node| format!("n{node}")).collect();
    if !nodes.is_empty() {
        let _ = writeln!(text, "    classDef {class} {look}\n    class {} {class}", nodes.join(","));
    }
}
