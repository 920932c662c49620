//! [`Edits`]: the interface by which a task changes its graph.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;

use crate::context::{RunShared, TaskRequest, VisibleEdits};
use crate::words::{EditError, GraphEdit, Rejection};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::shows;

/// A node that is not data: a function from the caller, in the type of its discipline.
pub(crate) type NodeValue = Arc<dyn Any + Send + Sync>;

/// Accepts the edits of a discipline. A refused edit has no effect; an accepted one is kept for the task
/// until it ends.
pub(crate) trait Desk: Send + Sync {
    /// Checks an edit against the graph that the task sees: the compiled graph, with the changes of earlier
    /// supersteps and the task's own edits.
    fn submit(
        &self,
        shared: &RunShared,
        task: TaskRequest,
        edit: &GraphEdit,
        made: Option<NodeValue>,
    ) -> Result<(), Rejection>;

    /// Takes an edit that was checked in another process, against the graph that the task sees. What other
    /// tasks have changed since is no reason to refuse it: it may be dropped when the task is done.
    fn adopt(
        &self,
        shared: &RunShared,
        seen: &VisibleEdits,
        task: TaskRequest,
        edit: &GraphEdit,
    ) -> Result<(), Rejection> {
        let _ = seen;
        self.submit(shared, task, edit, None)
    }

    /// Takes the edits of an attempt that has succeeded in a process that runs single tasks.
    fn take_edits(&self, shared: &RunShared, task: TaskRequest) -> Vec<GraphEdit> {
        shared.control.take_edits(task.index).into_iter().map(|one| one.edit).collect()
    }

    /// The name of a temporary node that is not in the overlay of the run.
    fn name(&self, node: u32) -> Option<Arc<str>> {
        let _ = node;
        None
    }

    /// The number of edits that the attempt has submitted, where they can be undone.
    fn submitted_edits(&self, task: TaskRequest) -> usize {
        let _ = task;
        0
    }

    /// Drops the edits of the attempt after its first `count`.
    fn undo_to(&self, task: TaskRequest, count: usize) {
        let _ = (task, count);
    }
}

/// A desk without checks: edits made before a pass are checked when the pass starts.
#[derive(Default)]
pub(crate) struct EditCollector(Lock<Vec<CollectedEdit>>);

/// An edit, with its function if it adds one.
pub(crate) type CollectedEdit = (GraphEdit, Option<NodeValue>);

impl EditCollector {
    pub(crate) fn take(&self) -> Vec<CollectedEdit> {
        std::mem::take(&mut *self.0.lock())
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
        self.0.lock().push((edit.clone(), made));
        Ok(())
    }
}

