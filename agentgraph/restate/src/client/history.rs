//! [`RemoteHistory`]: a query of the checkpoints of a remote thread.

use std::future::IntoFuture;

use agentgraph::run::Checkpoint;
use agentgraph::state::StoredState;
use agentgraph::{CheckpointId, Error};
use futures_util::future::BoxFuture;

use super::RemoteGraph;

/// A query of a thread's checkpoints in the making: `graph.history("t-1").limit(10).await?`, newest first.
#[must_use = "nothing is read until it is awaited"]
pub struct RemoteHistory<S: StoredState> {
    graph: RemoteGraph<S>,
    thread: String,
    limit: Option<usize>,
    before: Option<CheckpointId>,
}

impl<S: StoredState> RemoteHistory<S> {
    pub(super) fn new(graph: &RemoteGraph<S>, thread: String) -> Self {
        RemoteHistory { graph: graph.clone(), thread, limit: None, before: None }
    }

    /// The most checkpoints.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Only checkpoints before this one.
    pub fn before(mut self, checkpoint: CheckpointId) -> Self {
        self.before = Some(checkpoint);
        self
    }

    async fn read(self) -> Result<Vec<Checkpoint<S>>, Error> {
        let RemoteHistory { graph, thread, limit, before } = self;
        let found = graph.threads.history(&thread, limit, before).await?.into_iter();
        found.map(|found| found.into_checkpoint(&graph.schema)).collect()
    }
}

impl<S: StoredState> IntoFuture for RemoteHistory<S> {
    type Output = Result<Vec<Checkpoint<S>>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// # Errors
    /// [`Code::NoCheckpointer`](agentgraph::Code::NoCheckpointer) if the workers' graph has no checkpointer.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.read())
    }
}
