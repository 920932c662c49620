//! What is called on a compiled graph: runs, and looking at its threads.

use crate::error::Error;
use crate::graph::GraphTopology;
use crate::run::CompiledGraph;
use crate::run::view::{Checkpoint, History};
use crate::run::{RunBuilder, StateEdit};
use crate::state::State;
use agentgraph_checkpoint::CheckpointId;

/// # Calling
impl<S: State> CompiledGraph<S> {
    /// Begins a run with an input, which is an update: it goes through the reducers and never replaces the
    /// state.
    pub fn invoke(&self, input: impl Into<S::Update>) -> RunBuilder<S> {
        RunBuilder::invoke(self.clone(), input.into())
    }

    /// Goes on with an answer to the one open interrupt of a thread. The answer is delivered if the node
    /// still asks the same; otherwise the outcome has the new question, whose
    /// [`replaces`](crate::Interrupt::replaces) says so. See [`Ctx::interrupt`](crate::Ctx::interrupt).
    pub fn resume(&self, answer: impl serde::Serialize) -> RunBuilder<S> {
        RunBuilder::resume(self.clone(), answer)
    }

    /// Goes on with answers to interrupts by their ids, of all that are open or some. A node runs again when
    /// none of its questions is open.
    pub fn resume_many<A: serde::Serialize>(
        &self,
        answers: impl IntoIterator<Item = (crate::InterruptId, A)>,
    ) -> RunBuilder<S> {
        RunBuilder::resume_many(self.clone(), answers)
    }

    /// Goes on with a run that was stopped by anything but an open interrupt: a failure, a limit, a static
    /// interrupt, a cancelled or killed process.
    pub fn proceed(&self) -> RunBuilder<S> {
        RunBuilder::proceed(self.clone())
    }
}

/// # Reading and changing threads
impl<S: State> CompiledGraph<S> {
    /// The newest checkpoint of a thread, with what finished siblings of an open superstep have already
    /// written. `None` for a thread that does not exist.
    ///
    /// # Errors
    /// Without a checkpointer, or when the store or its bytes fail.
    pub async fn state(&self, thread: &str) -> Result<Option<Checkpoint<S>>, Error> {
        crate::run::view::state(self, thread).await
    }

    /// A thread as it was at a checkpoint: what was committed, without what tasks left behind after it.
    /// `None` if there is none with that id.
    ///
    /// # Errors
    /// Without a checkpointer, or when the store or its bytes fail.
    pub async fn state_at(
        &self,
        thread: &str,
        checkpoint: CheckpointId,
    ) -> Result<Option<Checkpoint<S>>, Error> {
        crate::run::view::state_at(self, thread, checkpoint).await
    }

    /// The graph as the run had it at a checkpoint: this one, with the temporary edits that held there. To be
    /// looked at or drawn. `None` if there is no checkpoint with that id.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// async fn plan(ctx: Ctx) -> Result<()> {
    ///     ctx.edits().add_node("check#1", "check", ())?;
    ///     ctx.edits().add_edge("plan", "check#1")?;
    ///     Ok(())
    /// }
    /// async fn check() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Words>::new()
    ///     .node("plan", plan)
    ///     .edge(START, "plan")
    ///     .template("check", |(): ()| check)
    ///     .compile()?
    ///     .checkpointer(MemorySaver::new());
    /// graph.invoke(Words::update()).thread("t-1").await?;
    ///
    /// let history = graph.history("t-1").await?; // the newest first
    /// let edited = graph.topology_at("t-1", history[0].id).await?.expect("it is kept");
    /// assert_eq!(edited.nodes.len(), 2);
    /// assert!(edited.mermaid().contains("class n1 temporary"));
    /// let before = graph.topology_at("t-1", history[2].id).await?.expect("it is kept");
    /// assert_eq!(before.mermaid(), graph.mermaid());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Without a checkpointer, when the store or its bytes fail, and with
    /// [`Code::GraphChanged`](crate::Code::GraphChanged) when the edits do not fit this graph any more.
    pub async fn topology_at(
        &self,
        thread: &str,
        checkpoint: CheckpointId,
    ) -> Result<Option<GraphTopology>, Error> {
        crate::run::view::topology_at(self, thread, checkpoint).await
    }

    /// The checkpoints of a thread, newest first. Choose a part with the methods of [`History`], then await
    /// it.
    pub fn history(&self, thread: impl Into<String>) -> History<S> {
        History::new(self.clone(), thread.into())
    }

    /// Changes the state of a thread without running anything; also how a checkpoint is forked.
    pub fn update_state(&self, thread: impl Into<String>) -> StateEdit<S> {
        StateEdit::new(self.clone(), thread.into())
    }
}
