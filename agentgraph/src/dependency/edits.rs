//! Editing the graph of one pass: checking the edits of nodes, and applying them when the nodes are done.

mod before;
mod desk;
mod judge;

use crate::dependency::outputs::{Output, PassInput};
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use before::BeforePass;
pub(crate) use desk::{PassDesk, SettledEdits, Transaction};

use super::node::{DependencyNode, IntoDependencyNode};
use super::outputs::Outputs;
use crate::context::edits;
pub use crate::context::edits::EditMark;
use crate::context::edits::Edits;
use crate::extract::{FromTask, Task};
use crate::words::{EditError, GraphEdit, Rejection};

/// One edit, and the node that it adds once that is known.
pub(crate) struct Op<O, S> {
    pub(in crate::dependency) edit: GraphEdit,
    pub(in crate::dependency) node: Option<DependencyNode<O, S>>,
    /// Whether it changes nothing in this pass, as found when it was requested.
    pub(in crate::dependency) moot: bool,
}

impl<O, S> Clone for Op<O, S> {
    fn clone(&self) -> Self {
        Op { edit: self.edit.clone(), node: self.node.clone(), moot: self.moot }
    }
}

impl<O: Output, S: PassInput> Op<O, S> {
    /// # Errors
    /// The function is no node of a graph with these outputs.
    pub(crate) fn of(edit: &GraphEdit, made: Option<edits::NodeValue>) -> Result<Self, Rejection> {
        let node = match made {
            None => None,
            Some(made) => Some(made.downcast::<DependencyNode<O, S>>().map_err(|_| {
                let problem =
                    "the function cannot be a node of this dependency graph: add it with `PassEdits`";
                Rejection::Unfit(problem.to_owned())
            })?),
        };
        let node = node.map(|node| DependencyNode::clone(&node));
        Ok(Op { edit: edit.clone(), node, moot: false })
    }
}

impl<O, S> From<GraphEdit> for Op<O, S> {
    fn from(edit: GraphEdit) -> Self {
        Op { edit, node: None, moot: false }
    }
}

/// Edits the graph of this pass: an extractor. The compiled graph never changes, and the next pass starts
/// with it.
///
/// Each call is checked against the graph as the node sees it: with the edits of finished nodes, and its own.
/// A refused edit has no effect. The edits of a node are one transaction. It is applied when the node is
/// done, before its dependents start. If the attempt fails, or waits for an answer, the transaction is
/// dropped. If parallel nodes have made one of its edits impossible meanwhile, the whole transaction is
/// dropped and listed in [`Outputs::dropped`](crate::dependency::Outputs::dropped). The same edit made by two
/// nodes is applied once.
///
/// [`Ctx::edits`](crate::Ctx::edits) edits the same graph. `PassEdits` also accepts functions.
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
/// let outputs = graph.invoke(()).finish().await?;
/// assert_eq!(outputs.names().collect::<Vec<_>>(), ["question", "plan", "search", "answer"]);
/// assert_eq!(outputs["answer"], "plan+search");
/// # Ok(())
/// # }
/// ```
pub struct PassEdits<O, S = ()> {
    edits: Edits,
    outputs: PhantomData<fn() -> (O, S)>,
}

impl<O: Output, S: PassInput> PassEdits<O, S> {
    /// Adds a node. Without edges it is ready at once, after everything in the queue.
    ///
    /// # Errors
    /// There is a node of that name. Or the pass has a checkpointer: a function cannot be stored, so add the
    /// node from a template.
    pub fn add_fn<M>(
        &self,
        name: impl AsRef<str>,
        node: impl IntoDependencyNode<O, S, M>,
    ) -> Result<(), EditError> {
        let edit = GraphEdit::AddNode { name: name.as_ref().into(), template: None, args: Value::Null };
        self.edits.submit(edit, Some(Arc::new(node.into_node())))
    }

    /// Adds a node that a [template](crate::DependencyGraph::template) makes from `args`.
    ///
    /// # Errors
    /// There is a node of that name or no such template, or the template refuses the arguments.
    pub fn add_node(
        &self,
        name: impl AsRef<str>,
        template: impl AsRef<str>,
        args: impl Serialize,
    ) -> Result<(), EditError> {
        self.edits.add_node(name, template, args)
    }

    /// Adds an edge; `from` becomes the last dependency of `to`. If `from` is done, `to` enters the queue. An
    /// edge to a node that is running, or waits for an answer, changes nothing in this pass, and is not among
    /// its [edits](crate::dependency::Outputs::edits).
    ///
    /// # Errors
    /// One of the nodes is unknown, the edge exists, it would close a cycle, or `to` is done.
    pub fn add_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.edits.add_edge(from, to)
    }

    /// Adds an edge; `from` becomes the first dependency of `to`.
    ///
    /// # Errors
    /// As for [`add_edge`](PassEdits::add_edge).
    pub fn prepend_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.edits.prepend_edge(from, to)
    }

    /// Removes an edge. A node that loses its last incoming edge is pruned, and runs only if another edit
    /// adds an edge to it.
    ///
    /// # Errors
    /// There is no such edge, or one of its ends is done.
    pub fn remove_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.edits.remove_edge(from, to)
    }

    /// Removes a node with its edges. Its name is free afterwards.
    ///
    /// # Errors
    /// The node is unknown, is running, waits for an answer, or is done.
    pub fn remove_node(&self, name: impl AsRef<str>) -> Result<(), EditError> {
        self.edits.remove_node(name)
    }

    /// Makes nodes use their last outputs instead of running, when their turn comes. On an error, no node is
    /// skipped.
    ///
    /// # Errors
    /// One of the nodes is unknown, is running, is done, or has no output of an earlier pass. Temporary nodes
    /// never have one.
    pub fn skip<N: AsRef<str>>(&self, nodes: impl IntoIterator<Item = N>) -> Result<(), EditError> {
        self.edits.skip(nodes)
    }

    /// Marks the task's edits so far, for [`undo_to`](PassEdits::undo_to).
    pub fn mark(&self) -> EditMark {
        self.edits.mark()
    }

    /// Drops the task's edits since the mark: for a node that tries more than once within one attempt, and
    /// keeps only the edits of its last try.
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
    /// assert_eq!(graph.invoke(()).finish().await?["search"], "better results");
    /// # Ok(())
    /// # }
    /// ```
    pub fn undo_to(&self, mark: EditMark) {
        self.edits.undo_to(mark);
    }
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
        PassEdits { edits: self.edits.clone(), outputs: PhantomData }
    }
}

impl<O, S> fmt::Debug for PassEdits<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PassEdits").finish_non_exhaustive()
    }
}

impl<O: Output, S: PassInput> FromTask<Outputs<O, S>> for PassEdits<O, S> {
    type Error = Infallible;

    fn from_task(task: &Task<'_, Outputs<O, S>>) -> Result<Self, Infallible> {
        Ok(PassEdits { edits: task.ctx().edits(), outputs: PhantomData })
    }
}
