//! [`EditError`]: a temporary edit was refused and has changed nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::edit::GraphEdit;
use super::quoted;
use crate::error::{Code, hint};

/// A temporary edit that was refused and has changed nothing. The node can continue without it; returned by
/// `?` it fails the node.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Words { #[reduce(append)] seen: Vec<String> }
/// async fn plan(ctx: Ctx) -> WordsUpdate {
///     let refused = ctx.edits().remove_edge("plan", "wrte").unwrap_err();
///     Words::update().seen([refused.to_string()])
/// }
/// # async fn write() {}
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("plan", plan)
///     .node("write", write)
///     .edge(START, "plan")
///     .edge("plan", "write")
///     .compile()?;
/// let words = graph.invoke(Words::update()).finish().await?;
/// assert_eq!(
///     words.seen[0],
///     "cannot remove edge `plan` -> `wrte`: there is no node `wrte`; did you mean `write`?"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("cannot {}: {}", self.edit(), self.why())]
pub struct EditError(Box<(GraphEdit, Rejection)>);

impl EditError {
    /// The refusal of an edit.
    pub fn new(edit: GraphEdit, why: Rejection) -> Self {
        EditError(Box::new((edit, why)))
    }

    /// The edit.
    pub fn edit(&self) -> &GraphEdit {
        &self.0.0
    }

    /// Why it was refused.
    pub fn why(&self) -> &Rejection {
        &self.0.1
    }

    /// The stable code. A run whose node fails with this error has the same code.
    pub fn code(&self) -> Code {
        match self.why() {
            Rejection::NothingToReuse { .. } | Rejection::KeepsNothing { .. } => Code::NothingToReuse,
            Rejection::NeedsTemplate => Code::NeedsTemplate,
            _ => Code::EditRejected,
        }
    }
}

/// The message, as `fn main() -> Result<()>` prints `Debug`; `{:#?}` shows the fields.
impl fmt::Debug for EditError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !out.alternate() {
            return fmt::Display::fmt(self, out);
        }
        out.debug_struct("EditError").field("edit", self.edit()).field("why", self.why()).finish()
    }
}

/// Why a temporary edit was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rejection {
    /// It names a node that the graph does not have.
    #[error("there is no node `{name}`{}", hint(.nearest.as_ref()))]
    UnknownNode {
        /// The name.
        name: String,
        /// The known name that is nearest to it.
        nearest: Option<String>,
    },
    /// A node with this name exists.
    #[error("there is a node of that name")]
    NodeExists,
    /// The name is empty, or starts with `__`.
    #[error("a name is not empty and does not begin with `__`, which is reserved")]
    ReservedName,
    /// The edge exists.
    #[error("there is such an edge")]
    EdgeExists,
    /// The edge does not exist. Routes, branches and commands are not edges.
    #[error("there is no such edge; routes, branches and commands are not edges")]
    NoSuchEdge,
    /// No edge starts at END.
    #[error("END leads nowhere")]
    OutOfEnd,
    /// No edge ends at START.
    #[error("nothing leads to START")]
    IntoStart,
    /// From a node to itself, in a graph without cycles.
    #[error("a node cannot depend on itself")]
    SelfEdge,
    /// It closes a cycle in a graph without cycles: these nodes, in order.
    #[error("it closes the cycle {}", quoted(.0, " -> "))]
    ClosesCycle(Vec<String>),
    /// The node is done, so the edit can have no effect.
    #[error("node `{node}` is done")]
    Done {
        /// The node.
        node: String,
    },
    /// The node is running in this pass, so it can no longer be removed or skipped. A node that removes or
    /// skips itself gets this, too.
    #[error("node `{node}` runs already")]
    Running {
        /// The node.
        node: String,
    },
    /// The node has not finished in an earlier run of this thread, or pass, so it has no output to use
    /// again.
    #[error("node `{node}` has not finished before, so it has no output to reuse")]
    NothingToReuse {
        /// The node.
        node: String,
    },
    /// The node was not built with `keep_output`, or is a temporary one.
    #[error("node `{node}` keeps no output to reuse: build it with `.keep_output()`")]
    KeepsNothing {
        /// The node.
        node: String,
    },
    /// A function or closure cannot be stored or sent to another process: this graph has a checkpointer or
    /// a host, so a template must make the node.
    #[error(
        "a function or closure cannot be stored or sent to another process, and this graph has a checkpointer or \
         a host: build the graph with a `.template(..)` for it, and add the node from that"
    )]
    NeedsTemplate,
    /// The graph has no such template.
    #[error("there is no template `{name}`{}", hint(.nearest.as_ref()))]
    UnknownTemplate {
        /// The name.
        name: String,
        /// The known name that is nearest to it.
        nearest: Option<String>,
    },
    /// The template refused its arguments.
    #[error("the template does not accept its arguments: {0}")]
    BadArguments(String),
    /// The node cannot be used in this graph.
    #[error("{0}")]
    Unfit(String),
    /// The task or attempt that makes the edit is over.
    #[error("the task that makes it has ended")]
    TooLate,
}
