//! [`RestateClient`]: calls of graphs that workers serve.

mod answer;
mod builder;
mod call;
mod edit;
mod history;
mod ingress;
mod search;
mod stream;
mod threads;

pub use self::answer::RemoteAnswer;
pub use self::builder::RestateClientBuilder;
pub use self::call::{RemoteCall, SentContext};
pub use self::edit::RemoteEdit;
pub use self::history::RemoteHistory;
pub use self::search::{FoundThread, FoundThreads, ThreadSearch, ThreadStatus};
pub use self::stream::{RemoteEvent, RemoteStream, SentEvent};
pub use self::threads::RemoteThreads;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use agentgraph::checkpoint::KeyRing;
use agentgraph::host::RunCall;
use agentgraph::run::{Cancellation, Checkpoint};
use agentgraph::state::StoredState;
use agentgraph::{Error, InterruptId, Outcome};
use serde::Serialize;

use self::ingress::Ingress;
use crate::admin::Admin;
use crate::worker::RelayAddress;

/// A client of graphs that workers serve: see [`RemoteGraph`]. Cheap to clone.
#[derive(Clone)]
pub struct RestateClient {
    ingress: Ingress,
    admin: Option<Admin>,
    keys: Option<KeyRing>,
    relay: Option<RelayAddress>,
}

impl RestateClient {
    /// A client of the server with this ingress, such as `http://127.0.0.1:8080`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Host`](agentgraph::Code::Host) if the address is no URL.
    pub fn connect(ingress: &str) -> Result<Self, Error> {
        RestateClient::builder().connect(ingress)
    }

    /// A client with settings that a connection needs, such as the headers of a gateway.
    pub fn builder() -> RestateClientBuilder {
        RestateClientBuilder::default()
    }

    /// The keys of the workers: see [`RestateWorker::encryption`](crate::RestateWorker::encryption).
    #[must_use]
    pub fn encryption(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Reads the events of [streams](RemoteCall::stream) from the [relay](crate::EventRelay) at this address,
    /// such as `http://127.0.0.1:9090`: the one to which the workers post.
    #[must_use]
    pub fn relay(mut self, url: impl Into<String>) -> Self {
        self.relay = Some(RelayAddress::new(url.into(), None));
        self
    }

    /// [`relay`](Self::relay) for a relay with a [token](crate::EventRelay::token).
    #[must_use]
    pub fn relay_with_token(mut self, url: impl Into<String>, token: impl Into<String>) -> Self {
        self.relay = Some(RelayAddress::new(url.into(), Some(token.into())));
        self
    }

    /// How long a server that is not reached, or that does not know the graph yet, is asked again; 30
    /// seconds if not set. So long at most takes what is answered without a run, such as `state` or `cancel`.
    /// A call that has reached the server takes as long as its run, or [as it may](RemoteCall::timeout).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.ingress.patience = patience;
        self
    }

    /// A graph with a state of type `S`, by the name under which workers serve it.
    pub fn graph<S: StoredState<Schema = ()>>(&self, name: impl AsRef<str>) -> RemoteGraph<S> {
        self.graph_of(name, ())
    }

    /// [`graph`](Self::graph) for a state whose channels are known only at run time, such as
    /// [`JsonState`](agentgraph::JsonState).
    pub fn graph_of<S: StoredState>(&self, name: impl AsRef<str>, schema: S::Schema) -> RemoteGraph<S> {
        let (threads, relay) = (self.threads(name), self.relay.clone());
        RemoteGraph { threads, relay, schema, state: PhantomData }
    }

    /// Searches the threads of all graphs. Needs [`admin`](RestateClientBuilder::admin).
    pub fn search(&self) -> ThreadSearch {
        ThreadSearch::new(self.admin.clone(), self.ingress.patience)
    }

    /// Kills the call that is under way in a thread, for one whose code is gone and which therefore cannot be
    /// [cancelled](RemoteGraph::cancel): tasks of its open superstep run again. `proceed()` then goes on from
    /// what was committed, with the newest code. Returns false if no call is under way. Needs
    /// [`admin`](RestateClientBuilder::admin).
    ///
    /// # Errors
    /// If the admin API is not known or not reached.
    pub async fn kill(&self, graph: impl AsRef<str>, thread: impl AsRef<str>) -> Result<bool, Error> {
        let patience = self.ingress.patience;
        search::kill(self.admin.as_ref(), patience, graph.as_ref(), thread.as_ref()).await
    }

    /// The threads of a graph without its types, by the name under which workers serve it.
    pub fn threads(&self, name: impl AsRef<str>) -> RemoteThreads {
        RemoteThreads::new(self.ingress.clone(), self.keys.clone(), name.as_ref().to_owned())
    }
}

impl fmt::Debug for RestateClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RestateClient").field("ingress", &self.ingress.base()).finish_non_exhaustive()
    }
}

/// A graph that workers serve, with the calls of a [`CompiledGraph`](agentgraph::CompiledGraph): the same
/// outcomes and errors. Every call names its thread.
///
/// ```no_run
/// use agentgraph::prelude::*;
/// use agentgraph_restate::RestateClient;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Triage { note: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = RestateClient::connect("http://127.0.0.1:8080")?.graph::<Triage>("triage");
/// match graph.invoke(Triage::update().note("it burns")).thread("t-1").await? {
///     Outcome::Interrupted { interrupts, .. } => println!("asks {}", interrupts[0].value),
///     outcome => println!("{:?}", outcome.output()),
/// }
/// let outcome = graph.resume(true).thread("t-1").await?; // from any machine, next week
/// # Ok(())
/// # }
/// ```
pub struct RemoteGraph<S: StoredState> {
    threads: RemoteThreads,
    relay: Option<RelayAddress>,
    schema: S::Schema,
    state: PhantomData<fn() -> S>,
}

