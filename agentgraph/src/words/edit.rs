//! Temporary edits: changes of the graph for one run.
//!
//! The words are the same in every discipline: [`GraphEdit`] is an edit as data, by names; a task makes
//! edits with [`Edits`](crate::edit::Edits); [`EditError`] is the reason for a refusal. The discipline of the
//! run defines the meaning of an edit and the checks on it.
//!
//! A compiled graph never changes: edits are added to an overlay of the run. They are checked when they are
//! made, kept until the attempt that made them has succeeded, and applied when its superstep is merged.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::quoted;
use super::rejection::{EditError, Rejection};

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
    /// Adds a node.
    AddNode {
        /// Its name.
        name: String,
        /// The [template](crate::StateGraph::template) that makes it; `None` for a function or closure,
        /// which exists in this process only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
        /// The arguments of the template.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        args: Value,
    },
    /// Adds an edge after the other edges of its ends.
    AddEdge {
        /// The source.
        from: String,
        /// The target.
        to: String,
    },
    /// Adds an edge before the other edges of its ends.
    PrependEdge {
        /// The source.
        from: String,
        /// The target.
        to: String,
    },
    /// Removes an edge.
    RemoveEdge {
        /// The source.
        from: String,
        /// The target.
        to: String,
    },
    /// Removes a node, with every edge to it and from it.
    RemoveNode {
        /// Its name.
        name: String,
    },
    /// Skips these nodes when they are reached next: their last outputs are used again.
    Skip {
        /// Their names.
        nodes: Vec<String>,
    },
}

impl GraphEdit {
    /// Adds a node that is a function.
    pub(crate) fn of_function(name: impl AsRef<str>) -> Self {
        GraphEdit::AddNode { name: name.as_ref().into(), template: None, args: Value::Null }
    }

    /// Adds a node that a template makes from `args`.
    pub(crate) fn of_template(
        name: impl AsRef<str>,
        template: impl AsRef<str>,
        args: impl Serialize,
    ) -> Result<Self, EditError> {
        let (name, template) = (name.as_ref().into(), Some(template.as_ref().into()));
        match serde_json::to_value(args) {
            Ok(args) => Ok(GraphEdit::AddNode { name, template, args }),
            Err(error) => {
                let edit = GraphEdit::AddNode { name, template, args: Value::Null };
                Err(EditError::new(edit, Rejection::BadArguments(error.to_string())))
            }
        }
    }
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
            GraphEdit::Skip { nodes } => write!(out, "skip {}", quoted(nodes, ", ")),
        }
    }
}

/// Edits of a task that were not applied, because they conflict with other edits: of an earlier task in the
/// same superstep, or, in an eager run or a pass, of a task that ended meanwhile. All edits of the task are
/// dropped together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DroppedEdits {
    /// The node that made them.
    pub by: String,
    /// All edits of the task.
    pub edits: Vec<GraphEdit>,
    /// The edit that conflicts, and why.
    pub why: EditError,
    /// Targets of the task's command that only these edits would have created. The command does not go
    /// there.
    pub lost: Vec<String>,
}

impl fmt::Display for DroppedEdits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the edits of node `{}` were dropped: {}", self.by, self.why)
    }
}
