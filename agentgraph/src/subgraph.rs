//! Subgraphs: a compiled graph as a node of another one.
//!
//! A graph over the same state is a node directly: it reads the state of its parent graph, and the sum of
//! its updates is the update of the node. A graph over another state becomes a node by
//! [`CompiledGraph::embed`], with one function for its input and one for its result.

pub use crate::words::Memory;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::attempt::in_agent_span;
use crate::engine::executor::ParentExit;
use crate::engine::host::{ParentUpdate, foreign_update, passed_on};
#[cfg(feature = "testing")]
use crate::erased::observed::Observer;
use crate::erased::{Call, ErasedNode, FnCall, NodeResult};
use crate::error::{BoxError, OwnError};
use crate::extract::{FromTask, Input, Requirement, Task};
use crate::node::{IntoNode, Node, NodeSettings, begin_call, for_prefixes};
use crate::run::CompiledGraph;
use crate::run::nested::{Callee, ChildEnd, ChildInput, enter};
use crate::spans::may_be_heard;
use crate::state::{State, StoredState};
use crate::step::{Command, IntoStep, Step, ToParent};
use crate::typed::{AnyState, AnyUpdate};

/// A graph that becomes a node of a graph over `P`: see [`CompiledGraph::embed`] and
/// [`CompiledGraph::memory`].
///
/// It has the settings of nodes: [`IntoNode::retry`], [`IntoNode::timeout`], [`IntoNode::on_error`] and the
/// others. With a checkpointer, a retry continues from the last checkpoint of the failed attempt.
#[must_use = "a subgraph does nothing until it is a node of another graph"]
pub struct Subgraph<P: State, C: State> {
    graph: CompiledGraph<C>,
    memory: Memory,
    begin: Arc<BeginFn<P>>,
    /// The requirements of the function that makes its input.
    requirements: Vec<Requirement>,
}

/// Makes the input of a call, and what becomes of its result.
type BeginFn<P> = dyn Fn(&Task<'_, P>) -> Result<Begun<P>, BoxError> + Send + Sync;
type Begun<P> = (ChildInput, Arc<EndFn<P>>);
type EndFn<P> = dyn Fn(ChildEnd) -> NodeResult<P> + Send + Sync;

impl<P: State, C: State> Subgraph<P, C> {
    /// The memory of the subgraph; [`Memory::PerCall`] if not set.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }
}

impl<P: State, C: State> fmt::Debug for Subgraph<P, C> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Subgraph").field("graph", &self.graph).field("memory", &self.memory).finish()
    }
}

/// # As a subgraph
impl<S: State> CompiledGraph<S> {
    /// The graph as a node of a graph over another state, through two functions. `input` makes the input of
    /// the subgraph's run from extractors, like the arguments of a node: a [`Snapshot<P>`](crate::Snapshot)
    /// of the parent's state, the [`Input`](crate::Input) of a dispatch. `output` makes the node's result
    /// from the subgraph's last state: an update, a [`Command`], or a `Result` of one of these. Both must
    /// be pure: they are called again when a call continues.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Report {
    ///     topics: Vec<String>,
    ///     #[reduce(append)]
    ///     parts: Vec<String>,
    /// }
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Part {
    ///     topic: String,
    ///     text: String,
    /// }
    ///
    /// async fn write(part: Snapshot<Part>) -> PartUpdate {
    ///     Part::update().text(format!("all about {}", part.topic))
    /// }
    /// async fn split(report: Snapshot<Report>) -> Command<Report> {
    ///     Command::to(
    ///         report.topics.iter().map(|topic| Dispatch::new("part", topic.clone())).collect::<Vec<_>>(),
    ///     )
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let part = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let report = StateGraph::new()
    ///     .node("split", split.targets(["part"]))
    ///     .node(
    ///         "part",
    ///         part.embed(
    ///             |Input(topic): Input<String>| Part::update().topic(topic),
    ///             |part: Part| Report::update().parts([part.text]),
    ///         ),
    ///     )
    ///     .edge(START, "split")
    ///     .compile()?;
    /// let report =
    ///     report.invoke(Report::update().topics(vec!["tea".into(), "rain".into()])).finish().await?;
    /// assert_eq!(report.parts, ["all about tea", "all about rain"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn embed<P: State, M, O: IntoStep<P>>(
        self,
        input: impl SubgraphInput<P, S, M>,
        output: impl Fn(S) -> O + Send + Sync + 'static,
    ) -> Subgraph<P, S> {
        let end: Arc<EndFn<P>> = Arc::new(move |end| result_of(end, &output));
        Subgraph {
            graph: self,
            memory: Memory::default(),
            requirements: <_ as SubgraphInput<P, S, M>>::requirements(&input),
            begin: Arc::new(move |task| {
                let input = AnyUpdate::new::<S>(input.input(task)?);
                Ok((ChildInput { state: None, input }, Arc::clone(&end)))
            }),
        }
    }

