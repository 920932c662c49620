//! [`ThreadReport`]: what is open in a thread, and why.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::failure::Failure;
use crate::record::header::{Header, StoredJoin};
use crate::run::attached::Attached;
use crate::run::running::RunningThread;
use crate::run::view;
use crate::run::waiting::reported_stops;
use crate::run::{Checkpoint, CompiledGraph};
use crate::state::State;
use crate::words::{Interrupt, InterruptKind, quoted, until_text};
use agentgraph_checkpoint::{CheckpointId, HeldQuery, RunId, leases};

/// What is open in a thread, and why. Made by [`CompiledGraph::report`]; shown as text, it has a line for
/// each piece of open work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadReport {
    /// The name of the thread.
    pub thread: String,
    /// Its newest checkpoint.
    pub checkpoint: CheckpointId,
    /// The run that wrote it.
    pub run: RunId,
    /// The run that has the thread now. Open work may be running then.
    pub running: Option<RunningThread>,
    /// The open work, in this order: tasks that wait for an answer, failed tasks, tasks that run next, nodes
    /// that wait for other nodes. Empty if the run has finished.
    pub open: Vec<OpenWork>,
}

/// A piece of open work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenWork {
    /// Its node; empty for a missing [commit](OpenReason::Commit).
    pub node: String,
    /// The namespace of its subgraph; empty for the root graph.
    pub namespace: String,
    /// Why it is open.
    pub why: OpenReason,
}

/// Why a piece of work is open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenReason {
    /// The node has asked, and waits for the answer: [`CompiledGraph::resume`].
    Asks(Interrupt),
    /// The node sleeps until then; [`CompiledGraph::proceed`] continues it afterwards.
    Sleeps(Interrupt),
    /// The graph is built to stop here; [`CompiledGraph::proceed`] goes on.
    Stops(Interrupt),
    /// The last call of the node failed; [`CompiledGraph::proceed`] calls it again.
    Failed(Failure),
    /// The node is next: [`CompiledGraph::proceed`] runs it. It has not begun, or was stopped or killed
    /// before its result was stored.
    Next,
    /// A subgraph that the node called has begun and not ended: [`CompiledGraph::proceed`] continues it. Its
    /// own open work is listed under this namespace.
    Inside(String),
    /// The node is deferred, and waits until nothing else can run.
    Deferred,
    /// All that began is done and stored, and nothing else is open: the process that ran it ended before the
    /// commit, which [`CompiledGraph::proceed`] makes. It names no node.
    Commit,
    /// A join into the node waits for some of its sources.
    Joins {
        /// The sources that have arrived.
        arrived: Vec<String>,
        /// The sources that have not.
        missing: Vec<String>,
        /// When the join fires without them.
        until: Option<SystemTime>,
    },
}

impl ThreadReport {
    /// Whether the thread's last run has finished.
    pub fn is_finished(&self) -> bool {
        self.open.is_empty()
    }
}

/// # What is open, and why
impl<S: State> CompiledGraph<S> {
    /// Returns what is open in a thread and why: questions, sleeps, failures, nodes that are next, joins that
    /// wait, and the run that has the thread. `None` for a thread that does not exist.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::run::OpenReason;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Trip { city: String }
    /// async fn book() -> Result<()> {
    ///     Err("no seat".into())
    /// }
    /// async fn approve(ctx: Ctx) -> Result<()> {
    ///     ctx.interrupt::<bool>("Is Rome right?")?;
    ///     Ok(())
    /// }
    /// # async fn send() {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Trip>::new().node("book", book).node("approve", approve).node("send", send);
    /// let graph = graph.edge(START, "book").edge(START, "approve").edge(["book", "approve"], "send");
    /// let graph = graph.compile()?.checkpointer(MemorySaver::new());
    /// assert!(graph.invoke(Trip::update()).thread("t-1").await.is_err());
    ///
    /// let report = graph.report("t-1").await?.expect("it is kept");
    /// assert!(matches!(report.open[0].why, OpenReason::Asks(_)));
    /// assert!(matches!(report.open[1].why, OpenReason::Failed(_)));
    /// let lines = report.to_string();
    /// assert!(lines.contains("- node `approve` waits for the answer to \"Is Rome right?\""));
    /// assert!(lines.contains("- node `book` failed (E_NODE_FAILED, attempt 1): no seat"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Without a checkpointer, or if the store fails or its bytes cannot be read.
    pub async fn report(&self, thread: impl AsRef<str>) -> Result<Option<ThreadReport>, Error> {
        self.any.report(thread.as_ref()).await
    }
}

