//! Editing the graph of one pass: what nodes ask for, whether it can be had, and making it so when they are done.

mod before;
mod desk;
mod judge;

use crate::dependency::outputs::{Output, PassInput};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use before::BeforePass;
pub(crate) use desk::{Desk, Transaction};

use super::node::{DependencyNode, IntoDependencyNode};
use super::outputs::Outputs;
use crate::context::TaskRequest;
use crate::edits::{EditError, GraphEdit, Rejection};
use crate::extract::{FromTask, Task};

/// One edit, and the node that it adds once that is known.
pub(crate) struct Op<O, S> {
    pub(crate) edit: GraphEdit,
    pub(crate) node: Option<DependencyNode<O, S>>,
}

impl<O, S> Clone for Op<O, S> {
    fn clone(&self) -> Self {
        Op { edit: self.edit.clone(), node: self.node.clone() }
    }
}

impl<O, S> From<GraphEdit> for Op<O, S> {
    fn from(edit: GraphEdit) -> Self {
        Op { edit, node: None }
    }
}

/// Edits the graph of this pass: an extractor. The compiled graph is never touched, and the next pass begins with it as it
/// is.
///
/// Each call is checked against the graph as the node sees it: with the edits of nodes that are done, and its own. What is
/// refused leaves no trace. The edits of a node are one transaction. It is made when the node is done, before anything
/// that depends on it begins; if the attempt fails, or waits for an answer, it is dropped. If nodes that ran beside this one
/// have meanwhile made one of its edits impossible, all of them are dropped, which
/// [`Outputs::dropped`](crate::Outputs::dropped) tells; the same edit made twice is made once.
///
/// ```
/// use agentgraph::prelude::*;
///
/// async fn plan(deps: Deps<'_, String>, edits: PassEdits<String>) -> Result<String> {
///     if deps[0].contains('?') {
///         edits.add_fn("search", |deps: Deps<String>| format!("results for {}", &deps["plan"]))?;
///         edits.add_edge("plan", "search")?;
///         edits.add_edge("search", "answer")?;
///     }
///     Ok("a plan".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = DependencyGraph::<String>::new()
///     .node("question", || "tea?".to_owned())
///     .node("plan", plan)
///     .node("answer", |deps: Deps<String>| deps.names().collect::<Vec<_>>().join("+"))
///     .edge("question", "plan")
///     .edge("plan", "answer")
///     .compile()?;
/// let outputs = graph.invoke(()).await?.into_finished()?;
/// assert_eq!(outputs.names().collect::<Vec<_>>(), ["question", "plan", "search", "answer"]);
/// assert_eq!(outputs["answer"], "plan+search");
/// # Ok(())
/// # }
/// ```
pub struct PassEdits<O, S = ()> {
    desk: Arc<Desk<O, S>>,
    request: TaskRequest,
}

impl<O: Output, S: PassInput> PassEdits<O, S> {
    /// Adds a node. Without edges it is ready at once, behind everything in the queue.
    ///
    /// # Errors
    /// There is a node of that name. Or the pass is kept by a checkpointer: a function cannot be stored, so add it from a
    /// template there.
    pub fn add_fn<M>(
        &self,
        name: impl Into<String>,
        node: impl IntoDependencyNode<O, S, M>,
    ) -> Result<(), EditError> {
        let edit = GraphEdit::AddNode { name: name.into(), template: None, args: Value::Null };
        self.submit(Op { edit, node: Some(node.into_node()) })
    }

    /// Adds a node that a [template](crate::DependencyGraph::template) makes of `args`.
    ///
    /// # Errors
    /// There is a node of that name or no such template, or the template refuses the arguments.
    pub fn add_node(
        &self,
        name: impl Into<String>,
        template: impl Into<String>,
        args: impl Serialize,
    ) -> Result<(), EditError> {
        self.submit(from_template(name.into(), template.into(), args)?)
    }

