//! The threads of a store that wait for an answer or a `proceed`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::problem::ThreadProblem;
use super::view;
use crate::engine::stored::{StoredRequest, from_bytes};
use crate::error::Error;
use crate::run::CompiledGraph;
use crate::run::attached::Attached;
use crate::state::State;
use crate::words::{Interrupt, StoredStop, first_end};
use agentgraph_checkpoint::catalog;
use agentgraph_checkpoint::{Checkpointer, Waiting, WaitingQuery, awaited};

/// A query of all threads of a store: `graph.waiting().limit(50).await?` returns the waiting ones, in
/// alphabetical order. A thread waits for answers to interrupts, for the end of a
/// [sleep](crate::Ctx::sleep), or for a [`proceed`](CompiledGraph::proceed) past a static interrupt;
/// [`Interrupt::kind`] distinguishes them. A run that continues past a static
/// interrupt is included until its next checkpoint.
///
/// However many threads wait, this is one query, and a waiting thread costs nothing but its rows. If a thread
/// waits inside subgraphs, its state is read, since only the state shows which of their calls are still open.
/// For other threads only the stored questions are read. Two consequences follow. An
/// [eager](crate::StateGraph::eager) run that was killed while it continued beside a question is not included
/// until a `proceed` has brought it to the point where it waits. A copy that is
/// [incomplete](CompiledGraph::copy_thread) is included, with the questions of its original.
///
/// ```
/// # use agentgraph::prelude::*;
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Mail { text: String }
/// # async fn send(ctx: Ctx, mail: Snapshot<Mail>) -> Result<()> { ctx.interrupt::<bool>(&mail.text)?; Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let graph = StateGraph::new().node("send", send).edge(START, "send").compile()?;
/// let graph = graph.checkpointer(MemorySaver::new());
/// for name in ["Ada", "Bob", "Cleo"] {
///     graph.invoke(Mail::update().text(format!("Dear {name}"))).thread(name).await?;
/// }
/// graph.resume(true).thread("Bob").await?;
///
/// let waiting = graph.waiting().await?;
/// assert_eq!(waiting[1].thread, "Cleo");
/// assert_eq!(waiting[1].interrupts[0].value, "Dear Cleo");
/// assert_eq!(waiting.len(), 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "a question does nothing until it is awaited"]
pub struct WaitingThreads {
    graph: Arc<Attached>,
    after: Option<String>,
    limit: Option<usize>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WaitingThread {
    /// The name of the thread.
    pub thread: String,
    /// The interrupts that it waits for; empty if they cannot be read.
    pub interrupts: Vec<Interrupt>,
    /// The reason why they cannot be read.
    pub problem: Option<ThreadProblem>,
}

impl WaitingThread {
    /// The earliest end of its [sleeps](crate::Ctx::sleep), after which a `proceed()` continues the thread;
    /// `None` if nothing sleeps.
    pub fn sleeps_until(&self) -> Option<SystemTime> {
        first_end(&self.interrupts)
    }
}

impl WaitingThreads {
    fn new(graph: Arc<Attached>) -> Self {
        WaitingThreads { graph, after: None, limit: None }
    }

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

    async fn ask(mut self) -> Result<Vec<WaitingThread>, Error> {
        let persistence = self.graph.kept()?;
        let mut asking =
            WaitingWalk { saver: Arc::clone(&persistence.saver), after: self.after.take(), at_once: None };
        let mut waiting = Vec::new();
        while self.limit.is_none_or(|limit| waiting.len() < limit) {
            let page = asking.page(self.limit.map(|limit| limit - waiting.len())).await?;
            for (thread, found) in page.threads {
                waiting.extend(self.thread(thread, found).await);
            }
            if page.is_last {
                break;
            }
        }
        Ok(waiting)
    }

    /// The interrupts of a thread; `None` if it does not wait, since the call that asked is no longer open.
    async fn thread(&self, thread: String, found: Result<Vec<Waiting>, Error>) -> Option<WaitingThread> {
        let read = async { self.interrupts(&thread, OpenInterrupts::of(found?)?).await };
        match read.await {
            Ok(interrupts) if interrupts.is_empty() => None,
            Ok(interrupts) => Some(WaitingThread { thread, interrupts, problem: None }),
            Err(error) => {
                let problem = Some(ThreadProblem::of(&thread, &error.on_thread(Some(&thread))));
                Some(WaitingThread { thread, interrupts: Vec::new(), problem })
            }
        }
    }

