//! [`StateGraph`], the builder: nodes, edges, joins, routes.
//!
//! The builder only notes down what it is told, with the place in the code where it was told. `compile()`
//! judges, all at once, so that no mistake hides behind another.

pub(crate) mod compile;
mod core;
mod draw;
pub(crate) mod joins;
pub(crate) mod overlay;
mod problem;
pub(crate) mod run_graph;
pub(crate) mod shown;
mod sources;
pub(crate) mod template;
pub(crate) mod topology;

pub use crate::record::migrate::StoredFields;
pub(crate) use core::{Discipline, GraphCore, RouterFn};
pub(crate) use draw::{Drawing, escape};
pub use problem::{CompileError, Problem, ProblemKind, Warning, WarningKind};
pub use shown::{EdgeKind, GraphTopology, TopologyEdge, TopologyNode};
pub use sources::{IntoSources, Sources, all, any, n_of};

use std::any::TypeId;
use std::borrow::Cow;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Deps;
use crate::error::BoxError;
use crate::node::{IntoNode, Node};
use crate::policy::{Policies, RetryPolicy, Siblings};
use crate::record::migrate::Migrate;
use crate::route::{IntoPicks, Pick, Route, RouteTarget};
use crate::session::SessionKind;
use crate::state::State;
use crate::step::{Goto, IntoGotos};

/// A graph in the making.
///
/// ```
/// use agentgraph::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
/// struct Words {
///     #[reduce(append)]
///     seen: Vec<String>,
/// }
///
/// async fn hello() -> WordsUpdate {
///     Words::update().seen(["hello"])
/// }
/// async fn world() -> WordsUpdate {
///     Words::update().seen(["world"])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("hello", hello)
///     .node("world", world)
///     .edge(START, "hello")
///     .edge("hello", "world")
///     .compile()?;
/// let outcome = graph.invoke(Words::update()).await?;
/// assert_eq!(outcome.output().seen, ["hello", "world"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `compile()`"]
pub struct StateGraph<S: State> {
    schema: S::Schema,
    nodes: Vec<DeclaredNode<S>>,
    edges: Vec<DeclaredEdge>,
    routers: Vec<DeclaredRouter<S>>,
    breaks: Vec<DeclaredBreak>,
    deps: Deps,
    sessions: Vec<SessionKind>,
    siblings: Siblings,
    on_limit: Option<(Name, Place)>,
    stuck_fails: bool,
    eager: bool,
    /// For nodes that say nothing else.
    policies: Policies,
    on_error: Option<(Name, Place)>,
    version: u32,
    migrations: Vec<(u32, Migrate, Place)>,
    drops: Vec<(Name, Place)>,
    keeps_unknown_fields: bool,
    templates: Vec<(Name, template::Template<S>, Place)>,
}

type Name = Cow<'static, str>;
type Place = &'static Location<'static>;

struct DeclaredNode<S: State> {
    name: Name,
    node: Node<S>,
    place: Place,
}

/// One source is an edge; several are a join.
struct DeclaredEdge {
    from: Sources,
    target: Name,
    place: Place,
}

struct DeclaredRouter<S: State> {
    from: Name,
    decide: RouterFn<S>,
    targets: Vec<DeclaredTarget>,
    word: &'static str,
    /// One call may pick several targets.
    picks_several: bool,
    place: Place,
}

struct DeclaredTarget {
    name: Name,
    dispatches: bool,
}

struct DeclaredBreak {
    node: Name,
    when: Break,
    place: Place,
}

/// When a static interrupt stops the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Before,
    After,
}

impl<S: State<Schema: Default>> StateGraph<S> {
    /// An empty graph.
    pub fn new() -> Self {
        Self::with_schema(S::Schema::default())
    }
}

impl<S: State<Schema: Default>> Default for StateGraph<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: State> StateGraph<S> {
    /// An empty graph over a state whose channels are known only now, such as
    /// [`JsonState`](crate::JsonState).
    pub fn with_schema(schema: S::Schema) -> Self {
        StateGraph {
            schema,
            nodes: Vec::new(),
            edges: Vec::new(),
            routers: Vec::new(),
            breaks: Vec::new(),
            deps: Deps::new(),
            sessions: Vec::new(),
            siblings: Siblings::default(),
            on_limit: None,
            stuck_fails: false,
            eager: false,
            policies: Policies::default(),
            on_error: None,
            version: 0,
            migrations: Vec::new(),
            drops: Vec::new(),
            keeps_unknown_fields: false,
            templates: Vec::new(),
        }
    }

