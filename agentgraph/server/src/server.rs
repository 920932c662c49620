//! [`Server`]: graphs, settings, and the way to a socket.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "postgres")]
use agentgraph::PostgresSaver;
use agentgraph::checkpoint::StoreError;
use agentgraph::state::StoredState;
use agentgraph::store::{MemoryStore, SqliteStore};
use agentgraph::{CompiledGraph, Error, MemorySaver, SqliteSaver, Store};
#[cfg(feature = "postgres")]
use agentgraph_checkpoint::tables::store_beside;
#[cfg(feature = "restate")]
use agentgraph_restate::RestateClient;
use axum::Router;
use axum::serve::ListenerExt;
use schemars::JsonSchema;
use serde_json::Value;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::access::{Access, Authenticate, Caller};
use crate::app::{App, OnRestart, Settings};
use crate::error::ServerError;
#[cfg(feature = "restate")]
use crate::graph::RestateGraph;
use crate::graph::{ServedGraph, TypedGraph};
#[cfg(feature = "postgres")]
use crate::records::PostgresRecords;
use crate::records::{MemoryRecords, Records, SqliteRecords};
use crate::routes::{Pages, router};

/// Serves graphs over HTTP, for the clients of LangGraph.
///
/// Threads, runs and checkpoints are kept in the SQLite file `agentgraph.db` unless another place is chosen.
/// A graph that has a checkpointer keeps it.
///
/// ```no_run
/// # use agentgraph::prelude::*;
/// use agentgraph_server::Server;
/// # #[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
/// # struct Triage { question: String, answer: String }
/// # async fn answer() -> TriageUpdate { Triage::update().answer("42") }
///
/// # #[tokio::main]
/// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// let graph = StateGraph::<Triage>::new().node("answer", answer).edge(START, "answer").compile()?;
/// Server::new().graph("triage", graph).serve("127.0.0.1:2024").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a server does nothing until it serves"]
pub struct Server {
    graphs: Vec<(String, Attach)>,
    keep: Keep,
    store: Option<Arc<dyn Store>>,
    access: Access,
    lets_in_anyone: bool,
    origins: Vec<String>,
    settings: Settings,
    drain_limit: Duration,
}

enum Keep {
    Memory,
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(PostgresSaver),
    Own(Arc<dyn Records>),
}

/// Where graphs without a checkpointer of their own keep their threads.
#[derive(Clone)]
enum Saver {
    Memory(MemorySaver),
    Sqlite(SqliteSaver),
    #[cfg(feature = "postgres")]
    Postgres(PostgresSaver),
}

/// A graph that waits for its checkpointer.
type Attach = Box<dyn FnOnce(Saver, Arc<dyn Store>) -> Result<Arc<dyn ServedGraph>, Error> + Send>;

impl Default for Server {
    fn default() -> Self {
        Server::new()
    }
}

impl Server {
    /// A server without graphs.
    pub fn new() -> Self {
        Server {
            graphs: Vec::new(),
            keep: Keep::Sqlite("agentgraph.db".into()),
            store: None,
            access: Access::default(),
            lets_in_anyone: false,
            origins: Vec::new(),
            settings: Settings {
                on_restart: OnRestart::default(),
                heartbeat: Duration::from_secs(5),
                max_body: 16 * 1024 * 1024,
                max_runs: usize::MAX,
                max_streams: usize::MAX,
                lease: Duration::from_secs(15),
                prices: BTreeMap::new(),
                findings: BTreeMap::new(),
            },
            drain_limit: Duration::from_secs(30),
        }
    }

    /// Serves a graph under a name, with the JSON schema of its state.
    pub fn graph<S: StoredState + JsonSchema>(
        self,
        name: impl Into<String>,
        graph: CompiledGraph<S>,
    ) -> Self {
        self.attach(name.into(), graph, Some(schemars::schema_for!(S).to_value()))
    }

    /// Serves a graph whose state has no JSON schema: clients cannot ask for it.
    pub fn graph_without_schema<S: StoredState>(
        self,
        name: impl Into<String>,
        graph: CompiledGraph<S>,
    ) -> Self {
        self.attach(name.into(), graph, None)
    }

