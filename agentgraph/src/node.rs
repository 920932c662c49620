//! Nodes: a plain `async fn` whose arguments are extractors, and whose result is a [`Step`].
//!
//! [`IntoNode`] turns a function into a [`Node`] and adds its settings. [`FromTask`] is the trait of
//! arguments, [`IntoStep`] the trait of results. A node does not know its graph.

mod add_fn;
pub(crate) mod error_code;
pub(crate) mod inner;

pub use crate::context::{
    CallContext, Ctx, DurableStep, Interrupted, MissingContext, MissingStore, OnceError, StepResult,
    StepSettings,
};
pub use crate::erased::layer::{NodeCall, NodeService};
pub use crate::extract::{Dep, FromTask, Input, InputError, MissingDep, Requirement, Snapshot, Task};
pub use crate::failure::NoFailure;
pub use crate::panic::NodePanic;
pub use crate::route::{IntoPicks, Pick, Route, RouteTarget};
pub use crate::session::{MissingSession, Session};
pub use crate::step::{Command, Dispatch, Goto, IntoGoto, IntoGotos, IntoStep, Step, TargetName};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tower_layer::Layer;
use tower_service::Service;

use crate::erased::layer::LayeredNode;
use crate::erased::{AnyNode, Call, ErasedNode, FnCall};
use crate::error::BoxError;
use crate::failure::KeptError;
use crate::node::inner::AnyGraph;
use crate::policy::{Breaker, Cache, Elsewhere, Limit, OnEnd, Policies, RetryPolicy};
use crate::state::{Channel, State, StoredState};
use crate::typed::node::TypedNode;
use crate::words::owned_names;

/// A node and its settings, without the type of its state.
pub(crate) struct UntypedNode {
    pub(crate) call: Arc<dyn AnyNode>,
    pub(crate) settings: NodeSettings,
}

/// Everything that can be a node: an `async fn` or closure of up to eight extractors that returns an
/// [`IntoStep`], or a [`Node`].
///
/// A closure with captures is written `move || { let url = url.clone(); async move { .. } }`: the future of
/// an `async move || { .. }` borrows its captures, so such a closure is a node only without captures.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Triage { risk: u8 }
/// use std::time::Duration;
///
/// async fn plan(state: Snapshot<Triage>) -> Result<TriageUpdate> {
///     Ok(Triage::update().risk(state.risk + 1))
/// }
///
/// let graph = StateGraph::<Triage>::new()
///     .node("plan", plan.timeout(Duration::from_secs(2)).retry(RetryPolicy::attempts(3)))
///     .edge(START, "plan")
///     .compile();
/// assert!(graph.is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node",
    label = "not a node of this graph",
    note = "a node is an `async fn` whose arguments are extractors (`Snapshot<S>`, `S`, `Ctx`, `Input<I>`, `Dep<T>`) and that returns `()`, an update, a `Command` or a `Result` of these",
    note = "its future must be `Send`: no `Rc`, no guard of a `std::sync::Mutex` and nothing else that is not `Send` may be held over an `.await`",
    note = "put `#[agentgraph::node(YourState)]` on the function to see which argument, output or value is wrong"
)]
pub trait IntoNode<S: State, M>: Sized {
    /// Makes the node.
    fn into_node(self) -> Node<S>;

    /// Wraps the node in a tower layer. The layer's service must be `Clone`; each call gets its own clone.
    fn layer<L>(self, layer: L) -> Node<S>
    where
        L: Layer<NodeService<S>>,
        L::Service: Service<NodeCall<S>, Response = Step<S>> + Clone + Send + Sync + 'static,
        <L::Service as Service<NodeCall<S>>>::Error: Into<BoxError>,
        <L::Service as Service<NodeCall<S>>>::Future: Send + 'static,
    {
        self.into_node().layered(layer)
    }

    /// Retries the node when it fails. Of several policies, the first one that retries the error decides, so
    /// that each kind of error can have its own policy; attempts are counted over all of them.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Default)]
    /// # struct Triage { risk: u8 }
    /// # async fn search() -> Result<()> { Ok(()) }
    /// use std::time::Duration;
    ///
    /// let busy = RetryPolicy::attempts(6).initial(Duration::from_secs(5)).retry_on(|e| e.to_string().contains("429"));
    /// let graph = StateGraph::<Triage>::new()
    ///     .node("search", search.retry(busy).retry(RetryPolicy::attempts(2)))
    ///     .edge(START, "search")
    ///     .compile();
    /// assert!(graph.is_ok());
    /// ```
    fn retry(self, policy: RetryPolicy) -> Node<S> {
        self.into_node().with(|settings| settings.policies.retry.push(policy))
    }

