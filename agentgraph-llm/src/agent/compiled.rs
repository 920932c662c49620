//! [`CompiledAgent`]: the graph of an agent, narrowed to the type of its answer.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use agentgraph::checkpoint::services::Services;
use agentgraph::node::{IntoNode, Node};
use agentgraph::run::InterruptId;
use agentgraph::state::StoredState;
use agentgraph::{Checkpointer, CompiledGraph, RunBuilder, Store};
use serde::Serialize;

use super::answer::AgentAnswer;
use super::state::{AgentChannels, AgentState};

/// An agent that can run: a compiled graph whose runs show an [`AgentAnswer`]. Immutable and cheap to clone.
///
/// It dereferences to its [`CompiledGraph`], and it is a node of graphs over the same state. As a node of a
/// graph over another state, use [`CompiledGraph::embed`] on [`into_graph`](CompiledAgent::into_graph).
pub struct CompiledAgent<T = String, S: AgentChannels = AgentState> {
    graph: CompiledGraph<S>,
    about: Arc<About>,
    of: PhantomData<fn() -> T>,
}

/// What other agents know of an agent.
struct About {
    name: String,
    description: String,
}

impl<T, S: AgentChannels> CompiledAgent<T, S> {
    pub(super) fn new(
        graph: CompiledGraph<S>,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let about = Arc::new(About { name: name.into(), description: description.into() });
        CompiledAgent { graph, about, of: PhantomData }
    }

    fn with(self, graph: impl FnOnce(CompiledGraph<S>) -> CompiledGraph<S>) -> Self {
        CompiledAgent { graph: graph(self.graph), ..self }
    }

    /// The [name](super::Agent::name) of the agent.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// The [description](super::Agent::description) of the agent.
    pub fn description(&self) -> &str {
        &self.about.description
    }

    /// Starts a run. A text or a message is added to the conversation.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn invoke(&self, input: impl Into<S::Update>) -> RunBuilder<S, AgentAnswer<T, S>> {
        self.graph.invoke(input).output()
    }

    /// Continues a run with the answer to its one open question: [`CompiledGraph::resume`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume(&self, answer: impl Serialize) -> RunBuilder<S, AgentAnswer<T, S>> {
        self.graph.resume(answer).output()
    }

    /// Continues a run with answers to its open questions: [`CompiledGraph::resume_many`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RunBuilder<S, AgentAnswer<T, S>> {
        self.graph.resume_many(answers).output()
    }

    /// Continues a run that was stopped or failed: [`CompiledGraph::proceed`].
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn proceed(&self) -> RunBuilder<S, AgentAnswer<T, S>> {
        self.graph.proceed().output()
    }

    /// Stores the runs in `saver`: [`CompiledGraph::checkpointer`].
    #[must_use]
    pub fn checkpointer(self, saver: impl Checkpointer) -> Self
    where
        S: StoredState,
    {
        self.with(|graph| graph.checkpointer(saver))
    }

    /// Gives tools and middleware a long-term memory: [`CompiledGraph::store`].
    #[must_use]
    pub fn store(self, store: impl Store) -> Self {
        self.with(|graph| graph.store(store))
    }

    /// Uses `services` for time and randomness: [`CompiledGraph::services`].
    #[must_use]
    pub fn services(self, services: impl Services) -> Self {
        self.with(|graph| graph.services(services))
    }

    /// The graph.
    pub fn graph(&self) -> &CompiledGraph<S> {
        &self.graph
    }

    /// The graph, to set it up further or to embed it.
    pub fn into_graph(self) -> CompiledGraph<S> {
        self.graph
    }
}

impl<T, S: AgentChannels> Deref for CompiledAgent<T, S> {
    type Target = CompiledGraph<S>;

    fn deref(&self) -> &CompiledGraph<S> {
        &self.graph
    }
}

/// Marks the implementation of [`IntoNode`] for [`CompiledAgent`].
#[derive(Debug)]
pub struct IsAgent;

impl<T, S: AgentChannels + StoredState> IntoNode<S, IsAgent> for CompiledAgent<T, S> {
    fn into_node(self) -> Node<S> {
        self.graph.into_node()
    }
}

impl<T, S: AgentChannels> Clone for CompiledAgent<T, S> {
    fn clone(&self) -> Self {
        CompiledAgent { graph: self.graph.clone(), about: Arc::clone(&self.about), of: PhantomData }
    }
}

impl<T, S: AgentChannels> fmt::Debug for CompiledAgent<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("CompiledAgent").field(&self.graph).finish()
    }
}
