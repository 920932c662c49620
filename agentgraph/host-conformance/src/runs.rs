//! [`LocalRuns`] and [`HostedRuns`]: hosts under test whose loop runs in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use agentgraph::host::{Host, HostedGraph, RunCall, RunEnd, ThreadState};
use agentgraph::prelude::*;
use agentgraph::{BoxError, CheckpointId};
use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::clauses::graphs;
use crate::graph::KitGraph;
use crate::host::{Ability, HostUnderTest};
use crate::notes::Notes;

/// The graphs of the kit without a host: all runs in this process. It holds every clause that it has the
/// abilities for.
#[derive(Debug)]
pub struct LocalRuns(Loops);

impl LocalRuns {
    /// All graphs, with these notes.
    pub fn new(notes: &Notes) -> Self {
        LocalRuns(Loops::of(graphs(notes).into_iter()))
    }
}

/// The graphs of the kit with a [`Host`]: their loops run in this process, their tasks on the host.
pub struct HostedRuns {
    loops: Loops,
    abilities: Vec<Ability>,
    kill: Option<Box<Kill>>,
}

type Kill = dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync;

impl HostedRuns {
    /// All graphs, each with the host that `host_of` makes for its name. The workers of that host have the
    /// same graph, built with notes in the same file.
    pub fn new<H: Host>(notes: &Notes, host_of: impl Fn(&str) -> H) -> Self {
        let hosted = graphs(notes).into_iter().map(|graph| {
            let host: Arc<dyn Host> = Arc::new(host_of(graph.name()));
            graph.host(host)
        });
        HostedRuns { loops: Loops::of(hosted), abilities: vec![Ability::Elsewhere], kill: None }
    }

    /// The abilities of the host's workers: [`Ability::DurableSteps`], [`Ability::Contexts`].
    #[must_use]
    pub fn with(mut self, abilities: impl IntoIterator<Item = Ability>) -> Self {
        self.abilities.extend(abilities);
        self
    }

    /// Adds [`Ability::Kill`]: `kill` kills all processes of the host that run tasks, and starts others.
    #[must_use]
    pub fn killed_by(
        mut self,
        kill: impl Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    ) -> Self {
        self.abilities.push(Ability::Kill);
        self.kill = Some(Box::new(kill));
        self
    }
}

impl fmt::Debug for HostedRuns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HostedRuns").field("abilities", &self.abilities).finish_non_exhaustive()
    }
}

/// Graphs whose loops run in this process, each with a store in memory.
struct Loops(BTreeMap<&'static str, Arc<dyn HostedGraph>>);

impl Loops {
    fn of(graphs: impl Iterator<Item = KitGraph>) -> Self {
        let kept =
            graphs.map(|graph| (graph.name(), graph.checkpointer(Arc::new(MemorySaver::new())).hosted()));
        Loops(kept.collect())
    }

    fn graph(&self, name: &str) -> Result<&Arc<dyn HostedGraph>, BoxError> {
        self.0.get(name).ok_or_else(|| format!("the kit has no graph `{name}`").into())
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        let (limit, before): (_, Option<CheckpointId>) = (None, None);
        Ok(self.graph(graph)?.history(thread, limit, before).await?)
    }
}

impl fmt::Debug for Loops {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.keys()).finish()
    }
}

#[async_trait]
impl HostUnderTest for LocalRuns {
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError> {
        Ok(self.0.graph(graph)?.call(thread, call).await)
    }

    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError> {
        Ok(self.0.graph(graph)?.state(thread).await?)
    }

    fn abilities(&self) -> Vec<Ability> {
        vec![Ability::History, Ability::Cancel, Ability::DurableSteps]
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        self.0.history(graph, thread).await
    }

    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        self.0.graph(graph)?.cancel(thread).await?;
        Ok(())
    }
}

#[async_trait]
impl HostUnderTest for HostedRuns {
    async fn call(&self, graph: &str, thread: &str, call: RunCall) -> Result<RunEnd, BoxError> {
        Ok(self.loops.graph(graph)?.call(thread, call).await)
    }

    async fn state(&self, graph: &str, thread: &str) -> Result<Option<ThreadState>, BoxError> {
        Ok(self.loops.graph(graph)?.state(thread).await?)
    }

    fn abilities(&self) -> Vec<Ability> {
        [&self.abilities[..], &[Ability::History, Ability::Cancel]].concat()
    }

    async fn history(&self, graph: &str, thread: &str) -> Result<Vec<ThreadState>, BoxError> {
        self.loops.history(graph, thread).await
    }

    async fn cancel(&self, graph: &str, thread: &str) -> Result<(), BoxError> {
        self.loops.graph(graph)?.cancel(thread).await?;
        Ok(())
    }

    async fn kill_workers(&self) -> Result<(), BoxError> {
        match &self.kill {
            None => Err(Ability::Kill.lack().into()),
            Some(kill) => kill().await,
        }
    }
}
