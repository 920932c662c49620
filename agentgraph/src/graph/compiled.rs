//! [`CompiledGraph`]: a graph that was checked. Immutable, cheap to clone, shared by any number of runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::problem::Warning;
use super::template::{Defaults, Templates};
use super::topology::{END_ID, Topology};
use crate::context::GraphShared;
use crate::engine::host::{Host, HostRunner};
use crate::engine::pass::Discipline;
use crate::error::Error;
use crate::failure::KeptError;
use crate::node::ErasedNode;
use crate::node::inner::AnyGraph;
use crate::policy::{OnEnd, Policies, Siblings};
use crate::record::codec::Codec;
use crate::record::json;
use crate::record::migrate::Migrations;
use crate::record::migrate::UnknownFields;
use crate::route::Pick;
use crate::run::lease::{Keeper, LEASE};
use crate::state::{State, StoredState};
use crate::step::Goto;
use agentgraph_checkpoint::behind::{self, Behind};
use agentgraph_checkpoint::engine::Refused;
use agentgraph_checkpoint::frame::Pairs;
use agentgraph_checkpoint::services::Services;
use agentgraph_checkpoint::{Checkpointer, Place, Retention, StoreCode};

/// A runnable graph. [`StateGraph::compile`](crate::StateGraph::compile) makes it.
pub struct CompiledGraph<S: State> {
    pub(crate) core: Arc<GraphCore<S>>,
    pub(crate) shared: Arc<GraphShared>,
    pub(crate) persistence: Option<Persistence<S>>,
    pub(crate) host: Option<HostRunner<S>>,
}

/// What the loop looks at.
pub(crate) struct GraphCore<S: State> {
    pub(crate) schema: S::Schema,
    pub(crate) nodes: Vec<NodeEntry<S>>,
    pub(crate) topology: Topology,
    pub(crate) routers: Vec<Router<S>>,
    pub(crate) by_name: Arc<HashMap<Arc<str>, u32>>,
    pub(crate) names: Arc<[Arc<str>]>,
    pub(crate) fingerprint: String,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) breaks: Option<Breaks>,
    pub(crate) has_ephemeral: bool,
    pub(crate) has_run_channels: bool,
    /// For how long the end of a run waits for detached nodes: the times that they name, each once.
    pub(crate) awaited_at_end: Vec<Duration>,
    /// A node is a graph, or a temporary one may be.
    pub(crate) has_graphs: bool,
    pub(crate) siblings: Siblings,
    pub(crate) on_limit: Option<u32>,
    /// A run that ends with a join that waits has failed.
    pub(crate) stuck_fails: bool,
    /// Its runs have no supersteps.
    pub(crate) eager: bool,
    /// The detached nodes; empty if there are none.
    pub(crate) detached: Vec<bool>,
    pub(crate) migrations: Migrations,
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) drawing: super::draw::Drawing,
    /// Who runs next, if that is not a matter of supersteps.
    pub(crate) discipline: Option<Arc<dyn Discipline<S>>>,
    pub(crate) templates: Templates<S>,
    /// What temporary nodes have that say nothing else.
    pub(crate) defaults: Defaults,
    /// Some node keeps its last output.
    pub(crate) keeps_outputs: bool,
    /// The secret channels that are stored, its own and those of the graphs in it.
    pub(crate) secrets: Vec<String>,
    /// What the header of every full says of the graph and its channels.
    pub(crate) constants: OnceLock<Pairs>,
}

pub(crate) struct NodeEntry<S: State> {
    pub(crate) call: Arc<dyn ErasedNode<S>>,
    /// None if it has none, which most have not.
    pub(crate) policies: Option<Arc<Policies>>,
    /// The node that handles its failures.
    pub(crate) on_error: Option<u32>,
    pub(crate) keeps: Vec<KeptError>,
    /// Where its commands may go, if it said so.
    pub(crate) targets: Option<Vec<u32>>,
    /// The graph that it is.
    pub(crate) graph: Option<Arc<dyn AnyGraph>>,
    /// What becomes of it at the end, if it is detached.
    pub(crate) on_end: OnEnd,
    /// What it gave last is kept, to be used again.
    pub(crate) keeps_output: bool,
}

/// The nodes with static interrupts, by dense id.
pub(crate) struct Breaks {
    pub(crate) before: Vec<bool>,
    pub(crate) after: Vec<bool>,
}

/// The decision function of a route or branch, and its targets by dense id.
pub(crate) struct Router<S: State> {
    pub(crate) decide: RouterFn<S>,
    pub(crate) targets: Vec<u32>,
}

pub(crate) enum RouterFn<S: State> {
    #[allow(clippy::type_complexity)]
    Typed(Box<dyn Fn(&S, &mut dyn FnMut(Pick)) + Send + Sync>),
    #[allow(clippy::type_complexity)]
    Named(Box<dyn Fn(&S, &mut Vec<Goto>) + Send + Sync>),
}

