//! Nodes: a plain `async fn` whose arguments are extractors.
//!
//! [`IntoNode`] is the one trait behind "just pass a function"; [`Node`] is what comes out of it, with the
//! settings of the node beside the erased call. A node knows nothing of the graph it is put into.

pub(crate) mod inner;

pub use crate::context::{Ctx, Interrupted};
pub use crate::extract::{Dep, FromTask, Input, InputError, MissingDep, Requirement, Snapshot, Task};
pub use crate::failure::NoFailure;
pub use crate::layer::{NodeCall, NodeService};
pub use crate::panic::NodePanic;
pub use crate::route::{IntoPicks, Pick, Route, RouteTarget};
pub use crate::session::{MissingSession, Session};
pub use crate::step::{Command, Dispatch, Goto, IntoGoto, IntoGotos, IntoStep, Step};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use serde::Serialize;
use tower_layer::Layer;
use tower_service::Service;

use crate::error::BoxError;
use crate::failure::KeptError;
use crate::layer::LayeredNode;
use crate::node::inner::AnyGraph;
use crate::policy::{OnEnd, Policies, RetryPolicy};
use crate::state::State;

/// What one call of a node gives.
pub(crate) type NodeResult<S> = Result<Step<S>, BoxError>;

/// The boxed call: the one allocation of a step.
pub(crate) type NodeFuture<S> = Pin<Box<dyn Future<Output = NodeResult<S>> + Send>>;

/// A node of whatever type, ready to be called.
pub(crate) trait ErasedNode<S: State>: Send + Sync + 'static {
    fn call(&self, task: &Task<'_, S>) -> NodeFuture<S>;
}

/// Anything that can be a node: an `async fn` or closure of up to eight extractors that returns something
/// [`IntoStep`], or a [`Node`].
///
/// A closure that captures is written `move || { let url = url.clone(); async move { .. } }`: the future of
/// an `async move || { .. }` borrows what it captures, so that one is a node only if it captures nothing.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Default)]
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
    note = "put `#[agentgraph::node(YourState)]` on the function to see which argument or output is wrong"
)]
pub trait IntoNode<S: State, M>: Sized {
    /// Makes the node.
    fn into_node(self) -> Node<S>;

    /// Puts a tower layer round the node. The layer's service must be `Clone`; each call gets its own clone.
    fn layer<L>(self, layer: L) -> Node<S>
    where
        L: Layer<NodeService<S>>,
        L::Service: Service<NodeCall<S>, Response = Step<S>> + Clone + Send + Sync + 'static,
        <L::Service as Service<NodeCall<S>>>::Error: Into<BoxError>,
        <L::Service as Service<NodeCall<S>>>::Future: Send + 'static,
    {
        self.into_node().layered(layer)
    }

    /// Tries the node again when it fails. Called several times, the first policy that retries the error
    /// decides, so that each kind of error can have its own; attempts are counted over all of them.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Default)]
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
        let mut node = self.into_node();
        node.settings.policies.retry.push(policy);
        node
    }

    /// Fails an attempt that takes longer. A zero timeout is a problem at `compile()`.
    fn timeout(self, limit: Duration) -> Node<S> {
        let mut node = self.into_node();
        node.settings.policies.timeouts.run = Some(limit);
        node
    }

    /// Fails an attempt that gives no sign of life for so long: [`Ctx::heartbeat`](crate::Ctx::heartbeat) and
    /// [`Ctx::emit`](crate::Ctx::emit) are signs. For work that may take long and must not hang.
    fn idle_timeout(self, limit: Duration) -> Node<S> {
        let mut node = self.into_node();
        node.settings.policies.timeouts.idle = Some(limit);
        node
    }

    /// Lets another node of the graph handle what this one fails with, once its retries are used up. The
    /// handler stands in its place in the superstep: it reads the same snapshot, the same
    /// [`Input`](crate::Input) and the [`Failure`](crate::Failure), and its update and its way on count
    /// instead of the failed node's. If the handler fails too, the run fails; when it goes on, only the
    /// handler runs again.
    fn on_error(self, handler: impl Into<String>) -> Node<S> {
        let mut node = self.into_node();
        node.settings.on_error = Some(handler.into());
        node
    }

    /// Keeps errors of this type whole for [`Failure::get`](crate::Failure::get).
    fn keeps_error<E: std::error::Error + Serialize + 'static>(self) -> Node<S> {
        let mut node = self.into_node();
        node.settings.keeps.push(KeptError::of::<E>());
        node
    }

    /// Lets the node wait until nothing else can run, and runs it once then, however often it was reached.
    /// Several deferred nodes are released together. A dispatch to it does not wait.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
    /// let words = graph.invoke(Words::update()).await?.into_finished()?;
    /// assert_eq!(words.seen, ["short", "long", "longer", "report"]);
    /// # Ok(())
    /// # }
    /// ```
    fn defer(self) -> Node<S> {
        let mut node = self.into_node();
        node.settings.deferred = true;
        node
    }

    /// Lets the node run beside everything else in an [eager](crate::StateGraph::eager) graph, without
    /// anybody waiting for it: its failure is no failure of the run, and it holds back neither deferred nodes
    /// nor the end. Nodes that are reached only through it are detached, too. Their updates are merged if
    /// they are done before the end; what becomes of those that are not, [`on_end`](IntoNode::on_end) says,
    /// and [`Outcome::Finished`](crate::Outcome::Finished) lists those that were cut off. A run that is
    /// suspended runs them again when it goes on.
    ///
    /// They may not ask with [`Ctx::interrupt`](crate::Ctx::interrupt), nor be sources of a join that other
    /// nodes are sources of, too.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// # async fn answer() -> WordsUpdate { Words::update().seen(["answer"]) }
    /// use std::future::pending;
    ///
    /// async fn measure() {
    ///     pending().await // Nobody is there.
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
        let mut node = self.into_node();
        node.settings.detached = true;
        node
    }

    /// What becomes of the node when the run is at its end, if it is [detached](IntoNode::detached) and still
    /// runs; it is cancelled if nothing is said.
    fn on_end(self, what: OnEnd) -> Node<S> {
        let mut node = self.into_node();
        node.settings.on_end = what;
        node
    }

    /// Keeps what this node gave last, so that a temporary edit can [`skip`](crate::edit::Edits::skip) it: its
    /// update, its gotos and its dispatches, but not its edits. With a checkpointer the thread keeps it, so
    /// that a later run can use it again; without one it lasts as long as the run. It costs a copy of every
    /// update of the node.
    fn keep_output(self) -> Node<S> {
        let mut node = self.into_node();
        node.settings.keeps_output = true;
        node
    }

    /// Says where the commands of this node may go, so that `compile()` and the drawing know. Going elsewhere
    /// is then an error of the node.
    fn targets<T: AsRef<str>>(self, targets: impl IntoIterator<Item = T>) -> Node<S> {
        let mut node = self.into_node();
        node.settings.targets = Some(targets.into_iter().map(|name| name.as_ref().to_owned()).collect());
        node
    }
}