    /// Adds a node. The name is what checkpoints, events and errors call it.
    #[track_caller]
    pub fn node<M>(mut self, name: impl Into<Name>, node: impl IntoNode<S, M>) -> Self {
        let place = Location::caller();
        self.nodes.push(DeclaredNode { name: name.into(), node: node.into_node(), place });
        self
    }

    /// From one node to another: the target runs in the superstep after the source.
    ///
    /// With a list of sources it is a *join*: the target runs once all of them have run, however many
    /// supersteps apart. [`any`] and [`n_of`] wait for fewer, and [`Sources::timeout`] only for so long. The
    /// sources that end in one superstep arrive together, each once, however many dispatches of it ran; the
    /// order of declaration plays no part. A node with no way out ends its branch, as an edge to
    /// [`END`](crate::END) does.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Report { #[reduce(append)] parts: Vec<String> }
    /// async fn plan() -> Command<Report> {
    ///     Command::new().also_goto([1, 2, 3].map(|part| Dispatch::new("work", part)))
    /// }
    /// async fn work(Input(part): Input<u32>) -> ReportUpdate {
    ///     Report::update().parts([format!("part {part}")])
    /// }
    /// async fn reduce(report: Snapshot<Report>) -> ReportUpdate {
    ///     Report::update().parts([format!("all {}", report.parts.len())])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("plan", plan.targets(["work"]))
    ///     .node("work", work)
    ///     .node("reduce", reduce)
    ///     .edge(START, "plan")
    ///     .edge(["plan", "work"], "reduce")
    ///     .compile()?;
    /// let report = graph.invoke(Report::update()).await?.into_finished()?;
    /// assert_eq!(report.parts, ["part 1", "part 2", "part 3", "all 3"]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn edge(mut self, from: impl IntoSources, to: impl Into<Name>) -> Self {
        let place = Location::caller();
        self.edges.push(DeclaredEdge { from: from.into_sources(), target: to.into(), place });
        self
    }

    /// Lets a pure function of the state choose among typed targets. It sees the state with its own node's
    /// update applied, and not those of parallel nodes. `from` may be [`START`](crate::START).
    #[track_caller]
    pub fn route<R: IntoPicks>(
        mut self,
        from: impl Into<Name>,
        route: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Self {
        let place = Location::caller();
        let targets = R::Route::TARGETS.iter().map(|target| DeclaredTarget {
            name: Cow::Borrowed(target.name()),
            dispatches: matches!(target, RouteTarget::Dispatch(_)),
        });
        let decide = RouterFn::Typed(Box::new(move |state: &S, take: &mut dyn FnMut(Pick)| {
            route(state).into_picks(take);
        }));
        let targets = targets.collect();
        let picks_several = R::MAY_PICK_SEVERAL;
        let from = from.into();
        self.routers.push(DeclaredRouter { from, decide, targets, word: "route", picks_several, place });
        self
    }

    /// Lets a pure function of the state choose among named targets; prefer [`route`](StateGraph::route),
    /// which cannot name a wrong one. A name that is not among `targets` is an error of the run.
    #[track_caller]
    pub fn branch<B: IntoGotos, T: Into<Name>>(
        mut self,
        from: impl Into<Name>,
        branch: impl Fn(&S) -> B + Send + Sync + 'static,
        targets: impl IntoIterator<Item = T>,
    ) -> Self {
        let place = Location::caller();
        let decide = RouterFn::Named(Box::new(move |state: &S, gotos: &mut Vec<Goto>| {
            branch(state).into_gotos(gotos);
        }));
        let targets = targets.into_iter().map(|name| DeclaredTarget { name: name.into(), dispatches: false });
        let targets = targets.collect();
        let picks_several = B::MAY_BE_SEVERAL;
        let from = from.into();
        self.routers.push(DeclaredRouter { from, decide, targets, word: "branch", picks_several, place });
        self
    }

    /// Stops every run just before these nodes; `proceed()` goes on.
    #[track_caller]
    pub fn interrupt_before<T: Into<Name>>(self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.add_breaks(nodes, Break::Before, Location::caller())
    }

    /// Stops every run after a superstep in which one of these nodes ran; `proceed()` goes on.
    #[track_caller]
    pub fn interrupt_after<T: Into<Name>>(self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.add_breaks(nodes, Break::After, Location::caller())
    }

    fn add_breaks<T: Into<Name>>(
        mut self,
        nodes: impl IntoIterator<Item = T>,
        when: Break,
        place: Place,
    ) -> Self {
        self.breaks.extend(nodes.into_iter().map(|node| DeclaredBreak { node: node.into(), when, place }));
        self
    }

    /// Gives the graph a dependency that nodes take with [`Dep<T>`](crate::Dep). One per type; the last one
    /// counts.
    pub fn dep<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.deps.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Gives every run a cell of its own that nodes take with [`Session<T>`](crate::Session). The name is
    /// what checkpoints call it; one per type, the last one counts.
    pub fn session<T>(mut self, name: impl Into<String>) -> Self
    where
        T: Default + Serialize + DeserializeOwned + Send + 'static,
    {
        self.sessions.retain(|kind| kind.id != TypeId::of::<T>());
        self.sessions.push(SessionKind::of::<T>(name.into()));
        self
    }

    /// The retry policy of nodes that have none of their own; see
    /// [`IntoNode::retry`](crate::IntoNode::retry). `RetryPolicy::attempts(1)` on a node excepts it.
    pub fn default_retry(mut self, policy: RetryPolicy) -> Self {
        self.policies.retry.push(policy);
        self
    }

    /// The timeout of nodes that have none of their own. Zero is none.
    pub fn default_timeout(mut self, limit: Duration) -> Self {
        self.policies.timeouts.run = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// The idle timeout of nodes that have none of their own. Zero is none.
    pub fn default_idle_timeout(mut self, limit: Duration) -> Self {
        self.policies.timeouts.idle = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// The node that handles the failures of nodes that have no handler of their own; see
    /// [`IntoNode::on_error`](crate::IntoNode::on_error).
    #[track_caller]
    pub fn default_on_error(mut self, handler: impl Into<Name>) -> Self {
        self.on_error = Some((handler.into(), Location::caller()));
        self
    }

    /// What becomes of the other tasks of a superstep when one fails; they are drained by default.
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.siblings = policy;
        self
    }

    /// Runs this node on the last state when a call reaches its limit of supersteps, so that it does not end
    /// with nothing to show. It is one superstep beyond the limit; its update counts, and where it would go
    /// does not. The outcome is [`Outcome::Stopped`](crate::Outcome::Stopped) all the same, and `proceed()`
    /// goes on where the limit was met.
    #[track_caller]
    pub fn on_limit(mut self, node: impl Into<Name>) -> Self {
        self.on_limit = Some((node.into(), Location::caller()));
        self
    }

    /// Runs the graph without supersteps: as soon as a task is done its update is merged and what it leads to
    /// starts, however long others take. The state that a task reads is that of the moment at which it was
    /// reached.
    ///
    /// - A node that is reached twice runs twice; only joins, also of one source as in
    ///   `.edge(["work"], "report")`, wait. A join with dispatched sources counts them when all dispatches of
    ///   that command are done.
    /// - Updates merge in the order in which tasks finish, which checkpoints record. To write a channel
    ///   without a reducer that another task has written meanwhile is
    ///   [`Code::ConcurrentUpdate`](crate::Code::ConcurrentUpdate).
    /// - [`max_supersteps`](crate::RunBuilder::max_supersteps) counts the tasks that are started, and an
    ///   interrupt holds only what comes after it: the call returns when nothing else can run.
    /// - `proceed()` [from](crate::RunBuilder::from) an older checkpoint merges in the order that was
    ///   recorded.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Shop { #[reduce(append)] said: Vec<String> }
    /// # use std::time::Duration;
    /// async fn look_up() -> ShopUpdate {
    ///     tokio::time::sleep(Duration::from_millis(20)).await;
    ///     Shop::update().said(["here they are"])
    /// }
    /// async fn soothe() -> ShopUpdate {
    ///     Shop::update().said(["one moment"])
    /// }
    /// async fn smile() -> ShopUpdate {
    ///     Shop::update().said([":-)"])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .eager()
    ///     .node("look_up", look_up)
    ///     .node("soothe", soothe)
    ///     .node("smile", smile)
    ///     .edge(START, "look_up")
    ///     .edge(START, "soothe")
    ///     .edge("soothe", "smile")
    ///     .compile()?;
    /// let shop = graph.invoke(Shop::update()).await?.into_finished()?;
    /// assert_eq!(shop.said, ["one moment", ":-)", "here they are"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn eager(mut self) -> Self {
        self.eager = true;
        self
    }

    /// Makes it a failure, [`Code::StuckJoin`](crate::Code::StuckJoin), that a run ends while a join still
    /// waits for some of its sources. By default the run is finished, and
    /// [`Outcome::Finished`](crate::Outcome::Finished) lists such joins.
    pub fn fail_on_stuck_joins(mut self) -> Self {
        self.stuck_fails = true;
        self
    }

    /// Which version of the state this is; 0 if it is never said. Raise it when what is stored changes its
    /// meaning or its type, and say with [`migration`](StateGraph::migration) how to come here from each
    /// earlier version. A new field, a field that is gone ([`drops`](StateGraph::drops)) and
    /// `#[channel(alias = "old")]` need no version.
    pub fn schema_version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// How stored fields of version `from` become those of the version after it. It sees states, and updates
    /// of tasks that had finished while their superstep was not committed ([`StoredFields::is_update`]);
    /// inputs of dispatches, answers and sessions are not migrated. It may be called any number of times for
    /// one checkpoint, so it must be pure.
    ///
    /// A thread of a version without a way to this one is refused with
    /// [`Code::SchemaVersion`](crate::Code::SchemaVersion), and left as it is.
    #[track_caller]
    pub fn migration(
        mut self,
        from: u32,
        migrate: impl Fn(&mut StoredFields) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.migrations.push((from, Arc::new(migrate), Location::caller()));
        self
    }

    /// Lets a stored field go that the state does not have any more. A thread with a field that is neither a
    /// channel nor dropped is refused with [`Code::GraphChanged`](crate::Code::GraphChanged) by whatever
    /// would store it without the field: `invoke`, `resume`, `proceed` and edits. After migrations, only the
    /// fields that they leave count.
    ///
    /// The field stays in the checkpoints that were stored before. It is a problem at compile if the state
    /// has a channel of that name, today or as an alias.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let saver = std::sync::Arc::new(MemorySaver::new());
    /// # mod before {
    /// #     use super::*;
    /// #     #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// #     pub struct Note { pub title: String, pub text: String }
    /// # }
    /// # let first = StateGraph::<before::Note>::new().node("read", || async {}).edge(START, "read").compile()?;
    /// # let first = first.checkpointer(saver.clone());
    /// # first.invoke(before::Note::update().title("tea").text("hot")).thread("t-1").await?;
    /// // The thread was stored when the state had a field `text`, too.
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// struct Note {
    ///     title: String,
    /// }
    ///
    /// let graph = || StateGraph::<Note>::new().node("read", || async {}).edge(START, "read");
    /// let careful = graph().compile()?.checkpointer(saver.clone());
    /// let refused = careful.invoke(Note::update()).thread("t-1").await.unwrap_err();
    /// assert_eq!(refused.code().as_str(), "E_GRAPH_CHANGED");
    ///
    /// let dropping = graph().drops("text").compile()?.checkpointer(saver.clone());
    /// let note = dropping.invoke(Note::update()).thread("t-1").await?.into_finished()?;
    /// assert_eq!(note.title, "tea");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn drops(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.drops.push((field.into(), Location::caller()));
        self
    }

    /// Carries stored fields that the state does not have on as they are, instead of refusing their threads:
    /// for a program that runs beside a newer one while that is rolled out. The bytes are in every full and
    /// every fork, and the newer program finds them as it left them; whatever lifetime it gave the field, a
    /// program that does not know it never sets it back.
    ///
    /// The results of finished tasks that wrote such a field are refused all the same: without its reducer
    /// they cannot be merged.
    pub fn keeps_unknown_fields(mut self) -> Self {
        self.keeps_unknown_fields = true;
        self
    }

    /// Gives the graph a template: a factory of temporary nodes, which
    /// [`Edits::add_node`](crate::edit::Edits::add_node) asks for by this name. It is given the arguments that the
    /// edit was given, which are stored with it, so that another process makes the same node of them: what it
    /// returns must depend on nothing else.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn plan(ctx: Ctx) -> Result<()> {
    ///     for (number, word) in ["tea", "milk"].into_iter().enumerate() {
    ///         let name = format!("say#{number}");
    ///         ctx.edits().add_node(&name, "say", word)?;
    ///         ctx.edits().add_edge("plan", &name)?;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("plan", plan)
    ///     .edge(START, "plan")
    ///     .template("say", |word: String| {
    ///         move || {
    ///             let word = word.clone();
    ///             async move { Words::update().seen([word]) }
    ///         }
    ///     })
    ///     .compile()?
    ///     .checkpointer(MemorySaver::new());
    /// let words = graph.invoke(Words::update()).thread("t-1").await?.into_finished()?;
    /// assert_eq!(words.seen, ["tea", "milk"]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn template<A, N, M>(
        mut self,
        name: impl Into<Name>,
        factory: impl Fn(A) -> N + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned,
        N: IntoNode<S, M>,
    {
        self.templates.push((name.into(), template::template(factory), Location::caller()));
        self
    }
}
