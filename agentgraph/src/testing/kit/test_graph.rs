//! [`TestGraph`]: a graph under test, and what the test does to it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::every_kill::EveryKill;
use super::every_order::EveryOrder;
use super::paths::Paths;
use super::play::Play;
use super::script::Script;
use super::test_run::{Delay, Failures, Injections};
use super::trace::Trace;
use crate::dependency::node::{DependencyNode, IntoDependencyNode};
use crate::dependency::outputs::{Output, Outputs, PassInput};
use crate::erased::AnyNode;
use crate::erased::observed::Observer;
use crate::error::BoxError;
use crate::node::IntoNode;
use crate::record::codec::Codec;
use crate::run::{CompiledDependencyGraph, CompiledGraph, RunBuilder};
use crate::state::{State, StoredState};
use crate::typed::node::TypedNode;
use crate::words::clones;
use agentgraph_checkpoint::shows;

/// A graph under test: [`CompiledGraph`], with and without `.eager()`, also of a
/// [`Workflow`](crate::Workflow); [`CompiledDependencyGraph`].
pub trait Testable: Clone + Send + Sync + 'static {
    /// The state of its runs.
    type State: StoredState;
    /// What a run begins with.
    type Input: Clone + Send + Sync + 'static;

    /// The same graph under observation.
    #[doc(hidden)]
    fn observed(&self, by: sealed::By) -> CompiledGraph<Self::State>;

    /// Begins a run.
    #[doc(hidden)]
    fn begin(graph: &CompiledGraph<Self::State>, input: Self::Input) -> RunBuilder<Self::State>;

    /// A call without the limits that other graphs have.
    #[doc(hidden)]
    fn limited(call: RunBuilder<Self::State>) -> RunBuilder<Self::State> {
        call
    }
}

pub(super) mod sealed {
    use super::{Arc, Observer};

    /// Keeps the observer out of the public trait.
    #[allow(missing_debug_implementations)]
    pub struct By(pub(in crate::testing) Arc<dyn Observer>);
}

impl<S: StoredState> Testable for CompiledGraph<S> {
    type State = S;
    type Input = S::Update;

    fn observed(&self, by: sealed::By) -> CompiledGraph<S> {
        CompiledGraph::of(self.clone().into_any().observed(&by.0, "", &Codec::of::<S>(0)))
    }

    fn begin(graph: &CompiledGraph<S>, input: S::Update) -> RunBuilder<S> {
        graph.invoke(input)
    }
}

impl<O, I> Testable for CompiledDependencyGraph<O, I>
where
    O: Output + Serialize + DeserializeOwned,
    I: PassInput + Serialize + DeserializeOwned + Clone,
{
    type State = Outputs<O, I>;
    type Input = I;

    fn observed(&self, by: sealed::By) -> CompiledGraph<Outputs<O, I>> {
        self.observed(&by.0)
    }

    fn begin(graph: &CompiledGraph<Outputs<O, I>>, input: I) -> RunBuilder<Outputs<O, I>> {
        Self::begin_pass(graph, input)
    }

    fn limited(call: RunBuilder<Outputs<O, I>>) -> RunBuilder<Outputs<O, I>> {
        call.max_supersteps(u64::MAX)
    }
}

/// Changes a call before it is made.
pub(super) type SetUp<S> = dyn Fn(RunBuilder<S>) -> RunBuilder<S> + Send + Sync;

