//! The drawing of a graph as text that Mermaid turns into a picture.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use super::topology::END_ID;

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
    pub(crate) from: u32,
    pub(crate) to: Option<u32>,
    pub(crate) kind: LineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LineKind {
    Edge,
    Join,
    Route,
    Dispatch,
    Command,
    Error,
}

impl Drawing {
    /// A node that is a graph has a double border. Nodes get the ids `n0`, `n1`, .. so that a name may hold any character.
    pub(crate) fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n    start([START])\n");
        for (id, name) in self.names.iter().enumerate() {
            let _ = match self.graphs.get(id) {
                Some(true) => writeln!(text, "    n{id}[[\"{}\"]]", escape(name)),
                _ => writeln!(text, "    n{id}[\"{}\"]", escape(name)),
            };
        }
        if self.lines.iter().any(|line| line.to == Some(END_ID)) {
            text.push_str("    finish([END])\n");
        }
        let mut drawn = HashSet::new();
        for line in self.lines.iter().filter(|line| drawn.insert(**line)) {
            let from = self.id(line.from);
            let _ = match line.to {
                Some(to) => writeln!(text, "    {from} {} {}", line.kind.arrow(), self.id(to)),
                None => writeln!(text, "    {from} --o {from}_any([any node])"),
            };
        }
        text
    }

    fn id(&self, node: u32) -> String {
        match node {
            END_ID => "finish".into(),
            node if node as usize == self.names.len() => "start".into(),
            node => format!("n{node}"),
        }
    }
}

impl LineKind {
    fn arrow(self) -> &'static str {
        match self {
            LineKind::Edge => "-->",
            LineKind::Join => "-->|join|",
            LineKind::Route | LineKind::Command => "-.->",
            LineKind::Dispatch => "-.->|dispatch|",
            LineKind::Error => "-.->|error|",
        }
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
