//! [`CompiledDependencyGraph`]: a dependency graph that was checked. Immutable, cheap to clone, shared by any
//! number of passes.

use crate::dependency::outputs::{Output, PassInput};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::compiled::CompiledGraph;
use super::passes::Passes;
use crate::dependency::compile::compile;
use crate::dependency::edits::BeforePass;
use crate::dependency::outputs::{Outputs, OutputsUpdate};
use crate::dependency::wiring::Wiring;
use crate::dependency::{DependencyGraph, draw};
use crate::engine::driver::Driver;
use crate::error::Error;
use crate::graph::{CompileError, GraphTopology};
use crate::run::RunBuilder;
use crate::run::view::{Checkpoint, History};
use crate::words::InterruptId;
use agentgraph_checkpoint::services::Services;
use agentgraph_checkpoint::{CheckpointId, Checkpointer};

/// A runnable dependency graph. [`DependencyGraph::compile`](crate::DependencyGraph::compile) makes it.
pub struct CompiledDependencyGraph<O: Output, S: PassInput = ()> {
    graph: CompiledGraph<Outputs<O, S>>,
    wiring: Arc<Wiring<O, S>>,
}

impl<O: Output, S: PassInput> DependencyGraph<O, S> {
    /// Checks the graph and makes it runnable.
    ///
    /// # Errors
    /// Every [`Problem`](crate::graph::Problem) there is, cycles too, each with the file and line of the call
    /// it comes from.
    pub fn compile(self) -> Result<CompiledDependencyGraph<O, S>, CompileError> {
        let (compiled, wiring) = compile(self)?;
        let driver = Arc::clone(&wiring) as Arc<dyn Driver<Outputs<O, S>>>;
        let graph = CompiledGraph { driver: Some(driver), ..CompiledGraph::of(compiled) };
        Ok(CompiledDependencyGraph { graph, wiring })
    }
}

