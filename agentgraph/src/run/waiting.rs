//! Which threads wait for somebody, across a store.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::view::no_checkpointer;
use crate::checkpoint::{self, WaitingQuery};
use crate::context::Request;
use crate::engine::stored::{StoredRequest, StoredStop, from_bytes};
use crate::error::Error;
use crate::graph::CompiledGraph;
use crate::run::{Interrupt, InterruptId};
use crate::state::State;

/// A question about all threads of a store: `graph.waiting().limit(50).await?` gives those that wait for somebody, in
/// alphabetical order: for answers to interrupts, or for a [`proceed`](CompiledGraph::proceed) past a static interrupt, which
/// [`Interrupt::kind`] tells apart. A run that goes on past a static interrupt is among them until its next checkpoint.
///
/// However many threads wait, this is one query, and none of them costs anything meanwhile but its rows. Of a thread that
/// waits inside of subgraphs the state is read, since only that says which of their calls are still open.
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
    /// What it waits for.
    pub interrupts: Vec<Interrupt>,
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

    /// At most so many threads.
    pub fn limit(mut self, threads: usize) -> Self {
        self.limit = Some(threads);
        self
    }

    async fn ask(self) -> Result<Vec<WaitingThread>, Error> {
        let persistence = self.graph.persistence.as_ref().ok_or_else(no_checkpointer)?;
        let query = WaitingQuery { after: self.after.as_deref(), limit: self.limit };
        let mut threads: BTreeMap<String, Found> = BTreeMap::new();
        for checkpoint::Waiting { thread, namespace, request, .. } in persistence.saver.waiting(query).await?
        {
            let at = |error: Error| error.on_thread(Some(&thread));
            let found = threads.entry(thread.clone()).or_default();
            if request.is_note() {
                let stops = told_of(&request.bytes).map_err(at)?;
                found.stops.push((namespace, stops));
                continue;
            }
            found.asks_inside |= !namespace.is_empty();
            let StoredRequest { node, value, schema, .. } = from_bytes(&request.bytes).map_err(at)?;
            let n = request.slot / 2;
            let id = InterruptId { task: request.task, n };
            found.asked.push(Interrupt::asked(id, node, Request { n, value, schema }));
        }
        let mut waiting = Vec::new();
        for (thread, found) in threads {
            let interrupts = self.interrupts(&thread, found).await?;
            if !interrupts.is_empty() {
                waiting.push(WaitingThread { thread, interrupts });
            }
        }
        Ok(waiting)
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

impl<S: State> CompiledGraph<S> {
    /// The threads of the store that wait for somebody: see [`WaitingThreads`].
    pub fn waiting(&self) -> WaitingThreads<S> {
        WaitingThreads::new(self.clone())
    }
}
