//! [`HostedGraph`]: a compiled graph, as a host sees it.

use std::future::IntoFuture;
use std::sync::Arc;
use std::task::Waker;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::{RunCall, no_passes, pass_input};
use super::desk::Desk;
use super::end::RunEnd;
use super::ground::Ground;
use super::here;
use super::image::{DrivenStore, Image};
use super::run::{Controls, DrivenRun, Listener};
use super::seams::{DrivenHost, DrivenServices};
use super::thread_state::ThreadState;
use crate::context::host::{FarSide, TaskCall, TaskReply};
use crate::dependency::outputs::{Output, Outputs, OutputsUpdate, PassInput};
use crate::error::Error;
use crate::event::EventQueue;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::run::{Cancellation, CompiledDependencyGraph, CompiledGraph, RunFuture};
use crate::state::StoredState;
use agentgraph_checkpoint::{CheckpointId, Checkpointer};

/// A compiled graph without its types, so that a host can register graphs of any state. Implemented by
/// [`CompiledGraph`] and [`CompiledDependencyGraph`] of states that can be stored, and by nothing else.
pub trait HostedGraph: sealed::Sealed + Send + Sync + 'static {
    /// Builds the run of a call. Nothing happens before its first [`needs`](DrivenRun::needs).
    ///
    /// # Errors
    /// If the call or a row of the ground cannot be read.
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error>;

    /// Runs one attempt of a task: see [`CompiledGraph::run_task`].
    fn run_task(&self, call: TaskCall, far: FarSide) -> BoxFuture<'_, Result<TaskReply, Error>>;

    /// The newest checkpoint of a thread with these rows; `None` without rows. As [`CompiledGraph::state`].
    fn thread_state(
        &self,
        thread: &str,
        rows: Vec<(String, Vec<u8>)>,
    ) -> BoxFuture<'_, Result<Option<ThreadState>, Error>>;

    /// The checkpoints of a thread in the graph's own checkpointer, newest first: as
    /// [`CompiledGraph::history`].
    ///
    /// # Errors
    /// [`Code::NoCheckpointer`](crate::Code::NoCheckpointer) if the graph has none.
    fn history(
        &self,
        thread: &str,
        limit: Option<usize>,
        before: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadState>, Error>>;

    /// The graph's [fingerprint](CompiledGraph::fingerprint).
    fn fingerprint(&self) -> &str;

    /// Whether the state, or that of a subgraph, has stored secret channels.
    fn has_secrets(&self) -> bool;

    /// The nodes that are [declared](crate::IntoNode::durable_steps) to make durable steps; those of a
    /// subgraph are prefixed with its node: `order.pay`. A host that has no store for their results refuses
    /// the graph.
    fn durable_nodes(&self) -> &[String];

    /// The graph's own checkpointer.
    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>>;

    /// Whether it is a dependency graph, whose runs are passes.
    fn has_passes(&self) -> bool;

    /// Makes a call on a thread in this process, as the calls of [`CompiledGraph`] do: with the graph's own
    /// host, checkpointer and services.
    ///
    /// ```
    /// use agentgraph::host::{HostedGraph, RunCall};
    /// use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    /// # async fn read() -> PageUpdate { Page::update().text("read") }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("read", read).edge(START, "read").compile()?;
    /// let graph: Box<dyn HostedGraph> = Box::new(graph.checkpointer(MemorySaver::new()));
    ///
    /// let end = graph.call("t-1", RunCall::invoke::<Page>(&(), &Page::update())?).await;
    /// assert_eq!(end.into_result::<Page>(&())?.output().text, "read");
    /// let state = graph.state("t-1").await?.expect("the thread exists");
    /// assert_eq!(state.values::<Page>(&())?.text, "read");
    /// # Ok(())
    /// # }
    /// ```
    fn call(&self, thread: &str, call: RunCall) -> BoxFuture<'_, RunEnd>;

    /// The newest checkpoint of a thread in the graph's own checkpointer, as [`CompiledGraph::state`].
    ///
    /// # Errors
    /// [`Code::NoCheckpointer`](crate::Code::NoCheckpointer) if the graph has none.
    fn state(&self, thread: &str) -> BoxFuture<'_, Result<Option<ThreadState>, Error>>;

    /// Cancels the run of a thread, as [`CompiledGraph::cancel`].
    ///
    /// # Errors
    /// If the graph has no checkpointer, or one without leases.
    fn cancel(&self, thread: &str) -> BoxFuture<'_, Result<Cancellation, Error>>;
}

