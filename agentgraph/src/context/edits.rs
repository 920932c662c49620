//! [`Edits`]: what a task changes its graph with.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use crate::context::{RunShared, TaskRequest};
use crate::node::{IntoNode, NodeResult};
use crate::state::State;
use crate::step::Step;
use crate::words::{EditError, GraphEdit, Rejection};

/// A node that is not data: a function that the caller handed over, as its discipline knows it.
pub(crate) type NodeValue = Arc<dyn Any + Send + Sync>;

/// Where a discipline takes edits. What is refused leaves no trace; what is accepted is kept for the task
/// until it ends.
pub(crate) trait Desk: Send + Sync {
    /// Checks an edit against what the task can see: the compiled graph, what earlier supersteps made of it,
    /// and what it has edited itself.
    fn submit(
        &self,
        shared: &RunShared,
        task: TaskRequest,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), Rejection>;

    /// The name of a temporary node, where the overlay of the run does not tell it.
    fn name(&self, node: u32) -> Option<Arc<str>> {
        let _ = node;
        None
    }

    /// How many edits the attempt has handed in, where they can be undone.
    fn handed_in(&self, task: TaskRequest) -> usize {
        let _ = task;
        0
    }

    /// Drops what the attempt has handed in beyond its first edits.
    fn undo_to(&self, task: TaskRequest, count: usize) {
        let _ = (task, count);
    }
}

/// A desk that looks at nothing: what is to be edited before a pass is judged when the pass begins.
#[derive(Default)]
pub(crate) struct EditCollector(Mutex<Vec<CollectedEdit>>);

/// An edit, and the function that it brings.
pub(crate) type CollectedEdit = (GraphEdit, Option<NodeValue>);

impl EditCollector {
    pub(crate) fn take(&self) -> Vec<CollectedEdit> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Desk for EditCollector {
    fn submit(
        &self,
        _: &RunShared,
        _: TaskRequest,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), Rejection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((edit.clone(), made));
        Ok(())
    }
}

/// Changes the graph for this run: from [`Ctx::edits`](crate::Ctx::edits) and
/// [`Command::for_this_run`](crate::Command::for_this_run) in a node, and from
/// [`RunBuilder::for_this_run`](crate::RunBuilder::for_this_run) before the run begins.
///
/// The compiled graph is not touched, and other runs do not see the edits. Each is checked at once, against
/// the graph as this task sees it: a refused one is an [`EditError`] and leaves no trace. All that a task has
/// edited is applied together once its superstep is merged, before routes are asked; of an attempt that fails
/// or is interrupted nothing is. The edits hold until the run ends; a run that is suspended and goes on goes
/// on in its edited graph.
///
/// With a checkpointer or a host, nodes are added from a [template](crate::StateGraph::template), since a
/// closure cannot be stored.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
/// # struct Words { #[reduce(append)] seen: Vec<String> }
/// async fn plan(ctx: Ctx) -> Result<WordsUpdate> {
///     let edits = ctx.edits();
///     edits.add_fn("check", async |words: Snapshot<Words>| Words::update().seen([format!("{} so far", words.seen.len())]))?;
///     edits.remove_edge("plan", "write")?;
///     edits.add_edge("plan", "check")?;
///     edits.add_edge("check", "write")?;
///     Ok(Words::update().seen(["plan"]))
/// }
/// async fn write() -> WordsUpdate {
///     Words::update().seen(["write"])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph =
///     StateGraph::new().node("plan", plan).node("write", write).edge(START, "plan").edge("plan", "write").compile()?;
/// let words = graph.invoke(Words::update()).await?.into_finished()?;
/// assert_eq!(words.seen, ["plan", "1 so far", "write"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Edits {
    shared: Arc<RunShared>,
    task: TaskRequest,
}

impl Edits {
    pub(crate) fn new(shared: Arc<RunShared>, task: TaskRequest) -> Self {
        Edits { shared, task }
    }

    /// Adds a node that a [template](crate::StateGraph::template) of the graph makes of `args`. In a state
    /// graph it runs when an edge, a goto or a dispatch leads to it.
    ///
    /// # Errors
    /// When the name is taken or reserved, and when there is no such template or it does not take the
    /// arguments.
    pub fn add_node(
        &self,
        name: impl Into<String>,
        template: impl Into<String>,
        args: impl Serialize,
    ) -> Result<(), EditError> {
        let (name, template) = (name.into(), Some(template.into()));
        match serde_json::to_value(args) {
            Ok(args) => self.submit(GraphEdit::AddNode { name, template, args }, None),
            Err(error) => {
                let edit = GraphEdit::AddNode { name, template, args: Value::Null };
                Err(EditError::new(edit, Rejection::BadArguments(error.to_string())))
            }
        }
    }