    /// Serves a graph that workers run on [Restate](agentgraph_restate), under the name by which they serve
    /// it. The graph given here is the same one: it is drawn and reads inputs, and runs nothing. Threads are
    /// where the workers keep them; the server keeps its own records of threads and runs.
    ///
    /// Events come over the [relay](agentgraph_restate::RestateClient::relay) of the client. Without one, a
    /// stream has the last values of each run.
    ///
    /// ```no_run
    /// # use agentgraph::prelude::*;
    /// use agentgraph_restate::RestateClient;
    /// use agentgraph_server::Server;
    /// # #[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
    /// # struct Triage { question: String }
    /// # async fn answer() {}
    ///
    /// # #[tokio::main]
    /// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// # let graph = StateGraph::<Triage>::new().node("answer", answer).edge(START, "answer").compile()?;
    /// let cluster = RestateClient::connect("http://127.0.0.1:8080")?.relay("http://127.0.0.1:9090");
    /// Server::new().graph_on_restate("triage", graph, &cluster).serve("127.0.0.1:2024").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "restate")]
    pub fn graph_on_restate<S: StoredState + JsonSchema>(
        self,
        name: impl Into<String>,
        graph: CompiledGraph<S>,
        cluster: &RestateClient,
    ) -> Self {
        self.on_restate(name.into(), graph, cluster, Some(schemars::schema_for!(S).to_value()))
    }

    /// [`graph_on_restate`](Self::graph_on_restate) for a state without a JSON schema.
    #[cfg(feature = "restate")]
    pub fn graph_on_restate_without_schema<S: StoredState>(
        self,
        name: impl Into<String>,
        graph: CompiledGraph<S>,
        cluster: &RestateClient,
    ) -> Self {
        self.on_restate(name.into(), graph, cluster, None)
    }

    #[cfg(feature = "restate")]
    fn on_restate<S: StoredState>(
        mut self,
        name: String,
        graph: CompiledGraph<S>,
        cluster: &RestateClient,
        schema: Option<Value>,
    ) -> Self {
        let remote = cluster.graph_of(&name, graph.schema().clone());
        let served = RestateGraph { shape: TypedGraph { graph, schema }, remote };
        self.graphs.push((name, Box::new(move |_, _| Ok(Arc::new(served) as Arc<dyn ServedGraph>))));
        self
    }

    fn attach<S: StoredState>(
        mut self,
        name: String,
        graph: CompiledGraph<S>,
        schema: Option<Value>,
    ) -> Self {
        let attach = move |saver: Saver, store: Arc<dyn Store>| {
            let graph = if graph.keeps_items() { graph } else { graph.store(store) };
            let graph = match saver {
                _ if graph.keeps_threads() => graph,
                Saver::Memory(saver) => graph.try_checkpointer(saver)?,
                Saver::Sqlite(saver) => graph.try_checkpointer(saver)?,
                #[cfg(feature = "postgres")]
                Saver::Postgres(saver) => graph.try_checkpointer(saver)?,
            };
            let served: Arc<dyn ServedGraph> = Arc::new(TypedGraph { graph, schema });
            Ok(served)
        };
        self.graphs.push((name, Box::new(attach)));
        self
    }

    /// Keeps everything in memory: it ends with the process.
    pub fn in_memory(mut self) -> Self {
        self.keep = Keep::Memory;
        self
    }

    /// Keeps everything in this SQLite file.
    pub fn sqlite(mut self, path: impl Into<PathBuf>) -> Self {
        self.keep = Keep::Sqlite(path.into());
        self
    }

    /// Keeps everything in the database of a saver: checkpoints in its schema, `agentgraph` unless set;
    /// threads and runs, and the items of graphs without a store, in schemas beside it with the endings
    /// `_server` and `_store`. All of it uses the connections of the saver.
    ///
    /// Several servers may share the database, each with the same graphs: each answers every call, and the
    /// runs of one that dies go on on another. See [`lease`](Self::lease).
    ///
    /// ```no_run
    /// # use agentgraph::prelude::*;
    /// use agentgraph::PostgresSaver;
    /// use agentgraph_server::Server;
    /// # #[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
    /// # struct Triage { question: String }
    /// # async fn answer() {}
    ///
    /// # #[tokio::main]
    /// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// # let graph = StateGraph::<Triage>::new().node("answer", answer).edge(START, "answer").compile()?;
    /// let saver = PostgresSaver::connect("postgres://agent@localhost/agents").await?;
    /// Server::new().postgres(saver).graph("triage", graph).serve("127.0.0.1:2024").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "postgres")]
    pub fn postgres(mut self, saver: PostgresSaver) -> Self {
        self.keep = Keep::Postgres(saver);
        self
    }

