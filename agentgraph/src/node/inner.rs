//! A graph as a node, independent of its state's type.

use std::any::Any;
use std::sync::Arc;

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

    /// The graph itself, a `GraphCore`. Without its type, since nodes lie below graphs in the map of modules.
    fn core(&self) -> Arc<dyn Any + Send + Sync>;

    /// The graph with its codec, an `Arc<Attached>` and a `Codec`, to read its records. Without their types,
    /// as in [`core`](Self::core).
    fn attached(&self) -> Box<dyn Any + Send>;

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
    ) -> Result<Vec<OpenPart>, Error>;
}

/// A part of the open items of a call, in their order.
pub(crate) enum OpenPart {
    Found(Open),
    Inside(InnerCall),
}

/// A call of a graph by a task, which may have open items.
pub(crate) struct InnerCall {
    graph: Arc<dyn AnyGraph>,
    namespace: String,
    node: String,
    call: TaskId,
}

impl InnerCall {
    pub(crate) fn new(graph: Arc<dyn AnyGraph>, namespace: String, node: &str, call: TaskId) -> Self {
        InnerCall { graph, namespace, node: node.to_owned(), call }
    }

    /// All its open items.
    pub(crate) async fn open(self, saver: &dyn Checkpointer, thread: &str) -> Result<Open, Error> {
        OpenPart::gather(vec![OpenPart::Inside(self)], saver, thread).await
    }
}

impl OpenPart {
    /// All open items. The calls are looked into one after the other, so that their depth costs no stack.
    pub(crate) async fn gather(
        mut parts: Vec<OpenPart>,
        saver: &dyn Checkpointer,
        thread: &str,
    ) -> Result<Open, Error> {
        let mut open = Open::default();
        parts.reverse();
        while let Some(part) = parts.pop() {
            match part {
                OpenPart::Found(found) => open.add(found),
                OpenPart::Inside(InnerCall { graph, namespace, node, call }) => {
                    let place = Place { thread, namespace: &namespace };
                    parts.extend(graph.open(saver, place, &node, call).await?.into_iter().rev());
                }
            }
        }
        Ok(open)
    }
}
