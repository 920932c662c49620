//! [`Attached`]: a checked graph with everything that was attached to it, as the engine runs it.

use std::fmt;
use std::sync::Arc;

use crate::context::GraphShared;
use crate::engine::driver::Driver;
use crate::engine::express::Express;
use crate::engine::host::HostRunner;
use crate::error::{Code, Error};
use crate::graph::GraphCore;
use crate::graph::compile::Compiled;
use crate::persistence::Persistence;
use crate::record::codec::Codec;
use agentgraph_checkpoint::Checkpointer;

/// A checked graph with everything that was attached to it.
#[derive(Clone)]
pub(crate) struct Attached {
    pub(in crate::run) core: Arc<GraphCore>,
    pub(in crate::run) shared: Arc<GraphShared>,
    /// The store of its runs, if it has one.
    pub(in crate::run) persistence: Option<Persistence>,
    /// The host of its tasks; `None` if they run in this process.
    pub(in crate::run) host: Option<Arc<HostRunner>>,
    /// Drives the passes of a dependency graph; `None` for every other graph.
    pub(in crate::run) driver: Option<Arc<dyn Driver>>,
    /// Runs one ready node after another; `None` if all nodes are called by the engine.
    pub(in crate::run) express: Option<Arc<dyn Express>>,
}

impl Attached {
    pub(super) fn of(compiled: Compiled) -> Self {
        let Compiled { core, shared } = compiled;
        Attached {
            core: Arc::new(core),
            shared: Arc::new(shared),
            persistence: None,
            host: None,
            driver: None,
            express: None,
        }
    }

    /// The graph as the loop uses it.
    #[cfg(test)]
    pub(crate) fn core(&self) -> &GraphCore {
        &self.core
    }

    /// Changes the parts that all runs share.
    pub(in crate::run) fn share(&mut self, change: impl FnOnce(&mut GraphShared)) {
        change(Arc::make_mut(&mut self.shared));
    }

    /// The name of the agent that the graph is, if it has one.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.shared.agent.as_deref()
    }

    /// The store of its runs.
    pub(in crate::run) fn kept(&self) -> Result<&Persistence, Error> {
        self.persistence.as_ref().ok_or_else(no_checkpointer)
    }

    pub(in crate::run) fn kept_by(&mut self, saver: Arc<dyn Checkpointer>, codec: Codec) {
        self.persistence = Some(Persistence::new(saver, codec));
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CompiledGraph")
            .field("nodes", &self.core.names)
            .field("fingerprint", &self.core.stored.fingerprint)
            .field("checkpointer", &self.persistence.is_some())
            .finish_non_exhaustive()
    }
}

pub(super) fn no_checkpointer() -> Error {
    Error::new(
        Code::NoCheckpointer,
        "the graph keeps no threads: add `.checkpointer(..)` to the compiled graph",
    )
}
