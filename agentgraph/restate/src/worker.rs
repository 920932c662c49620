//! [`RestateWorker`]: a process that runs the threads and tasks of graphs for a Restate server.

mod attempt;
mod definition;
mod hosted;
mod limits;
mod look;
mod posting;
mod register;
mod room;
mod rows;
mod sdk;
mod serve;
mod slots;
mod steps;
mod tasks;
mod thread;
mod waits;

pub(crate) use self::hosted::steps_of;
pub(crate) use self::posting::RelayAddress;
pub use self::serve::Serving;

use std::fs::File;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentgraph::checkpoint::KeyRing;
use agentgraph::host::HostedGraph;
use agentgraph::{BoxError, Code};
use restate_sdk::endpoint::Endpoint;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::hosted::{Begun, ContextMaker, Hosted, Settings};
use self::posting::Poster;
use self::register::{Registration, Services};
use crate::headers::Headers;
use crate::http::GatewayHeaders;
use crate::wire::{INLINE, Wire};

/// The most supersteps of one invocation, unless set otherwise.
const SHARE: u64 = 500;

/// How long the admin API may take to accept a worker, unless set otherwise: a server that starts beside its
/// workers is up by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time that a task may take, unless set otherwise.
const LONGEST_TASK: Duration = Duration::from_secs(60 * 60);

/// The workers that a node may cost, unless set otherwise.
const DEATHS: u32 = 3;

/// A process that runs the threads and tasks of graphs for a Restate server. Start one on each machine, all
/// with the same graphs.
///
/// ```no_run
/// use agentgraph::prelude::*;
/// use agentgraph_restate::RestateWorker;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Triage { note: String }
/// # async fn look() -> TriageUpdate { Triage::update().note("seen") }
///
/// # #[tokio::main]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("look", look).edge(START, "look").compile()?;
/// RestateWorker::new()
///     .graph("triage", graph)
///     .register("http://127.0.0.1:9070")
///     .serve("127.0.0.1:9080".parse()?)
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a worker does nothing until it serves"]
pub struct RestateWorker {
    graphs: Vec<(String, Arc<dyn HostedGraph>)>,
    contexts: Vec<ContextMaker>,
    build: Option<String>,
    keys: Option<KeyRing>,
    identity: Option<String>,
    admin: Option<String>,
    headers: GatewayHeaders,
    replaces: bool,
    patience: Duration,
    advertised: Option<String>,
    relay: Option<RelayAddress>,
    inline: usize,
    share: u64,
    longest_task: Duration,
    deaths: u32,
    limits_by: Option<String>,
}

impl Default for RestateWorker {
    fn default() -> Self {
        RestateWorker::new()
    }
}

impl RestateWorker {
    /// A worker without graphs.
    pub fn new() -> Self {
        RestateWorker {
            graphs: Vec::new(),
            contexts: Vec::new(),
            build: None,
            keys: None,
            identity: None,
            admin: None,
            headers: GatewayHeaders::default(),
            replaces: false,
            patience: PATIENCE,
            advertised: None,
            relay: None,
            inline: INLINE,
            share: SHARE,
            longest_task: LONGEST_TASK,
            deaths: DEATHS,
            limits_by: None,
        }
    }

    /// Adds a graph under a name, by which clients call it. The server has three services for it: `name` (the
    /// threads), `name.steps`, and `name.tasks` followed by the [build](Self::build).
    ///
    /// The graph's own checkpointer, if it has one, must be one that all workers reach. It keeps the
    /// history of threads, values that are too large for the server's journal, and the results of durable
    /// steps ([`Ctx::once`](agentgraph::Ctx::once)). The threads themselves are in the server.
    pub fn graph(mut self, name: impl AsRef<str>, graph: impl HostedGraph) -> Self {
        self.graphs.push((name.as_ref().to_owned(), Arc::new(graph)));
        self
    }

