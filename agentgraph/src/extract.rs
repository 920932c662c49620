//! Extractors: the possible arguments of a node.
//!
//! An extractor is made from the [`Task`] *before* the node's future exists, so the future contains only
//! the requested values. Values of a task are read, never taken: a node may be called again.

use std::any::{TypeId, type_name};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::context::{CallContext, Ctx, MissingContext, RunShared, TaskRequest, shares_its_value};
use crate::error::BoxError;
use crate::failure::{Failure, NoFailure};
use crate::session::{MissingSession, Session};
use crate::state::State;
use crate::step::{InputValue, Payload};
use crate::words::Timeouts;
use agentgraph_checkpoint::delta;

/// One execution of a node, for extractors.
pub struct Task<'a, S: State> {
    pub(crate) state: &'a Arc<S>,
    pub(crate) shared: &'a Arc<RunShared>,
    pub(crate) request: TaskRequest,
    pub(crate) input: Option<&'a InputValue>,
    /// The failure that the task handles, if it runs because another node failed.
    pub(crate) failure: Option<&'a Arc<Failure>>,
}

impl<S: State> Clone for Task<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State> Copy for Task<'_, S> {}

impl<'a, S: State> Task<'a, S> {
    /// The state this superstep reads.
    pub fn state(&self) -> &'a S {
        self.state
    }

    /// The context.
    pub fn ctx(&self) -> Ctx {
        Ctx::new(Arc::clone(self.shared), self.request)
    }

    /// The time limits of the dispatch that made the task. They do not apply to the handler of its failure.
    #[inline]
    pub(crate) fn limits(&self) -> Option<Timeouts> {
        let input = self.input.filter(|_| !self.request.handles)?;
        input.limits.as_deref().copied()
    }
}

/// A possible argument of a node.
///
/// The engine has [`Snapshot<S>`](Snapshot), `S`, [`Ctx`], [`Input<I>`](Input), [`Dep<T>`](Dep),
/// [`Session<T>`](crate::Session), [`CallContext<T>`](crate::node::CallContext) and [`Failure`]; add your
/// own:
///
/// ```
/// use agentgraph::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Triage { question: String }
///
/// /// How long the question is.
/// struct Length(usize);
///
/// impl FromTask<Triage> for Length {
///     type Error = std::convert::Infallible;
///     fn from_task(task: &Task<'_, Triage>) -> Result<Self, Self::Error> {
///         Ok(Length(task.state().question.len()))
///     }
/// }
///
/// async fn short(Length(length): Length) -> TriageUpdate {
///     Triage::update().question(if length > 100 { "shorter, please" } else { "" })
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a node",
    label = "not an extractor",
    note = "a node's arguments are `Snapshot<{S}>`, `{S}`, `Ctx`, `Input<I>`, `Dep<T>`, `Session<T>`, `CallContext<T>`, or your own `FromTask` types"
)]
pub trait FromTask<S: State>: Sized {
    /// The error with which the node fails.
    type Error: Into<BoxError>;

    /// Makes it from the task.
    ///
    /// # Errors
    /// If the task does not have the requested value.
    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error>;

    /// The dependency, session, input or context of the call that it needs, so that `compile()` or the call
    /// can report a missing one. An extractor that declares nothing is not checked.
    fn requirement() -> Option<Requirement> {
        None
    }
}

/// A dependency, a session, an input or a context of the call that an extractor needs.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    pub(crate) kind: RequirementKind,
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequirementKind {
    Dep,
    Session,
    Input,
    Context,
}

