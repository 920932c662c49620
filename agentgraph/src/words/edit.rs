//! Temporary edits: changes of the graph that hold for one run.
//!
//! The words are the same in every discipline: [`GraphEdit`] is an edit as data, by names;
//! [`Edits`](crate::edit::Edits) is what a task makes them with; [`EditError`] says why one was refused. What an
//! edit *means*, and what it is checked against, is up to the discipline that runs.
//!
//! A compiled graph is never touched: edits go onto an overlay that belongs to the run. They are checked when
//! they are called, kept until the attempt that made them has succeeded, and applied when its superstep is
//! merged.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rejection::EditError;

/// One temporary edit, by the names that the graph and its drawing use.
///
/// ```
/// use agentgraph::edit::GraphEdit;
/// let edit = GraphEdit::AddEdge { from: "plan".into(), to: "check#1".into() };
/// assert_eq!(edit.to_string(), "add edge `plan` -> `check#1`");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphEdit {
    /// A node more.
    AddNode {
        /// Its name.
        name: String,
        /// The [template](crate::StateGraph::template) that makes it; `None` for a function or closure, which
        /// only this process has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
        /// What the template is given.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        args: Value,
    },
    /// An edge more, behind the others of its ends.
    AddEdge {
        /// Where it starts.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// An edge more, in front of the others of its ends.
    PrependEdge {
        /// Where it starts.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// An edge less.
    RemoveEdge {
        /// Where it starts.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// A node less, with all that leads to it and from it.
    RemoveNode {
        /// Its name.
        name: String,
    },
    /// These nodes do not run when they are reached next: what they gave before is used again.
    Skip {
        /// Their names.
        nodes: Vec<String>,
    },
}

impl fmt::Display for GraphEdit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphEdit::AddNode { name, template: None, .. } => write!(out, "add node `{name}`"),
            GraphEdit::AddNode { name, template: Some(template), .. } => {
                write!(out, "add node `{name}` of template `{template}`")
            }
            GraphEdit::AddEdge { from, to } => write!(out, "add edge `{from}` -> `{to}`"),
            GraphEdit::PrependEdge { from, to } => write!(out, "prepend edge `{from}` -> `{to}`"),
            GraphEdit::RemoveEdge { from, to } => write!(out, "remove edge `{from}` -> `{to}`"),
            GraphEdit::RemoveNode { name } => write!(out, "remove node `{name}`"),
            GraphEdit::Skip { nodes } => {
                let nodes: Vec<String> = nodes.iter().map(|node| format!("`{node}`")).collect();
                write!(out, "skip {}", nodes.join(", "))
            }
        }
    }
}

/// The edits of a task that were not applied, because others had been made that they do not fit: by a task
/// before it in the same superstep, or, in an eager run or a pass, by one that was done while it ran. They
/// are dropped as a whole.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DroppedEdits {
    /// The node that made them.
    pub by: String,
    /// All of them.
    pub edits: Vec<GraphEdit>,
    /// The one that did not fit, and why.
    pub why: EditError,
    /// Nodes that its command went to and that only these edits would have made. Nothing goes there.
    pub lost: Vec<String>,
}

impl fmt::Display for DroppedEdits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the edits of node `{}` were dropped: {}", self.by, self.why)
    }
}
