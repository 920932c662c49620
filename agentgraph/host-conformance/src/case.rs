//! [`Case`]: a clause on a host, and the calls that it makes there.

use std::fmt::Debug;
use std::future::Future;

use agentgraph::host::{RunCall, RunEnd, ThreadState};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpoint, Error};

use crate::host::Kit;
use crate::notes::{Note, Notes, count};
use crate::sheet::{Sheet, SheetUpdate};

/// One clause on one host, with a thread of its own.
pub(super) struct Case<'a> {
    kit: &'a Kit<'a>,
    thread: String,
}

/// The result of a clause: its error says what the host did instead.
pub(super) type Found<T = ()> = std::result::Result<T, String>;

/// How many times longer a call may take than its nodes wait for each other.
const CALLS: u32 = 12;

impl<'a> Case<'a> {
    pub(super) fn new(kit: &'a Kit<'a>, clause: &str) -> Self {
        let words = clause.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.take(6).collect();
        Case { kit, thread: format!("{}-{}", kit.prefix, words.join("-")) }
    }

    /// The same clause on another thread.
    pub(super) fn on(&self, thread: impl std::fmt::Display) -> Case<'a> {
        Case { kit: self.kit, thread: format!("{}-{thread}", self.thread) }
    }

    pub(super) fn thread(&self) -> &str {
        &self.thread
    }

    /// Makes a call, and returns its end.
    pub(super) async fn end(&self, graph: &str, call: RunCall) -> Found<RunEnd> {
        self.in_time("a call", self.kit.host.call(graph, &self.thread, call)).await
    }

    /// Makes a call that does not fail.
    pub(super) async fn outcome(&self, graph: &str, call: RunCall) -> Found<Outcome<Sheet>> {
        self.result(graph, call).await?.map_err(|error| format!("a call of `{graph}` failed: {error}"))
    }

    /// Makes a call after which the run has finished, and returns the last state.
    pub(super) async fn finished(&self, graph: &str, call: RunCall) -> Found<Sheet> {
        match self.outcome(graph, call).await? {
            Outcome::Finished { output, .. } => Ok(output),
            other => Err(format!("a call of `{graph}` ended so, and not as finished: {other:?}")),
        }
    }

    /// Makes a call after which the run waits, and returns the reasons.
    pub(super) async fn interrupted(&self, graph: &str, call: RunCall) -> Found<Vec<Interrupt>> {
        match self.outcome(graph, call).await? {
            Outcome::Interrupted { interrupts, .. } => Ok(interrupts),
            other => Err(format!("a call of `{graph}` ended so, and not as interrupted: {other:?}")),
        }
    }

    /// Makes a call that is stopped for this reason, and returns the last state.
    pub(super) async fn stopped(&self, graph: &str, call: RunCall, why: StopReason) -> Found<Sheet> {
        match self.outcome(graph, call).await? {
            Outcome::Stopped { output, reason, .. } if reason == why => Ok(output),
            other => Err(format!("a call of `{graph}` ended so, and not as stopped ({why:?}): {other:?}")),
        }
    }

    /// Makes a call that fails, and returns its error.
    pub(super) async fn failed(&self, graph: &str, call: RunCall) -> Found<Error> {
        match self.result(graph, call).await? {
            Err(error) => Ok(error),
            Ok(other) => Err(format!("a call of `{graph}` ended so, and not with an error: {other:?}")),
        }
    }

    pub(super) async fn result(
        &self,
        graph: &str,
        call: RunCall,
    ) -> Found<std::result::Result<Outcome<Sheet>, Error>> {
        Ok(self.end(graph, call).await?.into_result::<Sheet>(&()))
    }

    /// The newest checkpoint of the thread.
    pub(super) async fn state(&self, graph: &str) -> Found<Checkpoint<Sheet>> {
        let found = self.found_state(graph).await?;
        sheet_of(found.ok_or_else(|| format!("`{graph}` has no thread `{}`", self.thread))?)
    }

    pub(super) async fn found_state(&self, graph: &str) -> Found<Option<ThreadState>> {
        self.in_time("a look at a thread", self.kit.host.state(graph, &self.thread)).await
    }

    /// The checkpoints of the thread, newest first.
    pub(super) async fn history(&self, graph: &str) -> Found<Vec<Checkpoint<Sheet>>> {
        let found = self.in_time("a history", self.kit.host.history(graph, &self.thread)).await?;
        found.into_iter().map(sheet_of).collect()
    }

    pub(super) async fn cancel(&self, graph: &str) -> Found {
        self.in_time("a cancellation", self.kit.host.cancel(graph, &self.thread)).await
    }

    pub(super) async fn kill_workers(&self) -> Found {
        self.in_time("the death of the workers", self.kit.host.kill_workers()).await
    }

    /// A future of the host, unless it takes so long that it probably never ends.
    async fn in_time<T>(
        &self,
        what: &str,
        work: impl Future<Output = std::result::Result<T, BoxError>>,
    ) -> Found<T> {
        let limit = self.kit.notes.longest_wait() * CALLS;
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(format!("{what} failed: {error}")),
            Err(_) => Err(format!("{what} has not ended after {limit:?}")),
        }
    }

    /// The notes of the kit, for graphs that are built for their tables of outputs alone.
    pub(super) fn own_notes(&self) -> &'a Notes {
        self.kit.notes
    }

    pub(super) fn notes(&self) -> Found<Vec<Note>> {
        self.kit.notes.of_thread(&self.thread).map_err(unreadable)
    }

    /// How often a node has noted something on this thread.
    pub(super) fn count(&self, node: &str, what: &str) -> Found<usize> {
        Ok(count(&self.notes()?, node, what))
    }

    /// Notes something, for nodes that wait for it.
    pub(super) fn say(&self, what: &str) -> Found {
        self.kit.notes.say(&self.thread, what).map_err(unreadable)
    }

    /// Waits until nodes of this thread have noted something.
    pub(super) async fn wait(&self, what: &str, are_so: impl Fn(&[Note]) -> bool + Send) -> Found {
        match self.kit.notes.wait(&self.thread, are_so).await.map_err(unreadable)? {
            true => Ok(()),
            false => Err(format!("{what} has not happened in time")),
        }
    }
}