impl<O: Output, S: PassInput> CompiledDependencyGraph<O, S> {
    /// Begins a pass. Without a checkpointer it knows nothing of earlier ones: see [`passes`](Self::passes).
    ///
    /// The limit of [`max_supersteps`](RunBuilder::max_supersteps) is one of nodes here, and there is none by
    /// default.
    pub fn invoke(&self, input: S) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::invoke(self.graph.clone(), OutputsUpdate::begin(input)).max_supersteps(u64::MAX)
    }

    /// Goes on with an answer to the one open interrupt of a thread.
    pub fn resume(&self, answer: impl Serialize) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::resume(self.graph.clone(), answer).max_supersteps(u64::MAX)
    }

    /// Goes on with answers to interrupts by their ids.
    pub fn resume_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::resume_many(self.graph.clone(), answers).max_supersteps(u64::MAX)
    }

    /// Goes on with a pass that was stopped by anything but an open interrupt: a failure, a limit, a
    /// cancelled or killed process. Nodes that are done do not run again, and its edits hold.
    pub fn proceed(&self) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::proceed(self.graph.clone()).max_supersteps(u64::MAX)
    }

    /// A line of passes in memory, in which each knows the outputs of those before it, for nodes to be
    /// skipped.
    pub fn passes(&self) -> Passes<O, S> {
        Passes::of(self.clone())
    }

    /// The same graph, whose passes are kept by `saver`: every pass then needs a thread, which keeps the
    /// outputs from pass to pass.
    #[must_use]
    pub fn checkpointer(mut self, saver: impl Checkpointer) -> Self
    where
        O: Serialize + DeserializeOwned,
        S: Serialize + DeserializeOwned,
    {
        self.graph = self.graph.checkpointer(saver);
        self
    }

    /// The same graph, taking time and randomness from `services`.
    #[must_use]
    pub fn services(mut self, services: impl Services) -> Self {
        self.graph = self.graph.services(services);
        self
    }

    /// The newest checkpoint of a thread, with what has finished since. `None` for a thread that does not
    /// exist.
    ///
    /// # Errors
    /// Without a checkpointer, or when the store or its bytes fail.
    pub async fn state(&self, thread: &str) -> Result<Option<Checkpoint<Outputs<O, S>>>, Error> {
        self.graph.state(thread).await
    }

    /// A thread as it was at a checkpoint.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub async fn state_at(
        &self,
        thread: &str,
        checkpoint: CheckpointId,
    ) -> Result<Option<Checkpoint<Outputs<O, S>>>, Error> {
        self.graph.state_at(thread, checkpoint).await
    }

    /// The checkpoints of a thread, newest first: one where a pass began and one where it was over.
    pub fn history(&self, thread: impl Into<String>) -> History<Outputs<O, S>> {
        self.graph.history(thread)
    }

    /// The graph as it was at a checkpoint: where a pass began with what was edited before it, and where one
    /// was over with all its edits. `None` for a checkpoint that does not exist.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// fn cut(edits: PassEdits<u64>) -> Result<u64> {
    ///     edits.remove_edge("b", "c")?;
    ///     Ok(1)
    /// }
    /// let graph = DependencyGraph::<u64>::new()
    ///     .node("a", |_: Deps<u64>, edits: PassEdits<u64>| cut(edits))
    ///     .node("b", || 2)
    ///     .node("c", || 3)
    ///     .edge("b", "c")
    ///     .compile()?
    ///     .checkpointer(MemorySaver::new());
    /// let pass = graph.invoke(()).thread("t").for_this_pass(|edits| {
    ///     edits.add_edge("a", "b");
    /// });
    /// pass.await?;
    /// let history = graph.history("t").await?; // the newest first
    /// let over = graph.topology_at("t", history[0].id).await?.expect("it is kept");
    /// let began = graph.topology_at("t", history[1].id).await?.expect("it is kept");
    /// let edges = |topology: &agentgraph::graph::GraphTopology| topology.edges.len();
    /// assert_eq!((edges(&began), edges(&over)), (2, 1));
    /// assert!(over.edges[0].is_temporary);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub async fn topology_at(
        &self,
        thread: &str,
        checkpoint: CheckpointId,
    ) -> Result<Option<GraphTopology>, Error> {
        let found = self.state_at(thread, checkpoint).await?;
        Ok(found.map(|found| draw::topology_of(&self.wiring, &found.values)))
    }

    /// The nodes' names, in order of declaration.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.graph.nodes()
    }

    /// The graph's fingerprint: 32 hexadecimal digits that change when nodes, edges, joins or templates do.
    pub fn fingerprint(&self) -> &str {
        self.graph.fingerprint()
    }

    /// The graph as a Mermaid flowchart: order-only edges are dotted.
    pub fn mermaid(&self) -> String {
        draw::mermaid(&self.wiring)
    }

    /// The graph as that pass has edited it: what it added is dashed, what it cut is crossed out, and nodes
    /// that it skipped or that did not run are grey. For a pass under way, a finished one, or one that a
    /// thread has kept.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<u64>::new().node("a", || 1).node("b", || 2).compile()?;
    /// let pass = graph.invoke(()).for_this_pass(|edits| {
    ///     edits.add_edge("a", "b");
    /// });
    /// let outputs = pass.await?.into_finished()?;
    /// assert!(graph.mermaid_of(&outputs).contains("n0 -.->|added| n1"));
    /// assert!(!graph.mermaid().contains("n0 -"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn mermaid_of(&self, outputs: &Outputs<O, S>) -> String {
        draw::mermaid_of(&self.wiring, outputs)
    }
}

impl<O: Output, S: PassInput> RunBuilder<Outputs<O, S>> {
    /// Edits the graph for this pass before it begins. It has an effect on a pass that `invoke` begins.
    ///
    /// ```
    /// use agentgraph::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<u64>::new()
    ///     .node("one", || 1)
    ///     .node("sum", |deps: Deps<u64>| deps.outputs().sum::<u64>())
    ///     .edge("one", "sum")
    ///     .compile()?;
    /// let outputs = graph
    ///     .invoke(())
    ///     .for_this_pass(|edits| {
    ///         edits.add_fn("two", || 2).add_edge("two", "sum");
    ///     })
    ///     .await?
    ///     .into_finished()?;
    /// assert_eq!(outputs["sum"], 3);
    /// assert_eq!(graph.invoke(()).await?.into_finished()?["sum"], 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_this_pass(self, edit: impl FnOnce(&mut BeforePass<O, S>)) -> Self {
        let mut edits = BeforePass::new();
        edit(&mut edits);
        self.with_input(|input| {
            let ops =
                edits.ops.map_err(|error| Error::new(error.code(), error.to_string()).with_source(error))?;
            if let Some(begins) = &mut input.begins {
                begins.before.extend(ops);
            }
            Ok(())
        })
    }
}

impl<O: Output, S: PassInput> Clone for CompiledDependencyGraph<O, S> {
    fn clone(&self) -> Self {
        CompiledDependencyGraph { graph: self.graph.clone(), wiring: Arc::clone(&self.wiring) }
    }
}

impl<O: Output, S: PassInput> fmt::Debug for CompiledDependencyGraph<O, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CompiledDependencyGraph")
            .field("nodes", &self.wiring.names)
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}
