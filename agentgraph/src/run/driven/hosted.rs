//! [`HostedGraph`]: a compiled graph, as a host sees it.

use std::future::IntoFuture;
use std::sync::Arc;
use std::task::Waker;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::sealed::{Hosted, Sealed};
use super::call::{RunCall, pass_input};
use super::desk::Desk;
use super::end::RunEnd;
use super::ground::Ground;
use super::image::{DrivenStore, Image};
use super::run::{Controls, DrivenRun, Listener};
use super::seams::{DrivenHost, DrivenServices};
use super::thread_state::ThreadState;
use super::values::StateForm;
use crate::context::host::{FarSide, TaskCall, TaskReply};
use crate::dependency::outputs::{Output, Outputs, OutputsUpdate, PassInput};
use crate::engine::host::HostRunner;
use crate::error::Error;
use crate::event::{Event, EventQueue};
use crate::run::attached::Attached;
use crate::run::begin::CallRequest;
use crate::run::call_plan::CallPlan;
use crate::run::history::newest;
use crate::run::task::run_far;
use crate::run::view::{self, Checkpoint};
use crate::run::{CancelThread, Cancellation, CompiledDependencyGraph, CompiledGraph};
use crate::state::StoredState;
use crate::typed::{AnyState, AnyUpdate};
use agentgraph_checkpoint::{CheckpointId, Checkpointer};

/// A compiled graph without its types, so that a host can register graphs of any state. Implemented by
/// [`CompiledGraph`] and [`CompiledDependencyGraph`] of states that can be stored, and by nothing else.
pub trait HostedGraph: Sealed + Send + Sync + 'static {
    /// Builds the run of a call. Nothing happens before its first [`needs`](DrivenRun::needs).
    ///
    /// # Errors
    /// If the call or a row of the ground cannot be read.
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error> {
        self.parts().drive(call, ground)
    }

    /// Runs one attempt of a task: see [`CompiledGraph::run_task`].
    fn run_task(&self, call: TaskCall, far: FarSide) -> BoxFuture<'_, Result<TaskReply, Error>> {
        let Hosted { graph, codec, .. } = self.parts();
        Box::pin(run_far(graph, codec, call, 0, far, None))
    }

    /// The newest checkpoint of a thread with these rows; `None` without rows. As [`CompiledGraph::state`].
    fn thread_state(
        &self,
        thread: &str,
        rows: Vec<(String, Vec<u8>)>,
    ) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        let (parts, thread) = (self.parts(), thread.to_owned());
        Box::pin(async move {
            let desk = Arc::new(Desk::new(0, std::time::UNIX_EPOCH));
            let store = DrivenStore::new(desk, Image::new(&thread, rows)?, true);
            let mut graph = Attached::clone(parts.graph);
            graph.kept_by(Arc::new(store), parts.codec);
            parts.shown(view::state(&graph, &thread).await?)
        })
    }

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
    ) -> BoxFuture<'_, Result<Vec<ThreadState>, Error>> {
        let (parts, thread) = (self.parts(), thread.to_owned());
        Box::pin(async move {
            let limit = limit.unwrap_or(usize::MAX);
            let found = newest(Arc::clone(parts.graph), thread, before, limit).await?;
            let form = parts.form();
            found.into_iter().map(|checkpoint| ThreadState::shown(&form, checkpoint)).collect()
        })
    }

    /// The graph's [fingerprint](CompiledGraph::fingerprint).
    fn fingerprint(&self) -> &str {
        &self.parts().graph.core.stored.fingerprint
    }

    /// Whether the state, or that of a subgraph, has stored secret channels.
    fn has_secrets(&self) -> bool {
        !self.parts().graph.core.about.secrets.is_empty()
    }

    /// The nodes that are [declared](crate::IntoNode::durable_steps) to make durable steps; those of a
    /// subgraph are prefixed with its node: `order.pay`. A host that has no store for their results refuses
    /// the graph.
    fn durable_nodes(&self) -> &[String] {
        &self.parts().graph.core.about.durable_nodes
    }

    /// The graph's own checkpointer.
    fn checkpointer(&self) -> Option<Arc<dyn Checkpointer>> {
        self.parts().graph.persistence.as_ref().map(|persistence| Arc::clone(&persistence.saver))
    }

    /// Whether it is a dependency graph, whose runs are passes.
    fn has_passes(&self) -> bool {
        self.parts().graph.driver.is_some()
    }

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
    fn call(&self, thread: &str, call: RunCall) -> BoxFuture<'_, RunEnd> {
        let parts = self.parts();
        let plan = parts.plan(thread, parts.request(&call), call);
        Box::pin(parts.form().end_of(plan.run(None)))
    }

    /// The newest checkpoint of a thread in the graph's own checkpointer, as [`CompiledGraph::state`].
    ///
    /// # Errors
    /// [`Code::NoCheckpointer`](crate::Code::NoCheckpointer) if the graph has none.
    fn state(&self, thread: &str) -> BoxFuture<'_, Result<Option<ThreadState>, Error>> {
        let (parts, thread) = (self.parts(), thread.to_owned());
        Box::pin(async move { parts.shown(view::state(parts.graph, &thread).await?) })
    }

    /// Cancels the run of a thread, as [`CompiledGraph::cancel`].
    ///
    /// # Errors
    /// If the graph has no checkpointer, or one without leases.
    fn cancel(&self, thread: &str) -> BoxFuture<'_, Result<Cancellation, Error>> {
        CancelThread::new(Arc::clone(self.parts().graph), thread).into_future()
    }
}