    /// The graph as a node that is dispatched, like [`embed`](CompiledGraph::embed), for a result that
    /// belongs to its input: both functions get the input of the [`Dispatch`](crate::Dispatch).
    ///
    /// ```
    /// use agentgraph::prelude::*;
    /// # use std::collections::BTreeMap;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Report { topics: Vec<String>, #[reduce(merge)] parts: BTreeMap<String, String> }
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Part { topic: String, text: String }
    /// # async fn write(part: Snapshot<Part>) -> PartUpdate {
    /// #     Part::update().text(format!("all about {}", part.topic))
    /// # }
    /// # async fn split(report: Snapshot<Report>) -> Command<Report> {
    /// #     Command::to(report.topics.iter().map(|topic| Dispatch::new("part", topic.clone())).collect::<Vec<_>>())
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let part = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let part = part.embed_dispatched(
    ///     |topic: &String| Part::update().topic(topic),
    ///     |topic: String, part: Part| Report::update().parts([(topic, part.text)]),
    /// );
    /// let report = StateGraph::new()
    ///     .node("split", split.targets(["part"]))
    ///     .node("part", part)
    ///     .edge(START, "split")
    ///     .compile()?;
    /// let report = report.invoke(Report::update().topics(vec!["tea".into(), "rain".into()])).finish().await?;
    /// assert_eq!(report.parts["rain"], "all about rain");
    /// # Ok(())
    /// # }
    /// ```
    pub fn embed_dispatched<P: State, I, U, O>(
        self,
        input: impl Fn(&I) -> U + Send + Sync + 'static,
        output: impl Fn(I, S) -> O + Send + Sync + 'static,
    ) -> Subgraph<P, S>
    where
        I: DeserializeOwned + Clone + Send + Sync + 'static,
        U: Into<S::Update>,
        O: IntoStep<P>,
    {
        let output = Arc::new(output);
        let requirement = <Input<I> as FromTask<P>>::requirement();
        Subgraph {
            graph: self,
            memory: Memory::default(),
            requirements: requirement.into_iter().collect(),
            begin: Arc::new(move |task| {
                let Input(item) = Input::<I>::from_task(task)?;
                let begin = ChildInput { state: None, input: AnyUpdate::new::<S>(input(&item).into()) };
                let output = Arc::clone(&output);
                let end: Arc<EndFn<P>> =
                    Arc::new(move |end| result_of(end, |state| output(item.clone(), state)));
                Ok((begin, end))
            }),
        }
    }

    /// The graph as a node of a graph over the same state, with this memory. A graph that is added
    /// directly has [`Memory::PerCall`].
    pub fn memory(self, memory: Memory) -> Subgraph<S, S> {
        let end: Arc<EndFn<S>> = Arc::new(|end| match end {
            ChildEnd::Updates(update) => Ok(Step::Update(update.into_update::<S>())),
            ChildEnd::State(_) => Ok(Step::None),
            ChildEnd::Left(left) => leave(left),
        });
        Subgraph {
            graph: self,
            memory,
            requirements: Vec::new(),
            begin: Arc::new(move |task| match task.input {
                None => {
                    let state = AnyState::new(Arc::clone(task.state));
                    let begin = ChildInput { state: Some(Arc::new(state)), input: AnyUpdate::default() };
                    Ok((begin, Arc::clone(&end)))
                }
                Some(_) => Err(TakesNoInput.into()),
            }),
        }
    }
}

/// The step of a subgraph's node from the last state of the subgraph.
fn result_of<P: State, C: State, O: IntoStep<P>>(
    end: ChildEnd,
    output: impl FnOnce(C) -> O,
) -> NodeResult<P> {
    match end {
        ChildEnd::State(state) => output(state.into_state::<C>()).into_step(),
        ChildEnd::Updates(_) => Ok(Step::None),
        ChildEnd::Left(left) => leave(left),
    }
}

/// The error of a dispatch to a subgraph over the same state.
#[derive(Debug, thiserror::Error)]
#[error(
    "a subgraph over the same state takes no input: add it by `.embed(|input: Input<_>| .., |state| ..)` to dispatch to it, or reach it by an edge or a `goto`"
)]
struct TakesNoInput;

