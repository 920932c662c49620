//! Nodes of a dependency graph: plain functions of the outputs of their dependencies, sync or async.

use crate::dependency::outputs::{Output, PassInput};
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use serde_json::Value;

use super::base::Join;
use super::deps::Deps;
use super::outputs::{Outputs, OutputsUpdate};
use crate::erased::{Call, ErasedNode, FnCall, NodeResult};
use crate::error::BoxError;
use crate::extract::{FromTask, Requirement, Task};
use crate::node::{begin_call, for_prefixes};
use crate::policy::{Breaker, Elsewhere, Limit, Policies, RetryPolicy};
use crate::step::Step;
use crate::words::clones;

/// A node of any type, ready to be called.
pub(crate) trait DependencyCall<O, S>: ErasedNode<Outputs<O, S>> + Send + Sync + 'static
where
    O: Output,
    S: PassInput,
{
    fn kind(&self) -> CallKind {
        CallKind::Async
    }

    /// Calls a sync node. The loop calls no other node like this, and none of kind `Sync` without its task.
    fn call_now(&self, _: Deps<'_, O>, _: Option<&Task<'_, Outputs<O, S>>>) -> Result<O, BoxError> {
        Err("an async node was called without an await".into())
    }
}

/// The needs of a node's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// Only the outputs.
    Plain,
    /// The outputs and the task.
    Sync,
    /// An await.
    Async,
}

/// The return type of a node in a dependency graph: its output, or a `Result` with any error.
#[diagnostic::on_unimplemented(
    message = "a node of this dependency graph cannot return `{Self}`",
    label = "not an output of this graph",
    note = "return a `{O}`, or a `Result<{O}, E>`"
)]
pub trait IntoOutput<O> {
    /// Returns the output.
    ///
    /// # Errors
    /// The error that the node returned.
    fn into_output(self) -> Result<O, BoxError>;
}

impl<O> IntoOutput<O> for O {
    #[inline]
    fn into_output(self) -> Result<O, BoxError> {
        Ok(self)
    }
}

impl<O, E: Into<BoxError>> IntoOutput<O> for Result<O, E> {
    #[inline]
    fn into_output(self) -> Result<O, BoxError> {
        self.map_err(Into::into)
    }
}

/// A value that can be a node of a dependency graph: a function of [`Deps`] and up to seven extractors, an
/// `async fn` of up to eight extractors, of which [`Deps`] may be one, or a [`DependencyNode`].
///
/// ```
/// use agentgraph::prelude::*;
///
/// fn sum(deps: Deps<u64>) -> u64 {
///     deps.outputs().sum()
/// }
/// async fn double(ctx: Ctx, deps: Deps<'_, u64>) -> Result<u64> {
///     ctx.emit("doubling").await;
///     Ok(2 * deps[0])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = DependencyGraph::<u64>::new()
///     .node("one", || 1)
///     .node("two", || 2)
///     .node("sum", sum)
///     .node("double", double)
///     .edge("one", "sum")
///     .edge("two", "sum")
///     .edge("sum", "double")
///     .compile()?;
/// assert_eq!(graph.invoke(()).finish().await?["double"], 6);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node of this dependency graph",
    label = "not a node",
    note = "a node is a function of `Deps<{O}>` and extractors, or an `async fn` of extractors, that returns `{O}` or a `Result<{O}, E>`",
    note = "the future of an `async fn` must be `Send`: nothing that is not `Send`, such as an `Rc`, may be held over an `.await`"
)]
pub trait IntoDependencyNode<O, S, M> {
    /// Converts it into a node.
    fn into_node(self) -> DependencyNode<O, S>;
}

