//! [`CompiledDependencyGraph`]: a checked dependency graph. Immutable, cheap to clone, shared by any number
//! of passes.

use crate::dependency::outputs::{Output, OutputTable, PassInput};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::attached::Attached;
use super::compiled::CompiledGraph;
use super::passes::Passes;
use super::task::TaskRun;
use crate::context::host::{Host, TaskCall};
use crate::dependency::compile::compile;
use crate::dependency::edits::BeforePass;
use crate::dependency::outputs::{Outputs, OutputsUpdate};
use crate::dependency::wiring::Wiring;
use crate::dependency::{DependencyGraph, draw};
use crate::engine::driver::Driver;
use crate::error::Error;
use crate::graph::{CompileError, GraphTopology};
use crate::run::RunBuilder;
use crate::run::history::History;
use crate::run::view::Checkpoint;
use crate::run::{Branch, CancelThread, RunningThreads, ThreadReport, WaitingThreads};
use crate::words::{InterruptId, clones};
use agentgraph_checkpoint::services::Services;
use agentgraph_checkpoint::shows;
use agentgraph_checkpoint::{CheckpointId, Checkpointer, Store};

/// A runnable dependency graph, made by [`DependencyGraph::compile`](crate::DependencyGraph::compile).
pub struct CompiledDependencyGraph<O: Output, S: PassInput = ()> {
    pub(in crate::run) graph: CompiledGraph<Outputs<O, S>>,
    pub(in crate::run) wiring: Arc<Wiring<O, S>>,
}

impl<O: Output, S: PassInput> DependencyGraph<O, S> {
    /// Checks the graph and makes it runnable.
    ///
    /// # Errors
    /// All [`Problem`](crate::graph::Problem)s of the graph, including cycles, each with the file and line of
    /// the call that caused it.
    pub fn compile(self) -> Result<CompiledDependencyGraph<O, S>, CompileError> {
        let (compiled, wiring) = compile(self)?;
        let driver = Arc::clone(&wiring) as Arc<dyn Driver>;
        let graph = CompiledGraph::of(Attached { driver: Some(driver), ..Attached::of(compiled) });
        Ok(CompiledDependencyGraph { graph, wiring })
    }
}

