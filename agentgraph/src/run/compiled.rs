//! [`CompiledGraph`]: a checked graph. Immutable, cheap to clone, shared by any number of runs.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::context::host::Host;
use crate::engine::host::HostRunner;
use crate::error::Error;
use crate::graph::{CompileError, Discipline, StateGraph, Warning};
use crate::record::codec::Codec;
use crate::record::json;
use crate::run::attached::Attached;
use crate::state::{State, StoredState};
use crate::typed::express::TypedNodes;
use crate::typed::{AnyUpdate, Seen};
use crate::words::clones;
use agentgraph_checkpoint::services::Services;
use agentgraph_checkpoint::{Checkpointer, Store};

/// A runnable graph, made by [`StateGraph::compile`](crate::StateGraph::compile).
pub struct CompiledGraph<S: State> {
    pub(in crate::run) any: Arc<Attached>,
    state: PhantomData<fn() -> S>,
}

impl<S: State> StateGraph<S> {
    /// Checks the graph and makes it runnable. Constructs that are allowed and probably not intended are
    /// [warnings](CompiledGraph::warnings): a node without a path from START, a loop without an exit, a join
    /// that can never fire.
    ///
    /// A join can never fire if one of its sources never runs, or if two sources can only be reached by
    /// different targets of a route that is called once and picks one of them. If another edge, a loop or a
    /// list of targets may lead to both, there is no warning.
    ///
    /// # Errors
    /// All [`Problem`](crate::graph::Problem)s of the graph, each with the file and line of the call that
    /// caused it.
    pub fn compile(self) -> Result<CompiledGraph<S>, CompileError> {
        let mut any = Attached::of(self.check()?);
        let mut nodes = TypedNodes::<S>::new(any.core.schema.typed::<S>().clone());
        for node in &any.core.nodes {
            nodes.add(&*node.call, node.policies.is_none() && node.graph.is_none());
        }
        any.express = Some(Arc::new(nodes));
        Ok(CompiledGraph::of(any))
    }
}

impl<S: State> CompiledGraph<S> {
    /// A graph over this state.
    pub(crate) fn of(any: Attached) -> Self {
        CompiledGraph { any: Arc::new(any), state: PhantomData }
    }

    /// What is attached to the graph, to be changed. Clones that were made before keep theirs.
    pub(in crate::run) fn attached(&mut self) -> &mut Attached {
        Arc::make_mut(&mut self.any)
    }

    /// The same graph without the type of its state.
    pub(crate) fn into_any(self) -> Arc<Attached> {
        self.any
    }

    /// How its state is encoded.
    pub(crate) fn codec(&self) -> Codec
    where
        S: StoredState,
    {
        Codec::of::<S>(self.any.core.stored.migrations.version)
    }
}

clones!([S: State] CompiledGraph<S> { any, state });

impl<S: State> CompiledGraph<S> {
    /// Uses `services` for time and randomness.
    #[must_use]
    pub fn services(mut self, services: impl Services) -> Self {
        self.attached().share(|shared| shared.services = Arc::new(services));
        self
    }