/// A node of a dependency graph and its settings.
///
/// ```
/// use std::time::Duration;
///
/// use agentgraph::prelude::*;
///
/// # async fn ask(deps: Deps<'_, String>) -> Result<String> { Ok(deps[0].clone()) }
/// let graph = DependencyGraph::<String>::new()
///     .node("question", || "why?".to_owned())
///     .node("ask", DependencyNode::of(ask).retry(RetryPolicy::attempts(3)).timeout(Duration::from_secs(20)))
///     .edge("question", "ask")
///     .compile();
/// assert!(graph.is_ok());
/// ```
pub struct DependencyNode<O, S = ()> {
    pub(in crate::dependency) call: Arc<dyn DependencyCall<O, S>>,
    pub(in crate::dependency) settings: OwnSettings,
}

/// The settings of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct DependencySettings {
    pub(in crate::dependency) policies: Policies,
    pub(in crate::dependency) join: Join,
    pub(in crate::dependency) requirements: Vec<Requirement>,
    pub(in crate::dependency) remote: bool,
    pub(in crate::dependency) durable_steps: bool,
    /// The template that made it, and its arguments.
    origin: Option<Arc<(String, Value)>>,
}

/// The settings of a node, in a box that exists only if it has some: of a million nodes few do.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnSettings(Option<Box<DependencySettings>>);

impl Deref for OwnSettings {
    type Target = DependencySettings;

    fn deref(&self) -> &DependencySettings {
        static NONE: LazyLock<DependencySettings> = LazyLock::new(DependencySettings::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for OwnSettings {
    fn deref_mut(&mut self) -> &mut DependencySettings {
        self.0.get_or_insert_default()
    }
}

impl<O, S> DependencyNode<O, S> {
    /// Makes a node from a function.
    pub fn of<M>(node: impl IntoDependencyNode<O, S, M>) -> Self {
        node.into_node()
    }

    /// Retries the node when it fails. If several policies are set, the first one that retries the error
    /// decides. The edits of a failed attempt are dropped.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.policies.retry.push(policy);
        self
    }

    /// Fails an attempt that takes longer. A timeout of zero is a problem at `compile()`. A sync node cannot
    /// be cut off.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.policies.timeouts.run = Some(limit);
        self
    }

    /// Fails an attempt that shows no activity for this time.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.settings.policies.timeouts.idle = Some(limit);
        self
    }

    /// Runs the node on a thread that may be blocked, as [`IntoNode::blocking`](crate::IntoNode::blocking)
    /// does. Works for sync nodes, too.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.settings.policies.elsewhere = Some(Elsewhere::Blocking);
        self
    }

    /// Runs the node as a task of the runtime, as [`IntoNode::spawned`](crate::IntoNode::spawned) does. Works
    /// for sync nodes, too.
    #[must_use]
    pub fn spawned(mut self) -> Self {
        self.settings.policies.elsewhere = Some(Elsewhere::Spawned);
        self
    }

    /// Rejects attempts of the node while the breaker is open, as
    /// [`IntoNode::breaker`](crate::IntoNode::breaker) does.
    #[must_use]
    pub fn breaker(mut self, breaker: &Breaker) -> Self {
        self.settings.policies.breaker = Some(breaker.clone());
        self
    }

    /// Makes attempts of the node wait for the limit, as [`IntoNode::limit`](crate::IntoNode::limit) does.
    #[must_use]
    pub fn limit(mut self, limit: &Limit) -> Self {
        self.settings.policies.limit = Some(limit.clone());
        self
    }

    /// Asks for another process where the graph's [`Host`](crate::host::Host) has some, as
    /// [`IntoNode::remote`](crate::IntoNode::remote) does.
    #[must_use]
    pub fn remote(mut self) -> Self {
        self.settings.remote = true;
        self
    }

    /// Declares that the node makes durable steps, as
    /// [`IntoNode::durable_steps`](crate::IntoNode::durable_steps) does.
    #[must_use]
    pub fn durable_steps(mut self) -> Self {
        self.settings.durable_steps = true;
        self
    }

    /// Sets the dependencies that it waits for; all of them by default.
    #[must_use]
    pub fn join(mut self, join: Join) -> Self {
        self.settings.join = join;
        self
    }
}

