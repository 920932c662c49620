//! [`Branch`]: one of the lines of checkpoints of a thread.

use crate::error::Error;
use crate::record::header::Header;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use agentgraph_checkpoint::catalog;
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::{CheckpointId, ListQuery, RunId};

/// A branch of a thread: a line of checkpoints that continues from a checkpoint of another branch, or from
/// nothing. Forks, edits of older checkpoints, replays and roll-backs begin branches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Branch {
    /// The number: a greater one began later. The branch with the greatest number is the current one, with
    /// which calls continue that name no checkpoint.
    pub number: u32,
    /// The checkpoint that it continues from; `None` for a branch that begins with an input on the initial
    /// state. It may have been pruned since.
    pub began_at: Option<CheckpointId>,
    /// Its newest checkpoint.
    pub newest: CheckpointId,
    /// The run that wrote the newest checkpoint.
    pub run: RunId,
}

/// # The branches of a thread
impl<S: State> CompiledGraph<S> {
    /// Returns the branches of a thread, the current one last; none for a thread that does not exist.
    /// [`history`](Self::history) shows the checkpoints of a branch, [`update_state`](Self::update_state)
    /// with [`at`](crate::run::StateEdit::at) continues from any of them.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Draft { text: String }
    /// # async fn write(draft: Snapshot<Draft>) -> DraftUpdate { Draft::update().text(format!("{}!", draft.text)) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("write", write).edge(START, "write").compile()?;
    /// let graph = graph.checkpointer(MemorySaver::new());
    /// graph.invoke(Draft::update().text("hello")).thread("t-1").await?;
    /// let begin = graph.history("t-1").await?.pop().expect("the input is kept").id;
    /// graph.update_state("t-1").at(begin).update(Draft::update().text("bye")).await?;
    /// graph.proceed().thread("t-1").await?;
    ///
    /// let branches = graph.branches("t-1").await?;
    /// assert_eq!((branches.len(), branches[1].began_at), (2, Some(begin)));
    /// let mut texts = Vec::new();
    /// for branch in &branches {
    ///     let newest = graph.state_at("t-1", branch.newest).await?.expect("it is kept");
    ///     texts.push(newest.values.text);
    /// }
    /// assert_eq!(texts, ["hello!", "bye!"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails or its bytes cannot be read.
    pub async fn branches(&self, thread: impl AsRef<str>) -> Result<Vec<Branch>, Error> {
        self.any.branches(thread.as_ref()).await
    }
}

impl Attached {
    async fn branches(&self, thread: &str) -> Result<Vec<Branch>, Error> {
        let persistence = self.kept()?;
        persistence.settle(thread).await;
        let place = persistence.place(thread);
        let saver = &*persistence.saver;
        let mut branches = Vec::new();
        for number in catalog::branches(saver, place).await? {
            let query = ListQuery { branch: Some(number), limit: Some(1), ..ListQuery::default() };
            let Some(newest) = page(saver, place, query).await?.pop() else { continue };
            // A full names the checkpoint that its branch began at; the newest row may be a delta.
            let tail = saver.get(place, Some(newest.id)).await?.unwrap_or_default();
            let Header { parent, run, .. } = Header::of_rows(place, &tail.rows)?;
            let began_at = parent.map(|(branch, step)| CheckpointId::new(branch, step));
            branches.push(Branch { number, began_at, newest: newest.id, run });
        }
        Ok(branches)
    }
}