/// The step of a subgraph's node after one of its nodes has left the subgraph.
fn leave<P: State>(left: ParentExit) -> NodeResult<P> {
    let ParentExit { to, targets } = left;
    let command = Command { targets, replaces_edges: true, ..Command::new() };
    let update = match to.update.map(|update| update.downcast::<P::Update>()) {
        None => None,
        Some(Ok(update)) => Some(*update),
        Some(Err(other)) => match other.downcast::<ParentUpdate>() {
            Ok(encoded) => return Ok(passed_on(command, encoded)),
            Err(other) => {
                let to = ToParent { update: Some(other), ..to };
                return Err(OwnError(foreign_update::<P>(&to)).into());
            }
        },
    };
    Ok(Step::Command(Box::new(Command { update, ..command })))
}

/// A function that makes the input of a subgraph over `C` from extractors over `P`: see
/// [`CompiledGraph::embed`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make the input of a subgraph",
    label = "not a function of extractors that returns the subgraph's update",
    note = "annotate the argument, as in `|parent: Snapshot<Parent>| Child::update().question(parent.question.clone())`"
)]
pub trait SubgraphInput<P: State, C: State, M>: Send + Sync + 'static {
    /// Calls it.
    ///
    /// # Errors
    /// If an extractor fails.
    fn input(&self, task: &Task<'_, P>) -> Result<C::Update, BoxError>;

    /// The requirements of its extractors, so that `compile()` can report missing ones.
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }
}

macro_rules! subgraph_inputs {
    ($($argument:ident)*) => {
        impl<P, C, F, Out, $($argument,)*> SubgraphInput<P, C, (Out, $($argument,)*)> for F
        where
            P: State,
            C: State,
            F: Fn($($argument,)*) -> Out + Send + Sync + 'static,
            Out: Into<C::Update>,
            $($argument: FromTask<P>,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn input(&self, task: &Task<'_, P>) -> Result<C::Update, BoxError> {
                $(let $argument = $argument::from_task(task).map_err(Into::into)?;)*
                Ok(self($($argument,)*).into())
            }

            fn requirements(&self) -> Vec<Requirement> {
                let requirements: &[Option<Requirement>] = &[$($argument::requirement(),)*];
                requirements.iter().copied().flatten().collect()
            }
        }
    };
}

for_prefixes!(subgraph_inputs! [] A1 A2 A3 A4);

/// Marks the implementations for graphs.
#[derive(Debug)]
pub struct IsGraph;

impl<S: StoredState> IntoNode<S, IsGraph> for CompiledGraph<S> {
    fn into_node(self) -> Node<S> {
        self.memory(Memory::default()).into_node()
    }
}

impl<P: State, C: StoredState> IntoNode<P, IsGraph> for Subgraph<P, C> {
    fn into_node(self) -> Node<P> {
        let Subgraph { graph, memory, begin, requirements } = self;
        let codec = graph.codec();
        let callee = Arc::new(Callee { graph: graph.into_any(), codec, memory });
        let settings =
            NodeSettings { graph: Some(Arc::clone(&callee) as _), requirements, ..NodeSettings::default() };
        Node { call: Arc::new(GraphNode { callee, begin }), settings }
    }
}

/// A graph as the call of a node.
struct GraphNode<P: State> {
    callee: Arc<Callee>,
    begin: Arc<BeginFn<P>>,
}

impl<P: State> ErasedNode<P> for GraphNode<P> {
    fn call(&self, task: &Task<'_, P>) -> Result<Call<P>, BoxError> {
        begin_call(task)?;
        let (begin, end) = (self.begin)(task)?;
        let entered = enter(Arc::clone(&self.callee), begin, Arc::clone(task.shared), task.request);
        let call = async move { end(entered.await?) };
        Ok(match self.callee.graph.agent() {
            Some(agent) if may_be_heard() => FnCall::boxed(in_agent_span(agent, task, Box::pin(call))),
            _ => FnCall::boxed(call),
        })
    }

    #[cfg(feature = "testing")]
    fn observed(&self, by: &Arc<dyn Observer>, path: &str) -> Option<Arc<dyn ErasedNode<P>>> {
        let Callee { graph, codec, memory } = &*self.callee;
        let callee =
            Callee { graph: Arc::new(graph.observed(by, path, codec)), codec: *codec, memory: *memory };
        Some(Arc::new(GraphNode { callee: Arc::new(callee), begin: Arc::clone(&self.begin) }))
    }
}