impl<O, S> DependencyNode<O, S> {
    /// Its function, without its settings.
    #[cfg(feature = "testing")]
    pub(crate) fn into_call(self) -> Arc<dyn ErasedNode<Outputs<O, S>>>
    where
        O: Output,
        S: PassInput,
    {
        self.call
    }

    /// Marks the node as made by a template.
    pub(super) fn made_of(mut self, template: &str, args: &Value) -> Self {
        self.settings.origin = Some(Arc::new((template.to_owned(), args.clone())));
        self
    }

    /// Whether both have the same function, or come from the same template with the same arguments.
    pub(super) fn is(&self, other: &Self) -> bool {
        let origin = self.settings.origin.is_some() && self.settings.origin == other.settings.origin;
        origin || Arc::ptr_eq(&self.call, &other.call)
    }
}

clones!([O, S] DependencyNode<O, S> { call, settings });

/// Marker for nodes that are nodes already.
#[derive(Debug)]
pub struct IsDependencyNode;

impl<O, S> IntoDependencyNode<O, S, IsDependencyNode> for DependencyNode<O, S> {
    fn into_node(self) -> DependencyNode<O, S> {
        self
    }
}

/// Marker for functions without arguments.
#[derive(Debug)]
pub struct IsConstant<Out>(PhantomData<fn() -> Out>);

/// Marker for sync functions.
#[derive(Debug)]
pub struct IsSync<M>(PhantomData<fn() -> M>);

/// Marker for async functions.
#[derive(Debug)]
pub struct IsAsync<M>(PhantomData<fn() -> M>);

/// A function that needs no await, as a node.
struct SyncNode<C> {
    kind: CallKind,
    call: C,
}

impl<O: Output, S: PassInput, C> ErasedNode<Outputs<O, S>> for SyncNode<C>
where
    Self: DependencyCall<O, S>,
{
    fn call(&self, task: &Task<'_, Outputs<O, S>>) -> Result<Call<Outputs<O, S>>, BoxError> {
        begin(task)?;
        let output = self.call_now(Deps::held(task.state().held()), Some(task));
        Ok(FnCall::boxed(ready(done(output))))
    }
}

impl<O, S, C> DependencyCall<O, S> for SyncNode<C>
where
    O: Output,
    S: PassInput,
    C: Fn(Deps<'_, O>, Option<&Task<'_, Outputs<O, S>>>) -> Result<O, BoxError> + Send + Sync + 'static,
{
    fn kind(&self) -> CallKind {
        self.kind
    }

    #[inline]
    fn call_now(&self, deps: Deps<'_, O>, task: Option<&Task<'_, Outputs<O, S>>>) -> Result<O, BoxError> {
        (self.call)(deps, task)
    }
}

/// A function that returns a future, as a node.
struct AsyncNode<C>(C);