    async fn interrupts(&self, thread: &str, found: OpenInterrupts) -> Result<Vec<Interrupt>, Error> {
        let OpenInterrupts { mut asked, asks_inside, stops } = found;
        let inside = |(namespace, _): &(String, Vec<_>)| !namespace.is_empty();
        let mut open = Vec::new();
        if asks_inside || stops.iter().any(inside) {
            let Some(state) = view::state(&self.graph, thread).await? else { return Ok(Vec::new()) };
            open = state.children;
            if asks_inside {
                asked = state.interrupts;
            }
        }
        for (namespace, stops) in stops {
            if !namespace.is_empty() && open.iter().all(|child| child.namespace != namespace) {
                continue;
            }
            asked.extend(stops.into_iter().map(|stop| {
                let mut interrupt = stop.into_interrupt();
                interrupt.namespace.clone_from(&namespace);
                interrupt
            }));
        }
        Ok(asked)
    }
}

/// The result of one query for a thread.
#[derive(Default)]
struct OpenInterrupts {
    asked: Vec<Interrupt>,
    asks_inside: bool,
    /// The static interrupts, by namespace.
    stops: Vec<(String, Vec<StoredStop>)>,
}

impl OpenInterrupts {
    fn of(waiting: Vec<Waiting>) -> Result<Self, Error> {
        let mut found = OpenInterrupts::default();
        for Waiting { namespace, request, .. } in waiting {
            if request.is_note() {
                found.stops.push((namespace, read_reported_stops(&request.bytes)?));
                continue;
            }
            found.asks_inside |= !namespace.is_empty();
            let stored: StoredRequest = from_bytes(&request.bytes)?;
            let asked = stored.request(request.slot / 2);
            found.asked.push(Interrupt::of_request(request.task, stored.node, asked));
        }
        Ok(found)
    }
}

/// A walk over the waiting threads of a store.
struct WaitingWalk {
    saver: Arc<dyn Checkpointer>,
    after: Option<String>,
    /// Page size after an unreadable thread: the threads before it can still be read.
    at_once: Option<usize>,
}

#[derive(Default)]
struct WaitingPage {
    threads: BTreeMap<String, Result<Vec<Waiting>, Error>>,
    /// Whether no threads follow.
    is_last: bool,
}

impl WaitingWalk {
    async fn page(&mut self, limit: Option<usize>) -> Result<WaitingPage, Error> {
        let limit = limit.into_iter().chain(self.at_once).min();
        let query = WaitingQuery { after: self.after.as_deref(), limit };
        let found = match catalog::waiting(&*self.saver, query).await {
            Ok(found) => found,
            Err(error) => return self.stop_at(limit, error.into()),
        };
        let mut page = WaitingPage::default();
        for waiting in found {
            let of = page.threads.entry(waiting.thread.clone());
            if let Ok(all) = of.or_insert_with(|| Ok(Vec::new())) {
                all.push(waiting);
            }
        }
        page.is_last = limit.is_none_or(|limit| page.threads.len() < limit);
        self.at_once = self.at_once.map(|threads| threads.saturating_mul(2));
        self.after = page.threads.last_key_value().map(|(thread, _)| thread.clone()).or(self.after.take());
        Ok(page)
    }

    /// An error about one thread must not hide the others.
    fn stop_at(&mut self, limit: Option<usize>, error: Error) -> Result<WaitingPage, Error> {
        let thread = error.thread().map(str::to_owned);
        let Some(thread) = thread.filter(|thread| self.after.as_ref().is_none_or(|after| thread > after))
        else {
            return Err(error);
        };
        if limit != Some(1) {
            self.at_once = Some(1);
            return Ok(WaitingPage::default());
        }
        self.at_once = None;
        self.after = Some(thread.clone());
        Ok(WaitingPage { threads: BTreeMap::from([(thread, Err(error))]), is_last: false })
    }
}

/// The static interrupts that were reported to a caller, from the note about them.
pub(super) fn reported_stops(note: &[u8]) -> Result<Vec<Interrupt>, Error> {
    Ok(read_reported_stops(note)?.into_iter().map(StoredStop::into_interrupt).collect())
}

/// Reads the static interrupts that were reported to a caller.
fn read_reported_stops(bytes: &[u8]) -> Result<Vec<StoredStop>, Error> {
    if bytes.is_empty() { Ok(Vec::new()) } else { from_bytes(bytes) }
}

awaited!([] WaitingThreads: 'static Result<Vec<WaitingThread>, Error> = |query| query.ask());

/// # Threads that wait
impl<S: State> CompiledGraph<S> {
    /// Returns a query of the threads of the store that wait: see [`WaitingThreads`].
    pub fn waiting(&self) -> WaitingThreads {
        WaitingThreads::new(self.any.clone())
    }
}