    /// Sets how long a server that shares its records counts as alive without a sign of it; 15 seconds unless
    /// set, at least 100 milliseconds. It gives three signs in that time. Then others take over its runs. A
    /// server that ends in good order gives them up at once.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let server = agentgraph_server::Server::new().lease(Duration::from_secs(5));
    /// # drop(server);
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Keeps threads and runs in a store of one's own. Graphs without a checkpointer keep theirs in memory.
    pub fn records(mut self, records: impl Records) -> Self {
        self.keep = Keep::Own(Arc::new(records));
        self
    }

    /// Keeps what graphs and clients remember beyond threads in this store. Unless it is set, a server in
    /// memory keeps it there, and one with a file in another file beside it: `agentgraph.items.db`. A graph
    /// that has a store keeps it, and clients do not see that one.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Lets in callers that show one of these keys, as `Authorization: Bearer ..` or `x-api-key: ..`, where
    /// clients put their API key. They are [operators](Caller::operator): they see and change everything.
    pub fn bearer_keys<K: AsRef<str>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        keys.into_iter().for_each(|key| self.access.add_key(key.as_ref(), Caller::operator()));
        self
    }

    /// Lets in a caller that shows this key. It sees and changes only what is its own.
    ///
    /// ```
    /// use agentgraph_server::{Caller, Server};
    ///
    /// let server = Server::new().caller_key("a-key", Caller::named("ada"));
    /// # drop(server);
    /// ```
    pub fn caller_key(mut self, key: impl AsRef<str>, caller: Caller) -> Self {
        self.access.add_key(key.as_ref(), caller);
        self
    }

    /// Lets in callers with the tokens of an issuer. Each sees and changes only what is its own.
    #[cfg(feature = "jwt")]
    pub fn jwt(mut self, tokens: crate::Jwt) -> Self {
        self.access.add(tokens, false);
        self
    }

    /// Lets in the callers that code of one's own knows; [`LayeredCaller`](crate::LayeredCaller) is for those
    /// of a layer in front. Since it may read cookies, which a browser adds to requests of any page, pages of
    /// other sites are kept out unless [`allow_origin`](Self::allow_origin) names them.
    ///
    /// ```
    /// use agentgraph_server::{Authenticate, Caller, Denied, Server};
    /// use axum::http::request::Parts;
    ///
    /// struct Proxied;
    ///
    /// #[async_trait::async_trait]
    /// impl Authenticate for Proxied {
    ///     async fn authenticate(&self, request: &Parts) -> Result<Caller, Denied> {
    ///         // A proxy in front sets it, and removes what callers send under this name.
    ///         let user = request.headers.get("x-user").and_then(|user| user.to_str().ok());
    ///         user.map(Caller::named).ok_or(Denied::Unknown)
    ///     }
    /// }
    ///
    /// let server = Server::new().authenticate(Proxied);
    /// # drop(server);
    /// ```
    pub fn authenticate(mut self, check: impl Authenticate) -> Self {
        self.access.add(check, true);
        self
    }

    /// Lets in callers from other machines without a key: for a server behind something that checks them.
    pub fn allow_anyone(mut self) -> Self {
        self.lets_in_anyone = true;
        self
    }

    /// Lets web pages of this origin call a server without keys, such as `https://studio.example`. Pages of
    /// this machine and of the server's own address may call unless set; with keys, or with
    /// [`allow_anyone`](Self::allow_anyone), all pages may.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets what happens to runs that a killed server has left. They go on unless set.
    pub fn on_restart(mut self, what: OnRestart) -> Self {
        self.settings.on_restart = what;
        self
    }

    /// Sets after how long a stream without events sends a heartbeat; 5 seconds unless set.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.settings.heartbeat = every.max(Duration::from_millis(1));
        self
    }

    /// Limits the body of a request; 16 MiB unless set.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.settings.max_body = bytes;
        self
    }

    /// Limits the runs that one caller has waiting or under way in this process; not limited unless set. A
    /// further one is answered with 429, `Retry-After` and the code `too_many_runs`.
    pub fn max_runs_per_caller(mut self, runs: usize) -> Self {
        self.settings.max_runs = runs;
        self
    }

    /// Limits the requests of one caller that stay open in this process: streams, WebSockets, and those that
    /// wait for a run; not limited unless set. A further one is answered with 429, `Retry-After` and the code
    /// `too_many_streams`.
    pub fn max_streams_per_caller(mut self, streams: usize) -> Self {
        self.settings.max_streams = streams;
        self
    }

    /// Sets what a model's tokens cost, by the name that its answers have: US dollars for a million tokens of
    /// input and of output. With it the page shows money beside tokens.
    ///
    /// ```
    /// let server = agentgraph_server::Server::new().price("model", 3.0, 15.0);
    /// ```
    pub fn price(mut self, model: impl Into<String>, input: f64, output: f64) -> Self {
        self.settings.prices.insert(model.into(), [input, output]);
        self
    }

    /// Shows the findings of tests over a graph: a file that `report.save(path)` of `agentgraph::testing`
    /// wrote, or a folder of them. They are read when the page asks for them.
    ///
    /// ```
    /// let server = agentgraph_server::Server::new().findings("triage", "target/findings");
    /// ```
    pub fn findings(mut self, graph: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.settings.findings.insert(graph.into(), path.into());
        self
    }

    /// Limits how long the end of the server waits for the supersteps under way; 30 seconds unless set.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain_limit = limit;
        self
    }

    /// Opens the stores and goes on with the runs that an earlier process has left.
    ///
    /// # Errors
    /// If a store cannot be opened, or a graph cannot be served.
    pub async fn start(self) -> Result<RunningServer, ServerError> {
        let memory = || Saver::Memory(MemorySaver::new());
        let store = match (self.store, &self.keep) {
            (Some(store), _) => store,
            (None, Keep::Sqlite(path)) => items_beside(path).await?,
            #[cfg(feature = "postgres")]
            (None, Keep::Postgres(saver)) => Arc::new(store_beside(saver).await.map_err(failed)?),
            (None, _) => Arc::new(MemoryStore::new()),
        };
        let (records, saver): (Arc<dyn Records>, Saver) = match self.keep {
            Keep::Memory => (Arc::new(MemoryRecords::default()), memory()),
            Keep::Own(records) => (records, memory()),
            #[cfg(feature = "postgres")]
            Keep::Postgres(saver) => {
                (Arc::new(PostgresRecords::beside(&saver).await?), Saver::Postgres(saver))
            }
            Keep::Sqlite(path) => {
                let saver = SqliteSaver::open(&path).await;
                let saver = saver.map_err(failed)?;
                (Arc::new(SqliteRecords::open(&path).await?), Saver::Sqlite(saver))
            }
        };
        let mut graphs = BTreeMap::new();
        for (name, attach) in self.graphs {
            let served = attach(saver.clone(), Arc::clone(&store));
            let served = served.map_err(|source| ServerError::Graph { name: name.clone(), source })?;
            if graphs.insert(name.clone(), served).is_some() {
                return Err(ServerError::SameName(name));
            }
        }
        let app = Arc::new(App::new(graphs, records, store, self.settings));
        app.add_system_assistants().await?;
        app.recover().await?;
        let any = self.access.keeps_pages_out() || self.lets_in_anyone;
        let pages = Pages { any, origins: self.origins, by_names_of_this_machine: false };
        Ok(RunningServer { app, access: Arc::new(self.access), pages, drain_limit: self.drain_limit })
    }

    /// The routes, to be nested in an axum application of one's own. Runs that are under way when it ends go
    /// on at the next start; [`start`](Self::start) gives a handle to end them in good order.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// use agentgraph_server::Server;
    /// # #[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
    /// # struct Triage { question: String }
    /// # async fn answer() {}
    ///
    /// # #[tokio::main]
    /// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// # let graph = StateGraph::<Triage>::new().node("answer", answer).edge(START, "answer").compile()?;
    /// let graphs = Server::new().in_memory().graph("triage", graph).router().await?;
    /// let app: axum::Router = axum::Router::new().nest("/graphs", graphs);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn router(self) -> Result<Router, ServerError> {
        Ok(self.start().await?.router())
    }

    /// Serves at an address until the process is asked to end (Ctrl-C, SIGTERM). Then each run ends its
    /// superstep, and goes on at the next start.
    ///
    /// # Errors
    /// [`ServerError::Unprotected`] if other machines can reach the address and nothing checks callers; as
    /// [`start`](Self::start); and if the address cannot be used.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// use agentgraph_server::{Server, ServerError};
    ///
    /// let refused = Server::new().in_memory().serve("0.0.0.0:0").await;
    /// assert!(matches!(refused, Err(ServerError::Unprotected(_))));
    /// # }
    /// ```
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), ServerError> {
        self.serve_on(TcpListener::bind(address).await?).await
    }

    /// [`serve`](Self::serve) on the loopback, at port 2024 or any free one. Prints the address of the page.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn open(self) -> Result<(), ServerError> {
        let listener = match TcpListener::bind("127.0.0.1:2024").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("127.0.0.1:0").await?,
        };
        println!("http://{}/ui/", listener.local_addr()?);
        self.serve_on(listener).await
    }

    /// [`serve`](Self::serve) with a listener of one's own, whose port is known.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn serve_on(self, listener: TcpListener) -> Result<(), ServerError> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && !self.access.is_set() && !self.lets_in_anyone {
            return Err(ServerError::Unprotected(address));
        }
        let mut server = self.start().await?;
        server.pages.by_names_of_this_machine = address.ip().is_loopback();
        tracing::info!(%address, "serving graphs");
        let routes = server.router();
        let drained = async move {
            asked_to_end().await;
            server.drain().await;
        };
        // Events are small, and each is to leave at once.
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        // As it is, a router copies all its routes for each connection: ninety kilobytes.
        let routes = routes.into_make_service();
        Ok(axum::serve(listener, routes).with_graceful_shutdown(drained).await?)
    }
}