/// A graph under test. Each run gets a copy of it with a store in memory and a clock of its own; nothing of
/// the graph itself changes.
///
/// Nodes are named by their path: the name, or `outer/inner` for the node `inner` of the subgraph `outer`. A
/// name that the graph does not have is a panic, with the nearest name.
///
/// ```
/// use std::time::Duration;
///
/// use agentgraph::prelude::*;
/// use agentgraph::testing::TestGraph;
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Order { sum: u32, #[reduce(append)] log: Vec<String> }
/// # async fn ask_a_server() -> Result<u32> { Err("no server".into()) }
/// async fn price() -> Result<OrderUpdate> {
///     Ok(Order::update().sum(ask_a_server().await?))
/// }
/// async fn pay(ctx: Ctx, order: Snapshot<Order>) -> Result<OrderUpdate> {
///     let approved: bool = ctx.interrupt(format!("pay {}?", order.sum))?;
///     Ok(Order::update().log([format!("approved: {approved}")]))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("price", price.retry(RetryPolicy::attempts(3).initial(Duration::from_secs(10))))
///     .node("pay", pay)
///     .edge(START, "price")
///     .edge("price", "pay")
///     .compile()?;
///
/// let trace = TestGraph::of(graph)
///     .replace("price", || async { Order::update().sum(7) })
///     .fail("price", 2, || "busy")
///     .answer(true)
///     .trace(Order::update())
///     .await;
/// assert_eq!(trace.ran(), ["price", "pay"]);
/// assert_eq!(trace.attempts("price"), 3);
/// assert_eq!(trace.waits(), [10, 20].map(Duration::from_secs));
/// assert_eq!(trace.asked(), ["pay 7?"]);
/// assert_eq!(trace.state().log, ["approved: true"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a test does nothing until it is awaited: `trace`, `every_kill` or `every_order`"]
pub struct TestGraph<G: Testable> {
    make: Arc<dyn Fn() -> G + Send + Sync>,
    paths: Arc<Paths>,
    pub(super) injections: Injections,
    pub(super) script: Script,
    pub(super) set_up: Option<Arc<SetUp<G::State>>>,
    pub(super) holds_time: bool,
}

impl<G: Testable> TestGraph<G> {
    /// Tests this graph. All runs share its dependencies; if these remember something, use
    /// [`by`](TestGraph::by).
    pub fn of(graph: G) -> Self {
        TestGraph::by(move || graph.clone())
    }

    /// Tests the graph that `make` makes, which is called for each run, and once here for the names. A run
    /// that is killed goes on with the graph it began with: its dependencies stand for the world, which does
    /// not die with a process.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use agentgraph::prelude::*;
    /// use agentgraph::testing::TestGraph;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { receipt: u32 }
    /// async fn pay(receipts: Dep<AtomicU32>) -> OrderUpdate {
    ///     Order::update().receipt(receipts.fetch_add(1, Ordering::Relaxed))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = || StateGraph::new().node("pay", pay).edge(START, "pay").dep(AtomicU32::new(7)).compile().unwrap();
    /// let test = TestGraph::by(graph);
    /// assert_eq!(test.trace(Order::update()).await.state().receipt, 7);
    /// assert_eq!(test.trace(Order::update()).await.state().receipt, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by(make: impl Fn() -> G + Send + Sync + 'static) -> Self {
        let paths = Arc::new(Paths::default());
        drop(make().observed(sealed::By(Arc::clone(&paths) as Arc<dyn Observer>)));
        TestGraph {
            make: Arc::new(make),
            paths,
            injections: Injections::default(),
            script: Script::default(),
            set_up: None,
            holds_time: false,
        }
    }

    /// Fails the first `calls` calls of a node with this error, without calling it. The node's policies see
    /// the error as if the node had returned it: a call is an attempt. Layers are inside the node, and do
    /// not see it. Repeated for one node, the failures come one after the other.
    ///
    /// # Panics
    /// If the graph has no such node.
    #[track_caller]
    pub fn fail<E: Into<BoxError>>(
        mut self,
        node: impl AsRef<str>,
        calls: u32,
        error: impl Fn() -> E + Send + Sync + 'static,
    ) -> Self {
        let node = node.as_ref();
        self.check(node);
        let failures = Failures { calls, error: Arc::new(move || error().into()) };
        self.injections.failures.entry(node.to_owned()).or_default().push(failures);
        self
    }

    /// Makes each call of a node begin later, by the clock of the run. The delay counts for the node's
    /// timeout.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use agentgraph::prelude::*;
    /// use agentgraph::testing::TestGraph;
    /// use agentgraph::Code;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { sum: u32 }
    /// # async fn search() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let search = search.timeout(Duration::from_secs(30));
    /// let graph = StateGraph::<Order>::new().node("search", search).edge(START, "search").compile()?;
    /// let test = TestGraph::of(graph);
    /// let slow = test.clone().delay("search", Duration::from_secs(29)).trace(Order::update()).await;
    /// assert!(slow.outcome().is_ok());
    /// let hangs = test.hang("search").trace(Order::update()).await;
    /// assert_eq!(hangs.outcome().unwrap_err().code(), Code::NodeTimeout);
    /// assert_eq!(hangs.elapsed(), Duration::from_secs(30));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the graph has no such node.
    #[track_caller]
    pub fn delay(mut self, node: impl AsRef<str>, by: Duration) -> Self {
        let node = node.as_ref();
        self.check(node);
        self.injections.delays.insert(node.to_owned(), Delay::For(by));
        self
    }

    /// Makes each call of a node wait for ever.
    ///
    /// # Panics
    /// If the graph has no such node.
    #[track_caller]
    pub fn hang(mut self, node: impl AsRef<str>) -> Self {
        let node = node.as_ref();
        self.check(node);
        self.injections.delays.insert(node.to_owned(), Delay::Forever);
        self
    }

    /// Replaces a node of a subgraph over another state `C`. See [`replace`](TestGraph::replace).
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::testing::TestGraph;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Part { text: String }
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Report { text: String }
    /// async fn write() -> PartUpdate { Part::update().text("by a model") }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let part = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let part = part.embed(|| Part::update(), |part: Part| Report::update().text(part.text));
    /// let report = StateGraph::new().node("part", part).edge(START, "part").compile()?;
    ///
    /// let test = TestGraph::of(report);
    /// let test = test.replace_in::<Part, _>("part/write", || async { Part::update().text("fixed") });
    /// assert_eq!(test.trace(Report::update()).await.state().text, "fixed");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the graph has no such node. A run panics if the subgraph has another state.
    #[track_caller]
    pub fn replace_in<C: State, M>(mut self, node: impl AsRef<str>, by: impl IntoNode<C, M>) -> Self {
        let node = node.as_ref();
        self.check(node);
        let call: Arc<dyn AnyNode> = by.into_node().into_any().call;
        self.put(node, call);
        self
    }

    /// Gives this answer to the next question. Answers are given in the order of the calls, to questions in
    /// the order in which they are asked. A run ends when it waits for an answer that the test does not have.
    pub fn answer(mut self, answer: impl Serialize) -> Self {
        self.script.in_order.push(as_value(answer));
        self
    }

    /// Gives this answer to every question of a node, or to every question with this key.
    pub fn answer_to(mut self, node_or_key: impl AsRef<str>, answer: impl Serialize) -> Self {
        self.script.by_name.insert(node_or_key.as_ref().to_owned(), as_value(answer));
        self
    }

    /// Changes each call on the graph before it is made: its context, its limits, its budget.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::testing::TestGraph;
    /// use agentgraph::StopReason;
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { sum: u32 }
    /// # async fn again() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Order>::new().node("again", again).edge(START, "again").edge("again", "again");
    /// let test = TestGraph::of(graph.compile()?).set_up(|call| call.max_supersteps(3));
    /// let trace = test.trace(Order::update()).await;
    /// assert!(matches!(trace.outcome(), Ok(Outcome::Stopped { reason: StopReason::Limit, .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_up(
        mut self,
        change: impl Fn(RunBuilder<G::State>) -> RunBuilder<G::State> + Send + Sync + 'static,
    ) -> Self {
        self.set_up = Some(Arc::new(change));
        self
    }

    /// Lets time stand while a node waits for anything but the clock, as for a socket. Without it, time moves
    /// when the run is pending and the runtime had 128 turns, so that a timeout may fire before a server
    /// answers. With it, a node that waits for ever makes the test wait for ever.
    pub fn hold_time_for_io(mut self) -> Self {
        self.holds_time = true;
        self
    }

    /// Runs the graph to its end, and answers its questions. Sleeps of the thread and static interrupts are
    /// passed.
    pub async fn trace(&self, input: impl Into<G::Input>) -> Trace<G::State> {
        let mut play = Play::new(self, None, None, None);
        let ended = play.run_to_end(input.into()).await;
        play.into_trace(ended)
    }

    /// Runs the graph once undisturbed, then once for each point at which its process could die, goes on from
    /// the store and compares: see [`EveryKill`].
    pub fn every_kill(&self, input: impl Into<G::Input>) -> EveryKill<'_, G> {
        EveryKill::new(self, input.into())
    }

    /// Runs the graph with parallel nodes in many orders, and compares: see [`EveryOrder`].
    pub fn every_order(&self, input: impl Into<G::Input>) -> EveryOrder<'_, G> {
        EveryOrder::new(self, input.into())
    }

    pub(super) fn graph(&self, by: Arc<dyn Observer>) -> CompiledGraph<G::State> {
        (self.make)().observed(sealed::By(by))
    }

    fn put(&mut self, node: &str, call: impl Any + Send + Sync) {
        self.injections.replaced.insert(node.to_owned(), Arc::new(call));
    }

    #[track_caller]
    #[allow(clippy::panic)] // The mistake is in the test, and a test ends with a panic.
    fn check(&self, node: &str) {
        if let Some(problem) = self.paths.problem(node) {
            panic!("{problem}");
        }
    }
}

