//! The drawing of a graph, and its Mermaid text.

use std::fmt::Write;
use std::sync::Arc;

pub(crate) use super::shown::EdgeKind as LineKind;

/// The drawing of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawing {
    pub(super) names: Vec<Arc<str>>,
    /// Whether each node is a graph itself.
    pub(super) graphs: Vec<bool>,
    pub(super) lines: Vec<Line>,
}

/// One arrow. Without a target, it may lead anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub(in crate::graph) from: u32,
    pub(in crate::graph) to: Option<u32>,
    pub(in crate::graph) kind: LineKind,
}

/// Writes a node, with a double border if it is a graph. The id is generated, so that the name may contain
/// any character.
pub(super) fn declare_node(text: &mut String, id: &str, name: &str, is_graph: bool) {
    let _ = if is_graph {
        writeln!(text, "{id}[[\"{}\"]]", escape(name))
    } else {
        writeln!(text, "{id}[\"{}\"]", escape(name))
    };
}

pub(super) fn arrow(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Edge => "-->",
        LineKind::Join => "-->|join|",
        LineKind::Route | LineKind::Command | LineKind::Order => "-.->",
        LineKind::Dispatch => "-.->|dispatch|",
        LineKind::Error => "-.->|error|",
    }
}

/// Mermaid reads `#name;` as a character, so an escaped name cannot break out of its label.
pub(crate) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '&' => escaped.push_str("#amp;"),
            '`' => escaped.push_str("#96;"),
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