/// Where the runs of a graph are kept, and how its state becomes bytes.
pub(crate) struct Persistence<S: State> {
    pub(crate) saver: Arc<dyn Checkpointer>,
    pub(crate) codec: Codec<S>,
    /// Empty, except to look into a subgraph.
    pub(crate) namespace: Arc<str>,
    /// What stores the checkpoints of runs behind them; none before the first such run.
    behind: Arc<OnceLock<Arc<Behind>>>,
    /// The leases of runs.
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) lease: Duration,
    /// What runs keep of their threads, if not all.
    pub(crate) retention: Option<Retention>,
}

impl<S: State> Persistence<S> {
    pub(crate) fn new(saver: Arc<dyn Checkpointer>, codec: Codec<S>, namespace: Arc<str>) -> Self {
        Persistence {
            saver,
            codec,
            namespace,
            behind: Arc::default(),
            keeper: Arc::default(),
            lease: LEASE,
            retention: None,
        }
    }

    /// The place of a thread.
    pub(crate) fn place<'a>(&'a self, thread: &'a str) -> Place<'a> {
        Place { thread, namespace: &self.namespace }
    }

    /// Waits for what earlier runs handed over. That something of it failed was theirs to hear.
    pub(crate) async fn settle(&self, thread: &str) {
        if let Some(behind) = self.behind.get() {
            let _ = behind.settle(thread).await;
        }
    }

    /// What stands before the saver for runs that are kept behind themselves.
    pub(crate) fn behind(&self) -> Result<Arc<Behind>, Error> {
        behind::runtime()?;
        Ok(Arc::clone(self.behind.get_or_init(|| Arc::new(Behind::new(Arc::clone(&self.saver))))))
    }
}

impl<S: State> Clone for Persistence<S> {
    fn clone(&self) -> Self {
        Persistence {
            saver: Arc::clone(&self.saver),
            codec: self.codec,
            namespace: Arc::clone(&self.namespace),
            behind: Arc::clone(&self.behind),
            keeper: Arc::clone(&self.keeper),
            lease: self.lease,
            retention: self.retention.clone(),
        }
    }
}

impl<S: State> Clone for CompiledGraph<S> {
    fn clone(&self) -> Self {
        CompiledGraph {
            core: Arc::clone(&self.core),
            shared: Arc::clone(&self.shared),
            persistence: self.persistence.clone(),
            host: self.host.clone(),
        }
    }
}

impl<S: State> GraphCore<S> {
    /// What checkpoints call the way in which it runs.
    pub(crate) fn discipline(&self) -> &'static str {
        match &self.discipline {
            Some(_) => "dependency",
            None if self.eager => "eager",
            None => "superstep",
        }
    }

    /// Why that checkpointer must not be given what the graph has to store, if it must not.
    pub(crate) fn refusal(&self, saver: &dyn Checkpointer) -> Option<Refused> {
        if self.secrets.is_empty() || saver.keeps_secrets() || !saver.outlives_its_process() {
            return None;
        }
        let why = format!(
            "the state has secret channels ({}), and the checkpointer stores what it is given in clear, so nothing is stored: put \
             an `EncryptedSaver` with a key before it, or mark them `untracked` as well",
            self.secrets.join(", ")
        );
        Some(Refused { code: StoreCode::SecretNeedsKey, why })
    }

    pub(crate) fn is_detached(&self, node: u32) -> bool {
        self.detached.get(node as usize).copied().unwrap_or(false)
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        match self.names.get(node as usize) {
            Some(name) => name,
            None if node == END_ID => crate::words::END,
            None => crate::words::START,
        }
    }
}

impl<S: State> CompiledGraph<S> {
    /// The same graph, taking time and randomness from `services`.
    #[must_use]
    pub fn services(mut self, services: impl Services) -> Self {
        self.shared = Arc::new(GraphShared {
            names: Arc::clone(&self.shared.names),
            deps: self.shared.deps.clone(),
            sessions: Arc::clone(&self.shared.sessions),
            services: Arc::new(services),
        });
        self
    }

    /// The same graph, whose tasks run where `host` runs them.
    #[must_use]
    pub fn host(mut self, host: impl Host) -> Self
    where
        S: StoredState,
    {
        self.host = Some(HostRunner { host: Arc::new(host), codec: Codec::of(self.core.migrations.version) });
        self
    }

    /// The same graph, whose runs are kept by `saver`. Every run then needs a thread. An `Arc` of a saver is a saver too,
    /// so several graphs can share one.
    ///
    /// A state with secret channels is kept by a saver that encrypts, or by one that is gone with its process. Any other is
    /// refused: nothing is stored, and every call on the graph ends with
    /// [`Code::SecretNeedsKey`](crate::Code::SecretNeedsKey). [`try_checkpointer`](Self::try_checkpointer) says so at once.
    #[must_use]
    pub fn checkpointer(self, saver: impl Checkpointer) -> Self
    where
        S: StoredState,
    {
        match self.core.refusal(&saver) {
            None => self.kept_by(Arc::new(saver)),
            Some(refused) => self.kept_by(Arc::new(refused)),
        }
    }