/// Changes the graph for this run: from [`Ctx::edits`](crate::Ctx::edits) and
/// [`Command::for_this_run`](crate::Command::for_this_run) in a node, and from
/// [`RunBuilder::for_this_run`](crate::RunBuilder::for_this_run) before the run starts.
///
/// The compiled graph does not change, and other runs do not see the edits. Each edit is checked at once,
/// against the graph that this task sees: a refused one returns an [`EditError`] and changes nothing. All
/// edits of a task are applied together once its superstep is merged, before routes are called; the edits
/// of an attempt that fails or is interrupted are dropped. The edits last until the run ends; a suspended
/// run continues in its edited graph.
///
/// With a checkpointer or a host, nodes are added from a [template](crate::StateGraph::template), since a
/// closure cannot be stored.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Words { #[reduce(append)] seen: Vec<String> }
/// async fn plan(ctx: Ctx) -> Result<WordsUpdate> {
///     let edits = ctx.edits();
///     edits.add_fn("check", async |words: Snapshot<Words>| {
///         Words::update().seen([format!("{} so far", words.seen.len())])
///     })?;
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
/// let graph = StateGraph::new()
///     .node("plan", plan)
///     .node("write", write)
///     .edge(START, "plan")
///     .edge("plan", "write")
///     .compile()?;
/// let words = graph.invoke(Words::update()).finish().await?;
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

    /// Adds a node that a [template](crate::StateGraph::template) of the graph makes from `args`. In a
    /// state graph it runs when an edge, a goto or a dispatch reaches it.
    ///
    /// # Errors
    /// If the name is taken or reserved, if there is no such template, or if the template refuses the
    /// arguments.
    pub fn add_node(
        &self,
        name: impl AsRef<str>,
        template: impl AsRef<str>,
        args: impl Serialize,
    ) -> Result<(), EditError> {
        self.submit(GraphEdit::of_template(name, template, args)?, None)
    }

    /// Adds an edge. `from` may be [`START`](crate::START), which has an effect only before the run starts,
    /// and `to` may be [`END`](crate::END). In a dependency graph, an edge to a running node changes
    /// nothing in this pass.
    ///
    /// # Errors
    /// If the edge exists, or one of its ends is unknown. In a dependency graph also if it closes a cycle,
    /// or `to` is done.
    pub fn add_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.submit(GraphEdit::AddEdge { from: from.as_ref().into(), to: to.as_ref().into() }, None)
    }

    /// Adds an edge before the others: its source's output is the first input of its target, where order
    /// matters.
    ///
    /// # Errors
    /// As [`add_edge`](Edits::add_edge).
    pub fn prepend_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.submit(GraphEdit::PrependEdge { from: from.as_ref().into(), to: to.as_ref().into() }, None)
    }

    /// Removes an edge. A join no longer waits for its source. In a dependency graph, a node that loses its
    /// last edge is pruned.
    ///
    /// # Errors
    /// If the edge does not exist, or one of its ends is unknown; in a dependency graph also if one of them
    /// is done.
    pub fn remove_edge(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveEdge { from: from.as_ref().into(), to: to.as_ref().into() }, None)
    }

    /// Removes a node with all its edges. If it was to run next, it does not; if it is running, it
    /// finishes, except in a dependency graph, where a node that has started cannot be removed.
    ///
    /// # Errors
    /// If the node does not exist; in a dependency graph also if it runs, waits for an answer, or is done.
    pub fn remove_node(&self, name: impl AsRef<str>) -> Result<(), EditError> {
        self.submit(GraphEdit::RemoveNode { name: name.as_ref().into() }, None)
    }

    /// Skips each of these nodes when it is reached next in this run: its last output is used again, and
    /// the run continues after it as usual. All of them or none.
    ///
    /// # Errors
    /// If one of them is unknown, and with [`Code::NothingToReuse`](crate::Code::NothingToReuse) if it has
    /// no output to use again. In a dependency graph also if one of them runs or is done.
    pub fn skip<T: AsRef<str>>(&self, nodes: impl IntoIterator<Item = T>) -> Result<(), EditError> {
        self.submit(
            GraphEdit::Skip { nodes: nodes.into_iter().map(|node| node.as_ref().into()).collect() },
            None,
        )
    }

    pub(crate) fn mark(&self) -> EditMark {
        EditMark { attempt: self.task.attempt, edits: self.shared.desk_now().submitted_edits(self.task) }
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

shows!(Edits: |_it| {});

/// A position in a task's edits: see [`PassEdits::mark`](crate::dependency::PassEdits::mark).
#[derive(Clone, Copy, Debug)]
pub struct EditMark {
    attempt: u32,
    edits: usize,
}

/// An edit of a task that was checked when it was made.
#[derive(Clone)]
pub(crate) struct ProposedEdit {
    pub(crate) edit: GraphEdit,
    /// The function that it adds as a node.
    pub(crate) made: Option<NodeValue>,
    /// The number of edits of the run that its task could see.
    pub(crate) seen: usize,
}

impl ProposedEdit {
    /// Whether two edits are the same. Two functions are never the same node.
    pub(crate) fn coincides(&self, other: &ProposedEdit) -> bool {
        let same_node = || matches!((&self.made, &other.made), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        self.edit == other.edit && (!self.adds_function() || same_node())
    }

    /// Whether it is the same as an edit merged since its task started to edit.
    pub(crate) fn coincides_with(&self, merged: &[GraphEdit]) -> bool {
        !self.adds_function() && merged.contains(&self.edit)
    }

    fn adds_function(&self) -> bool {
        matches!(self.edit, GraphEdit::AddNode { template: None, .. })
    }

    /// The name of the node that it removes.
    pub(crate) fn removes(&self) -> Option<&str> {
        match &self.edit {
            GraphEdit::RemoveNode { name } => Some(name),
            _ => None,
        }
    }
}
