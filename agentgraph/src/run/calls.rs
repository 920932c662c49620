//! The calls on a compiled graph: runs, and reading its threads.

use crate::error::Error;
use crate::graph::GraphTopology;
use crate::run::CompiledGraph;
use crate::run::history::History;
use crate::run::view::{self, Checkpoint};
use crate::run::{RunBuilder, StateEdit};
use crate::state::State;
use agentgraph_checkpoint::CheckpointId;

/// # Calling
impl<S: State> CompiledGraph<S> {
    /// Starts a run with an input. The input is an update: it goes through the reducers and never replaces
    /// the state.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn invoke(&self, input: impl Into<S::Update>) -> RunBuilder<S> {
        RunBuilder::invoke(self.any.clone(), input.into())
    }

    /// Continues a run with an answer to the one open interrupt of a thread. The answer is delivered if the
    /// node still asks the same question. Otherwise the outcome contains the new question, and its
    /// [`replaces`](crate::Interrupt::replaces) names the old one. See
    /// [`Ctx::interrupt`](crate::Ctx::interrupt).
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume(&self, answer: impl serde::Serialize) -> RunBuilder<S> {
        RunBuilder::resume(self.any.clone(), answer)
    }

    /// Continues a run with answers to some or all of its open interrupts, by their ids. A node runs again
    /// when none of its questions is open.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn resume_many<A: serde::Serialize>(
        &self,
        answers: impl IntoIterator<Item = (crate::InterruptId, A)>,
    ) -> RunBuilder<S> {
        RunBuilder::resume_many(self.any.clone(), answers)
    }

    /// Continues a run that was stopped by anything but an open interrupt: a failure, a limit, a static
    /// interrupt, a cancelled or killed process.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn proceed(&self) -> RunBuilder<S> {
        RunBuilder::proceed(self.any.clone())
    }
}

/// # Reading and changing threads
impl<S: State> CompiledGraph<S> {
    /// The newest checkpoint of a thread, with what finished siblings of an open superstep have already
    /// written. `None` for a thread that does not exist.
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails or its bytes cannot be read.
    pub async fn state(&self, thread: impl AsRef<str>) -> Result<Option<Checkpoint<S>>, Error> {
        Ok(view::state(&self.any, thread.as_ref()).await?.map(Checkpoint::typed))
    }

    /// Returns a thread as it was at a checkpoint: only committed values, without the remains of tasks after
    /// it. `None` if there is no checkpoint with that id.
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails or its bytes cannot be read.
    pub async fn state_at(
        &self,
        thread: impl AsRef<str>,
        checkpoint: CheckpointId,
    ) -> Result<Option<Checkpoint<S>>, Error> {
        Ok(view::state_at(&self.any, thread.as_ref(), checkpoint).await?.map(Checkpoint::typed))
    }

    /// Returns the graph of the run at a checkpoint: this graph with the temporary edits in effect there.
    /// `None` if there is no checkpoint with that id.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
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
    /// Without a checkpointer, if the store fails or its bytes cannot be read, and with
    /// [`Code::GraphChanged`](crate::Code::GraphChanged) if the edits no longer fit this graph.
    pub async fn topology_at(
        &self,
        thread: impl AsRef<str>,
        checkpoint: CheckpointId,
    ) -> Result<Option<GraphTopology>, Error> {
        view::topology_at(&self.any, thread.as_ref(), checkpoint).await
    }

    /// The checkpoints of a thread, newest first. Choose a part with the methods of [`History`], then await
    /// it.
    pub fn history(&self, thread: impl AsRef<str>) -> History<S> {
        History::new(self.any.clone(), thread.as_ref().to_owned())
    }

    /// Changes the state of a thread without running anything; also how a checkpoint is forked.
    pub fn update_state(&self, thread: impl AsRef<str>) -> StateEdit<S> {
        StateEdit::new(self.any.clone(), thread.as_ref().to_owned())
    }
}