impl Attached {
    async fn report(&self, thread: &str) -> Result<Option<ThreadReport>, Error> {
        let persistence = self.kept()?;
        let Some(state) = view::state(self, thread).await? else { return Ok(None) };
        let place = persistence.place(thread);
        let tail = persistence.saver.get(place, Some(state.id)).await?.unwrap_or_default();
        let mut stops = Vec::new();
        for note in tail.writes.iter().filter(|write| write.is_note()) {
            let mut reported = reported_stops(&note.bytes)?;
            reported.iter_mut().for_each(|stop| place.namespace.clone_into(&mut stop.namespace));
            stops.append(&mut reported);
        }
        let joins = Header::of_rows(place, &tail.rows)?.joins;
        let now = self.shared.services.now();
        let query = HeldQuery { thread: Some(thread), ..HeldQuery::at(now) };
        let held = match persistence.saver.leases() {
            Some(_) => leases::held(&*persistence.saver, query).await?,
            None => Vec::new(),
        };
        let running = held.into_iter().next().map(|lease| RunningThread::of(lease, &persistence.keeper));
        let open = open_work(place.namespace, &state, stops, joins);
        let Checkpoint { id: checkpoint, run, .. } = state;
        Ok(Some(ThreadReport { thread: thread.to_owned(), checkpoint, run, running, open }))
    }
}

fn open_work<AnyState>(
    here: &str,
    state: &Checkpoint<AnyState>,
    mut stops: Vec<Interrupt>,
    joins: Vec<StoredJoin>,
) -> Vec<OpenWork> {
    // How many tasks of a node, by namespace, have another reason to be open than that they are next.
    let mut explained: HashMap<(&str, &str), usize> = HashMap::new();
    let mut tasks = Vec::new();
    for interrupt in &state.interrupts {
        // A task may have asked several questions.
        let task = (&interrupt.namespace, interrupt.id.map(|id| id.task));
        if !tasks.contains(&task) {
            tasks.push(task);
            *explained.entry((&interrupt.namespace, &interrupt.node)).or_default() += 1;
        }
    }
    for failure in &state.failures {
        *explained.entry((failure.namespace(), failure.node())).or_default() += 1;
    }
    // A call that went on past such a stop has perhaps run the node since.
    stops.retain(|stop| stop.kind != InterruptKind::Before || state.next.contains(&stop.node));
    for stop in stops.iter().filter(|stop| stop.kind == InterruptKind::Before) {
        explained.insert((here, &stop.node), usize::MAX);
    }
    let mut open: Vec<OpenWork> =
        state.interrupts.iter().cloned().chain(stops.iter().cloned()).map(OpenWork::asked).collect();
    open.extend(state.failures.iter().map(OpenWork::failed));
    for child in &state.children {
        let (around, _) = child.namespace.rsplit_once('|').unwrap_or_default();
        *explained.entry((around, &child.node)).or_default() += 1;
        open.push(OpenWork::of(around, &child.node, OpenReason::Inside(child.namespace.clone())));
    }
    let inside = state.children.iter().map(|child| (&*child.namespace, &child.next));
    for (namespace, next) in inside.chain([(here, &state.next)]) {
        for node in next {
            match explained.get_mut(&(namespace, &**node)) {
                Some(left) if *left > 0 => *left -= 1,
                _ => open.push(OpenWork::of(namespace, node, OpenReason::Next)),
            }
        }
    }
    open.extend(state.deferred.iter().map(|node| OpenWork::of(here, node, OpenReason::Deferred)));
    let is_open = !open.is_empty();
    open.extend(
        joins.into_iter().filter(|join| is_open && !join.fired).map(|join| OpenWork::joins(here, join)),
    );
    if !is_open && !state.finished {
        open.push(OpenWork::of(here, "", OpenReason::Commit));
    }
    open
}

