//! The threads of a store that runs have.

use std::sync::Arc;
use std::time::SystemTime;

use crate::error::Error;
use crate::persistence::lease::Keeper;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use agentgraph_checkpoint::leases;
use agentgraph_checkpoint::{HeldLease, HeldQuery, awaited};

/// A query of the threads of a store that are running: `graph.running().limit(50).await?` returns them in
/// alphabetical order, whichever process and graph runs them. An edit of a thread's state counts as a run
/// while it lasts.
///
/// The list comes from the leases of the runs. A process that was killed holds none: the savers of this crate
/// notice its death. One that lost its connection does until its leases end, 30 seconds at most if
/// [`lease`](CompiledGraph::lease) is not set.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Mail { seen: Vec<String> }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// use std::sync::{Arc, OnceLock};
///
/// static GRAPH: OnceLock<CompiledGraph<Mail>> = OnceLock::new();
///
/// async fn look() -> Result<MailUpdate> {
///     let running = GRAPH.wait().running().await?;
///     Ok(Mail::update().seen(running.into_iter().map(|run| run.thread).collect()))
/// }
///
/// let graph = StateGraph::new().node("look", look).edge(START, "look").compile()?;
/// let graph = GRAPH.get_or_init(|| graph.checkpointer(MemorySaver::new()));
/// let mail = graph.invoke(Mail::update()).thread("Ada").finish().await?;
/// assert_eq!(mail.seen, ["Ada"]);
/// assert!(graph.running().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[must_use = "a question does nothing until it is awaited"]
pub struct RunningThreads {
    graph: Arc<Attached>,
    after: Option<String>,
    limit: Option<usize>,
}

/// A thread that a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningThread {
    /// The name of the thread.
    pub thread: String,
    /// Whether the run is one of this graph in this process.
    pub is_here: bool,
    /// The time until which the run has the thread, unless it shows activity: if this passes, its process
    /// hangs or has lost its store. Far away in a store that ends with its process.
    pub until: SystemTime,
    /// Whether it was [asked to stop](CompiledGraph::cancel).
    pub is_cancelled: bool,
}

impl RunningThreads {
    /// Selects threads after that one: the next page.
    pub fn after(mut self, thread: impl AsRef<str>) -> Self {
        self.after = Some(thread.as_ref().to_owned());
        self
    }

    /// Limits the number of threads. If fewer are returned, no more follow.
    pub fn limit(mut self, threads: usize) -> Self {
        self.limit = Some(threads);
        self
    }

    async fn ask(self) -> Result<Vec<RunningThread>, Error> {
        let persistence = self.graph.kept()?;
        let now = self.graph.shared.services.now();
        let query = HeldQuery { after: self.after.as_deref(), limit: self.limit, ..HeldQuery::at(now) };
        let held = leases::held(&*persistence.saver, query).await?;
        Ok(held.into_iter().map(|lease| RunningThread::of(lease, &persistence.keeper)).collect())
    }
}

impl RunningThread {
    pub(super) fn of(lease: HeldLease, keeper: &Keeper) -> Self {
        let HeldLease { thread, fence, until, asked_to_stop } = lease;
        let is_here = keeper.keeps(&thread, fence);
        RunningThread { thread, is_here, until, is_cancelled: asked_to_stop }
    }
}

awaited!([] RunningThreads: 'static Result<Vec<RunningThread>, Error> = |query| query.ask());

/// # Threads that run
impl<S: State> CompiledGraph<S> {
    /// Returns a query of the threads of the store that run now: see [`RunningThreads`].
    pub fn running(&self) -> RunningThreads {
        RunningThreads { graph: self.any.clone(), after: None, limit: None }
    }
}
