//! Namespaces: the names of subgraphs in the checkpoints of a thread.
//!
//! The namespace of a call consists of its parent's namespace, a `|`, the node's name, a `:` and the id of
//! the calling task. The namespace of a memory for the whole thread consists of the names only. So `|` and
//! `:` in names are written as `%7C` and `%3A`.

use std::fmt::Write;

use crate::words::Memory;
use agentgraph_checkpoint::TaskId;

pub(crate) fn namespace(around: &str, node: &str, memory: Memory, call: TaskId) -> String {
    let mut namespace = String::new();
    for part in around.split('|').filter(|part| !part.is_empty()) {
        let part = match memory {
            Memory::PerThread => part.split(':').next().unwrap_or(part),
            _ => part,
        };
        namespace.push_str(part);
        namespace.push('|');
    }
    for character in node.chars() {
        match character {
            '%' => namespace.push_str("%25"),
            ':' => namespace.push_str("%3A"),
            '|' => namespace.push_str("%7C"),
            other => namespace.push(other),
        }
    }
    if memory != Memory::PerThread {
        // Writing to a String does not fail.
        let _ = write!(namespace, ":{call}");
    }
    namespace
}

/// The nodes that a namespace leads through.
#[cfg(feature = "draw")]
pub(crate) fn nodes_of(namespace: &str) -> impl Iterator<Item = String> {
    let names = namespace.split('|').filter(|part| !part.is_empty());
    let names = names.map(|part| part.split(':').next().unwrap_or(part));
    names.map(|name| name.replace("%7C", "|").replace("%3A", ":").replace("%25", "%"))
}
