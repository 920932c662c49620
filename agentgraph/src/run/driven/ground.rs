//! [`Ground`]: where a driven run starts.

use std::fmt;
use std::time::SystemTime;

/// Where a driven run starts: its thread, the thread's rows, the time, and the seed of its random numbers.
///
/// A run that is built again needs the same ground.
#[derive(Clone)]
pub struct Ground {
    pub(super) thread: String,
    pub(super) seed: u64,
    pub(super) now: SystemTime,
    pub(super) rows: Vec<(String, Vec<u8>)>,
    pub(super) journaled: bool,
    pub(super) runs_here: bool,
}

impl Ground {
    /// A thread without rows. Run ids come from `seed` too, so no two calls of a thread may have the same
    /// one.
    pub fn new(thread: impl AsRef<str>, seed: u64, now: SystemTime) -> Self {
        Ground {
            thread: thread.as_ref().to_owned(),
            seed,
            now,
            rows: Vec::new(),
            journaled: false,
            runs_here: false,
        }
    }

    /// Adds rows of the thread: all that earlier runs have [set](super::StoreChange::set) and not cleared.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Says that all replies are kept in a journal while the run is under way. The results of tasks are then
    /// in the journal, so the run asks only for its commits to be stored, and for the rest when it pauses.
    #[must_use]
    pub fn journaled(mut self) -> Self {
        self.journaled = true;
        self
    }

    /// Says that the driver runs tasks in this process, by [`run_task`](super::HostedGraph::run_task) of the
    /// same graph. Their calls then hold the state that they read as it is, unless it has channels that are
    /// never stored. A call that goes elsewhere needs
    /// [`encode_state`](crate::host::TaskCall::encode_state) first.
    ///
    /// ```
    /// use agentgraph::host::{FarSide, Ground, HostedGraph, NeedKind, RunCall};
    /// use agentgraph::prelude::*;
    /// use std::time::SystemTime;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Page { text: String }
    /// # async fn read() -> PageUpdate { Page::update().text("read") }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new().node("read", read).edge(START, "read").compile()?;
    /// let ground = Ground::new("t-1", 7, SystemTime::now()).journaled().tasks_run_here();
    /// let mut run = graph.drive(RunCall::invoke::<Page>(&(), &Page::update())?, ground)?;
    /// while run.end().is_none() {
    ///     for need in run.needs()? {
    ///         let reply = match need.kind {
    ///             NeedKind::Task(call) => {
    ///                 assert!(call.state().is_none());
    ///                 let mut sent = call.clone();
    ///                 sent.encode_state()?;
    ///                 assert!(sent.state().is_some());
    ///                 agentgraph::host::Reply::Task(HostedGraph::run_task(&graph, *call, FarSide::new()).await?)
    ///             }
    ///             NeedKind::Store(_) => agentgraph::host::Reply::Stored(Ok(())),
    ///             _ => continue,
    ///         };
    ///         run.give(need.id, reply)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tasks_run_here(mut self) -> Self {
        self.runs_here = true;
        self
    }
}

/// Omits the rows, which may contain secrets.
impl fmt::Debug for Ground {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ground { thread, seed, now, rows, journaled, runs_here } = self;
        let mut parts = out.debug_struct("Ground");
        parts.field("thread", thread).field("seed", seed).field("now", now).field("rows", &rows.len());
        parts.field("journaled", journaled).field("runs_here", runs_here).finish()
    }
}