    /// Gives the nodes a long-term memory, which they reach by [`Ctx::store`](crate::Ctx::store). All threads
    /// of the graph share it, and graphs share it by its clones. A graph that is a node of another one uses
    /// the caller's store, unless it has its own.
    ///
    /// A host that runs tasks elsewhere has no part in it: the graph on the far side needs a store itself,
    /// as it needs its dependencies.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// use agentgraph::store::{MemoryStore, Namespace, StoreExt};
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// async fn keep(ctx: Ctx, note: Snapshot<Note>) -> Result<()> {
    ///     ctx.store()?.put(&Namespace::new(["notes"])?, "last", &*note.text).await?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let memory = MemoryStore::new();
    /// let graph = StateGraph::new().node("keep", keep).edge(START, "keep").compile()?;
    /// graph.store(memory.clone()).invoke(Note::update().text("buy tea")).await?;
    /// let kept = memory.get_as::<String>(&Namespace::new(["notes"])?, "last").await?;
    /// assert_eq!(kept.as_deref(), Some("buy tea"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.attached().share(|shared| shared.store = Some(Arc::new(store)));
        self
    }

    /// Names the agent that the graph is. The spans of its runs are then `invoke_agent <name>` and not
    /// `invoke_workflow`; as a node of another graph it has a span of that name, too.
    #[must_use]
    pub fn agent_name(mut self, name: impl AsRef<str>) -> Self {
        self.attached().share(|shared| shared.agent = Some(Arc::from(name.as_ref())));
        self
    }

    /// Runs the tasks of the graph on `host`.
    #[must_use]
    pub fn host(mut self, host: impl Host) -> Self
    where
        S: StoredState,
    {
        let runner = HostRunner::new(Arc::new(host), self.codec());
        self.attached().host = Some(Arc::new(runner));
        self
    }

    /// Stores the runs of the graph in `saver`. Every run then needs a thread. A clone of a saver is a
    /// handle of the same store, so graphs share one by its clones.
    ///
    /// A state with secret channels needs a saver that encrypts, or one that ends with its process. Any other
    /// saver is refused: nothing is stored, and every call on the graph fails with
    /// [`Code::SecretNeedsKey`](crate::Code::SecretNeedsKey). [`try_checkpointer`](Self::try_checkpointer)
    /// reports this at once.
    #[must_use]
    pub fn checkpointer(self, saver: impl Checkpointer) -> Self
    where
        S: StoredState,
    {
        match self.any.core.refusal(&saver) {
            None => self.kept_by(Arc::new(saver)),
            Some(refused) => self.kept_by(Arc::new(refused)),
        }
    }

    /// [`checkpointer`](Self::checkpointer) for a program that needs to know at once whether the saver may
    /// store the graph's secrets.
    ///
    /// # Errors
    /// [`Code::SecretNeedsKey`](crate::Code::SecretNeedsKey) if the state, or that of a subgraph, has secret
    /// channels that the saver would store in clear.
    pub fn try_checkpointer(self, saver: impl Checkpointer) -> Result<Self, Error>
    where
        S: StoredState,
    {
        match self.any.core.refusal(&saver) {
            None => Ok(self.kept_by(Arc::new(saver))),
            Some(refused) => Err(Error::new(refused.code.into(), refused.why)),
        }
    }

    fn kept_by(mut self, saver: Arc<dyn Checkpointer>) -> Self
    where
        S: StoredState,
    {
        let codec = self.codec();
        self.attached().kept_by(saver, codec);
        self
    }

    /// Sets the length of leases: a run loses its thread if it shows no activity for this time. Another
    /// process may then continue the run, and nothing that the first process still does is stored. 30 seconds
    /// if not set; at least 10 milliseconds. Call it after [`checkpointer`](Self::checkpointer).
    ///
    /// A dropped run releases its thread at once. With [`Durability::Async`](crate::Durability::Async), the
    /// thread stays busy until a separate task has stored everything that was handed over. The savers of this
    /// crate notice when a process was killed. So the length only matters for suspended processes, and for
    /// machines that lost their connection.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Self {
        if let Some(persistence) = &mut self.attached().persistence {
            persistence.lease = length.max(Duration::from_millis(10));
        }
        self
    }

    /// The same graph, to look into one that is a node of another: its [`state`](Self::state),
    /// [`history`](Self::history) and [`update_state`](Self::update_state) are those of that namespace, which
    /// [`Checkpoint::children`](crate::Checkpoint::children) and [`Interrupt::namespace`](crate::Interrupt)
    /// contain the name. Call it after [`checkpointer`](Self::checkpointer). Only the parent graph continues
    /// from an edited state.
    ///
    /// The newest checkpoint of a memory ([`Memory::PerThread`](crate::Memory::PerThread)) may belong to a
    /// call that was given up. [`Checkpoint::memories`](crate::Checkpoint::memories) names the effective one,
    /// and an edit counts if it follows that one.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
    ///     let word: String = ctx.interrupt("which word?")?;
    ///     Ok(Words::update().seen([word]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile()?;
    /// let saver = MemorySaver::new();
    /// let graph = StateGraph::new().node("child", child.clone()).edge(START, "child").compile()?;
    /// let graph = graph.checkpointer(saver.clone());
    /// graph.invoke(Words::update().seen(["a"])).thread("t").await?;
    ///
    /// let open = graph.state("t").await?.expect("it is kept");
    /// let inside = child.checkpointer(saver).namespace(&open.children[0].namespace);
    /// inside.update_state("t").update(Words::update().seen(["b"])).await?;
    /// let words = graph.resume("c").thread("t").finish().await?;
    /// assert_eq!(words.seen, ["a", "b", "c"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn namespace(mut self, namespace: impl AsRef<str>) -> Self {
        if let Some(persistence) = &mut self.attached().persistence {
            persistence.namespace = Arc::from(namespace.as_ref());
        }
        self
    }
}

