//! [`RemoteCall`]: a call of a remote graph in the making.

use std::future::IntoFuture;
use std::time::Duration;

use agentgraph::host::RunCall;
use agentgraph::policy::Siblings;
use agentgraph::state::StoredState;
use agentgraph::{Budget, Code, Error, Outcome, View};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::RemoteGraph;
use super::stream::RemoteStream;
use super::threads::With;

/// A call of a remote graph in the making: `graph.invoke(input).thread("t-1").await?`.
///
/// A request that did not get its answer, because the connection was lost, is sent again under the same
/// idempotency key. The server then answers from the call that is under way or done, and nothing runs twice.
#[must_use = "a call does nothing until it is awaited"]
pub struct RemoteCall<S: StoredState> {
    graph: RemoteGraph<S>,
    call: Result<RunCall, Error>,
    thread: Option<String>,
    with: With,
}

/// The views of a stream, unless set otherwise: those of a local one.
const VIEWS: [View; 2] = [View::Updates, View::Custom];

impl<S: StoredState> RemoteCall<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, call: Result<RunCall, Error>) -> Self {
        RemoteCall { graph: graph.clone(), call, thread: None, with: With::default() }
    }

    fn change(mut self, change: impl FnOnce(RunCall) -> RunCall) -> Self {
        self.call = self.call.map(change);
        self
    }

    /// The thread. Calls of one thread run one after the other, in the order in which the server gets them.
    pub fn thread(mut self, thread: impl AsRef<str>) -> Self {
        self.thread = Some(thread.as_ref().to_owned());
        self
    }

    /// As [`RunBuilder::max_supersteps`](agentgraph::RunBuilder::max_supersteps).
    pub fn max_supersteps(self, steps: u64) -> Self {
        self.change(|call| call.max_supersteps(steps))
    }

    /// As [`RunBuilder::max_concurrency`](agentgraph::RunBuilder::max_concurrency).
    pub fn max_concurrency(self, tasks: usize) -> Self {
        self.change(|call| call.max_concurrency(tasks))
    }

    /// As [`RunBuilder::deadline`](agentgraph::RunBuilder::deadline).
    pub fn deadline(self, limit: Duration) -> Self {
        self.change(|call| call.deadline(limit))
    }

    /// As [`RunBuilder::step_timeout`](agentgraph::RunBuilder::step_timeout).
    pub fn step_timeout(self, limit: Duration) -> Self {
        self.change(|call| call.step_timeout(limit))
    }

    /// As [`RunBuilder::budget`](agentgraph::RunBuilder::budget).
    pub fn budget(self, budget: Budget) -> Self {
        self.change(|call| call.budget(budget))
    }

    /// As [`RunBuilder::siblings`](agentgraph::RunBuilder::siblings).
    pub fn siblings(self, policy: Siblings) -> Self {
        self.change(|call| call.siblings(policy))
    }

    /// As [`RunBuilder::abandon`](agentgraph::RunBuilder::abandon).
    pub fn abandon(self) -> Self {
        self.change(RunCall::abandon)
    }

    /// The views of the stream, updates and custom events if not set: as
    /// [`RunBuilder::views`](agentgraph::RunBuilder::views). A call that is awaited with views posts its
    /// events, too, for those who [watch](RemoteGraph::watch) the thread.
    pub fn views(self, views: impl IntoIterator<Item = View>) -> Self {
        self.change(|call| call.views(views))
    }

    /// As [`RunBuilder::subgraphs`](agentgraph::RunBuilder::subgraphs).
    pub fn subgraphs(self) -> Self {
        self.change(RunCall::subgraphs)
    }

    /// Runs the call as a stream of events, which come over the [relay](crate::EventRelay).
    pub fn stream(self) -> RemoteStream<S> {
        let unset = self.call.as_ref().is_ok_and(|call| call.heard_views().is_empty());
        let call = if unset { self.views(VIEWS) } else { self }.named();
        let (graph, thread, name) = (call.graph.clone(), call.thread.clone(), call.with.name.clone());
        let name = name.unwrap_or_default();
        RemoteStream::of_call(&graph, thread.as_deref(), &name, Box::pin(call.run()))
    }

    /// A call that is made again under its key has the name of the first one, whose events it hears.
    fn named(mut self) -> Self {
        let With { name, idempotency_key, .. } = &mut self.with;
        name.get_or_insert_with(|| idempotency_key.clone().unwrap_or_else(|| Uuid::new_v4().to_string()));
        self
    }

    /// Sends a header with the call, from which the workers make contexts:
    /// [`RestateWorker::context_from`](crate::RestateWorker::context_from). It is stored with the call, and
    /// encrypted as the input is. Without keys, a call with a header whose name is that of a credential, such
    /// as `authorization` or `x-api-key`, is refused with
    /// [`Code::SecretNeedsKey`](agentgraph::Code::SecretNeedsKey).
    pub fn header(mut self, name: impl AsRef<str>, value: impl Into<String>) -> Self {
        self.with.headers.insert(name.as_ref().to_ascii_lowercase(), value.into());
        self
    }

    /// Waits for the answers to interrupts, too, instead of returning them: the call returns when the run
    /// ends in another way. Answers come by [`RemoteGraph::answer`]. Meanwhile the call has the thread, so
    /// other calls of it wait.
    pub fn wait_answer(mut self) -> Self {
        self.with.waits = true;
        self
    }

    /// How long the end of the call is waited for; no limit if not set. The call itself goes on: made again
    /// under its [idempotency key](Self::idempotency_key), it gets its end. To limit the run, use
    /// [`deadline`](Self::deadline).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.with.timeout = Some(limit);
        self
    }

    /// Begins the call so much later. The server waits, not this process.
    pub fn after(mut self, delay: Duration) -> Self {
        self.with.delay = Some(delay);
        self
    }

    /// Sends the call, and does not wait for its end. Returns the id of its invocation, with which
    /// [`RemoteGraph::attach`] waits for it, in any process.
    ///
    /// ```no_run
    /// # use agentgraph::prelude::*;
    /// # use agentgraph_restate::RemoteGraph;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Triage { note: String }
    /// # async fn call(graph: RemoteGraph<Triage>) -> Result<()> {
    /// let tomorrow = std::time::Duration::from_secs(24 * 60 * 60);
    /// let sent = graph.invoke(Triage::update()).thread("t-1").after(tomorrow).send().await?;
    /// let outcome = graph.attach("t-1", &sent).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the server is not reached.
    pub async fn send(self) -> Result<String, Error> {
        let RemoteCall { graph, call, thread, with } = self;
        let thread = thread.ok_or_else(no_thread)?;
        graph.threads.send_with(&thread, call?, with).await
    }

    /// The idempotency key of the call; a random one if not set. The server answers a call with the key of an
    /// earlier one of the same kind on the thread from that one, for a day: a `resume` never gets the outcome
    /// of an `invoke`. A [stream](Self::stream) of the same call hears the events that come from then on.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.with.idempotency_key = Some(key.into());
        self
    }

    /// Contexts are not sent: each worker makes them, by
    /// [`RestateWorker::context_from`](crate::RestateWorker::context_from). No type can be passed here.
    ///
    /// ```compile_fail
    /// # use agentgraph::prelude::*;
    /// # use agentgraph_restate::RestateClient;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Triage { note: String }
    /// # fn call(graph: agentgraph_restate::RemoteGraph<Triage>) {
    /// let call = graph.invoke(Triage::update()).thread("t-1").context("a token");
    /// # }
    /// ```
    pub fn context<T: SentContext>(self, context: T) -> Self {
        drop(context);
        self
    }

    /// Runs the call to the end of its run, and returns the last state, as
    /// [`RunBuilder::finish`](agentgraph::RunBuilder::finish).
    ///
    /// # Errors
    /// That of the call, and those of [`Outcome::into_finished`].
    pub async fn finish(self) -> Result<S, Error> {
        Ok(self.await?.into_finished()?)
    }

    async fn run(self) -> Result<Outcome<S>, Error> {
        let is_heard = self.call.as_ref().is_ok_and(|call| !call.heard_views().is_empty());
        let call = if is_heard { self.named() } else { self };
        let RemoteCall { graph, call, thread, with } = call;
        let thread = thread.ok_or_else(no_thread)?;
        graph.threads.call_with(&thread, call?, with).await?.into_result::<S>(&graph.schema)
    }
}

/// Implemented by no type: a context is not sent to a worker.
#[diagnostic::on_unimplemented(
    message = "a context is not sent to a worker: the worker makes it, by `RestateWorker::context_from`",
    label = "this value would have to be sent",
    note = "send what the context is made from as a header: `.header(\"x-user\", \"ada\")`"
)]
pub trait SentContext {}

pub(super) fn no_thread() -> Error {
    Error::new(Code::NoThread, "a call of a remote graph names its thread: `.thread(\"t-1\")`")
}

impl<S: StoredState> IntoFuture for RemoteCall<S> {
    type Output = Result<Outcome<S>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