impl<O, S, C> ErasedNode<Outputs<O, S>> for AsyncNode<C>
where
    O: Output,
    S: PassInput,
    C: Fn(&Task<'_, Outputs<O, S>>) -> Result<Call<Outputs<O, S>>, BoxError> + Send + Sync + 'static,
{
    fn call(&self, task: &Task<'_, Outputs<O, S>>) -> Result<Call<Outputs<O, S>>, BoxError> {
        begin(task)?;
        (self.0)(task)
    }
}

impl<O: Output, S: PassInput, C> DependencyCall<O, S> for AsyncNode<C> where Self: ErasedNode<Outputs<O, S>> {}

impl<O: Output, S: PassInput> DependencyNode<O, S> {
    fn of_call(requirements: &[Option<Requirement>], call: impl DependencyCall<O, S>) -> Self {
        let mut settings = OwnSettings::default();
        let requirements: Vec<_> = requirements.iter().copied().flatten().collect();
        if !requirements.is_empty() {
            settings.requirements = requirements;
        }
        DependencyNode { call: Arc::new(call), settings }
    }

    /// A node of a function that needs the task only for its arguments.
    fn of_sync(
        requirements: &[Option<Requirement>],
        call: impl Fn(Deps<'_, O>, Option<&Task<'_, Outputs<O, S>>>) -> Result<O, BoxError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let kind = if requirements.is_empty() { CallKind::Plain } else { CallKind::Sync };
        Self::of_call(requirements, SyncNode { kind, call })
    }

    fn of_async(
        requirements: &[Option<Requirement>],
        call: impl Fn(&Task<'_, Outputs<O, S>>) -> Result<Call<Outputs<O, S>>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self::of_call(requirements, AsyncNode(call))
    }
}

fn done<O: Output, S: PassInput>(output: Result<O, BoxError>) -> NodeResult<Outputs<O, S>> {
    output.map(|output| Step::Update(OutputsUpdate::own(output)))
}

/// Starts an attempt: questions and edits of earlier attempts do not count.
pub(crate) fn begin<O: Output, S: PassInput>(task: &Task<'_, Outputs<O, S>>) -> Result<(), BoxError> {
    begin_call(task)?;
    task.state().begin_attempt(task.request);
    Ok(())
}

impl<O, S, F, Out> IntoDependencyNode<O, S, IsConstant<Out>> for F
where
    O: Output,
    S: PassInput,
    F: Fn() -> Out + Send + Sync + 'static,
    Out: IntoOutput<O> + 'static,
{
    fn into_node(self) -> DependencyNode<O, S> {
        DependencyNode::of_sync(&[], move |_, _| self().into_output())
    }
}

pin_project! {
    /// The future of a user's function, with the result type of the engine. Its box contains nothing else.
    struct OutputFuture<F, O, S> {
        #[pin]
        function: F,
        outputs: PhantomData<fn() -> (O, S)>,
    }
}

impl<O, S, F> Future for OutputFuture<F, O, S>
where
    O: Output,
    S: PassInput,
    F: Future,
    F::Output: IntoOutput<O>,
{
    type Output = NodeResult<Outputs<O, S>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().function.poll(cx).map(|output| done(output.into_output()))
    }
}

macro_rules! function_nodes {
    ($($argument:ident)*) => {
        impl<O, S, F, Out, $($argument,)*> IntoDependencyNode<O, S, IsSync<(Out, $($argument,)*)>> for F
        where
            O: Output,
            S: PassInput,
            F: for<'a> Fn(Deps<'a, O>, $($argument,)*) -> Out + Send + Sync + 'static,
            Out: IntoOutput<O> + 'static,
            $($argument: FromTask<Outputs<O, S>> + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn into_node(self) -> DependencyNode<O, S> {
                let requirements = &[$(<$argument>::requirement(),)*];
                DependencyNode::of_sync(requirements, move |deps, task| {
                    let task = || task.ok_or("a node was called without its task");
                    $(let $argument = $argument::from_task(task()?).map_err(Into::into)?;)*
                    self(deps, $($argument,)*).into_output()
                })
            }
        }
    };
}

macro_rules! async_nodes {
    ($($argument:ident)*) => {
        impl<O, S, F, Fut, $($argument,)*> IntoDependencyNode<O, S, IsAsync<(Fut, $($argument,)*)>> for F
        where
            O: Output,
            S: PassInput,
            F: Fn($($argument,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output: IntoOutput<O>> + Send + 'static,
            $($argument: FromTask<Outputs<O, S>> + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn into_node(self) -> DependencyNode<O, S> {
                DependencyNode::of_async(&[$(<$argument>::requirement(),)*], move |task| {
                    $(let $argument = $argument::from_task(task).map_err(Into::into)?;)*
                    let function = self($($argument,)*);
                    Ok(FnCall::boxed(OutputFuture { function, outputs: PhantomData }))
                })
            }
        }
    };
}

for_prefixes!(function_nodes! [] A1 A2 A3 A4 A5 A6 A7);
for_prefixes!(async_nodes! [] A1 A2 A3 A4 A5 A6 A7 A8);