mod sealed {
    pub trait Sealed {}
}

/// A shared graph is a graph too, so that a list of graphs of any states can be registered.
impl<G: HostedGraph + ?Sized> HostedGraph for Arc<G> {
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error> {
        (**self).drive(call, ground)
    }

    fn run_task(&self, call: TaskCall, far: FarSide) -> BoxFuture<'_, Result<TaskReply, Error>> {
        (**self).run_task(call, far)
    }

    fn thread_state(
        &self,
        thread: &str,
        rows: Vec<(String, Vec<u8>)>,
    ) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        (**self).thread_state(thread, rows)
    }

    fn history(
        &self,
        thread: &str,
        limit: Option<usize>,
        before: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadState>, Error>> {
        (**self).history(thread, limit, before)
    }

    fn fingerprint(&self) -> &str {
        (**self).fingerprint()
    }

    fn has_secrets(&self) -> bool {
        (**self).has_secrets()
    }

    fn durable_nodes(&self) -> &[String] {
        (**self).durable_nodes()
    }

    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>> {
        (**self).checkpointer()
    }

    fn has_passes(&self) -> bool {
        (**self).has_passes()
    }

    fn call(&self, thread: &str, call: RunCall) -> BoxFuture<'_, RunEnd> {
        (**self).call(thread, call)
    }

    fn state(&self, thread: &str) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        (**self).state(thread)
    }

    fn cancel(&self, thread: &str) -> BoxFuture<'_, Result<Cancellation, Error>> {
        (**self).cancel(thread)
    }
}

impl<G: HostedGraph + ?Sized> sealed::Sealed for Arc<G> {}

impl<S: StoredState> sealed::Sealed for CompiledGraph<S> {}

impl<S: StoredState> HostedGraph for CompiledGraph<S> {
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error> {
        let request = call.request::<S>(self.schema(), |_| Err(no_passes()))?;
        start(self, call, request, ground, None)
    }

    fn run_task(&self, call: TaskCall, far: FarSide) -> BoxFuture<'_, Result<TaskReply, Error>> {
        Box::pin(CompiledGraph::run_task(self, call).on(far).into_future())
    }

    fn thread_state(
        &self,
        thread: &str,
        rows: Vec<(String, Vec<u8>)>,
    ) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        let thread = thread.to_owned();
        Box::pin(async move {
            let desk = Arc::new(Desk::new(0, std::time::UNIX_EPOCH));
            let store = DrivenStore::new(desk, Image::new(&thread, rows)?, true);
            let graph = kept_by(self.clone(), Arc::new(store));
            let found = graph.state(&thread).await?;
            found.map(|found| ThreadState::of(self.schema(), found)).transpose()
        })
    }

    fn history(
        &self,
        thread: &str,
        limit: Option<usize>,
        before: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadState>, Error>> {
        let mut history = CompiledGraph::history(self, thread);
        if let Some(limit) = limit {
            history = history.limit(limit);
        }
        if let Some(before) = before {
            history = history.before(before);
        }
        Box::pin(async move {
            let found = history.await?.into_iter();
            found.map(|checkpoint| ThreadState::of(self.schema(), checkpoint)).collect()
        })
    }

    fn fingerprint(&self) -> &str {
        CompiledGraph::fingerprint(self)
    }

    fn has_secrets(&self) -> bool {
        !self.any.core.about.secrets.is_empty()
    }

    fn durable_nodes(&self) -> &[String] {
        &self.any.core.about.durable_nodes
    }

    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>> {
        self.any.persistence.as_ref().map(|persistence| Arc::clone(&persistence.saver))
    }

    fn has_passes(&self) -> bool {
        self.any.driver.is_some()
    }

    fn call(&self, thread: &str, call: RunCall) -> BoxFuture<'_, RunEnd> {
        let request = call.request::<S>(self.schema(), |_| Err(no_passes()));
        here::call(self, thread, call, request, None)
    }

    fn state(&self, thread: &str) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        Box::pin(here::state(self, thread.to_owned()))
    }

    fn cancel(&self, thread: &str) -> BoxFuture<'_, Result<Cancellation, Error>> {
        CompiledGraph::cancel(self, thread).into_future()
    }
}

impl<O, S> sealed::Sealed for CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
}