impl<S: StoredState> TestGraph<CompiledGraph<S>> {
    /// Replaces the function of a node. Its policies, handler and other settings stay; those of the
    /// replacement have no effect. Layers of the node are replaced with it.
    ///
    /// # Panics
    /// If the graph has no such node. A run panics if it is a node of a subgraph over another state, which
    /// [`replace_in`](TestGraph::replace_in) replaces.
    #[track_caller]
    pub fn replace<M>(self, node: impl AsRef<str>, by: impl IntoNode<S, M>) -> Self {
        self.replace_in::<S, M>(node, by)
    }
}

impl<O, I> TestGraph<CompiledDependencyGraph<O, I>>
where
    O: Output + Serialize + DeserializeOwned,
    I: PassInput + Serialize + DeserializeOwned + Clone,
{
    /// Replaces the function of a node. Its settings stay; those of the replacement have no effect.
    ///
    /// # Panics
    /// If the graph has no such node.
    #[track_caller]
    pub fn replace<M>(mut self, node: impl AsRef<str>, by: impl IntoDependencyNode<O, I, M>) -> Self {
        let node = node.as_ref();
        self.check(node);
        let call: Arc<dyn AnyNode> = Arc::new(TypedNode::new(DependencyNode::of(by).into_call()));
        self.put(node, call);
        self
    }
}

clones!([G: Testable] TestGraph<G> { make, paths, injections, script, set_up, holds_time });

shows!([G: Testable] TestGraph<G>: |it| { answers: it.script.in_order });

/// The answer as it is given; one that is no JSON is null, which the node refuses.
fn as_value(answer: impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}
