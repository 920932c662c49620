//! [`Hosted`]: a graph as a worker serves it.

use std::sync::Arc;

use agentgraph::BoxError;
use agentgraph::host::{FarSide, HostedGraph};

use crate::headers::Headers;
use crate::wire::message::SentHeaders;
use crate::wire::{Label, Part, Wire};

/// Adds a context to what a task is given.
pub(super) type ContextMaker =
    Arc<dyn Fn(FarSide, &Headers, &str) -> Result<FarSide, BoxError> + Send + Sync>;

pub(super) struct Hosted {
    pub(super) name: String,
    pub(super) graph: Arc<dyn HostedGraph>,
    pub(super) wire: Wire,
    pub(super) contexts: Vec<ContextMaker>,
    /// The most supersteps of one invocation.
    pub(super) share: u64,
}

impl Hosted {
    pub(super) fn label<'a>(&'a self, part: Part, thread: &'a str) -> Label<'a> {
        Label::new(part, &self.name, thread, "")
    }

    /// What this worker gives a task.
    pub(super) fn far_side(&self, headers: SentHeaders, thread: &str) -> Result<FarSide, BoxError> {
        let headers = Headers::sent(headers);
        self.contexts.iter().try_fold(FarSide::new(), |far, make| make(far, &headers, thread))
    }

    /// The name of the service of steps.
    pub(super) fn steps(&self) -> String {
        steps_of(&self.name)
    }

    /// The name of the service of tasks.
    pub(super) fn tasks(&self) -> String {
        format!("{}.tasks", self.name)
    }
}

/// The name of the service of steps of a graph.
pub(crate) fn steps_of(graph: &str) -> String {
    format!("{graph}.steps")
}
