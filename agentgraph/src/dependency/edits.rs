//! Editing the graph of one pass: checking the edits of nodes, and applying them when the nodes are done.

mod before;
mod desk;
mod judge;

use crate::dependency::outputs::{Output, PassInput};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

pub use before::BeforePass;
pub(crate) use desk::{PassDesk, SettledEdits, Transaction};

use super::node::{DependencyNode, IntoDependencyNode};
use super::outputs::Outputs;
use crate::context::edits;
pub use crate::context::edits::EditMark;
use crate::context::edits::Edits;
use crate::extract::{FromTask, Task};
use crate::words::{EditError, GraphEdit, Rejection, clones};
use agentgraph_checkpoint::shows;

/// One edit, and the node that it adds once that is known.
pub(crate) struct Op<O, S> {
    pub(in crate::dependency) edit: GraphEdit,
    pub(in crate::dependency) node: Option<DependencyNode<O, S>>,
    /// Whether it changes nothing in this pass, as found when it was requested.
    pub(in crate::dependency) moot: bool,
}

clones!([O, S] Op<O, S> { edit, node, moot });

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
/// It dereferences to [`Edits`], which [`Ctx::edits`](crate::Ctx::edits) returns too, and accepts functions
/// that are nodes of this graph. In a pass:
///
/// - If the source of a new edge is done, its target enters the queue. An edge to a node that is running, or
///   waits for an answer, changes nothing in this pass, and is not among its
///   [edits](crate::dependency::Outputs::edits).
/// - A node that loses its last incoming edge is pruned, and runs only if another edit adds an edge to it.
/// - The name of a removed node is free afterwards.
/// - A skipped node uses its output of an earlier pass. Temporary nodes never have one.
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
        self.edits.submit(GraphEdit::of_function(name), Some(Arc::new(node.into_node())))
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

impl<O, S> Deref for PassEdits<O, S> {
    type Target = Edits;
    fn deref(&self) -> &Edits {
        &self.edits
    }
}

clones!([O, S] PassEdits<O, S> { edits, outputs });

shows!([O, S] PassEdits<O, S>: |_it| {});

impl<O: Output, S: PassInput> FromTask<Outputs<O, S>> for PassEdits<O, S> {
    type Error = Infallible;

    fn from_task(task: &Task<'_, Outputs<O, S>>) -> Result<Self, Infallible> {
        Ok(PassEdits { edits: task.ctx().edits(), outputs: PhantomData })
    }
}
