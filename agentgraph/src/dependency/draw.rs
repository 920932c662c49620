//! The drawing of a dependency graph as text that Mermaid turns into a picture.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use super::edits::{Desk, Transaction};
use super::outputs::{Output, Outputs, PassInput};
use super::wiring::Wiring;
use crate::edits::GraphEdit;
use crate::graph::escape;

/// Nodes get the ids `n0`, `n1`, .. so that a name may hold any character.
pub(super) fn mermaid<O, S>(wiring: &Wiring<O, S>) -> String {
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

/// The same with what a pass has changed.
pub(super) fn mermaid_of<O: Output, S: PassInput>(wiring: &Wiring<O, S>, outputs: &Outputs<O, S>) -> String {
    let desk = Desk::new(Arc::new(wiring.clone()), Vec::new(), false);
    let mut skipped = HashSet::new();
    for edit in outputs.edits() {
        match edit {
            GraphEdit::Skip { nodes } => skipped.extend(nodes.iter().map(String::as_str)),
            // What made it is of no interest here.
            GraphEdit::AddNode { name, .. } => {
                let (template, args) = (None, serde_json::Value::Null);
                settle(&desk, GraphEdit::AddNode { name: name.clone(), template, args });
            }
            edit => settle(&desk, edit.clone()),
        }
    }
    let pass = desk.pass();
    let added: Vec<&str> = pass.plan.overlay.added.iter().map(|added| &*added.name).collect();
    let names: Vec<&str> = wiring.names.iter().map(|name| &**name).chain(added).collect();
    let missed: HashSet<&str> = outputs.not_run().iter().map(|missed| &*missed.node).collect();
    let mut text = String::from("flowchart TD\n");
    names.iter().enumerate().for_each(|(id, name)| declare(&mut text, id, name));
    pass.plan.look(|graph| {
        for node in 0..names.len() as u32 {
            let cut = wiring.base.sources.row(node).iter().filter(|source| !graph.has_edge((**source, node)));
            for source in cut {
                let _ = writeln!(text, "    n{source} --x n{node}");
            }
            for source in graph.sources(node) {
                let _ = match wiring.base.has_edge(source, node) {
                    true => writeln!(text, "    n{source} --> n{node}"),
                    false => writeln!(text, "    n{source} -.->|added| n{node}"),
                };
            }
            for source in wiring.base.before.row(node) {
                let _ = writeln!(text, "    n{source} -.-> n{node}");
            }
        }
        let is_gray = |node: usize| {
            graph.is_gone(node as u32) || missed.contains(names[node]) || skipped.contains(names[node])
        };
        let temporary = wiring.names.len()..names.len();
        style(&mut text, "temporary", "stroke-dasharray: 5 5", temporary);
        style(&mut text, "idle", "fill:#ddd,color:#888", (0..names.len()).filter(|node| is_gray(*node)));
    });
    text
}

fn settle<O: Output, S: PassInput>(desk: &Desk<O, S>, edit: GraphEdit) {
    // What cannot be drawn any more was made in another version of the graph.
    drop(desk.settle_before(&mut Transaction::of(vec![edit])));
}

fn style(text: &mut String, class: &str, look: &str, nodes: impl Iterator<Item = usize>) {
    let nodes: Vec<String> = nodes.map(|node| format!("n{node}")).collect();
    if !nodes.is_empty() {
        let _ = writeln!(text, "    classDef {class} {look}\n    class {} {class}", nodes.join(","));
    }
}