    /// Fails an attempt that takes longer than `limit`. A zero timeout is a problem at `compile()`.
    fn timeout(self, limit: Duration) -> Node<S> {
        self.into_node().with(|settings| settings.policies.timeouts.run = Some(limit))
    }

    /// Fails an attempt without a sign of life for `limit`: [`Ctx::heartbeat`](crate::Ctx::heartbeat) and
    /// [`Ctx::emit`](crate::Ctx::emit) are signs. For work that may take long and must not hang.
    fn idle_timeout(self, limit: Duration) -> Node<S> {
        self.into_node().with(|settings| settings.policies.timeouts.idle = Some(limit))
    }

    /// Runs the node on a thread that may be blocked: for file access, blocking libraries and long
    /// computations, which would otherwise stall everything else polled by the same thread. By default a
    /// thread of tokio's blocking pool; see
    /// [`Services::spawn_blocking`](crate::checkpoint::Services::spawn_blocking).
    ///
    /// A timeout ends the attempt for the run, but the code continues up to its next `.await`, and its result
    /// is discarded. See [`Timeout::unstopped`](crate::Timeout::unstopped).
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Met { #[reduce(append)] names: Vec<String> }
    /// use std::sync::{Arc, Barrier};
    ///
    /// /// Blocks its thread until the other one is here, too.
    /// async fn meet(ctx: Ctx, barrier: Dep<Arc<Barrier>>) -> MetUpdate {
    ///     barrier.wait();
    ///     Met::update().names([ctx.node()])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("one", meet.blocking())
    ///     .node("other", meet.blocking())
    ///     .edge(START, "one")
    ///     .edge(START, "other")
    ///     .dep(Arc::new(Barrier::new(2)))
    ///     .compile()?;
    /// assert_eq!(graph.invoke(Met::update()).finish().await?.names, ["one", "other"]);
    /// # Ok(())
    /// # }
    /// ```
    fn blocking(self) -> Node<S> {
        self.into_node().with(|settings| settings.policies.elsewhere = Some(Elsewhere::Blocking))
    }

    /// Runs the node as a task of the runtime, on any of its workers, so that several nodes can compute in
    /// parallel, for milliseconds between two `.await`s. Timeouts work as with
    /// [`blocking`](IntoNode::blocking).
    fn spawned(self) -> Node<S> {
        self.into_node().with(|settings| settings.policies.elsewhere = Some(Elsewhere::Spawned))
    }

    /// Caches updates of the node. An update is reused for the same key, and for dispatches also the same
    /// input, until its `lifetime` has passed. The key must cover every part of the state, and of the outside
    /// world, that the update depends on.
    ///
    /// Updates are stored in the graph's [store](crate::CompiledGraph::store), in the namespace
    /// `["node-cache", node]`: graphs that share a store share the entries of nodes with the same name.
    /// Errors are never cached, nor updates of a task that asked a question or edited the graph. If the store
    /// fails, the node runs. Events report a hit as [`TaskEnd::Cached`](crate::run::TaskEnd::Cached). Hits
    /// bypass the node's
    /// [`limit`](IntoNode::limit) and [`breaker`](IntoNode::breaker). `compile()` refuses a cache
    /// if the node returns commands, or if the state has secret channels.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// use std::time::Duration;
    ///
    /// use agentgraph::store::MemoryStore;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// struct Talk { question: String, answer: String, #[reduce(sum)] asked: u32 }
    ///
    /// async fn ask(talk: Snapshot<Talk>) -> TalkUpdate {
    ///     Talk::update().answer(format!("{}: yes", talk.question))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let day = Duration::from_secs(86_400);
    /// let graph = StateGraph::new()
    ///     .node("ask", ask.cache(|talk: &Talk| talk.question.clone(), day))
    ///     .edge(START, "ask")
    ///     .compile()?
    ///     .store(MemoryStore::new());
    /// for _ in 0..2 {
    ///     let talk = graph.invoke(Talk::update().question("tea?")).finish().await?;
    ///     assert_eq!(talk.answer, "tea?: yes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The node fails with [`Code::NoStore`](crate::Code::NoStore) if the graph has no store.
    fn cache(self, key: impl Fn(&S) -> String + Send + Sync + 'static, lifetime: Duration) -> Node<S>
    where
        S: StoredState,
    {
        self.into_node().with(|settings| settings.policies.cache = Some(Cache::new(key, lifetime)))
    }

    /// Rejects attempts of the node while the [`Breaker`] is open. A node has one breaker; setting another
    /// replaces it.
    fn breaker(self, breaker: &Breaker) -> Node<S> {
        self.into_node().with(|settings| settings.policies.breaker = Some(breaker.clone()))
    }

    /// Makes attempts of the node wait for the [`Limit`], which other nodes may share. A node has one limit;
    /// setting another replaces it.
    fn limit(self, limit: &Limit) -> Node<S> {
        self.into_node().with(|settings| settings.policies.limit = Some(limit.clone()))
    }

    /// Lets another node of the graph handle this node's failure after its retries. The handler replaces
    /// the node in the superstep: it reads the same snapshot, the same [`Input`] and the
    /// [`Failure`](crate::Failure), and its update and its targets are used instead of the failed node's.
    /// If the handler fails too, the run fails; when the run continues, only the handler runs again.
    fn on_error(self, handler: impl AsRef<str>) -> Node<S> {
        self.into_node().with(|settings| settings.on_error = Some(handler.as_ref().to_owned()))
    }

    /// Stores errors of this type whole, for [`Failure::get`](crate::Failure::get).
    fn keeps_error<E: std::error::Error + Serialize + 'static>(self) -> Node<S> {
        self.into_node().with(|settings| settings.keeps.push(KeptError::of::<E>()))
    }

    /// Makes the node wait until no other node can run, then runs it once, however often it was reached.
    /// Several deferred nodes are released together, except those that another of them still leads to, by
    /// edges, routes or declared targets of commands; they wait on. Nodes that lead to each other do not wait
    /// for one another. A dispatch to the node does not wait.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn note(ctx: Ctx) -> WordsUpdate {
    ///     Words::update().seen([ctx.node()])
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("short", note)
    ///     .node("long", note)
    ///     .node("longer", note)
    ///     .node("report", note.defer())
    ///     .edge(START, "short")
    ///     .edge(START, "long")
    ///     .edge("long", "longer")
    ///     .edge("short", "report")
    ///     .edge("longer", "report")
    ///     .compile()?;
    /// let words = graph.invoke(Words::update()).finish().await?;
    /// assert_eq!(words.seen, ["short", "long", "longer", "report"]);
    /// # Ok(())
    /// # }
    /// ```
    fn defer(self) -> Node<S> {
        self.into_node().with(|settings| settings.deferred = true)
    }

    /// Runs the node in the background of an [eager](crate::StateGraph::eager) graph: its failure is not a
    /// failure of the run, and neither deferred nodes nor the end wait for it. Nodes that are reached only
    /// through it are detached too. Their updates are merged if they are done before the end.
    /// [`on_end`](IntoNode::on_end) decides about the others, and
    /// [`Outcome::Finished`](crate::Outcome::Finished) lists those that were cut off. A suspended run runs
    /// them again when it continues.
    ///
    /// Detached nodes may not call [`Ctx::interrupt`](crate::Ctx::interrupt), and may not share a join with
    /// nodes that are not detached.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// # async fn answer() -> WordsUpdate { Words::update().seen(["answer"]) }
    /// use std::future::pending;
    ///
    /// async fn measure() {
    ///     pending().await // The server does not answer.
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .eager()
    ///     .node("answer", answer)
    ///     .node("measure", measure.detached())
    ///     .edge(START, "answer")
    ///     .edge(START, "measure")
    ///     .compile()?;
    /// let Outcome::Finished { output, cancelled, .. } = graph.invoke(Words::update()).await? else { panic!() };
    /// assert_eq!((output.seen, cancelled), (vec!["answer".to_owned()], vec!["measure".to_owned()]));
    /// # Ok(())
    /// # }
    /// ```
    fn detached(self) -> Node<S> {
        self.into_node().with(|settings| settings.detached = true)
    }

    /// How the node ends if it is [detached](IntoNode::detached) and still runs at the end of the run; it
    /// is cancelled if not set.
    fn on_end(self, what: OnEnd) -> Node<S> {
        self.into_node().with(|settings| settings.on_end = what)
    }

    /// Asks for another process where the graph's [`Host`](crate::host::Host) has some: for a node that
    /// needs much of a machine, or one that only some machines can run. The host sees it in
    /// [`TaskCall::remote`](crate::host::TaskCall::remote). Without a host it has no effect.
    fn remote(self) -> Node<S> {
        self.into_node().with(|settings| settings.remote = true)
    }

    /// Declares that the node makes durable steps ([`Ctx::once`](crate::Ctx::once),
    /// [`Ctx::durable`](crate::Ctx::durable)). A process that would run it without a store for their results
    /// is then refused before it runs anything; an undeclared step fails there with
    /// [`Code::Once`](crate::Code::Once). See
    /// [`HostedGraph::durable_nodes`](crate::host::HostedGraph::durable_nodes). Workflows are declared
    /// already.
    ///
    /// ```
    /// # use agentgraph::BoxError;
    /// # use agentgraph::host::HostedGraph;
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { receipt: String }
    /// async fn pay(ctx: Ctx) -> Result<OrderUpdate> {
    ///     let receipt = ctx.once("pay", async { Ok::<_, BoxError>("r-1".to_owned()) }).await?;
    ///     Ok(Order::update().receipt(receipt))
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("pay", pay.durable_steps()).edge(START, "pay").compile()?;
    /// assert_eq!(graph.durable_nodes(), ["pay"]);
    /// # Ok(())
    /// # }
    /// ```
    fn durable_steps(self) -> Node<S> {
        self.into_node().with(|settings| settings.durable_steps = true)
    }

    /// Keeps the last output of this node, so that a temporary edit can
    /// [`skip`](crate::edit::Edits::skip) it: its update, its gotos and its dispatches, but not its edits.
    /// With a checkpointer the thread stores it, so that a later run can use it; without one it lasts for
    /// the run. It costs a copy of every update of the node.
    fn keep_output(self) -> Node<S> {
        self.into_node().with(|settings| settings.keeps_output = true)
    }

    /// Declares the targets of this node's commands, for `compile()` and the drawing. A command to another
    /// target is then an error of the node.
    fn targets<T: AsRef<str>>(self, targets: impl IntoIterator<Item = T>) -> Node<S> {
        self.into_node().with(|settings| settings.commands.targets = Some(owned_names(targets)))
    }
}

/// A node and its settings.
pub struct Node<S: State> {
    pub(crate) call: Arc<dyn ErasedNode<S>>,
    pub(crate) settings: NodeSettings,
}

/// The settings of a node beside its code.
#[derive(Clone, Default)]
pub(crate) struct NodeSettings {
    pub(crate) policies: Policies,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) commands: Commands,
    pub(crate) deferred: bool,
    pub(crate) detached: bool,
    pub(crate) on_end: OnEnd,
    /// The node's last output is kept, to be used again.
    pub(crate) keeps_output: bool,
    /// The node asks for another process.
    pub(crate) remote: bool,
    /// The node makes durable steps.
    pub(crate) durable_steps: bool,
    /// The node that handles its failures.
    pub(crate) on_error: Option<String>,
    pub(crate) keeps: Vec<KeptError>,
    /// The graph, if the node is a subgraph.
    pub(crate) graph: Option<Arc<dyn AnyGraph>>,
}