    /// The name of the code of this worker: letters, digits, `_`, `-` and `.`; a hash of the program's file
    /// if not set. Tasks that leave an invocation go to workers of the same build, so a run under way stays
    /// with the code that it began with while a newer one is deployed. Workers of one build must have the
    /// same code.
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.build = Some(build.into());
        self
    }

    /// Makes a context for each task, which nodes take as a [`CallContext`](agentgraph::CallContext): from
    /// the headers of the caller's request and the thread. A context is never sent. Each call of this
    /// method adds a context of another type. An error fails the task.
    pub fn context_from<T: Send + Sync + 'static>(
        mut self,
        make: impl Fn(&Headers, &str) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.contexts.push(Arc::new(move |far, headers, thread| Ok(far.context(make(headers, thread)?))));
        self
    }

    /// Encrypts everything that enters the server: inputs, answers, states, tasks and their ends. Clients
    /// need the same keys, by [`RestateClient::encryption`](crate::RestateClient::encryption). A graph
    /// whose state has secret channels is refused without.
    ///
    /// Names of threads, graphs and nodes, and sizes, stay readable. Equal values of one thread and place are
    /// equal when encrypted, since the server compares what a replay writes.
    pub fn encryption(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Serves only requests that are signed by a server with this public key (`publickeyv1_..`). Without
    /// one a worker serves on loopback addresses only, since everyone who reaches it could run its nodes.
    pub fn identity_key(mut self, key: impl Into<String>) -> Self {
        self.identity = Some(key.into());
        self
    }

    /// Registers the worker at the server's admin API, such as `http://127.0.0.1:9070`, when it serves. A
    /// server that knows the worker's address with the same graphs is content. With other ones it refuses:
    /// calls under way belong to the code that they began with. Serve on another address then, or
    /// [replace](Self::replace) the deployment.
    pub fn register(mut self, admin: impl Into<String>) -> Self {
        self.admin = Some(admin.into());
        self
    }

    /// Whether [`register`](Self::register) replaces a deployment that is registered under the worker's
    /// address. Calls under way there may fail. For development, in which a graph changes often and no call
    /// matters.
    pub fn replace(mut self, replaces: bool) -> Self {
        self.replaces = replaces;
        self
    }

    /// An HTTP header of the [registration](Self::register), for a gateway before the admin API.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.headers.set(name.as_ref(), value.as_ref());
        self
    }

    /// A source of keys that is asked before each request of the [registration](Self::register). A key is
    /// sent as `authorization: Bearer <key>`.
    pub fn key_provider<K>(mut self, keys: impl Fn() -> K + Send + Sync + 'static) -> Self
    where
        K: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.headers.set_keys(keys);
        self
    }

    /// How long [`register`](Self::register) tries, a minute if not set.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The address under which the server reaches this worker, such as `http://worker-1:9080`; the address it
    /// serves on if not set.
    pub fn advertise(mut self, uri: impl Into<String>) -> Self {
        self.advertised = Some(uri.into());
        self
    }

    /// Posts the events of calls that are [streamed](crate::RemoteCall::stream) to the
    /// [relay](crate::EventRelay) at this address, such as `http://127.0.0.1:9090`. Without one they are
    /// dropped.
    pub fn relay(mut self, url: impl Into<String>) -> Self {
        self.relay = Some(RelayAddress::new(url.into(), None));
        self
    }

    /// [`relay`](Self::relay) for a relay with a [token](crate::EventRelay::token).
    pub fn relay_with_token(mut self, url: impl Into<String>, token: impl Into<String>) -> Self {
        self.relay = Some(RelayAddress::new(url.into(), Some(token.into())));
        self
    }

    /// The most supersteps of one invocation, 500 if not set. A call that makes more goes on in further
    /// invocations, so no journal grows beyond its share. Tasks under way end first, also those of an eager
    /// graph, whose branches wait for each other there.
    pub fn steps_per_invocation(mut self, steps: u64) -> Self {
        self.share = steps.max(1);
        self
    }

    /// Values larger than this go to the graph's checkpointer, and only their hash into the server; 128 KiB
    /// if not set.
    pub fn inline_up_to(mut self, bytes: usize) -> Self {
        self.inline = bytes;
        self
    }

    /// The longest time for an attempt of a node, an hour if not set: a [timeout](agentgraph::Timeout) like
    /// that of the node, which may be shorter. A task whose process is gone is noticed at once, whatever is
    /// set here.
    pub fn longest_task(mut self, limit: Duration) -> Self {
        self.longest_task = limit;
        self
    }

    /// After how many lost workers a node is given up that was running in each of them, 3 if not set: it may
    /// be what ends them. Its attempt then fails with
    /// [`Code::WorkerLost`](agentgraph::Code::WorkerLost), which its error handler gets. These are apart from
    /// the retries of its policy.
    pub fn deaths_per_node(mut self, workers: u32) -> Self {
        self.deaths = workers;
        self
    }

    /// The header of a call by whose value the [limits](agentgraph::policy::Limit) of nodes count apart,
    /// such as `x-tenant`: each tenant then has all places of a limit. The value is in the server in
    /// clear, as are the names of threads.
    ///
    /// The most attempts of a limit hold over all workers and graphs of a server, by the limit's name;
    /// its rate holds in each process.
    pub fn limits_by(mut self, header: impl AsRef<str>) -> Self {
        self.limits_by = Some(header.as_ref().to_ascii_lowercase());
        self
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// [`ServeError`], before the first request is served.
    pub async fn serve(self, addr: SocketAddr) -> Result<(), ServeError> {
        self.start(addr).await?.ended().await;
        Ok(())
    }

    /// Serves until `stop` is ready, then lets tasks under way end, ten seconds at most, and starts no new
    /// ones: another worker continues their threads.
    ///
    /// # Errors
    /// [`ServeError`], before the first request is served.
    pub async fn serve_until(self, addr: SocketAddr, stop: impl Future) -> Result<(), ServeError> {
        let serving = self.start(addr).await?;
        stop.await;
        serving.stop().await;
        Ok(())
    }

    /// Starts to serve, and returns when the worker is registered, if it is to be.
    ///
    /// # Errors
    /// [`ServeError`]
    pub async fn start(self, addr: SocketAddr) -> Result<Serving, ServeError> {
        if self.identity.is_none() && !addr.ip().is_loopback() {
            return Err(ServeError::OpenToAll { addr });
        }
        let parts = CancellationToken::new();
        let (endpoint, services) = self.endpoint(&parts)?;
        let bound = TcpListener::bind(addr).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (addr, listener) = bound.map_err(|source| ServeError::Address { addr, source })?;
        let serving = Serving::begin(addr, listener, endpoint, parts);
        if let Some(admin) = &self.admin {
            let uri = self.advertised.clone().unwrap_or_else(|| format!("http://{addr}"));
            let (headers, replaces, patience) = (self.headers.clone(), self.replaces, self.patience);
            let registration = Registration { admin: admin.clone(), headers, replaces, patience };
            register::register(&registration, &uri, &services).await?;
        }
        Ok(serving)
    }

    /// The services of all graphs, and what the server keeps of each.
    fn endpoint(&self, parts: &CancellationToken) -> Result<(Endpoint, Services), ServeError> {
        let build = self.build.clone().map_or_else(build_of_program, Ok)?;
        let mut services = Services::new();
        let mut endpoint = Endpoint::builder();
        let poster = self.relay.clone().map(Poster::start).transpose();
        let poster = poster.map_err(|problem| ServeError::Relay { problem })?;
        for (at, (name, graph)) in self.graphs.iter().enumerate() {
            if self.graphs[..at].iter().any(|(other, _)| other == name) {
                return Err(ServeError::TwoGraphs { graph: name.clone() });
            }
            let hosted = self.hosted(name, graph, poster.clone(), parts.clone(), &build)?;
            for name in [hosted.name.clone(), hosted.steps(), hosted.tasks()] {
                services.insert(name, hosted.settings());
            }
            for service in definition::services(&Arc::new(hosted))? {
                endpoint = endpoint.bind(service);
            }
        }
        if let Some(limits) = definition::limits() {
            services.insert(limits::SERVICE.to_owned(), Settings::new());
            endpoint = endpoint.bind(limits);
        }
        if let Some(key) = &self.identity {
            endpoint = endpoint.identity_key(key).map_err(|_| ServeError::IdentityKey)?;
        }
        Ok((endpoint.build(), services))
    }

    fn hosted(
        &self,
        name: &str,
        graph: &Arc<dyn HostedGraph>,
        poster: Option<Poster>,
        parts: CancellationToken,
        build: &str,
    ) -> Result<Hosted, ServeError> {
        if graph.has_secrets() && self.keys.is_none() {
            return Err(ServeError::SecretNeedsKey { graph: name.to_owned() });
        }
        let saver = graph.checkpointer();
        if let (None, Some(node)) = (&saver, graph.durable_nodes().first()) {
            return Err(ServeError::StepsNeedStore { graph: name.to_owned(), node: node.clone() });
        }
        Ok(Hosted {
            name: name.to_owned(),
            build: build.to_owned(),
            wire: Wire::new(self.keys.clone(), saver.clone(), self.inline),
            graph: Arc::clone(graph),
            saver,
            contexts: self.contexts.clone(),
            poster,
            share: self.share,
            longest_task: self.longest_task,
            deaths: self.deaths,
            limits_by: self.limits_by.clone(),
            begun: Begun::default(),
            parts,
        })
    }
}