/// # Looking at the graph
impl<S: State> CompiledGraph<S> {
    /// What `compile()` found that is allowed and probably not meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.any.core.about.warnings
    }

    /// The names of the nodes, in order of declaration.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.any.core.names.iter().map(|name| &**name)
    }

    /// Whether the graph has a checkpointer, so that each run needs a thread.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::MemorySaver;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat {}
    /// # async fn greet() -> ChatUpdate { Chat::update() }
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Chat>::new().node("greet", greet).edge(START, "greet").compile()?;
    /// assert!(!graph.keeps_threads());
    /// assert!(graph.checkpointer(MemorySaver::new()).keeps_threads());
    /// # Ok(())
    /// # }
    /// ```
    pub fn keeps_threads(&self) -> bool {
        self.any.persistence.is_some()
    }

    /// Whether the graph has a long-term store.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::store::MemoryStore;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat {}
    /// # async fn greet() -> ChatUpdate { Chat::update() }
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Chat>::new().node("greet", greet).edge(START, "greet").compile()?;
    /// assert!(!graph.keeps_items());
    /// assert!(graph.store(MemoryStore::new()).keeps_items());
    /// # Ok(())
    /// # }
    /// ```
    pub fn keeps_items(&self) -> bool {
        self.any.shared.store.is_some()
    }

    /// The channels of the graph's state, if they are known only at run time; `()` for a derived state.
    pub fn schema(&self) -> &S::Schema {
        self.any.core.schema.typed::<S>()
    }

    /// The graph's fingerprint: 32 hexadecimal digits that change when nodes, edges, joins, routes or
    /// channels change. Checkpoints contain it.
    pub fn fingerprint(&self) -> &str {
        &self.any.core.stored.fingerprint
    }

    /// Returns the nodes and edges of the graph, to be drawn by a program.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn check() {}
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Text>::new().node("check", check).edge(START, "check").compile()?;
    /// let drawn = graph.topology();
    /// assert_eq!(drawn.nodes[0].name, "check");
    /// assert_eq!((&*drawn.edges[0].from, drawn.edges[0].to.as_deref()), (START, Some("check")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn topology(&self) -> crate::graph::GraphTopology {
        crate::graph::shown::of_compiled(&self.any.core)
    }

    /// The [`topology`](Self::topology) of a subgraph. `path` has the names of the nodes that lead to it, the
    /// outermost first; an empty one is the graph itself. `None` if one of them is unknown or no graph.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn node() {}
    /// # fn main() -> Result<()> {
    /// let check = StateGraph::<Text>::new().node("spelling", node).edge(START, "spelling").compile()?;
    /// let graph = StateGraph::new().node("check", check).edge(START, "check").compile()?;
    /// let inside = graph.topology_inside(["check"]).expect("it is a graph");
    /// assert_eq!(inside.nodes[0].name, "spelling");
    /// assert_eq!(graph.topology_inside(["check", "spelling"]), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn topology_inside<N: AsRef<str>>(
        &self,
        path: impl IntoIterator<Item = N>,
    ) -> Option<crate::graph::GraphTopology> {
        let mut core = Arc::clone(&self.any.core);
        for name in path {
            core = core.subgraph(core.names.id(name.as_ref())? as usize)?;
        }
        Some(crate::graph::shown::of_compiled(&core))
    }

    /// Whether the graph was built by [`eager`](crate::StateGraph::eager).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn check() {}
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::<Text>::new().node("check", check).edge(START, "check").eager().compile()?;
    /// assert!(graph.is_eager());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_eager(&self) -> bool {
        self.any.core.rules.discipline == Discipline::Eager
    }

    /// Returns the graph as a Mermaid flowchart: edges solid, routes dotted, commands without declared
    /// targets as an open arrow.
    pub fn mermaid(&self) -> String {
        crate::graph::shown::of_compiled(&self.any.core).mermaid()
    }

    /// Returns the graph as a Mermaid flowchart like [`mermaid`](Self::mermaid), in which each node that is
    /// a graph is drawn as that graph, at every depth.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Text {}
    /// # async fn node() {}
    /// # fn main() -> Result<()> {
    /// let check = StateGraph::<Text>::new().node("spelling", node).edge(START, "spelling").compile()?;
    /// let graph = StateGraph::new().node("check", check).edge(START, "check").edge("check", END).compile()?;
    /// let drawing = r#"flowchart TD
    ///     start([START])
    ///     subgraph n0["check"]
    ///         n0_start([START])
    ///         n0_n0["spelling"]
    ///         n0_start --> n0_n0
    ///     end
    ///     finish([END])
    ///     start --> n0
    ///     n0 --> finish
    /// "#;
    /// assert_eq!(graph.mermaid_with_subgraphs(), drawing);
    /// # Ok(())
    /// # }
    /// ```
    pub fn mermaid_with_subgraphs(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        crate::graph::shown::draw_with_subgraphs(&self.any.core, &mut text, "");
        text
    }
}