/// The commands that a node returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    pub(crate) may_be_returned: bool,
    /// Their targets, if they are declared.
    pub(crate) targets: Option<Vec<String>>,
}

impl NodeSettings {
    /// A setting that the node cannot have, and the reason. `channels` are those of its graph.
    pub(crate) fn misfit(&self, channels: &[Channel]) -> Option<(&'static str, &'static str)> {
        let Policies { cache, limit, elsewhere, .. } = &self.policies;
        if cache.is_some() && self.commands.may_be_returned {
            return Some((
                "cache",
                "it returns commands, which are not kept: return an update, and route by edges",
            ));
        }
        if cache.is_some() && channels.iter().any(|channel| channel.secret) {
            return Some(("cache", "the state has secret channels, which a store may not see"));
        }
        // A graph would hold a place of a limit that its own nodes may wait for. On another thread, the
        // levels inside it would be polled on the stack.
        const GRAPH: &str = "it is a graph: give the setting to the nodes in it";
        match (&self.graph, elsewhere, limit) {
            (None, ..) | (Some(_), None, None) => None,
            (Some(_), Some(Elsewhere::Blocking), _) => Some(("blocking", GRAPH)),
            (Some(_), Some(Elsewhere::Spawned), _) => Some(("spawned", GRAPH)),
            (Some(_), None, Some(_)) => Some(("limit", GRAPH)),
        }
    }
}

