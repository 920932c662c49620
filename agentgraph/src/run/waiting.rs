//! Which threads wait for somebody, across a store.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::view::no_checkpointer;
use crate::checkpoint::{self, WaitingQuery};
use crate::context::Request;
use crate::engine::stored::{StoredRequest, from_bytes};
use crate::error::Error;
use crate::graph::CompiledGraph;
use crate::run::{Interrupt, InterruptId};
use crate::state::State;

/// A question about all threads of a store: `graph.waiting().limit(50).await?` gives those with interrupts that wait for
/// answers, in alphabetical order.
///
/// However many threads wait, this is one query, and none of them costs anything meanwhile but its rows. Threads that stop
/// before or after a node, without a question, are not among them. Of a thread that waits inside of subgraphs the state is
/// read, since only that says which of their calls are still open.
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
        let mut threads: BTreeMap<String, (bool, Vec<Interrupt>)> = BTreeMap::new();
        for checkpoint::Waiting { thread, namespace, request, .. } in persistence.saver.waiting(query).await?
        {
            let StoredRequest { node, value, schema } =
                from_bytes(&request.bytes).map_err(|error| error.on_thread(Some(&thread)))?;
            let n = request.slot / 2;
            let id = InterruptId { task: request.task, n };
            let (inside, interrupts) = threads.entry(thread).or_default();
            *inside |= !namespace.is_empty();
            interrupts.push(Interrupt::asked(id, node, Request { n, value, schema }));
        }
        let mut waiting = Vec::new();
        for (thread, (inside, mut interrupts)) in threads {
            if inside {
                let state = self.graph.state(&thread).await?;
                interrupts = state.map_or_else(Vec::new, |state| state.interrupts);
            }
            if !interrupts.is_empty() {
                waiting.push(WaitingThread { thread, interrupts });
            }
        }
        Ok(waiting)
    }
}

impl<S: State> IntoFuture for WaitingThreads<S> {
    type Output = Result<Vec<WaitingThread>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ask())
    }
}

impl<S: State> CompiledGraph<S> {
    /// The threads of the store that wait for answers: see [`WaitingThreads`].
    pub fn waiting(&self) -> WaitingThreads<S> {
        WaitingThreads::new(self.clone())
    }
}