    /// Adds a node that is a function or closure, or a [`Node`](crate::node::Node) with settings: whatever
    /// [`StateGraph::node`](crate::StateGraph::node) takes, over the same state.
    ///
    /// # Errors
    /// When the name is taken or reserved, when the node asks for a dependency or session that the graph does
    /// not have, and with [`Code::NeedsTemplate`](crate::Code::NeedsTemplate) in a graph with a checkpointer
    /// or a host. In a dependency graph always: there [`PassEdits`](crate::dependency::PassEdits) takes functions.
    pub fn add_fn<S: State, M>(
        &self,
        name: impl Into<String>,
        node: impl IntoNode<S, M>,
    ) -> Result<(), EditError> {
        let edit = GraphEdit::AddNode { name: name.into(), template: None, args: Value::Null };
        self.submit(edit, Some(Arc::new(node.into_node())))
    }

    /// Adds an edge. `from` may be [`START`](crate::START), which has an effect before the run begins, and
    /// `to` [`END`](crate::END). In a dependency graph, one into a node that runs changes nothing in this
    /// pass.
    ///
    /// # Errors
    /// When there is such an edge, or one of its ends is unknown. In a dependency graph also when it closes a
    /// cycle, or `to` is done.
    pub fn add_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::AddEdge { from: from.into(), to: to.into() }, None)
    }

    /// Adds an edge in front of the others: its source's output is the first that its target gets, where
    /// order means something.
    ///
    /// # Errors
    /// As [`add_edge`](Edits::add_edge).
    pub fn prepend_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::PrependEdge { from: from.into(), to: to.into() }, None)
    }

    /// Removes an edge. A join does not wait for that source any more. In a dependency graph a node that
    /// loses its last one is pruned.
    ///
    /// # Errors
    /// When there is no such edge, or one of its ends is unknown; in a dependency graph also when one of them
    /// is done.
    pub fn remove_edge(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveEdge { from: from.into(), to: to.into() }, None)
    }

    /// Removes a node with all its edges. If it was to run next it does not; if it is running it comes to its
    /// end, except in a dependency graph, where a node that has begun cannot be removed.
    ///
    /// # Errors
    /// When there is no such node; in a dependency graph also when it runs, waits for an answer, or is done.
    pub fn remove_node(&self, name: impl Into<String>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveNode { name: name.into() }, None)
    }

    /// Lets each of these nodes not run when it is reached next in this run: what it gave last is used again,
    /// and the run goes on behind it as usual. All of them or none.
    ///
    /// # Errors
    /// When one of them is unknown, and with [`Code::NothingToReuse`](crate::Code::NothingToReuse) when it
    /// has nothing that could be used again. In a dependency graph also when one of them runs or is done.
    pub fn skip<T: Into<String>>(&self, nodes: impl IntoIterator<Item = T>) -> Result<(), EditError> {
        self.submit(GraphEdit::Skip { nodes: nodes.into_iter().map(Into::into).collect() }, None)
    }

    pub(crate) fn mark(&self) -> EditMark {
        EditMark { attempt: self.task.attempt, edits: self.shared.desk_now().handed_in(self.task) }
    }

    pub(crate) fn undo_to(&self, mark: EditMark) {
        if mark.attempt == self.task.attempt {
            self.shared.desk_now().undo_to(self.task, mark.edits);
        }
    }

    pub(crate) fn submit(&self, edit: GraphEdit, made: Option<NodeValue>) -> Result<(), EditError> {
        self.shared.submit(self.task, edit, made)
    }
}

impl std::fmt::Debug for Edits {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Edits").finish_non_exhaustive()
    }
}

/// How far a task had come with its edits: see [`PassEdits::mark`](crate::dependency::PassEdits::mark).
#[derive(Clone, Copy, Debug)]
pub struct EditMark {
    attempt: u32,
    edits: usize,
}

/// Makes the edits of the command that a node returned. One that is refused fails the node.
pub(crate) fn make_edits<S: State>(
    shared: &Arc<RunShared>,
    request: TaskRequest,
    result: NodeResult<S>,
) -> NodeResult<S> {
    let Ok(Step::Command(mut command)) = result else { return result };
    if !command.edits.is_empty() {
        let edits = Edits::new(Arc::clone(shared), request);
        for edit in std::mem::take(&mut command.edits) {
            edit(&edits)?;
        }
    }
    Ok(Step::Command(command))
}

/// An edit of a task that was checked when it was called.
#[derive(Clone)]
pub(crate) struct ProposedEdit {
    pub(crate) edit: GraphEdit,
    /// The node that it adds.
    pub(crate) made: Option<NodeValue>,
    /// How many edits of the run its task could see.
    pub(crate) seen: usize,
}

impl ProposedEdit {
    /// Whether two say the same. Two functions are never the same node.
    pub(crate) fn coincides(&self, other: &ProposedEdit) -> bool {
        let same_node = || matches!((&self.made, &other.made), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        self.edit == other.edit && (!self.adds_function() || same_node())
    }

    /// Whether one of those that were merged since its task began to edit says the same.
    pub(crate) fn coincides_with(&self, merged: &[GraphEdit]) -> bool {
        !self.adds_function() && merged.contains(&self.edit)
    }

    pub(crate) fn adds_function(&self) -> bool {
        matches!(self.edit, GraphEdit::AddNode { template: None, .. })
    }

    /// The node that it removes.
    pub(crate) fn removes(&self) -> Option<&str> {
        match &self.edit {
            GraphEdit::RemoveNode { name } => Some(name),
            _ => None,
        }
    }
}
