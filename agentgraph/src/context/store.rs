//! [`Ctx::store`]: a task's way to the long-term memory of its graph.

use std::sync::Arc;

use super::{Ctx, RunShared};
use agentgraph_checkpoint::Store;

/// A node asked for a store, and neither its graph nor a graph around it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node asks for a store, and neither its graph nor a graph around it has one: add `.store(..)` to the compiled \
     graph; on the far side of a host, to the graph there"
)]
#[non_exhaustive]
pub struct MissingStore;

impl Ctx {
    /// The long-term memory of the graph, which all its threads share: that of
    /// [`CompiledGraph::store`](crate::CompiledGraph::store), in a subgraph without a store that of the
    /// graph around it. Also for tools, to which a node passes its `Ctx`.
    ///
    /// A store is outside of checkpoints: what a node has put stays when the node fails, runs again or is
    /// replayed. A put in [`ctx.once`](Ctx::once) is made once.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// use agentgraph::store::{MemoryStore, Namespace, StoreExt};
    ///
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Chat { name: String, greeting: String }
    /// async fn greet(ctx: Ctx, chat: Snapshot<Chat>) -> Result<ChatUpdate> {
    ///     let users = Namespace::new(["users"])?;
    ///     let visits = ctx.store()?.get_as::<u32>(&users, &chat.name).await?.unwrap_or(0) + 1;
    ///     ctx.store()?.put(&users, &chat.name, visits).await?;
    ///     Ok(Chat::update().greeting(format!("visit {visits}")))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("greet", greet).edge(START, "greet").compile()?;
    /// let graph = graph.store(MemoryStore::new());
    /// graph.invoke(Chat::update().name("Ada")).await?;
    /// let second = graph.invoke(Chat::update().name("Ada")).finish().await?;
    /// assert_eq!(second.greeting, "visit 2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MissingStore`] if there is none; the run then fails with
    /// [`Code::NoStore`](crate::Code::NoStore), and no retry is made.
    pub fn store(&self) -> Result<&Arc<dyn Store>, MissingStore> {
        self.shared.store()
    }
}

impl RunShared {
    /// The store of the graph, or of the next graph around it that has one.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, MissingStore> {
        let mut run = self;
        loop {
            match (&run.graph.store, &run.outer) {
                (Some(store), _) => return Ok(store),
                (None, Some(outer)) => run = &outer.shared,
                (None, None) => return Err(MissingStore),
            }
        }
    }
}