/// A node and its settings.
pub struct Node<S: State> {
    pub(crate) call: Arc<dyn ErasedNode<S>>,
    pub(crate) settings: NodeSettings,
}

/// What is said about a node beside its code.
#[derive(Clone, Default)]
pub(crate) struct NodeSettings {
    pub(crate) policies: Policies,
    pub(crate) targets: Option<Vec<String>>,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) commands: bool,
    pub(crate) deferred: bool,
    pub(crate) detached: bool,
    pub(crate) on_end: OnEnd,
    /// What it gives is kept, to be used again.
    pub(crate) keeps_output: bool,
    /// The node that handles its failures.
    pub(crate) on_error: Option<String>,
    pub(crate) keeps: Vec<KeptError>,
    /// The graph that it is.
    pub(crate) graph: Option<Arc<dyn AnyGraph>>,
}

impl<S: State> Node<S> {
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

/// Marks the implementation for nodes that are nodes already.
#[derive(Debug)]
pub struct IsNode;

impl<S: State> IntoNode<S, IsNode> for Node<S> {
    fn into_node(self) -> Node<S> {
        self
    }
}

/// A function as a node. The marker holds its argument types without owning them, so it is `Send` whatever
/// they are.
struct FnNode<F, M> {
    function: F,
    marker: PhantomData<fn() -> M>,
}

pin_project! {
    /// The future of a user's function, as the loop wants it. The box it lives in holds nothing else: `map`
    /// would put a flag beside it and move the result once more, an async block would hold it twice.
    struct Call<F, S> {
        #[pin]
        function: F,
        state: PhantomData<fn() -> S>,
    }
}

impl<S, F> Future for Call<F, S>
where
    S: State,
    F: Future,
    F::Output: IntoStep<S>,
{
    type Output = NodeResult<S>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NodeResult<S>> {
        self.project().function.poll(cx).map(IntoStep::into_step)
    }
}

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
            fn into_node(self) -> Node<S> {
                let node = FnNode::<F, (Out, $($argument,)*)> { function: self, marker: PhantomData };
                let requirements: &[Option<Requirement>] = &[$(<$argument as FromTask<S>>::requirement(),)*];
                let settings = NodeSettings {
                    requirements: requirements.iter().copied().flatten().collect(),
                    commands: Out::MAY_COMMAND,
                    ..NodeSettings::default()
                };
                Node { call: Arc::new(node), settings }
            }
        }

        impl<S, F, Fut, Out, $($argument,)*> ErasedNode<S> for FnNode<F, (Out, $($argument,)*)>
        where
            S: State,
            F: Fn($($argument,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send + 'static,
            Out: IntoStep<S> + 'static,
            $($argument: FromTask<S> + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn call(&self, task: &Task<'_, S>) -> NodeFuture<S> {
                let control = &task.shared.control;
                if control.in_use() && let Err(waits) = control.begin_call(task.request) {
                    return Box::pin(std::future::ready(Err(waits.into())));
                }
                $(
                    let $argument = match $argument::from_task(task) {
                        Ok(argument) => argument,
                        Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
                    };
                )*
                Box::pin(Call { function: (self.function)($($argument,)*), state: PhantomData })
            }
        }
    };
}

function_nodes!();
function_nodes!(A1);
function_nodes!(A1 A2);
function_nodes!(A1 A2 A3);
function_nodes!(A1 A2 A3 A4);
function_nodes!(A1 A2 A3 A4 A5);
function_nodes!(A1 A2 A3 A4 A5 A6);
function_nodes!(A1 A2 A3 A4 A5 A6 A7);
function_nodes!(A1 A2 A3 A4 A5 A6 A7 A8);

/// What the code that `#[node]` writes calls: nothing happens, the types must fit.
#[doc(hidden)]
pub(crate) mod checks {
    use super::{FromTask, IntoStep, State};

    /// An argument of a node.
    pub fn is_argument<S: State, T: FromTask<S>>() {}

    /// An output of a node.
    pub fn is_output<S: State, T: IntoStep<S>>() {}

    /// The future of a node.
    pub fn is_future<T: Send>(_: T) {}
}
