//! [`FarSide`]: what the process of a host gives to the tasks that it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::TaskEvents;
use crate::context::ValuesByType;
use agentgraph_checkpoint::Checkpointer;

/// What a process gives to a task that it runs for a host: see
/// [`CompiledGraph::run_task`](crate::CompiledGraph::run_task), whose future has the same methods.
#[derive(Default)]
#[must_use]
pub struct FarSide {
    /// The values that nodes take as contexts of the call.
    pub(crate) context: Option<Box<ValuesByType>>,
    /// Keeps the results of durable steps.
    pub(crate) once: Option<Arc<dyn Checkpointer>>,
    /// Receives the events of the task.
    pub(crate) events: Option<Arc<dyn TaskEvents>>,
    /// The longest time for the attempt.
    pub(crate) timeout: Option<Duration>,
    /// Why the node is not run.
    pub(crate) given_up: Option<String>,
    /// Whether the task has a place of its node's limit.
    pub(crate) has_place: bool,
}

impl FarSide {
    /// Nothing: enough for nodes that take neither contexts nor durable steps.
    pub fn new() -> Self {
        FarSide::default()
    }

    /// A value for nodes that take a [`CallContext<T>`](crate::node::CallContext).
    pub fn context<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context.get_or_insert_default().insert(value);
        self
    }

    /// A store for the results of durable steps ([`Ctx::once`](crate::Ctx::once)): one that every process
    /// which may run the task reaches. A result is stored before the step's future is ready, under the id of
    /// the task, and is given back in whatever process the task runs again.
    ///
    /// The store keeps each task's results as a thread of their own, `once/` and the task's id; the run does
    /// not know of it. Delete it with [`forget_once`](crate::host::forget_once) when the run is over.
    pub fn once_in(mut self, saver: Arc<dyn Checkpointer>) -> Self {
        self.once = Some(saver);
        self
    }

    /// A receiver of the events of the task: what it [emits](crate::Ctx::emit), and the pieces of
    /// [messages](crate::Ctx::message). Without one they are dropped.
    pub fn events(mut self, events: Arc<dyn TaskEvents>) -> Self {
        self.events = Some(events);
        self
    }

    /// The longest time that this process gives the attempt, as a [timeout](crate::Timeout) of its node. A
    /// shorter one of the node's own is kept.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use agentgraph::host::{FarSide, Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    /// use agentgraph::{BoxError, Code};
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    ///
    /// async fn hang() -> PageUpdate {
    ///     std::future::pending().await
    /// }
    ///
    /// struct Worker(CompiledGraph<Page>);
    ///
    /// #[async_trait::async_trait]
    /// impl Host for Worker {
    ///     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
    ///         let far = FarSide::new().timeout(Duration::from_millis(1));
    ///         Ok(self.0.run_task(call).on(far).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("hang", hang).edge(START, "hang").compile()?;
    /// let graph = graph.clone().host(Worker(graph));
    /// let error = graph.invoke(Page::update()).await.unwrap_err();
    /// assert_eq!(error.code(), Code::NodeTimeout);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Does not run the node: its attempt fails with [`Code::WorkerLost`](crate::Code::WorkerLost) and is the
    /// last one, whatever its retry policy says. For a node that ends each process that runs it.
    ///
    /// ```
    /// use agentgraph::host::{FarSide, Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    /// use agentgraph::{BoxError, Failure};
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    ///
    /// async fn crash() -> PageUpdate {
    ///     std::process::abort()
    /// }
    ///
    /// async fn mend(failure: Failure) -> PageUpdate {
    ///     Page::update().text(format!("{}: {}", failure.code(), failure.message()))
    /// }
    ///
    /// struct Worker(CompiledGraph<Page>);
    ///
    /// #[async_trait::async_trait]
    /// impl Host for Worker {
    ///     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
    ///         let far = match &*call.node {
    ///             "crash" => FarSide::new().given_up("it has cost three processes"),
    ///             _ => FarSide::new(),
    ///         };
    ///         Ok(self.0.run_task(call).on(far).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let crash = crash.retry(RetryPolicy::attempts(5)).on_error("mend");
    /// let graph = StateGraph::new().node("crash", crash).node("mend", mend).edge(START, "crash").compile()?;
    /// let graph = graph.clone().host(Worker(graph));
    /// let page = graph.invoke(Page::update()).finish().await?;
    /// assert_eq!(page.text, "E_WORKER_LOST: it has cost three processes");
    /// # Ok(())
    /// # }
    /// ```
    pub fn given_up(mut self, problem: impl Into<String>) -> Self {
        self.given_up = Some(problem.into());
        self
    }

    /// Says that the task has its place of the node's [limit](crate::host::TaskCall::limit), which the
    /// host keeps over its processes: it waits for none in this process. The rate of the limit holds here
    /// all the same.
    pub fn has_place(mut self) -> Self {
        self.has_place = true;
        self
    }
}

impl fmt::Debug for FarSide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FarSide { context, once, events, timeout, given_up, has_place } = self;
        let mut parts = out.debug_struct("FarSide");
        parts.field("context", &context.is_some()).field("once_in", &once.is_some());
        parts
            .field("events", &events.is_some())
            .field("timeout", timeout)
            .field("given_up", given_up)
            .field("has_place", has_place)
            .finish()
    }
}