impl<O, S> HostedGraph for CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error> {
        let request = self.request(&call)?;
        start(&self.graph, call, request, ground, Some(u64::MAX))
    }

    fn run_task(&self, call: TaskCall, far: FarSide) -> BoxFuture<'_, Result<TaskReply, Error>> {
        HostedGraph::run_task(&self.graph, call, far)
    }

    fn thread_state(
        &self,
        thread: &str,
        rows: Vec<(String, Vec<u8>)>,
    ) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        self.graph.thread_state(thread, rows)
    }

    fn history(
        &self,
        thread: &str,
        limit: Option<usize>,
        before: Option<CheckpointId>,
    ) -> BoxFuture<'_, Result<Vec<ThreadState>, Error>> {
        HostedGraph::history(&self.graph, thread, limit, before)
    }

    fn fingerprint(&self) -> &str {
        self.graph.fingerprint()
    }

    fn has_secrets(&self) -> bool {
        self.graph.has_secrets()
    }

    fn durable_nodes(&self) -> &[String] {
        self.graph.durable_nodes()
    }

    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>> {
        HostedGraph::checkpointer(&self.graph)
    }

    fn has_passes(&self) -> bool {
        true
    }

    fn call(&self, thread: &str, call: RunCall) -> BoxFuture<'_, RunEnd> {
        here::call(&self.graph, thread, call.clone(), self.request(&call), Some(u64::MAX))
    }

    fn state(&self, thread: &str) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        HostedGraph::state(&self.graph, thread)
    }

    fn cancel(&self, thread: &str) -> BoxFuture<'_, Result<Cancellation, Error>> {
        HostedGraph::cancel(&self.graph, thread)
    }
}

impl<O, S> CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    fn request(&self, call: &RunCall) -> Result<CallRequest, Error> {
        let begin = |input: &[u8]| Ok(OutputsUpdate::begin(pass_input::<S>(input)?));
        call.request::<Outputs<O, S>>(self.graph.schema(), begin)
    }
}

/// Builds the run of a call: the usual one, with seams that note what they are asked for.
fn start<S: StoredState>(
    graph: &CompiledGraph<S>,
    call: RunCall,
    request: CallRequest,
    ground: Ground,
    limit: Option<u64>,
) -> Result<DrivenRun, Error> {
    let Ground { thread, seed, now, rows, journaled, runs_here } = ground;
    let desk = Arc::new(Desk::new(seed, now));
    let image = Image::new(&thread, rows)?;
    let store = Arc::new(DrivenStore::new(Arc::clone(&desk), image, journaled));
    let graph = graph
        .clone()
        .services(DrivenServices(Arc::clone(&desk)))
        .host(DrivenHost { desk: Arc::clone(&desk), runs_here });
    let graph = kept_by(graph, Arc::clone(&store) as Arc<dyn Checkpointer>);
    let controls = Controls::default();
    let core = Arc::clone(&graph.any.core);
    let mut plan = Box::new(CallPlan::new(graph.any, Ok(request)));
    plan.thread = Some(Arc::from(thread));
    plan.limits.max_supersteps = limit.unwrap_or(plan.limits.max_supersteps);
    let hears = !call.heard_views().is_empty();
    call.set_up(&mut plan);
    plan.limits.halt.cancel = Some(controls.cancel.clone());
    plan.limits.halt.drain = Some(controls.drain.clone());
    plan.limits.halt.steps = Some(Arc::clone(&controls.steps));
    let events = hears.then(|| Arc::new(plan.event_queue()));
    let listener = events.clone().map(listener::<S>);
    let run = RunFuture::<S, S>::new(plan.run(events));
    let work = Box::pin(async move { RunEnd::of::<S>(core.schema.typed::<S>(), &run.await) });
    Ok(DrivenRun::new(work, desk, store, controls, listener))
}

/// Takes the events of a queue, as JSON. One that cannot be shown is left out, as the numbers then show.
fn listener<S: StoredState>(events: Arc<EventQueue>) -> Listener {
    Box::new(move || {
        let taken = std::iter::from_fn(|| events.pop(Waker::noop()));
        taken.filter_map(|event| serde_json::to_value(event.typed::<S>()).ok()).collect()
    })
}

/// The graph with another store. Who drives a run decides what may be stored where, so no store is refused.
fn kept_by<S: StoredState>(mut graph: CompiledGraph<S>, store: Arc<dyn Checkpointer>) -> CompiledGraph<S> {
    let codec = graph.codec();
    graph.attached().kept_by(store, codec);
    graph
}