/// A server for a developer at a desk: one graph, in memory unless it has a checkpointer.
///
/// ```no_run
/// # use agentgraph::prelude::*;
/// # #[derive(State, schemars::JsonSchema, Clone, Debug, Default)]
/// # struct Triage { question: String }
/// # async fn answer() {}
/// # #[tokio::main]
/// # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
/// let graph = StateGraph::<Triage>::new().node("answer", answer).edge(START, "answer").compile()?;
/// agentgraph_server::ui(graph).open().await?; // prints http://127.0.0.1:2024/ui/
/// # Ok(())
/// # }
/// ```
pub fn ui<S: StoredState + JsonSchema>(graph: CompiledGraph<S>) -> Server {
    Server::new().in_memory().graph("graph", graph)
}

/// A server whose stores are open.
#[derive(Clone)]
pub struct RunningServer {
    app: Arc<App>,
    access: Arc<Access>,
    pages: Pages,
    drain_limit: Duration,
}

impl RunningServer {
    /// The routes.
    pub fn router(&self) -> Router {
        router(Arc::clone(&self.app), Arc::clone(&self.access), Arc::new(self.pages.clone()))
    }

    /// Ends the server in good order: each run ends its superstep, its streams end, and it goes on at the
    /// next start.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), agentgraph_server::ServerError> {
    /// let server = agentgraph_server::Server::new().in_memory().start().await?;
    /// let routes = server.router();
    /// // .. serve the routes; at the end:
    /// server.drain().await;
    /// # drop(routes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain(&self) {
        self.app.drain(self.drain_limit).await;
    }
}

/// The items of a server with a file, in a file of their own.
async fn items_beside(path: &Path) -> Result<Arc<dyn Store>, ServerError> {
    let is_memory = path.as_os_str() == ":memory:";
    let path = if is_memory { path.to_owned() } else { path.with_extension("items.db") };
    let store = SqliteStore::open(path).await;
    Ok(Arc::new(store.map_err(failed)?))
}

fn failed(error: StoreError) -> ServerError {
    ServerError::Records(crate::RecordError::new(error))
}

/// Ends when the process is asked to end. Where signals cannot be heard, never.
async fn asked_to_end() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
fn terminated() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    use tokio::signal::unix::{SignalKind, signal};
    Box::pin(async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    })
}

#[cfg(not(unix))]
fn terminated() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(std::future::pending())
}
