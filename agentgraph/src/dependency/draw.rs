//! The drawing of a dependency graph as text that Mermaid turns into a picture.

use std::fmt::Write;

use super::wiring::Wiring;
use crate::graph::escape;

/// Nodes get the ids `n0`, `n1`, .. so that a name may hold any character.
pub(super) fn mermaid<O, S>(wiring: &Wiring<O, S>) -> String {
    let base = &wiring.base;
    let mut text = String::from("flowchart TD\n");
    for (id, name) in wiring.names.iter().enumerate() {
        let _ = writeln!(text, "    n{id}[\"{}\"]", escape(name));
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