/// A hash of the file of this program.
fn build_of_program() -> Result<String, ServeError> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(build.clone());
    }
    let unknown = |source| ServeError::Build { source };
    let mut file = File::open(std::env::current_exe().map_err(unknown)?).map_err(unknown)?;
    let mut hash = Sha256::new();
    std::io::copy(&mut file, &mut hash).map_err(unknown)?;
    let build: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok(BUILD.get_or_init(|| build).clone())
}

impl std::fmt::Debug for RestateWorker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.graphs.iter().map(|(name, _)| &**name).collect();
        out.debug_struct("RestateWorker").field("graphs", &names).finish_non_exhaustive()
    }
}

/// Why a worker does not serve.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines, and anyone could run the worker's nodes.
    #[error(
        "{addr} is reachable from other machines, and without an identity key anyone could run the nodes of this \
         worker: set `.identity_key(..)` to the server's public key, or serve on 127.0.0.1"
    )]
    OpenToAll {
        /// The address.
        addr: SocketAddr,
    },
    /// The address of a relay is reachable from other machines, and anyone could read its events.
    #[error(
        "{addr} is reachable from other machines, and without a token anyone could read and post events there: set \
         `.token(..)`, or serve on 127.0.0.1"
    )]
    RelayOpenToAll {
        /// The address.
        addr: SocketAddr,
    },
    /// There is no client for the relay.
    #[error("events cannot be posted to the relay: {problem}")]
    Relay {
        /// The reason.
        problem: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Address {
        /// The address.
        addr: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The identity key is no key.
    #[error("the identity key is no public key of a Restate server, which begins with `publickeyv1_`")]
    IdentityKey,
    /// The file of the program cannot be read.
    #[error("the program's file cannot be read, so its build is not known: set `.build(..)`: {source}")]
    Build {
        /// The reason.
        source: std::io::Error,
    },
    /// The name of a graph, or of the build, cannot be in the name of a service.
    #[error(
        "a graph cannot be served as `{graph}`: use letters, digits, `_`, `-` and `.`, the first one a letter"
    )]
    GraphName {
        /// The name.
        graph: String,
    },
    /// Two graphs have one name.
    #[error("two graphs are served as `{graph}`: give each a name of its own")]
    TwoGraphs {
        /// The name.
        graph: String,
    },
    /// The state has secret channels, and there is no key to encrypt them with.
    #[error(
        "E_SECRET_NEEDS_KEY: the state of graph `{graph}` has secret channels, which would be in the server's \
         journal unencrypted: set `.encryption(keys)` on the workers and the clients"
    )]
    SecretNeedsKey {
        /// The graph.
        graph: String,
    },
    /// The graph has durable steps, and no store for their results.
    #[error(
        "E_NO_CHECKPOINTER: node `{node}` of graph `{graph}` has durable steps, and the graph has no checkpointer \
         to keep their results: attach one that all workers reach"
    )]
    StepsNeedStore {
        /// The graph.
        graph: String,
        /// The node.
        node: String,
    },
    /// The server's admin API refuses the worker, or does not answer.
    #[error("the worker cannot be registered at {admin}: {problem}")]
    Register {
        /// The address of the admin API.
        admin: String,
        /// The answer, or why there was none.
        problem: String,
    },
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl std::fmt::Debug for ServeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl ServeError {
    /// The code of the engine's errors for this one.
    pub fn code(&self) -> Code {
        match self {
            ServeError::SecretNeedsKey { .. } => Code::SecretNeedsKey,
            ServeError::StepsNeedStore { .. } => Code::NoCheckpointer,
            _ => Code::Host,
        }
    }
}
