//! [`KitGraph`]: a graph of the kit, as either side of a host needs it.

use std::fmt;
use std::sync::Arc;

use agentgraph::checkpoint::Checkpointer;
use agentgraph::dependency::{Output, PassInput};
use agentgraph::host::{Host, HostedGraph};
use agentgraph::prelude::*;
use agentgraph::state::StoredState;
use agentgraph::{CompileError, CompiledDependencyGraph};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sheet::Sheet;

/// A graph of the kit.
#[derive(Clone)]
pub struct KitGraph {
    name: &'static str,
    graph: Arc<dyn AnyGraph>,
}

impl KitGraph {
    /// A graph over the kit's state.
    pub(crate) fn of(name: &'static str, graph: StateGraph<Sheet>) -> Self {
        KitGraph { name, graph: Arc::new(valid(graph.compile())) }
    }

    /// A dependency graph.
    pub(crate) fn of_passes(name: &'static str, graph: CompiledDependencyGraph<String, String>) -> Self {
        KitGraph { name, graph: Arc::new(graph) }
    }

    /// Its name, which callers use: letters, digits and `_`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The same graph with a checkpointer, for hosts that keep the history of threads in it.
    #[must_use]
    pub fn checkpointer(self, saver: Arc<dyn Checkpointer>) -> Self {
        KitGraph { graph: self.graph.with_checkpointer(saver), ..self }
    }

    /// The same graph with a host.
    #[must_use]
    pub fn host(self, host: Arc<dyn Host>) -> Self {
        KitGraph { graph: self.graph.with_host(host), ..self }
    }

    /// The graph for hosts.
    pub fn hosted(&self) -> Arc<dyn HostedGraph> {
        self.graph.hosted()
    }
}

impl fmt::Debug for KitGraph {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("KitGraph").field(&self.name).finish()
    }
}

/// A checked graph. Those of the kit do not depend on the user, so a problem is a mistake of the kit.
#[allow(clippy::expect_used)]
pub(crate) fn valid<G>(compiled: Result<G, CompileError>) -> G {
    compiled.expect("the graphs of the kit are valid")
}

/// A compiled graph of any kind.
trait AnyGraph: Send + Sync {
    fn with_checkpointer(&self, saver: Arc<dyn Checkpointer>) -> Arc<dyn AnyGraph>;
    fn with_host(&self, host: Arc<dyn Host>) -> Arc<dyn AnyGraph>;
    fn hosted(&self) -> Arc<dyn HostedGraph>;
}

impl<S: StoredState> AnyGraph for CompiledGraph<S> {
    fn with_checkpointer(&self, saver: Arc<dyn Checkpointer>) -> Arc<dyn AnyGraph> {
        Arc::new(self.clone().checkpointer(saver))
    }

    fn with_host(&self, host: Arc<dyn Host>) -> Arc<dyn AnyGraph> {
        Arc::new(self.clone().host(host))
    }

    fn hosted(&self) -> Arc<dyn HostedGraph> {
        Arc::new(self.clone())
    }
}

impl<O, S> AnyGraph for CompiledDependencyGraph<O, S>
where
    O: Output + Serialize + DeserializeOwned,
    S: PassInput + Serialize + DeserializeOwned,
{
    fn with_checkpointer(&self, saver: Arc<dyn Checkpointer>) -> Arc<dyn AnyGraph> {
        Arc::new(self.clone().checkpointer(saver))
    }

    fn with_host(&self, host: Arc<dyn Host>) -> Arc<dyn AnyGraph> {
        Arc::new(self.clone().host(host))
    }

    fn hosted(&self) -> Arc<dyn HostedGraph> {
        Arc::new(self.clone())
    }
}
