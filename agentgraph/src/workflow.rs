//! Workflows: an ordinary async function that survives kills.
//!
//! A workflow is a graph of one node, whose state is the input, the result and the list of steps. The
//! function's durable steps ([`Ctx::once`](crate::Ctx::once), [`Ctx::durable`](crate::Ctx::durable)), its
//! questions and its sleeps are those of any node.

mod drawing;
mod function;
mod state;

pub use function::{NoInput, WorkflowFn};
pub use state::{WorkflowState, WorkflowUpdate, WorkflowValue};

use std::any::Any;
use std::time::Duration;

use crate::error::Error;
use crate::extract::{FromTask, Task};
use crate::graph::{CompileError, StateGraph};
use crate::node::{IntoNode, Node};
use crate::policy::RetryPolicy;
use crate::run::{CompiledGraph, NotFinished, Outcome, RunBuilder};
use crate::words::START;

/// An ordinary async function as a durable workflow. The function is called again after a kill, an interrupt
/// or a retry; its durable steps are not done again.
///
/// [`compile`](Workflow::compile) makes a [`CompiledGraph`] of one node, so everything that a graph can do
/// applies: threads, [`resume`](CompiledGraph::resume), streams, [`state`](CompiledGraph::state),
/// [`waiting`](CompiledGraph::waiting), limits, leases, a [`Host`](crate::host::Host) if the function has no
/// durable steps.
///
/// The function takes up to seven extractors, of which [`Ctx`](crate::Ctx), [`Previous`],
/// [`Dep`](crate::Dep), [`Session`](crate::Session) and [`CallContext`](crate::CallContext) are the useful
/// ones, and its input last. It must be deterministic between its steps: what depends on time, chance or the
/// outside belongs into a step.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::workflow::Workflow;
/// use futures_util::future::try_join_all;
///
/// # async fn price_of(item: String) -> Result<u32> { Ok(item.len() as u32) }
/// # async fn charge(sum: u32) -> Result<String> { Ok(format!("receipt over {sum}")) }
/// async fn order(ctx: Ctx, items: Vec<String>) -> Result<String> {
///     let prices = items.iter().map(|item| ctx.once_for("price", item, price_of(item.clone())));
///     let sum = try_join_all(prices).await?.into_iter().sum();
///     let approved: bool = ctx.interrupt(format!("pay {sum}?"))?;
///     if !approved {
///         return Ok("cancelled".to_owned());
///     }
///     ctx.durable("charge").retry(RetryPolicy::attempts(3)).run(|| charge(sum)).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let orders = Workflow::new("order", order).compile()?.checkpointer(MemorySaver::new());
/// let items = vec!["tea".to_owned(), "milk".to_owned()];
/// let asked = orders.invoke(items).thread("order-1").await?;
/// assert_eq!(asked.interrupts()[0].value, "pay 7?");
///
/// let receipt = orders.resume(true).thread("order-1").returned().await?;
/// assert_eq!(receipt, "receipt over 7");
/// # Ok(())
/// # }
/// ```
#[must_use = "a workflow is made runnable with `compile`"]
pub struct Workflow<I: WorkflowValue, O: WorkflowValue> {
    name: String,
    node: Node<WorkflowState<I, O>>,
    graph: StateGraph<WorkflowState<I, O>>,
}

impl<I: WorkflowValue, O: WorkflowValue> Workflow<I, O> {
    /// A workflow with this name, which is the name of its node in events and threads. Threads contain the
    /// name, so a workflow that is renamed cannot continue them.
    pub fn new<M>(name: impl AsRef<str>, function: impl WorkflowFn<I, O, M>) -> Self {
        Workflow { name: name.as_ref().to_owned(), node: function.into_node(), graph: StateGraph::new() }
    }

    /// Calls the function again when it fails: [`IntoNode::retry`]. Steps that are done are not done again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.node = self.node.retry(policy);
        self
    }

    /// Limits one call of the function: [`IntoNode::timeout`]. The time in which the run waits for an answer
    /// or sleeps does not count.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.node = self.node.timeout(limit);
        self
    }

    /// Fails a call of the function that shows no sign of life for `limit`: [`IntoNode::idle_timeout`]. The
    /// end of a step is a sign of life.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.node = self.node.idle_timeout(limit);
        self
    }

    /// A dependency for [`Dep`](crate::Dep): [`StateGraph::dep`].
    pub fn dep<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.graph = self.graph.dep(value);
        self
    }

    /// Makes the workflow runnable.
    ///
    /// # Errors
    /// A missing dependency, a timeout of zero, or a name that no node may have.
    pub fn compile(self) -> Result<CompiledGraph<WorkflowState<I, O>>, CompileError> {
        let Workflow { name, node, graph } = self;
        graph.node(name.clone(), node).edge(START, name).compile()
    }
}

/// What the last finished run of the thread returned; `None` in its first run. An argument of a
/// [`Workflow`].
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::workflow::{Previous, Workflow};
///
/// async fn add(Previous(sum): Previous<u32>, number: u32) -> Result<u32> {
///     Ok(sum.unwrap_or(0) + number)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let sum = Workflow::new("sum", add).compile()?.checkpointer(MemorySaver::new());
/// assert_eq!(sum.invoke(2).thread("t-1").returned().await?, 2);
/// assert_eq!(sum.invoke(3).thread("t-1").returned().await?, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous<O>(pub Option<O>);

impl<I: WorkflowValue, O: WorkflowValue> FromTask<WorkflowState<I, O>> for Previous<O> {
    type Error = std::convert::Infallible;

    fn from_task(task: &Task<'_, WorkflowState<I, O>>) -> Result<Self, Self::Error> {
        Ok(Previous(task.state().returned().cloned()))
    }
}

/// # The result of a workflow
impl<I: WorkflowValue, O: WorkflowValue> RunBuilder<WorkflowState<I, O>> {
    /// Runs the call to the end of its run, and returns what the workflow returned.
    ///
    /// # Errors
    /// As [`finish`](RunBuilder::finish).
    pub async fn returned(self) -> Result<O, Error>
    where
        WorkflowState<I, O>: Any,
    {
        Ok(self.await?.into_returned()?)
    }
}

/// # The result of a workflow
impl<I: WorkflowValue, O: WorkflowValue> Outcome<WorkflowState<I, O>> {
    /// What the workflow returned.
    ///
    /// # Errors
    /// [`NotFinished`] if the run was interrupted or stopped, or sleeps.
    pub fn into_returned(self) -> Result<O, NotFinished>
    where
        WorkflowState<I, O>: Any,
    {
        let state = self.into_finished()?;
        state.into_returned().ok_or_else(|| NotFinished::new(Error::new(crate::Code::NotFinished, NO_RESULT)))
    }
}

const NO_RESULT: &str = "the workflow has no result: its state was edited";
