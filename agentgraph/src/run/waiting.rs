//! Which threads wait for somebody, across a store.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use super::problem::ThreadProblem;
use super::view::no_checkpointer;
use crate::engine::stored::{StoredRequest, from_bytes};
use crate::error::Error;
use crate::run::CompiledGraph;
use crate::state::State;
use crate::words::{Interrupt, StoredStop};
use agentgraph_checkpoint::catalog;
use agentgraph_checkpoint::{Checkpointer, Waiting, WaitingQuery};

/// A question about all threads of a store: `graph.waiting().limit(50).await?` gives those that wait for
/// somebody, in alphabetical order: for answers to interrupts, or for a [`proceed`](CompiledGraph::proceed)
/// past a static interrupt, which [`Interrupt::kind`] tells apart. A run that goes on past a static interrupt
/// is among them until its next checkpoint.
///
/// However many threads wait, this is one query, and none of them costs anything meanwhile but its rows. Of a
/// thread that waits inside of subgraphs the state is read, since only that says which of their calls are
/// still open. Of others it is not: what is said of them is what their tasks have asked. So an
/// [eager](crate::StateGraph::eager) run that was killed while it went on beside a question is not among them
/// until it was brought to where it waits, by a `proceed`; and a copy that was
/// [cut off](CompiledGraph::copy_thread) is, with the questions of its original.
///
/// ```
/// # use agentgraph::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
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
pub struct WaitingThreads<S: State> {
    graph: CompiledGraph<S>,
    after: Option<String>,
    limit: Option<usize>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WaitingThread {
    /// Its name.
    pub thread: String,
    /// What it waits for; empty if that cannot be read.
    pub interrupts: Vec<Interrupt>,
    /// Why it cannot be read.
    pub problem: Option<ThreadProblem>,
}

impl<S: State> WaitingThreads<S> {
    pub(crate) fn new(graph: CompiledGraph<S>) -> Self {
        WaitingThreads { graph, after: None, limit: None }
    }

    /// Only threads after that one: the next page.
    pub fn after(mut self, thread: impl Into<String>) -> Self {
        self.after = Some(thread.into());
        self
    }

    /// At most so many threads. If there are fewer, none follow.
    pub fn limit(mut self, threads: usize) -> Self {
        self.limit = Some(threads);
        self
    }

    async fn ask(mut self) -> Result<Vec<WaitingThread>, Error> {
        let persistence = self.graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
        let mut asking =
            Asking { saver: Arc::clone(&persistence.saver), after: self.after.take(), at_once: None };
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

    /// What it waits for; `None` if for nothing, since the call that asked is open no more.
    async fn thread(&self, thread: String, found: Result<Vec<Waiting>, Error>) -> Option<WaitingThread> {
        let read = async { self.interrupts(&thread, Found::of(found?)?).await };
        match read.await {
            Ok(interrupts) if interrupts.is_empty() => None,
            Ok(interrupts) => Some(WaitingThread { thread, interrupts, problem: None }),
            Err(error) => {
                let problem = Some(ThreadProblem::of(&thread, &error.on_thread(Some(&thread))));
                Some(WaitingThread { thread, interrupts: Vec::new(), problem })
            }
        }
    }

    async fn interrupts(&self, thread: &str, found: Found) -> Result<Vec<Interrupt>, Error> {
        let Found { mut asked, asks_inside, stops } = found;
        let inside = |(namespace, _): &(String, Vec<_>)| !namespace.is_empty();
        let mut open = Vec::new();
        if asks_inside || stops.iter().any(inside) {
            let Some(state) = self.graph.state(thread).await? else { return Ok(Vec::new()) };
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

/// What one query says of a thread.
#[derive(Default)]
struct Found {
    asked: Vec<Interrupt>,
    asks_inside: bool,
    /// By namespace.
    stops: Vec<(String, Vec<StoredStop>)>,
}

impl Found {
    fn of(waiting: Vec<Waiting>) -> Result<Self, Error> {
        let mut found = Found::default();
        for Waiting { namespace, request, .. } in waiting {
            if request.is_note() {
                found.stops.push((namespace, told_of(&request.bytes)?));
                continue;
            }
            found.asks_inside |= !namespace.is_empty();
            let stored: StoredRequest = from_bytes(&request.bytes)?;
            let asked = stored.request(request.slot / 2);
            found.asked.push(Interrupt::asked(request.task, stored.node, asked));
        }
        Ok(found)
    }
}

/// Goes through the threads of a store that wait.
struct Asking {
    saver: Arc<dyn Checkpointer>,
    after: Option<String>,
    /// At most so many at once, since a thread ahead cannot be read. Those before it can.
    at_once: Option<usize>,
}

#[derive(Default)]
struct Page {
    threads: BTreeMap<String, Result<Vec<Waiting>, Error>>,
    /// None follow.
    is_last: bool,
}

impl Asking {
    async fn page(&mut self, limit: Option<usize>) -> Result<Page, Error> {
        let limit = limit.into_iter().chain(self.at_once).min();
        let query = WaitingQuery { after: self.after.as_deref(), limit };
        let found = match catalog::waiting(&*self.saver, query).await {
            Ok(found) => found,
            Err(error) => return self.stop_at(limit, error.into()),
        };
        let mut page = Page::default();
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

    /// What the store says of one thread is no answer about the others.
    fn stop_at(&mut self, limit: Option<usize>, error: Error) -> Result<Page, Error> {
        let thread = error.thread().map(str::to_owned);
        let Some(thread) = thread.filter(|thread| self.after.as_ref().is_none_or(|after| thread > after))
        else {
            return Err(error);
        };
        if limit != Some(1) {
            self.at_once = Some(1);
            return Ok(Page::default());
        }
        self.at_once = None;
        self.after = Some(thread.clone());
        Ok(Page { threads: BTreeMap::from([(thread, Err(error))]), is_last: false })
    }
}

/// What somebody was told.
fn told_of(bytes: &[u8]) -> Result<Vec<StoredStop>, Error> {
    if bytes.is_empty() { Ok(Vec::new()) } else { from_bytes(bytes) }
}

impl<S: State> IntoFuture for WaitingThreads<S> {
    type Output = Result<Vec<WaitingThread>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ask())
    }
}

/// # Threads that wait
impl<S: State> CompiledGraph<S> {
    /// The threads of the store that wait for somebody: see [`WaitingThreads`].
    pub fn waiting(&self) -> WaitingThreads<S> {
        WaitingThreads::new(self.clone())
    }
}