mod sealed {
    use super::{AnyState, Arc, Attached, Event};
    use crate::record::codec::Codec;
    use crate::run::driven::call::ReadPass;
    use serde_json::Value;

    pub trait Sealed {
        fn parts(&self) -> Hosted<'_>;
    }

    /// What a host needs of a graph, without its types.
    pub struct Hosted<'a> {
        pub(super) graph: &'a Arc<Attached>,
        pub(super) codec: Codec,
        pub(super) event: fn(Event<AnyState>) -> Option<Value>,
        /// The update that starts a pass, from the bytes of its input. `None` if the graph has no passes.
        pub(super) pass: Option<ReadPass>,
    }
}

impl<S: StoredState> Sealed for CompiledGraph<S> {
    fn parts(&self) -> Hosted<'_> {
        let event = |event: Event<AnyState>| serde_json::to_value(event.typed::<S>()).ok();
        Hosted { graph: &self.any, codec: self.codec(), event, pass: None }
    }
}

impl<S: StoredState> HostedGraph for CompiledGraph<S> {}

impl<O, S> Sealed for CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    fn parts(&self) -> Hosted<'_> {
        let begin = |input: &[u8]| {
            let update = OutputsUpdate::begin(pass_input::<S>(input)?);
            Ok(AnyUpdate::new::<Outputs<O, S>>(update))
        };
        Hosted { pass: Some(begin), ..self.graph.parts() }
    }
}

impl<O, S> HostedGraph for CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
}

/// A shared graph is a graph too, so that a list of graphs of any states can be registered.
impl<G: HostedGraph + ?Sized> HostedGraph for Arc<G> {}

impl<G: HostedGraph + ?Sized> Sealed for Arc<G> {
    fn parts(&self) -> Hosted<'_> {
        (**self).parts()
    }
}

impl Hosted<'_> {
    fn form(&self) -> StateForm {
        StateForm::new(self.codec, self.graph.core.schema.clone())
    }

    fn shown(&self, found: Option<Checkpoint<AnyState>>) -> Result<Option<ThreadState>, Error> {
        found.map(|found| ThreadState::shown(&self.form(), found)).transpose()
    }

    fn request(&self, call: &RunCall) -> Result<CallRequest, Error> {
        call.request(&self.codec, &self.graph.core.schema, self.pass)
    }

    fn plan(&self, thread: &str, request: Result<CallRequest, Error>, call: RunCall) -> Box<CallPlan> {
        let mut plan = Box::new(CallPlan::new(Arc::clone(self.graph), request));
        plan.thread = Some(Arc::from(thread));
        if self.pass.is_some() {
            plan.limits.max_supersteps = u64::MAX;
        }
        call.set_up(&mut plan);
        plan
    }

    /// Builds the run of a call: the usual one, with seams that note what they are asked for. Who drives a
    /// run decides what may be stored where, so no store is refused.
    fn drive(&self, call: RunCall, ground: Ground) -> Result<DrivenRun, Error> {
        let Ground { thread, seed, now, rows, journaled, runs_here } = ground;
        let request = self.request(&call)?;
        let desk = Arc::new(Desk::new(seed, now));
        let image = Image::new(&thread, rows)?;
        let store = Arc::new(DrivenStore::new(Arc::clone(&desk), image, journaled));
        let host = DrivenHost { desk: Arc::clone(&desk), runs_here };
        let mut graph = Attached::clone(self.graph);
        graph.share(|shared| shared.services = Arc::new(DrivenServices(Arc::clone(&desk))));
        graph.host = Some(Arc::new(HostRunner::new(Arc::new(host), self.codec)));
        graph.kept_by(Arc::clone(&store) as Arc<dyn Checkpointer>, self.codec);
        let driven = Hosted { graph: &Arc::new(graph), ..*self };
        let controls = Controls::default();
        let hears = !call.heard_views().is_empty();
        let mut plan = driven.plan(&thread, Ok(request), call);
        plan.limits.halt.cancel = Some(controls.cancel.clone());
        plan.limits.halt.drain = Some(controls.drain.clone());
        plan.limits.halt.steps = Some(Arc::clone(&controls.steps));
        let events = hears.then(|| Arc::new(plan.event_queue()));
        let listener = events.clone().map(|events| self.listener(events));
        let work = Box::pin(self.form().end_of(plan.run(events)));
        Ok(DrivenRun::new(work, desk, store, controls, listener))
    }

    /// Takes the events of a queue, as JSON. One that cannot be shown is left out, as the numbers then show.
    fn listener(&self, events: Arc<EventQueue>) -> Listener {
        let to_json = self.event;
        Box::new(move || {
            let taken = std::iter::from_fn(|| events.pop(Waker::noop()));
            taken.filter_map(to_json).collect()
        })
    }
}
