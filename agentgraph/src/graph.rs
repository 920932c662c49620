//! Building graphs: [`StateGraph`], the problems that [`compile`](StateGraph::compile) finds, and the shape
//! of a graph as data.
//!
//! The builder only records its calls, each with its place in the code. `compile()` checks all of them at
//! once, so that no mistake hides behind another.

pub(crate) mod compile;
pub(crate) mod core;
mod draw;
#[cfg(feature = "draw")]
mod drawing;
pub(crate) mod joins;
pub(crate) mod node_names;
#[cfg(feature = "testing")]
mod observed;
pub(crate) mod overlay;
mod problem;
pub(crate) mod run_graph;
pub(crate) mod shown;
mod sources;
pub(crate) mod template;
pub(crate) mod topology;

pub use crate::record::migrate::StoredFields;
pub(crate) use core::{Discipline, GraphCore, RouterFn};
pub(crate) use draw::escape;
#[cfg(feature = "draw")]
pub use drawing::Drawing;
pub use problem::{CompileError, Problem, ProblemKind, Warning, WarningKind};
pub use shown::{EdgeKind, GraphTopology, TopologyEdge, TopologyNode};
pub use sources::{IntoSources, Sources, all, any, n_of};

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::ValuesByType;
use crate::error::BoxError;
use crate::node::{IntoNode, UntypedNode};
use crate::policy::{Policies, RetryPolicy, Siblings};
use crate::record::migrate::Migrate;
use crate::route::{IntoPicks, Pick, Route, RouteTarget};
use crate::session::SessionKind;
use crate::state::State;
use crate::step::{Goto, IntoGotos};
use crate::typed::{AnySchema, Seen};
use crate::words::owned_names;

/// A builder of a graph.
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
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
    declared: Declared,
    state: PhantomData<fn() -> S>,
}

/// The calls on the builder, without its state type.
struct Declared {
    schema: AnySchema,
    schema_place: CodePlace,
    nodes: Vec<DeclaredNode>,
    edges: Vec<DeclaredEdge>,
    routers: Vec<DeclaredRouter>,
    breaks: Vec<DeclaredBreak>,
    deps: ValuesByType,
    sessions: Vec<SessionKind>,
    templates: Vec<(Name, template::Template, CodePlace)>,
    rules: DeclaredRules,
    stored: DeclaredStored,
}

/// How runs go on, stop and end, as declared.
#[derive(Default)]
struct DeclaredRules {
    siblings: Siblings,
    on_limit: Option<(Name, CodePlace)>,
    stuck_fails: bool,
    eager: bool,
    /// The policies of nodes without their own.
    policies: Policies,
    on_error: Option<(Name, CodePlace)>,
}

/// How states of other versions are read, as declared.
#[derive(Default)]
struct DeclaredStored {
    version: u32,
    migrations: Vec<(u32, Migrate, CodePlace)>,
    drops: Vec<(Name, CodePlace)>,
    keeps_unknown_fields: bool,
}

type Name = Cow<'static, str>;
type CodePlace = &'static Location<'static>;

struct DeclaredNode {
    name: Name,
    node: UntypedNode,
    place: CodePlace,
}

/// One source makes an edge, several a join.
struct DeclaredEdge {
    from: Sources,
    target: Name,
    place: CodePlace,
}

struct DeclaredRouter {
    from: Name,
    decide: RouterFn,
    /// The type of the function; `None` if it captures values, so that its type does not tell what it does.
    function: Option<TypeId>,
    targets: Vec<DeclaredTarget>,
    word: &'static str,
    /// Whether one call may pick several targets.
    picks_several: bool,
    place: CodePlace,
}

struct DeclaredTarget {
    name: Name,
    dispatches: bool,
}

struct DeclaredBreak {
    node: Name,
    when: Break,
    place: CodePlace,
}

/// The position of a static interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Before,
    After,
}

fn owned(name: impl AsRef<str>) -> Name {
    Name::Owned(name.as_ref().to_owned())
}

impl DeclaredTarget {
    fn of_route(targets: &[RouteTarget]) -> Vec<Self> {
        let target = |target: &RouteTarget| DeclaredTarget {
            name: Cow::Borrowed(target.name()),
            dispatches: matches!(target, RouteTarget::Dispatch(_)),
        };
        targets.iter().map(target).collect()
    }

