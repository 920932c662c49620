//! What there is to draw of a graph, and how Mermaid writes it.

use std::fmt::Write;
use std::sync::Arc;

pub(crate) use super::shown::EdgeKind as LineKind;

/// What there is to draw.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) names: Vec<Arc<str>>,
    /// Which nodes are graphs themselves.
    pub(crate) graphs: Vec<bool>,
    pub(crate) lines: Vec<Line>,
}

/// One arrow; without a target it may go anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(in crate::graph) from: u32,
    pub(in crate::graph) to: Option<u32>,
    pub(in crate::graph) kind: LineKind,
}

/// Writes a node, with a double border if it is a graph. Its id is ours, so that its name may hold any
/// character.
pub(super) fn declare_node(text: &mut String, id: &str, name: &str, is_graph: bool) {
    let _ = match is_graph {
        true => writeln!(text, "    {id}[[\"{}\"]]", escape(name)),
        false => writeln!(text, "    {id}[\"{}\"]", escape(name)),
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

/// Mermaid reads `#name;` as a character, so these cannot break out of a label.
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