impl<S: State> Node<S> {
    /// The same node without its state type.
    pub(crate) fn into_any(self) -> UntypedNode {
        UntypedNode { call: Arc::new(TypedNode::new(self.call)), settings: self.settings }
    }

    /// A function of extractors, which `call` calls.
    pub(crate) fn of_function(
        requirements: &[Option<Requirement>],
        call: impl Fn(&Task<'_, S>) -> Result<Call<S>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        let requirements = requirements.iter().copied().flatten().collect();
        let settings = NodeSettings { requirements, ..NodeSettings::default() };
        Node { call: Arc::new(FnNode(call)), settings }
    }

    /// The same node with another setting.
    pub(crate) fn with(mut self, set: impl FnOnce(&mut NodeSettings)) -> Self {
        set(&mut self.settings);
        self
    }

    fn layered<L>(self, layer: L) -> Node<S>
    where
        L: Layer<NodeService<S>>,
        L::Service: Service<NodeCall<S>, Response = Step<S>> + Clone + Send + Sync + 'static,
        <L::Service as Service<NodeCall<S>>>::Error: Into<BoxError>,
        <L::Service as Service<NodeCall<S>>>::Future: Send + 'static,
    {
        let service = layer.layer(NodeService::new(self.call));
        Node { call: Arc::new(LayeredNode::new(service)), settings: self.settings }
    }
}

/// Marks the implementation for values that already are a [`Node`].
#[derive(Debug)]
pub struct IsNode;

impl<S: State> IntoNode<S, IsNode> for Node<S> {
    fn into_node(self) -> Node<S> {
        self
    }
}

/// A function as a node.
struct FnNode<C>(C);

impl<S, C> ErasedNode<S> for FnNode<C>
where
    S: State,
    C: Fn(&Task<'_, S>) -> Result<Call<S>, BoxError> + Send + Sync + 'static,
{
    #[inline]
    fn call(&self, task: &Task<'_, S>) -> Result<Call<S>, BoxError> {
        begin_call(task)?;
        (self.0)(task)
    }
}

/// Starts an attempt: what earlier attempts asked does not count.
#[inline]
pub(crate) fn begin_call<S: State>(task: &Task<'_, S>) -> Result<(), BoxError> {
    let control = &task.shared.control;
    if control.in_use() {
        control.begin_call(task.request)?;
    }
    Ok(())
}

/// Calls a macro for functions of each number of arguments: with the names in brackets, and with one more of
/// the others each time.
macro_rules! for_prefixes {
    ($each:ident! [$($argument:ident)*]) => { $each!($($argument)*); };
    ($each:ident! [$($argument:ident)*] $next:ident $($more:ident)*) => {
        $each!($($argument)*);
        for_prefixes!($each! [$($argument)* $next] $($more)*);
    };
}
pub(crate) use for_prefixes;

macro_rules! function_nodes {
    ($($argument:ident)*) => {
        impl<S, F, Fut, Out, $($argument,)*> IntoNode<S, (Out, $($argument,)*)> for F
        where
            S: State,
            F: Fn($($argument,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send + 'static,
            Out: IntoStep<S> + 'static,
            $($argument: FromTask<S> + 'static,)*
        {
            /// The arguments are made before the future exists. It goes from the function into its box:
            /// through a `Result` it would be copied once more.
            #[allow(non_snake_case, unused_variables)]
            fn into_node(self) -> Node<S> {
                let node = Node::of_function(&[$(<$argument as FromTask<S>>::requirement(),)*], move |task| {
                    $(let $argument = $argument::from_task(task).map_err(Into::into)?;)*
                    Ok(FnCall::boxed(self($($argument,)*)))
                });
                node.with(|settings| settings.commands.may_be_returned = Out::MAY_COMMAND)
            }
        }
    };
}

for_prefixes!(function_nodes! [] A1 A2 A3 A4 A5 A6 A7 A8);

/// The functions that the code of `#[node]` calls. They do nothing, but their arguments must have the right
/// types.
#[doc(hidden)]
pub(crate) mod checks {
    use super::{FromTask, IntoStep, State};

    /// An argument of a node.
    pub fn is_argument<S: State, T: FromTask<S>>() {}

    /// An output of a node.
    pub fn is_output<S: State, T: IntoStep<S>>() {}

    /// The future of a node. The compiler shows the line with the bound, so the remedy is on it.
    #[rustfmt::skip]
    pub fn is_future<T: Send>(_: T) {} // drop what is not `Send` before the `.await`, or use `Arc` and tokio's `Mutex`
}