impl Requirement {
    /// The dependency of this type.
    pub fn dep<T: Send + Sync + 'static>() -> Self {
        Requirement { kind: RequirementKind::Dep, id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// The session of this type.
    pub fn session<T: Send + 'static>() -> Self {
        Requirement { kind: RequirementKind::Session, id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// A value of this type that the caller passes with [`context`](crate::RunBuilder::context). Calls
    /// without one fail before anything runs.
    ///
    /// ```
    /// use agentgraph::node::{MissingContext, Requirement};
    /// use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Order { paid_by: String }
    /// struct User {
    ///     name: String,
    /// }
    ///
    /// /// The name of the user who makes the call.
    /// struct Payer(String);
    ///
    /// impl FromTask<Order> for Payer {
    ///     type Error = MissingContext;
    ///     fn from_task(task: &Task<'_, Order>) -> Result<Self, MissingContext> {
    ///         Ok(Payer(CallContext::<User>::from_task(task)?.name.clone()))
    ///     }
    ///     fn requirement() -> Option<Requirement> {
    ///         Some(Requirement::context::<User>())
    ///     }
    /// }
    ///
    /// async fn pay(Payer(name): Payer) -> OrderUpdate {
    ///     Order::update().paid_by(name)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("pay", pay).edge(START, "pay").compile()?;
    /// let order = graph.invoke(Order::update()).context(User { name: "Ada".to_owned() }).await?;
    /// assert_eq!(order.output().paid_by, "Ada");
    ///
    /// let error = graph.invoke(Order::update()).await.unwrap_err();
    /// assert_eq!(error.code(), agentgraph::Code::MissingContext);
    /// # Ok(())
    /// # }
    /// ```
    pub fn context<T: Send + Sync + 'static>() -> Self {
        Requirement { kind: RequirementKind::Context, id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// An input of this type. `compile()` then refuses edges, joins and routes to the node that carry no
    /// input.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// use agentgraph::graph::ProblemKind;
    /// use agentgraph::node::{InputError, Requirement};
    /// # #[derive(State, Clone, Default)]
    /// # struct Shop { total: u32 }
    ///
    /// /// The price in cents, from a dispatch in euros.
    /// struct Cents(u32);
    ///
    /// impl FromTask<Shop> for Cents {
    ///     type Error = InputError;
    ///     fn from_task(task: &Task<'_, Shop>) -> Result<Self, InputError> {
    ///         let Input(euros) = Input::<u32>::from_task(task)?;
    ///         Ok(Cents(euros * 100))
    ///     }
    ///     fn requirement() -> Option<Requirement> {
    ///         Some(Requirement::input::<u32>())
    ///     }
    /// }
    ///
    /// async fn pay(Cents(cents): Cents) -> ShopUpdate {
    ///     Shop::update().total(cents)
    /// }
    ///
    /// let error = StateGraph::<Shop>::new().node("pay", pay).edge(START, "pay").compile().unwrap_err();
    /// assert!(matches!(error.problems()[0].kind, ProblemKind::NoInput { .. }));
    /// ```
    pub fn input<I: 'static>() -> Self {
        Requirement { kind: RequirementKind::Input, id: TypeId::of::<I>(), name: type_name::<I>() }
    }
}

/// The state at the start of the superstep, shared and not copied. Dereferences to it.
///
/// It may be kept after the node has returned; that costs the engine one clone of the state.
#[derive(Debug)]
pub struct Snapshot<S>(Arc<S>);

impl<S> From<Arc<S>> for Snapshot<S> {
    fn from(state: Arc<S>) -> Self {
        Snapshot(state)
    }
}

impl<S> From<Snapshot<S>> for Arc<S> {
    fn from(snapshot: Snapshot<S>) -> Self {
        snapshot.0
    }
}

shares_its_value!(Snapshot);

impl<S: State> FromTask<S> for Snapshot<S> {
    type Error = std::convert::Infallible;
    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error> {
        Ok(Snapshot(Arc::clone(task.state)))
    }
}

/// The node's own clone of the state. Changes to the clone are lost: return an update.
impl<S: State> FromTask<S> for S {
    type Error = std::convert::Infallible;
    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error> {
        Ok(S::clone(task.state))
    }
}

impl<S: State> FromTask<S> for Ctx {
    type Error = std::convert::Infallible;
    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error> {
        Ok(task.ctx())
    }
}

/// The input of the [`Dispatch`](crate::Dispatch) that made this task.
///
/// A plain edge, a join and a route variant without a payload carry no input, so `compile()` refuses them
/// into a node that requires one. A node that is reached both ways takes an `Option<Input<I>>`: it is
/// `None` if there is no input.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Words { #[reduce(append)] seen: Vec<String> }
/// async fn greet(name: Option<Input<String>>) -> WordsUpdate {
///     Words::update().seen([name.map_or("everyone".to_owned(), |Input(name)| name)])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("greet", greet)
///     .edge(START, "greet")
///     .branch(START, |_: &Words| Dispatch::new("greet", "Ada".to_owned()), ["greet"])
///     .compile()?;
/// let words = graph.invoke(Words::update()).finish().await?;
/// assert_eq!(words.seen, ["everyone", "Ada"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input<I>(pub I);

/// Why an [`Input`] is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The node was reached by an edge, which carries no input.
    #[error(
        "the node asks for an `Input<{0}>` and was not reached by a dispatch: use `Dispatch::new(node, input)`, or take an `Option<Input<{0}>>`"
    )]
    Missing(&'static str),
    /// The dispatch carried another type.
    #[error("the node asks for an `Input<{expected}>` and the dispatch carries something else{}", .problem.as_deref().map(|p| format!(": {p}")).unwrap_or_default())]
    Type {
        /// The expected type.
        expected: &'static str,
        /// The decoder's message, for a stored input.
        problem: Option<String>,
    },
}