fn unreadable(error: BoxError) -> String {
    format!("the notes cannot be read or written: {error}")
}

fn sheet_of(found: ThreadState) -> Found<Checkpoint<Sheet>> {
    found.into_checkpoint::<Sheet>(&()).map_err(|error| format!("a checkpoint cannot be read: {error}"))
}

/// A call that starts a run with an update.
pub(super) fn invoke(update: SheetUpdate) -> Found<RunCall> {
    RunCall::invoke::<Sheet>(&(), &update).map_err(no_call)
}

/// A call that starts a run with one line.
pub(super) fn begin() -> Found<RunCall> {
    invoke(Sheet::update().lines(["input"]))
}

pub(super) fn proceed() -> RunCall {
    RunCall::proceed()
}

pub(super) fn resume(answer: impl serde::Serialize) -> Found<RunCall> {
    RunCall::resume(answer).map_err(no_call)
}

pub(super) fn resume_many<A: serde::Serialize>(
    answers: impl IntoIterator<Item = (agentgraph::InterruptId, A)>,
) -> Found<RunCall> {
    RunCall::resume_many(answers).map_err(no_call)
}

pub(super) fn no_call(error: Error) -> String {
    format!("a call cannot be made: {error}")
}

/// Says what differs, if something does.
pub(super) fn same<F: PartialEq<E> + Debug, E: Debug>(what: &str, found: F, expected: E) -> Found {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}\nand not {expected:?}")) }
}

/// The id of the n-th interrupt.
pub(super) fn id_of(interrupts: &[Interrupt], n: usize) -> Found<agentgraph::InterruptId> {
    let id = interrupts.get(n).and_then(|interrupt| interrupt.id);
    id.ok_or_else(|| format!("there is no open question number {n} in {interrupts:?}"))
}

/// The questions, in order.
pub(super) fn questions(interrupts: &[Interrupt]) -> Vec<&serde_json::Value> {
    interrupts.iter().map(|interrupt| &interrupt.value).collect()
}
