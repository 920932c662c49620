//! [`Inside`]: reading the records of a subgraph, whatever the type of its state.

use std::sync::Arc;

use serde_json::Value;

use super::history::newest;
use super::view::{self, Checkpoint};
use crate::error::Error;
use crate::record::codec::Codec;
use crate::record::json;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use crate::typed::AnyState;
use agentgraph_checkpoint::CheckpointId;

/// A subgraph of threads, by its namespace: its checkpoints with their states as JSON. Made by
/// [`CompiledGraph::inside`]. Secret channels are masked.
pub struct Inside {
    graph: Arc<Attached>,
    codec: Codec,
}

/// # Looking into subgraphs
impl<S: State> CompiledGraph<S> {
    /// A subgraph by its namespace, which [`Checkpoint::children`](crate::Checkpoint::children) and
    /// [`Interrupt::namespace`](crate::Interrupt) name. `None` if a node of the path is no graph, or if this
    /// graph has no checkpointer.
    ///
    /// [`namespace`](Self::namespace) is for a subgraph whose type of state is known.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn ask(ctx: Ctx) -> Result<WordsUpdate> {
    ///     let word: String = ctx.interrupt("which word?")?;
    ///     Ok(Words::update().seen([word]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let child = StateGraph::<Words>::new().node("ask", ask).edge(START, "ask").compile()?;
    /// let graph = StateGraph::new().node("child", child).edge(START, "child").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Words::update().seen(["a"])).thread("t").await?;
    ///
    /// let open = graph.state("t").await?.expect("it is kept");
    /// let inside = graph.inside(&open.children[0].namespace).expect("it is a graph");
    /// let state = inside.state("t").await?.expect("it has begun");
    /// assert_eq!(state.values["seen"][0], "a");
    /// assert_eq!(state.next, ["ask"]);
    /// assert_eq!(inside.history("t", None, 10).await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inside(&self, namespace: impl AsRef<str>) -> Option<Inside> {
        let namespace = namespace.as_ref();
        let mut persistence = self.any.persistence.clone()?;
        let mut found: Option<(Arc<Attached>, Codec)> = None;
        for level in namespace.split('|') {
            let node = level.split(':').next().unwrap_or_default();
            let core = found.as_ref().map_or(&self.any.core, |(graph, _)| &graph.core);
            let entry = core.nodes.get(core.names.id(node)? as usize)?;
            found = Some(*entry.graph.as_ref()?.attached().downcast().ok()?);
        }
        let (mut graph, codec) = found?;
        // The records of a subgraph are beside those of its parent.
        (persistence.codec, persistence.namespace) = (codec, Arc::from(namespace));
        Arc::make_mut(&mut graph).persistence = Some(persistence);
        Some(Inside { graph, codec })
    }
}

impl Inside {
    /// The newest checkpoint of the subgraph in a thread; `None` if it has none. See
    /// [`CompiledGraph::state`].
    ///
    /// # Errors
    /// If the store fails or its bytes cannot be read.
    pub async fn state(&self, thread: impl AsRef<str>) -> Result<Option<Checkpoint<Value>>, Error> {
        let found = view::state(&self.graph, thread.as_ref()).await?;
        Ok(found.map(|found| self.shown(found)))
    }

    /// Checkpoints of the subgraph in a thread, newest first, or those before one of them, at most so many.
    ///
    /// # Errors
    /// If the store fails or its bytes cannot be read.
    pub async fn history(
        &self,
        thread: impl AsRef<str>,
        before: Option<CheckpointId>,
        limit: usize,
    ) -> Result<Vec<Checkpoint<Value>>, Error> {
        let found = newest(self.graph.clone(), thread.as_ref().to_owned(), before, limit).await?;
        Ok(found.into_iter().map(|found| self.shown(found)).collect())
    }

    fn shown(&self, found: Checkpoint<AnyState>) -> Checkpoint<Value> {
        found.with_values(|state| json::of_state(&self.codec, &self.graph.core.schema, state.seen()))
    }
}
