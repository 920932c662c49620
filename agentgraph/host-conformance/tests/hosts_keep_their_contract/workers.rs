//! [`Workers`]: the processes that run the tasks of a host, as a value of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentgraph::host::{FarSide, HostedGraph, TaskCall, TaskReply};
use agentgraph::{BoxError, Checkpointer, MemorySaver};
use agentgraph_host_conformance::{self as conformance, Notes};

/// The graphs of the kit, built anew, and a store for durable steps that all workers share.
pub struct Workers {
    graphs: BTreeMap<&'static str, Arc<dyn HostedGraph>>,
    steps: Arc<dyn Checkpointer>,
}

impl Workers {
    pub fn new(notes: &Notes) -> Arc<Self> {
        Workers::with_steps(notes, Arc::new(MemorySaver::new()))
    }

    pub fn with_steps(notes: &Notes, steps: Arc<dyn Checkpointer>) -> Arc<Self> {
        let graphs = conformance::graphs(notes).into_iter().map(|graph| (graph.name(), graph.hosted()));
        Arc::new(Workers { graphs: graphs.collect(), steps })
    }

    /// What a worker gives to the tasks of a thread.
    pub fn side(&self, thread: Option<&str>) -> FarSide {
        FarSide::new().once_in(Arc::clone(&self.steps)).context(conformance::context_of(thread))
    }

    pub async fn run(&self, graph: &str, call: TaskCall) -> Result<TaskReply, BoxError> {
        let side = self.side(call.thread.as_deref());
        self.run_with(graph, call, side).await
    }

    pub async fn run_with(&self, graph: &str, call: TaskCall, side: FarSide) -> Result<TaskReply, BoxError> {
        let graph = self.graphs.get(graph).ok_or("no such graph")?;
        Ok(graph.run_task(call, side).await?)
    }
}