impl<S: StoredState> Clone for RemoteGraph<S> {
    fn clone(&self) -> Self {
        RemoteGraph {
            threads: self.threads.clone(),
            relay: self.relay.clone(),
            schema: self.schema.clone(),
            state: PhantomData,
        }
    }
}

impl<S: StoredState> RemoteGraph<S> {
    /// As [`CompiledGraph::invoke`](agentgraph::CompiledGraph::invoke).
    pub fn invoke(&self, input: impl Into<S::Update>) -> RemoteCall<S> {
        RemoteCall::new(self, RunCall::invoke::<S>(&self.schema, &input.into()))
    }

    /// Starts a pass of a dependency graph. `S` is the state of such graphs,
    /// [`Outputs`](agentgraph::dependency::Outputs).
    pub fn pass(&self, input: &impl Serialize) -> RemoteCall<S> {
        RemoteCall::new(self, RunCall::pass(input))
    }

    /// As [`CompiledGraph::resume`](agentgraph::CompiledGraph::resume).
    pub fn resume(&self, answer: impl Serialize) -> RemoteCall<S> {
        RemoteCall::new(self, RunCall::resume(answer))
    }

    /// As [`CompiledGraph::resume_many`](agentgraph::CompiledGraph::resume_many).
    pub fn resume_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RemoteCall<S> {
        RemoteCall::new(self, RunCall::resume_many(answers))
    }

    /// As [`CompiledGraph::proceed`](agentgraph::CompiledGraph::proceed).
    pub fn proceed(&self) -> RemoteCall<S> {
        RemoteCall::new(self, Ok(RunCall::proceed()))
    }

    /// The outcome of a call that was [sent](RemoteCall::send) to a thread, once it is there. The server
    /// keeps it for a day.
    ///
    /// # Errors
    /// That of the call, or if the server is not reached.
    pub async fn attach(
        &self,
        thread: impl AsRef<str>,
        invocation: impl AsRef<str>,
    ) -> Result<Outcome<S>, Error> {
        let end = self.threads.attach(thread.as_ref(), invocation.as_ref()).await?;
        end.into_result::<S>(&self.schema)
    }

    /// Answers a call that waits for it in [`RemoteCall::wait_answer`]: the call goes on and returns its
    /// outcome to its own caller.
    pub fn answer(&self, answer: impl Serialize) -> RemoteAnswer<S> {
        RemoteAnswer::new(self, RunCall::resume(answer))
    }

    /// [`answer`](Self::answer) to interrupts by their ids.
    pub fn answer_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RemoteAnswer<S> {
        RemoteAnswer::new(self, RunCall::resume_many(answers))
    }

    /// Whether the client has a [relay](RestateClient::relay), which [streams](RemoteCall::stream) need.
    pub fn has_relay(&self) -> bool {
        self.relay.is_some()
    }

    /// Changes the state of a thread. As
    /// [`CompiledGraph::update_state`](agentgraph::CompiledGraph::update_state), of the newest checkpoint.
    pub fn update_state(&self, thread: impl AsRef<str>) -> RemoteEdit<S> {
        RemoteEdit::new(self, thread.as_ref().to_owned())
    }

    /// The newest checkpoint of a thread, also while a call runs in it; `None` if there is no such thread. As
    /// [`CompiledGraph::state`](agentgraph::CompiledGraph::state).
    ///
    /// # Errors
    /// If the server or its workers are not reached, or the state does not fit `S`.
    pub async fn state(&self, thread: impl AsRef<str>) -> Result<Option<Checkpoint<S>>, Error> {
        let found = self.threads.state(thread.as_ref()).await?;
        found.map(|found| found.into_checkpoint(&self.schema)).transpose()
    }

    /// The checkpoints of a thread, newest first, from the checkpointer of the workers' graph. As
    /// [`CompiledGraph::history`](agentgraph::CompiledGraph::history).
    pub fn history(&self, thread: impl AsRef<str>) -> RemoteHistory<S> {
        RemoteHistory::new(self, thread.as_ref().to_owned())
    }

    /// Cancels the call that has the thread: it ends as [stopped](agentgraph::StopReason::Cancelled), and
    /// `proceed()` continues it. A task under way runs to its end, and its result may be dropped; nothing new
    /// starts. Calls that wait for the thread are not cancelled.
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn cancel(&self, thread: impl AsRef<str>) -> Result<Cancellation, Error> {
        self.threads.cancel(thread.as_ref()).await
    }

    /// Drains the call that has the thread: tasks under way end and are committed, then the call ends as
    /// [stopped](agentgraph::StopReason::Drained), and `proceed()` continues it. A run of short single tasks
    /// notices it within about a second. Returns false if no call has the thread.
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn drain(&self, thread: impl AsRef<str>) -> Result<bool, Error> {
        self.threads.drain(thread.as_ref()).await
    }

    /// Deletes a thread after the calls that wait for it: its state, its history and its large values. The
    /// server keeps the journals of its calls until their retention is over, a day unless it is configured
    /// otherwise.
    ///
    /// # Errors
    /// If the server or its workers are not reached.
    pub async fn delete_thread(&self, thread: impl AsRef<str>) -> Result<(), Error> {
        self.threads.delete(thread.as_ref()).await
    }

    /// The events of a thread from now on, of all calls that are [streamed](RemoteCall::stream) or have
    /// [views](RemoteCall::views), made by any client. The stream does not end.
    pub fn watch(&self, thread: impl AsRef<str>) -> RemoteStream<S> {
        RemoteStream::of_thread(self, thread.as_ref())
    }
}

impl<S: StoredState> fmt::Debug for RemoteGraph<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteGraph").field("name", &self.threads.name).finish_non_exhaustive()
    }
}