impl<O: Output, S: PassInput> CompiledDependencyGraph<O, S> {
    /// Starts a pass. Without a checkpointer it has no outputs of earlier passes: see
    /// [`passes`](Self::passes).
    ///
    /// The limit of [`max_supersteps`](RunBuilder::max_supersteps) counts nodes here. There is none by
    /// default.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn invoke(&self, input: S) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::invoke(self.graph.any.clone(), OutputsUpdate::begin(input)).max_supersteps(u64::MAX)
    }

    /// Continues a pass with an answer to the one open interrupt of a thread.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume(&self, answer: impl Serialize) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::resume(self.graph.any.clone(), answer).max_supersteps(u64::MAX)
    }

    /// Continues a pass with answers to interrupts by their ids.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::resume_many(self.graph.any.clone(), answers).max_supersteps(u64::MAX)
    }

    /// Continues a pass that was stopped by anything but an open interrupt: a failure, a limit, a cancelled
    /// or killed process. Finished nodes do not run again, and their edits stay in effect.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn proceed(&self) -> RunBuilder<Outputs<O, S>> {
        RunBuilder::proceed(self.graph.any.clone()).max_supersteps(u64::MAX)
    }

    /// A series of passes in memory, each with the outputs of those before it, so that nodes can be skipped.
    pub fn passes(&self) -> Passes<O, S> {
        Passes::of(self.clone())
    }

    /// Stores the passes of the graph in `saver`. Every pass then needs a thread, which keeps the outputs
    /// from pass to pass.
    #[must_use]
    pub fn checkpointer(mut self, saver: impl Checkpointer) -> Self
    where
        O: Serialize + DeserializeOwned,
        S: Serialize + DeserializeOwned,
    {
        self.graph = self.graph.checkpointer(saver);
        self
    }

    /// Runs the nodes of the graph on `host`, sync ones too, as
    /// [`CompiledGraph::host`](crate::CompiledGraph::host) does. A node gets the input of the pass and the
    /// outputs that it depends on; it can edit the pass, by templates only.
    ///
    /// ```
    /// use agentgraph::BoxError;
    /// use agentgraph::CompiledDependencyGraph;
    /// use agentgraph::host::{Host, TaskCall, TaskReply};
    /// use agentgraph::prelude::*;
    ///
    /// /// Another process with the same graph.
    /// struct Worker(CompiledDependencyGraph<u64>);
    ///
    /// #[async_trait::async_trait]
    /// impl Host for Worker {
    ///     async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
    ///         Ok(self.0.run_task(call).await?)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = DependencyGraph::<u64>::new()
    ///     .node("two", || 2)
    ///     .node("square", |deps: Deps<u64>| deps[0] * deps[0])
    ///     .edge("two", "square")
    ///     .compile()?;
    /// let graph = graph.clone().host(Worker(graph));
    /// assert_eq!(graph.invoke(()).finish().await?["square"], 4);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn host(mut self, host: impl Host) -> Self
    where
        O: Serialize + DeserializeOwned,
        S: Serialize + DeserializeOwned,
    {
        self.graph = self.graph.host(host);
        self
    }

    /// Runs one attempt of a node that a [`Host`] has sent, as
    /// [`CompiledGraph::run_task`](crate::CompiledGraph::run_task) does.
    ///
    /// # Errors
    /// As there.
    pub fn run_task(&self, call: TaskCall) -> TaskRun<'_>
    where
        O: Serialize + DeserializeOwned,
        S: Serialize + DeserializeOwned,
    {
        self.graph.run_task(call)
    }

    /// Gives the nodes a long-term memory, as [`CompiledGraph::store`](crate::CompiledGraph::store) does.
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.graph = self.graph.store(store);
        self
    }

    /// Uses `services` for time and randomness.
    #[must_use]
    pub fn services(mut self, services: impl Services) -> Self {
        self.graph = self.graph.services(services);
        self
    }

    /// Returns the newest checkpoint of a thread, including the nodes that have finished since. `None` for a
    /// thread that does not exist.
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails or its bytes cannot be read.
    pub async fn state(&self, thread: impl AsRef<str>) -> Result<Option<Checkpoint<Outputs<O, S>>>, Error> {
        self.graph.state(thread).await
    }

    /// Returns a thread as it was at a checkpoint.
    ///
    /// # Errors
    /// As for [`state`](Self::state).
    pub async fn state_at(
        &self,
        thread: impl AsRef<str>,
        checkpoint: CheckpointId,
    ) -> Result<Option<Checkpoint<Outputs<O, S>>>, Error> {
        self.graph.state_at(thread, checkpoint).await
    }

    /// Returns the checkpoints of a thread, newest first: one at the start of each pass and one at its end.
    pub fn history(&self, thread: impl AsRef<str>) -> History<Outputs<O, S>> {
        self.graph.history(thread)
    }

    /// Returns the branches of a thread, the current one last.
    ///
    /// # Errors
    /// As for [`state`](Self::state).
    pub async fn branches(&self, thread: impl AsRef<str>) -> Result<Vec<Branch>, Error> {
        self.graph.branches(thread).await
    }

    /// Returns what is open in a thread and why; `None` for a thread that does not exist.
    ///
    /// # Errors
    /// As for [`state`](Self::state).
    pub async fn report(&self, thread: impl AsRef<str>) -> Result<Option<ThreadReport>, Error> {
        self.graph.report(thread).await
    }

    /// Returns a query of the threads of the store that wait.
    pub fn waiting(&self) -> WaitingThreads {
        self.graph.waiting()
    }

    /// Returns a query of the threads of the store that run now.
    pub fn running(&self) -> RunningThreads {
        self.graph.running()
    }

    /// Returns a request to cancel the run of a thread, wherever it runs.
    pub fn cancel(&self, thread: impl AsRef<str>) -> CancelThread {
        self.graph.cancel(thread)
    }

    /// Returns the graph as it was at a checkpoint: at the start of a pass with the edits made before it, at
    /// its end with all its edits. `None` for a checkpoint that does not exist.
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
    /// As for [`state`](Self::state).
    pub async fn topology_at(
        &self,
        thread: impl AsRef<str>,
        checkpoint: CheckpointId,
    ) -> Result<Option<GraphTopology>, Error> {
        let found = self.state_at(thread, checkpoint).await?;
        Ok(found.map(|found| draw::topology_of(&self.wiring, found.values.edits())))
    }

    /// The names of the nodes, in order of declaration.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.graph.nodes()
    }

    /// The channels of its [`Outputs`]: the names of the nodes.
    pub fn schema(&self) -> &OutputTable {
        self.graph.schema()
    }

    /// The graph's fingerprint: 32 hexadecimal digits that change when nodes, edges, joins or templates
    /// change.
    pub fn fingerprint(&self) -> &str {
        self.graph.fingerprint()
    }

    /// Returns the graph as a Mermaid flowchart: order-only edges are dotted.
    pub fn mermaid(&self) -> String {
        draw::mermaid(&self.wiring)
    }

    /// Returns the graph with the edits of that pass: added parts are dashed, removed ones are crossed out,
    /// and nodes that were skipped or did not run are grey. The pass may be under way, finished, or read from
    /// a thread.
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
    /// Edits the graph for this pass before it starts. Only has an effect on a pass started by `invoke`.
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
    /// assert_eq!(graph.invoke(()).finish().await?["sum"], 1);
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

clones!([O: Output, S: PassInput] CompiledDependencyGraph<O, S> { graph, wiring });

shows!([O: Output, S: PassInput] CompiledDependencyGraph<O, S>: |it| {
    nodes: it.wiring.names, fingerprint: it.fingerprint()
});
