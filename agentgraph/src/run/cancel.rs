//! [`CancelThread`]: stopping the run of a thread from anywhere.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;

use crate::error::Error;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use agentgraph_checkpoint::leases;
use agentgraph_checkpoint::services::{Services, yield_now};
use agentgraph_checkpoint::{Checkpointer, HeldQuery, awaited};

/// Greatest interval between two looks at a run that is to end.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A builder of a request to cancel the run of a thread: `graph.cancel("t-1").await?`. The run may be in this
/// process or in any other one that shares the store, and of any graph.
///
/// The run stops at its next await, also while its nodes wait: its call returns
/// [`Outcome::Stopped`](crate::Outcome::Stopped) with [`StopReason::Cancelled`](crate::run::StopReason), its
/// finished results are stored, and `proceed()` continues it. In this process that happens at once if both
/// use the same saver; in another process within a second, since each process looks for requests once a
/// second while it runs threads. A run without a thread, or one whose token is at hand, is cancelled with
/// [`RunBuilder::cancel`](crate::RunBuilder::cancel).
///
/// The request is for the run that has the thread now, and for no other: it is bound to the fence of its
/// lease. If the run ends first, the request ends with it.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use agentgraph::run::{Cancellation, StopReason};
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Report { text: String }
/// async fn write(report: Snapshot<Report>) -> ReportUpdate {
///     if report.text.is_empty() {
///         std::future::pending::<()>().await; // a model that does not answer
///     }
///     Report::update().text("done")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new().node("write", write).edge(START, "write").compile()?;
/// let graph = graph.checkpointer(MemorySaver::new());
/// assert_eq!(graph.cancel("t-1").await?, Cancellation::NotRunning);
///
/// let run = tokio::spawn(graph.invoke(Report::update()).thread("t-1").into_future());
/// while graph.running().await?.is_empty() {
///     tokio::task::yield_now().await;
/// }
/// assert_eq!(graph.cancel("t-1").until_ended().await?, Cancellation::Requested);
/// assert!(matches!(run.await??, Outcome::Stopped { reason: StopReason::Cancelled, .. }));
///
/// graph.update_state("t-1").update(Report::update().text("by hand")).await?;
/// assert_eq!(graph.proceed().thread("t-1").finish().await?.text, "done");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is cancelled until it is awaited"]
pub struct CancelThread {
    graph: Arc<Attached>,
    thread: String,
    until_ended: bool,
}

/// The answer to a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cancellation {
    /// The run that has the thread was asked to stop.
    Requested,
    /// No run has the thread. A thread that waits for an answer, or that failed, is not running.
    NotRunning,
}

impl CancelThread {
    pub(super) fn new(graph: Arc<Attached>, thread: &str) -> Self {
        CancelThread { graph, thread: thread.to_owned(), until_ended: false }
    }

    /// Waits until that run has ended and given the thread back, or until another run has taken it over. The
    /// thread can then be used at once. A suspended process does not see the request: put a timeout around
    /// the call if that is to be expected.
    pub fn until_ended(mut self) -> Self {
        self.until_ended = true;
        self
    }

    async fn ask(self) -> Result<Cancellation, Error> {
        let persistence = self.graph.kept()?;
        let saver = &*persistence.saver;
        let services = Arc::clone(&self.graph.shared.services);
        let thread = &*self.thread;
        let Some(fence) = leases::ask_to_stop(saver, thread, services.now()).await? else {
            return Ok(Cancellation::NotRunning);
        };
        if self.until_ended {
            wait_for_end(saver, &*services, thread, fence).await?;
        }
        Ok(Cancellation::Requested)
    }
}

/// Waits until no writer has the thread with this fence.
async fn wait_for_end(
    saver: &dyn Checkpointer,
    services: &dyn Services,
    thread: &str,
    fence: u64,
) -> Result<(), Error> {
    loop {
        let query = HeldQuery { thread: Some(thread), ..HeldQuery::at(services.now()) };
        if leases::held(saver, query).await?.first().is_none_or(|lease| lease.fence != fence) {
            return Ok(());
        }
        let released = leases::leases_of(saver).released(thread, fence);
        // `released` may miss the release by another process, so the store is asked again at intervals.
        select(pin!(released), pin!(services.sleep(LOOK_AGAIN))).await;
        // Services of tests sleep without waiting, and the run may need this executor.
        yield_now().await;
    }
}

awaited!([] CancelThread: 'static Result<Cancellation, Error> = |cancel| cancel.ask());

/// # Steering from outside
impl<S: State> CompiledGraph<S> {
    /// Returns a request to cancel the run of a thread, wherever it runs: see [`CancelThread`].
    pub fn cancel(&self, thread: impl AsRef<str>) -> CancelThread {
        CancelThread::new(self.any.clone(), thread.as_ref())
    }
}