impl OpenWork {
    fn of(namespace: &str, node: &str, why: OpenReason) -> Self {
        OpenWork { node: node.to_owned(), namespace: namespace.to_owned(), why }
    }

    fn asked(interrupt: Interrupt) -> Self {
        let (node, namespace) = (interrupt.node.clone(), interrupt.namespace.clone());
        let why = match interrupt.kind {
            InterruptKind::Asked => OpenReason::Asks(interrupt),
            InterruptKind::Sleeps => OpenReason::Sleeps(interrupt),
            InterruptKind::Before | InterruptKind::After => OpenReason::Stops(interrupt),
        };
        OpenWork { node, namespace, why }
    }

    fn failed(failure: &Failure) -> Self {
        let (node, namespace) = (failure.node().to_owned(), failure.namespace().to_owned());
        OpenWork { node, namespace, why: OpenReason::Failed(failure.clone()) }
    }

    fn joins(namespace: &str, join: StoredJoin) -> Self {
        let StoredJoin { sources, to, arrived, due, .. } = join;
        let missing = sources.into_iter().filter(|source| !arrived.contains(source)).collect();
        let until = due.and_then(|due| UNIX_EPOCH.checked_add(Duration::from_micros(due)));
        Self::of(namespace, &to, OpenReason::Joins { arrived, missing, until })
    }
}

impl fmt::Display for ThreadReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "thread `{}` at checkpoint {}: ", self.thread, self.checkpoint)?;
        match (&self.running, self.is_finished()) {
            (Some(run), _) if run.is_cancelled => out.write_str("running, and asked to stop")?,
            (Some(_), _) => out.write_str("running")?,
            (None, true) => out.write_str("finished")?,
            (None, false) => out.write_str("not running")?,
        }
        self.open.iter().try_for_each(|work| write!(out, "\n- {work}"))
    }
}

impl fmt::Display for OpenWork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let OpenReason::Commit = self.why {
            return out.write_str("nothing is still to run: `proceed()` commits what is done");
        }
        write!(out, "node `{}` ", self.node)?;
        if !self.namespace.is_empty() {
            write!(out, "in `{}` ", self.namespace)?;
        }
        match &self.why {
            OpenReason::Asks(asked) => {
                write!(out, "waits for the answer to {}", asked.value)?;
                asked.id.iter().try_for_each(|id| write!(out, " (interrupt {id})"))?;
                let reason = asked.replaces.as_ref().and_then(|replaced| replaced.reason.as_ref());
                reason.iter().try_for_each(|reason| write!(out, ", after refusing one: {reason}"))
            }
            OpenReason::Sleeps(sleep) => match sleep.until {
                Some(until) => write!(out, "sleeps {}", until_text(until)),
                None => out.write_str("sleeps"),
            },
            OpenReason::Stops(stop) if stop.kind == InterruptKind::Before => {
                out.write_str("is where the graph stops: `proceed()` runs it")
            }
            OpenReason::Stops(_) => out.write_str("is where the graph stopped: `proceed()` goes on"),
            OpenReason::Failed(failure) => {
                let (code, attempt) = (failure.code(), failure.attempt());
                write!(out, "failed ({code}, attempt {attempt}): {}", failure.message())
            }
            OpenReason::Next | OpenReason::Commit => out.write_str("is next"),
            OpenReason::Inside(namespace) => write!(out, "has called the subgraph `{namespace}`"),
            OpenReason::Deferred => out.write_str("is deferred until nothing else can run"),
            OpenReason::Joins { arrived, missing, until } => {
                let [missing, arrived] = [missing, arrived].map(|nodes| quoted(nodes, ", "));
                write!(out, "waits for {missing} (arrived: {arrived})")?;
                until.iter().try_for_each(|until| write!(out, ", {} at most", until_text(*until)))
            }
        }
    }
}
