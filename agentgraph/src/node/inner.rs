//! A graph as a node, whatever its state is.

use async_trait::async_trait;

use crate::error::Error;
use crate::words::{Memory, Open};
use agentgraph_checkpoint::{Checkpointer, Place, TaskId};

/// A graph of whatever state that is a node.
#[async_trait]
pub(crate) trait AnyGraph: Send + Sync {
    fn memory(&self) -> Memory;

    fn fingerprint(&self) -> &str;

    /// The secret channels that it has stored, and the graphs in it have.
    fn secrets(&self) -> &[String];

    /// What is open in that call, if it has begun and not ended.
    async fn open(
        &self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        node: &str,
        call: TaskId,
    ) -> Result<Open, Error>;
}