    fn named(names: Vec<String>) -> Vec<Self> {
        let target = |name| DeclaredTarget { name: Name::Owned(name), dispatches: false };
        names.into_iter().map(target).collect()
    }
}

/// The type of a function that captures nothing: two of one type do the same.
fn function_of<F: 'static>(_: &F) -> Option<TypeId> {
    (size_of::<F>() == 0).then(TypeId::of::<F>)
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
    /// Checks the graph. What is returned no longer knows the type of the state.
    pub(crate) fn check(self) -> Result<compile::Compiled, CompileError> {
        compile::compile(self.declared)
    }
}

impl<S: State> StateGraph<S> {
    /// An empty graph over a state whose channels are known only at run time, such as
    /// [`JsonState`](crate::JsonState).
    #[track_caller]
    pub fn with_schema(schema: S::Schema) -> Self {
        let declared = Declared {
            schema: AnySchema::new::<S>(schema),
            schema_place: Location::caller(),
            nodes: Vec::new(),
            edges: Vec::new(),
            routers: Vec::new(),
            breaks: Vec::new(),
            deps: ValuesByType::default(),
            sessions: Vec::new(),
            templates: Vec::new(),
            rules: DeclaredRules::default(),
            stored: DeclaredStored::default(),
        };
        StateGraph { declared, state: PhantomData }
    }

    /// Adds a node. Checkpoints, events and errors use the name.
    #[track_caller]
    pub fn node<M>(mut self, name: impl AsRef<str>, node: impl IntoNode<S, M>) -> Self {
        let place = Location::caller();
        self.declared.nodes.push(DeclaredNode {
            name: owned(name),
            node: node.into_node().into_any(),
            place,
        });
        self
    }