impl<S: State, I: DeserializeOwned + Clone + 'static> FromTask<S> for Input<I> {
    type Error = InputError;
    fn from_task(task: &Task<'_, S>) -> Result<Self, InputError> {
        let wrong = |problem| InputError::Type { expected: type_name::<I>(), problem: Some(problem) };
        let read = |bytes: &[u8]| {
            delta::decode(bytes).map(Input).map_err(|error| wrong(misfit::<I>(bytes, &error.to_string())))
        };
        let input = task.input.ok_or_else(|| InputError::Missing(type_name::<I>()))?;
        match &input.value {
            Payload::Live { value, .. } => match value.downcast_ref::<I>() {
                Some(value) => Ok(Input(value.clone())),
                // A live value of another type may have the same bytes: it is read as it would be after a
                // checkpoint.
                None => read(&input.encode().map_err(|error| wrong(error.message().to_owned()))?),
            },
            Payload::Stored(bytes) => read(bytes),
        }
    }

    fn requirement() -> Option<Requirement> {
        Some(Requirement::input::<I>())
    }
}

impl<S: State, I: DeserializeOwned + Clone + 'static> FromTask<S> for Option<Input<I>> {
    type Error = InputError;
    fn from_task(task: &Task<'_, S>) -> Result<Self, InputError> {
        task.input.map(|_| Input::from_task(task)).transpose()
    }
}

/// The problem of an input in terms of its values: the terms of the binary format would not help users.
fn misfit<I: DeserializeOwned>(bytes: &[u8], decoder: &str) -> String {
    let value = delta::decode::<serde_json::Value>(bytes).ok();
    let error = value.and_then(|value| serde_json::from_value::<I>(value).err());
    error.map_or_else(|| decoder.to_owned(), |error| error.to_string())
}

/// A dependency of the graph, added by [`StateGraph::dep`](crate::StateGraph::dep): a client, a model, a
/// pool.
#[derive(Debug)]
pub struct Dep<T>(Arc<T>);

shares_its_value!(Dep);

/// The error of a node that needs a dependency which the graph does not have. `compile()` reports it before
/// a run can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph was not given a `{0}`: call `.dep(..)` on the builder")]
pub struct MissingDep(&'static str);

impl<S: State, T: Send + Sync + 'static> FromTask<S> for Dep<T> {
    type Error = MissingDep;

    fn from_task(task: &Task<'_, S>) -> Result<Self, MissingDep> {
        task.shared.graph.deps.get().map(Dep).ok_or(MissingDep(type_name::<T>()))
    }

    fn requirement() -> Option<Requirement> {
        Some(Requirement::dep::<T>())
    }
}

impl<S: State> FromTask<S> for Failure {
    type Error = NoFailure;

    fn from_task(task: &Task<'_, S>) -> Result<Self, NoFailure> {
        task.failure.map(|failure| Failure::clone(failure)).ok_or(NoFailure)
    }
}

impl<S: State> FromTask<S> for Option<Failure> {
    type Error = std::convert::Infallible;

    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error> {
        Ok(task.failure.map(|failure| Failure::clone(failure)))
    }
}

impl<S: State, T: Send + 'static> FromTask<S> for Session<T> {
    type Error = MissingSession;

    fn from_task(task: &Task<'_, S>) -> Result<Self, MissingSession> {
        task.shared.sessions.get()
    }

    fn requirement() -> Option<Requirement> {
        Some(Requirement::session::<T>())
    }
}

impl<S: State, T: Send + Sync + 'static> FromTask<S> for CallContext<T> {
    type Error = MissingContext;

    fn from_task(task: &Task<'_, S>) -> Result<Self, MissingContext> {
        task.shared.call.get()
    }

    fn requirement() -> Option<Requirement> {
        Some(Requirement::context::<T>())
    }
}

impl<S: State, T: Send + Sync + 'static> FromTask<S> for Option<CallContext<T>> {
    type Error = std::convert::Infallible;

    fn from_task(task: &Task<'_, S>) -> Result<Self, Self::Error> {
        Ok(task.shared.call.get().ok())
    }
}