/// # States and updates as JSON
impl<S: State> CompiledGraph<S> {
    /// What an update writes, as a JSON object of channel names: for a screen, a log or another program. A
    /// reduced channel shows what was handed to its reducer, an overwritten one `{"Overwrite": value}`.
    /// Untracked channels are left out, and secret ones show [`MASK`](crate::state::MASK) in the place of
    /// what is written.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Default)]
    /// # struct Triage { risk: u8, #[reduce(append)] notes: Vec<String> }
    /// # async fn plan() {}
    /// # let graph = StateGraph::<Triage>::new().node("plan", plan).edge(START, "plan").compile().unwrap();
    /// let update = Triage::update().risk(3).overwrite_notes(vec!["anew".into()]);
    /// let json = graph.update_json(&update).unwrap();
    /// assert_eq!(json.to_string(), r#"{"notes":{"Overwrite":["anew"]},"risk":3}"#);
    /// ```
    ///
    /// # Errors
    /// [`Code::Encode`](crate::Code::Encode) when a value cannot be JSON.
    pub fn update_json(&self, update: &S::Update) -> Result<serde_json::Value, Error>
    where
        S: StoredState,
    {
        json::of_update(&self.codec(), &self.any.core.schema, &AnyUpdate::new::<S>(update.clone()))
    }

    /// A state as a JSON object of channel names: for a screen, a log or another program. Untracked channels
    /// are left out, and secret ones show [`MASK`](crate::state::MASK). A channel that JSON cannot show is
    /// null.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// #[derive(State, Clone, Default)]
    /// struct Login {
    ///     user: String,
    ///     #[channel(secret)]
    ///     token: String,
    /// }
    /// # async fn plan() {}
    /// # let graph = StateGraph::<Login>::new().node("plan", plan).edge(START, "plan").compile().unwrap();
    /// let state = Login { user: "Ada".into(), token: "hunter2".into() };
    /// assert_eq!(graph.state_json(&state).to_string(), r#"{"token":"[secret]","user":"Ada"}"#);
    /// ```
    pub fn state_json(&self, state: &S) -> serde_json::Value
    where
        S: StoredState,
    {
        json::of_state(&self.codec(), &self.any.core.schema, Seen::of(state))
    }
}

impl<S: State> fmt::Debug for CompiledGraph<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(out)
    }
}