    /// Adds an edge; `from` becomes the last dependency of `to`. If `from` is done, `to` enters the queue. An edge into a
    /// node that runs already changes nothing in this pass.
    ///
    /// # Errors
    /// One of them is unknown, the edge is there, it would close a cycle, or `to` is done.
    pub fn add_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::AddEdge { from: from.into(), to: to.into() }.into())
    }

    /// Adds an edge; `from` becomes the first dependency of `to`.
    ///
    /// # Errors
    /// As [`add_edge`](PassEdits::add_edge).
    pub fn prepend_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::PrependEdge { from: from.into(), to: to.into() }.into())
    }

    /// Removes an edge. A node that loses its last one is pruned, and runs only if another edit leads to it.
    ///
    /// # Errors
    /// There is no such edge, or one of its ends is done.
    pub fn remove_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveEdge { from: from.into(), to: to.into() }.into())
    }

    /// Removes a node with its edges. Its name is free then.
    ///
    /// # Errors
    /// It is unknown, runs, or is done.
    pub fn remove_node(&self, name: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveNode { name: name.into() }.into())
    }

    /// Lets nodes use their last outputs instead of running, when their turn comes. All of them or, on an error, none.
    ///
    /// # Errors
    /// One of them is unknown, runs, is done, or has no output of an earlier pass, as temporary nodes never have.
    pub fn skip<N: Into<String>>(&self, nodes: impl IntoIterator<Item = N>) -> Result<(), EditError> {
        self.submit(GraphEdit::Skip { nodes: nodes.into_iter().map(Into::into).collect() }.into())
    }

    /// Remembers what the task has edited so far, for [`undo_to`](PassEdits::undo_to).
    pub fn mark(&self) -> EditMark {
        EditMark { attempt: self.request.attempt, edits: self.desk.handed_in(self.request) }
    }

    /// Drops what the task has edited since the mark was made: for a node that tries more than once within one attempt, and
    /// keeps what the last try has edited.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// async fn plan(edits: PassEdits<String>) -> Result<String> {
    ///     let mark = edits.mark();
    ///     edits.add_fn("search", || "results".to_owned())?;
    ///     edits.undo_to(mark);
    ///     edits.add_fn("search", || "better results".to_owned())?; // the name is free again
    ///     Ok("a plan".to_owned())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<String>::new().node("plan", plan).compile()?;
    /// assert_eq!(graph.invoke(()).await?.into_finished()?["search"], "better results");
    /// # Ok(())
    /// # }
    /// ```
    pub fn undo_to(&self, mark: EditMark) {
        if mark.attempt == self.request.attempt {
            self.desk.undo_to(self.request, mark.edits);
        }
    }

    fn submit(&self, op: Op<O, S>) -> Result<(), EditError> {
        let edit = op.edit.clone();
        self.desk.submit(self.request, op).map_err(|why| EditError::new(edit, why))
    }
}

/// How far a task had come with its edits: see [`PassEdits::mark`].
#[derive(Clone, Copy, Debug)]
pub struct EditMark {
    attempt: u32,
    edits: usize,
}

pub(super) fn from_template<O, S>(
    name: String,
    template: String,
    args: impl Serialize,
) -> Result<Op<O, S>, EditError> {
    let template = Some(template);
    match serde_json::to_value(args) {
        Ok(args) => Ok(GraphEdit::AddNode { name, template, args }.into()),
        Err(error) => {
            let edit = GraphEdit::AddNode { name, template, args: Value::Null };
            Err(EditError::new(edit, Rejection::BadArguments(error.to_string())))
        }
    }
}

impl<O, S> Clone for PassEdits<O, S> {
    fn clone(&self) -> Self {
        PassEdits { desk: Arc::clone(&self.desk), request: self.request }
    }
}

impl<O, S> fmt::Debug for PassEdits<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PassEdits").finish_non_exhaustive()
    }
}

/// A task of a dependency graph without its pass. The loop makes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task has no pass to edit")]
pub struct NoPass;

impl<O: Output, S: PassInput> FromTask<Outputs<O, S>> for PassEdits<O, S> {
    type Error = NoPass;

    fn from_task(task: &Task<'_, Outputs<O, S>>) -> Result<Self, NoPass> {
        let desk = task.state().desk().ok_or(NoPass)?;
        Ok(PassEdits { desk: Arc::clone(desk), request: task.request })
    }
}