    /// Adds an edge from one node to another: the target runs in the superstep after the source.
    ///
    /// A list of sources makes a *join*: the target runs once all of them have run, even in different
    /// supersteps. [`any`] and [`n_of`] wait for fewer sources, and [`Sources::timeout`] limits the wait.
    /// Sources that end in one superstep arrive together, each once, however many dispatches of it ran; the
    /// order of declaration does not matter. A node without edges or routes ends its branch, like an edge to
    /// [`END`](crate::END).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
    /// let report = graph.invoke(Report::update()).finish().await?;
    /// assert_eq!(report.parts, ["part 1", "part 2", "part 3", "all 3"]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn edge(mut self, from: impl IntoSources, to: impl AsRef<str>) -> Self {
        let place = Location::caller();
        self.declared.edges.push(DeclaredEdge { from: from.into_sources(), target: owned(to), place });
        self
    }

    /// Adds a route: a pure function of the state that chooses among typed targets. It sees the state with
    /// the update of its own node applied, without those of parallel nodes. `from` may be
    /// [`START`](crate::START).
    #[track_caller]
    pub fn route<R: IntoPicks>(
        mut self,
        from: impl AsRef<str>,
        route: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Self {
        let place = Location::caller();
        let function = function_of(&route);
        let decide = RouterFn::Typed(Box::new(move |state: Seen<'_>, take: &mut dyn FnMut(Pick)| {
            route(state.state::<S>()).into_picks(take);
        }));
        self.declared.routers.push(DeclaredRouter {
            from: owned(from),
            decide,
            function,
            targets: DeclaredTarget::of_route(R::Route::TARGETS),
            word: "route",
            picks_several: R::MAY_PICK_SEVERAL,
            place,
        });
        self
    }

    /// Adds a branch: a pure function of the state that chooses among named targets. Prefer
    /// [`route`](StateGraph::route), which cannot name a wrong target. A name that is not in `targets` is an
    /// error of the run.
    #[track_caller]
    pub fn branch<B: IntoGotos, T: AsRef<str>>(
        mut self,
        from: impl AsRef<str>,
        branch: impl Fn(&S) -> B + Send + Sync + 'static,
        targets: impl IntoIterator<Item = T>,
    ) -> Self {
        let place = Location::caller();
        let function = function_of(&branch);
        let decide = RouterFn::Named(Box::new(move |state: Seen<'_>, gotos: &mut Vec<Goto>| {
            branch(state.state::<S>()).into_gotos(gotos);
        }));
        self.declared.routers.push(DeclaredRouter {
            from: owned(from),
            decide,
            function,
            targets: DeclaredTarget::named(owned_names(targets)),
            word: "branch",
            picks_several: B::MAY_BE_SEVERAL,
            place,
        });
        self
    }

    /// Stops every run just before these nodes; `proceed()` continues it.
    #[track_caller]
    pub fn interrupt_before<T: AsRef<str>>(self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.add_breaks(owned_names(nodes), Break::Before, Location::caller())
    }

    /// Stops every run after a superstep in which one of these nodes ran; `proceed()` continues it.
    #[track_caller]
    pub fn interrupt_after<T: AsRef<str>>(self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.add_breaks(owned_names(nodes), Break::After, Location::caller())
    }

    fn add_breaks(mut self, nodes: Vec<String>, when: Break, place: CodePlace) -> Self {
        for node in nodes {
            self.declared.breaks.push(DeclaredBreak { node: Name::Owned(node), when, place });
        }
        self
    }

    /// Adds a dependency that nodes take with [`Dep<T>`](crate::Dep). One per type; the last one counts.
    pub fn dep<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.declared.deps.insert(value);
        self
    }

    /// Adds a session: a cell of every run that nodes take with [`Session<T>`](crate::Session). Checkpoints
    /// use the name. One per type; the last one counts.
    pub fn session<T>(mut self, name: impl AsRef<str>) -> Self
    where
        T: Default + Serialize + DeserializeOwned + Send + 'static,
    {
        self.declared.sessions.retain(|kind| kind.id != TypeId::of::<T>());
        self.declared.sessions.push(SessionKind::of::<T>(name.as_ref().to_owned()));
        self
    }

    /// Sets the retry policy of nodes that have none of their own; see
    /// [`IntoNode::retry`]. `RetryPolicy::attempts(1)` on a node excludes it.
    pub fn default_retry(mut self, policy: RetryPolicy) -> Self {
        self.declared.rules.policies.retry.push(policy);
        self
    }

    /// Sets the timeout of nodes that have none of their own. Zero means none.
    pub fn default_timeout(mut self, limit: Duration) -> Self {
        self.declared.rules.policies.timeouts.run = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// Sets the idle timeout of nodes that have none of their own. Zero means none.
    pub fn default_idle_timeout(mut self, limit: Duration) -> Self {
        self.declared.rules.policies.timeouts.idle = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// Sets the node that handles the failures of nodes that have no handler of their own; see
    /// [`IntoNode::on_error`].
    #[track_caller]
    pub fn default_on_error(mut self, handler: impl AsRef<str>) -> Self {
        self.declared.rules.on_error = Some((owned(handler), Location::caller()));
        self
    }

    /// Sets the treatment of the other tasks of a superstep when one fails; they are drained by default.
    pub fn siblings(mut self, policy: Siblings) -> Self {
        self.declared.rules.siblings = policy;
        self
    }

    /// Sets a node that runs on the last state when a call reaches its limit of supersteps, so that the call
    /// still has a result. It is one superstep beyond the limit. Its update is merged, but its edges are not
    /// followed. The outcome is still [`Outcome::Stopped`](crate::Outcome::Stopped), and `proceed()`
    /// continues where the limit was reached.
    #[track_caller]
    pub fn on_limit(mut self, node: impl AsRef<str>) -> Self {
        self.declared.rules.on_limit = Some((owned(node), Location::caller()));
        self
    }

    /// Runs the graph without supersteps: when a task is done, its update is merged and its successors start,
    /// however long others take. A task reads the state of the moment at which it was reached.
    ///
    /// - A node that is reached twice runs twice. Only joins wait, also a join of one source, as in
    ///   `.edge(["work"], "report")`. A join counts a dispatched source when all dispatches of its command
    ///   are done.
    /// - Updates merge in the order in which tasks finish, and checkpoints record this order. A task fails
    ///   with [`Code::ConcurrentUpdate`](crate::Code::ConcurrentUpdate) if it writes a channel without a
    ///   reducer that another task has written meanwhile.
    /// - [`max_supersteps`](crate::RunBuilder::max_supersteps) counts the started tasks. An interrupt blocks
    ///   only its own successors: the call returns when nothing else can run.
    /// - `proceed()` [from](crate::RunBuilder::from) an older checkpoint merges in the recorded order.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
    /// let shop = graph.invoke(Shop::update()).finish().await?;
    /// assert_eq!(shop.said, ["one moment", ":-)", "here they are"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn eager(mut self) -> Self {
        self.declared.rules.eager = true;
        self
    }

    /// Makes a run fail with [`Code::StuckJoin`](crate::Code::StuckJoin) if it ends while a join still waits
    /// for some of its sources. By default such a run is finished, and
    /// [`Outcome::Finished`](crate::Outcome::Finished) lists these joins.
    pub fn fail_on_stuck_joins(mut self) -> Self {
        self.declared.rules.stuck_fails = true;
        self
    }

    /// Sets the version of the state; 0 by default. Raise it when the meaning or the type of stored values
    /// changes, and add a [`migration`](StateGraph::migration) from each earlier version. A new field, a
    /// removed field ([`drops`](StateGraph::drops)) and `#[channel(alias = "old")]` need no new version.
    pub fn schema_version(mut self, version: u32) -> Self {
        self.declared.stored.version = version;
        self
    }

    /// Adds a migration: a function that converts stored fields of version `from` to the next version. It
    /// receives states, and updates of finished tasks whose superstep was not committed
    /// ([`StoredFields::is_update`]); inputs of dispatches, answers and sessions are not migrated. It may be
    /// called several times for one checkpoint, so it must be pure.
    ///
    /// A thread of a version without a migration path is refused with
    /// [`Code::SchemaVersion`](crate::Code::SchemaVersion), and stays as it is.
    #[track_caller]
    pub fn migration(
        mut self,
        from: u32,
        migrate: impl Fn(&mut StoredFields) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.declared.stored.migrations.push((from, Arc::new(migrate), Location::caller()));
        self
    }

    /// Drops a stored field that the state no longer has. A thread with a field that is neither a channel nor
    /// dropped is refused with [`Code::GraphChanged`](crate::Code::GraphChanged) by every call that would
    /// store it without the field: `invoke`, `resume`, `proceed` and edits. After migrations, only the fields
    /// that they leave count.
    ///
    /// The field stays in the checkpoints that were stored before. `compile()` reports a problem if the state
    /// has a channel of that name, at present or as an alias.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let saver = MemorySaver::new();
    /// # mod before {
    /// #     use super::*;
    /// #     #[derive(State, Clone, Debug, Default)]
    /// #     pub struct Note { pub title: String, pub text: String }
    /// # }
    /// # let first = StateGraph::<before::Note>::new().node("read", || async {}).edge(START, "read").compile()?;
    /// # let first = first.checkpointer(saver.clone());
    /// # first.invoke(before::Note::update().title("tea").text("hot")).thread("t-1").await?;
    /// // The thread was stored when the state had a field `text`, too.
    /// #[derive(State, Clone, Debug, Default)]
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
    /// let note = dropping.invoke(Note::update()).thread("t-1").finish().await?;
    /// assert_eq!(note.title, "tea");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn drops(mut self, field: impl AsRef<str>) -> Self {
        self.declared.stored.drops.push((owned(field), Location::caller()));
        self
    }

    /// Keeps stored fields that the state does not have, instead of refusing their threads. It is meant for a
    /// program that runs beside a newer one during a rollout. Every full and every fork contains the bytes,
    /// and the newer program finds them unchanged. A program that does not know a field never resets it,
    /// whatever its lifetime.
    ///
    /// Results of finished tasks that wrote such a field are still refused: without its reducer they cannot
    /// be merged.
    pub fn keeps_unknown_fields(mut self) -> Self {
        self.declared.stored.keeps_unknown_fields = true;
        self
    }

    /// Adds a template: a factory of temporary nodes, which [`Edits::add_node`](crate::edit::Edits::add_node)
    /// refers to by this name. The factory receives the arguments of the edit. They are stored with the edit,
    /// so that another process makes the same node: its result must depend on nothing else.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
    /// let words = graph.invoke(Words::update()).thread("t-1").finish().await?;
    /// assert_eq!(words.seen, ["tea", "milk"]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn template<A, N, M>(
        mut self,
        name: impl AsRef<str>,
        factory: impl Fn(A) -> N + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned,
        N: IntoNode<S, M>,
    {
        self.declared.templates.push((
            owned(name),
            template::template::<S, _, _, _>(factory),
            Location::caller(),
        ));
        self
    }
}