    /// [`checkpointer`](Self::checkpointer), for a program that wants to know at once whether the saver may keep the graph's
    /// secrets.
    ///
    /// # Errors
    /// [`Code::SecretNeedsKey`](crate::Code::SecretNeedsKey) when the state, or that of a subgraph, has secret channels that the
    /// saver would store in clear.
    pub fn try_checkpointer(self, saver: impl Checkpointer) -> Result<Self, Error>
    where
        S: StoredState,
    {
        match self.core.refusal(&saver) {
            None => Ok(self.kept_by(Arc::new(saver))),
            Some(refused) => Err(Error::new(refused.code.into(), refused.why)),
        }
    }

    fn kept_by(mut self, saver: Arc<dyn Checkpointer>) -> Self
    where
        S: StoredState,
    {
        self.persistence =
            Some(Persistence::new(saver, Codec::of(self.core.migrations.version), Arc::from("")));
        self
    }

    /// The same graph, whose runs lose their threads when they give no sign of life for so long: then another process may
    /// go on with them, and whatever the first one still does is not stored. 30 seconds if not set; at least 10 milliseconds.
    /// Has to come after [`checkpointer`](Self::checkpointer).
    ///
    /// A run that was dropped gives its thread back at once. With [`Durability::Async`](crate::Durability::Async) that is when all that
    /// it had handed over is stored, by a task of its own: until then the thread is busy. The savers of this crate notice by
    /// themselves when a process was killed. So the time matters for processes that stand still, and for machines that were cut off.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Self {
        if let Some(persistence) = &mut self.persistence {
            persistence.lease = length.max(Duration::from_millis(10));
        }
        self
    }

    /// What an update writes, as a JSON object of channel names: for a screen, a log or another program. A reduced channel
    /// shows what was handed to its reducer, an overwritten one `{"Overwrite": value}`. Untracked channels are left out, and
    /// secret ones show [`MASK`](crate::MASK) in the place of what is written.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Default)]
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
        json::of_update(&Codec::<S>::of(self.core.migrations.version), &self.core.schema, update)
    }

    /// A state as a JSON object of channel names: for a screen, a log or another program. Untracked channels are left out, and
    /// secret ones show [`MASK`](crate::MASK). A channel that JSON cannot show is null.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(State, Serialize, Deserialize, Clone, Default)]
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
        json::of_state(&Codec::<S>::of(self.core.migrations.version), &self.core.schema, state)
    }

    /// The same graph, to look into one that is a node of another: its [`state`](Self::state), [`history`](Self::history) and
    /// [`update_state`](Self::update_state) are those of that namespace, which
    /// [`Checkpoint::children`](crate::Checkpoint::children) and [`Interrupt::namespace`](crate::Interrupt) name. Has to come
    /// after [`checkpointer`](Self::checkpointer). It is the graph around it that goes on from an edited state.
    ///
    /// The newest checkpoint of a memory ([`Memory::PerThread`](crate::Memory::PerThread)) may be one of a call that was given up. The
    /// one that counts is named by [`Checkpoint::memories`](crate::Checkpoint::memories), and an edit counts if it follows that one.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// use std::sync::Arc;
    ///
    /// async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
    ///     let word: String = ctx.interrupt("which word?")?;
    ///     Ok(Words::update().seen([word]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let child = StateGraph::new().node("ask", ask).edge(START, "ask").compile()?;
    /// let saver = Arc::new(MemorySaver::new());
    /// let graph = StateGraph::new().node("child", child.clone()).edge(START, "child").compile()?;
    /// let graph = graph.checkpointer(Arc::clone(&saver));
    /// graph.invoke(Words::update().seen(["a"])).thread("t").await?;
    ///
    /// let open = graph.state("t").await?.expect("it is kept");
    /// let inside = child.checkpointer(saver).namespace(&open.children[0].namespace);
    /// inside.update_state("t").update(Words::update().seen(["b"])).await?;
    /// let words = graph.resume("c").thread("t").await?.into_finished()?;
    /// assert_eq!(words.seen, ["a", "b", "c"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn namespace(mut self, namespace: impl AsRef<str>) -> Self {
        if let Some(persistence) = &mut self.persistence {
            persistence.namespace = Arc::from(namespace.as_ref());
        }
        self
    }

    /// What `compile()` found that is allowed and probably not meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.core.warnings
    }

    /// The nodes' names, in order of declaration.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.core.names.iter().map(|name| &**name)
    }

    /// The graph's fingerprint: 32 hexadecimal digits that change when nodes, edges, joins, routes or channels do.
    /// Checkpoints carry it.
    pub fn fingerprint(&self) -> &str {
        &self.core.fingerprint
    }

    /// The graph as a Mermaid flowchart: edges solid, routes dotted, commands without declared targets as an open arrow.
    pub fn mermaid(&self) -> String {
        super::shown::of_compiled(&self.core).mermaid()
    }
}

impl<S: State> fmt::Debug for CompiledGraph<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CompiledGraph")
            .field("nodes", &self.core.names)
            .field("fingerprint", &self.core.fingerprint)
            .field("checkpointer", &self.persistence.is_some())
            .finish_non_exhaustive()
    }
}
