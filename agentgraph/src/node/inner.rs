//! A graph as a node, independent of its state's type.

use async_trait::async_trait;

use crate::context::RequiredContext;
use crate::context::host::{FarSide, TaskCall, TaskReply};
use crate::error::Error;
use crate::step::EncodeParent;
use crate::words::{Memory, Open};
use agentgraph_checkpoint::{Checkpointer, Place, TaskId};

/// A graph over any state that is a node.
#[async_trait]
pub(crate) trait AnyGraph: Send + Sync {
    fn memory(&self) -> Memory;

    fn fingerprint(&self) -> &str;

    /// Its stored secret channels, including those of its subgraphs.
    fn secrets(&self) -> &[String];

    /// Its nodes that make durable steps, including those of its subgraphs.
    fn durable_nodes(&self) -> &[String];

    /// The contexts that its nodes, and those of its subgraphs, require from a caller.
    fn contexts(&self) -> &[RequiredContext];

    /// Draws it in Mermaid, with ids that begin with `prefix`.
    fn draw(&self, text: &mut String, prefix: &str);

    /// Runs an attempt of a task in this graph, or in a graph further down its path. `parent` encodes updates
    /// of the graph around this one.
    async fn run_task(
        &self,
        call: TaskCall,
        depth: usize,
        far: FarSide,
        parent: EncodeParent,
    ) -> Result<TaskReply, Error>;

    /// The open items of this call, if it has started and not ended.
    async fn open(
        &self,
        saver: &dyn Checkpointer,
        place: Place<'_>,
        node: &str,
        call: TaskId,
    ) -> Result<Open, Error>;
}
