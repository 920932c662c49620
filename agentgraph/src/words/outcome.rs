//! [`Outcome`]: the result of a call.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::edit::DroppedEdits;
use super::interrupt::{Interrupt, first_end};
use super::quoted;
use super::stop::StopReason;
use crate::error::{Code, Error};
use agentgraph_checkpoint::{CheckpointId, RunId};

/// The result of a call, unless it failed. A failure is an [`Error`](crate::Error); every other result is
/// here, and loses nothing.
#[derive(Clone, Debug)]
pub enum Outcome<O> {
    /// The run has finished.
    #[non_exhaustive]
    Finished {
        /// The last state.
        output: O,
        /// Joins that were still waiting for some of their sources, including joins of subgraphs.
        stuck: Vec<StuckJoin>,
        /// The nodes of [detached](crate::IntoNode::detached) tasks that the end cut off, in the order in
        /// which they were reached.
        cancelled: Vec<String>,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
        /// The units that the run has spent.
        spent: BTreeMap<Cow<'static, str>, u64>,
        /// Temporary edits of this call that conflicted with those of a parallel task, and were dropped.
        dropped: Vec<DroppedEdits>,
    },
    /// The run waits: for answers (`resume`), for the end of a sleep (`proceed` after it), or at a static
    /// interrupt (`proceed`).
    #[non_exhaustive]
    Interrupted {
        /// The last committed state.
        output: O,
        /// The reasons why it waits, in task order.
        interrupts: Vec<Interrupt>,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
        /// The units that the run has spent.
        spent: BTreeMap<Cow<'static, str>, u64>,
        /// Temporary edits of this call that conflicted with those of a parallel task, and were dropped.
        dropped: Vec<DroppedEdits>,
    },
    /// The run was stopped, and `proceed()` continues it.
    #[non_exhaustive]
    Stopped {
        /// The last committed state.
        output: O,
        /// Why.
        reason: StopReason,
        /// The run.
        run: RunId,
        /// Its last checkpoint, if it has a checkpointer.
        checkpoint: Option<CheckpointId>,
        /// The units that the run has spent.
        spent: BTreeMap<Cow<'static, str>, u64>,
        /// Temporary edits of this call that conflicted with those of a parallel task, and were dropped.
        dropped: Vec<DroppedEdits>,
    },
}

impl<O> Outcome<O> {
    /// The outcome as one word: `finished`, `interrupted` or `stopped`; in spans and in the JSON form of
    /// [events](crate::Event), which have `failed` for a call without an outcome.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # #[state(volatile)]
    /// # struct Note { text: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::<Note>::new().node("rest", || async {}).edge(START, "rest").compile()?;
    /// assert_eq!(graph.invoke(Note::update()).await?.status(), "finished");
    /// assert_eq!(graph.invoke(Note::update()).max_supersteps(0).await?.status(), "stopped");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn status(&self) -> &'static str {
        match self {
            Outcome::Finished { .. } => "finished",
            Outcome::Interrupted { .. } => "interrupted",
            Outcome::Stopped { .. } => "stopped",
        }
    }

    /// The state, whatever the outcome.
    pub fn output(&self) -> &O {
        match self {
            Outcome::Finished { output, .. }
            | Outcome::Interrupted { output, .. }
            | Outcome::Stopped { output, .. } => output,
        }
    }

    /// The same outcome with `part` of the state.
    pub fn map<P>(self, part: impl FnOnce(O) -> P) -> Outcome<P> {
        match self {
            Outcome::Finished { output, stuck, cancelled, run, checkpoint, spent, dropped } => {
                Outcome::Finished { output: part(output), stuck, cancelled, run, checkpoint, spent, dropped }
            }
            Outcome::Interrupted { output, interrupts, run, checkpoint, spent, dropped } => {
                Outcome::Interrupted { output: part(output), interrupts, run, checkpoint, spent, dropped }
            }
            Outcome::Stopped { output, reason, run, checkpoint, spent, dropped } => {
                Outcome::Stopped { output: part(output), reason, run, checkpoint, spent, dropped }
            }
        }
    }

    /// The state of a finished run in which no join waits.
    ///
    /// # Errors
    /// [`NotFinished`], which contains the state: [`Code::StuckJoin`] if the run has finished and a join
    /// still waits, [`Code::NotFinished`] if it was interrupted or stopped. Match on the outcome to
    /// continue with such a state.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// # use agentgraph::Code;
    /// # #[derive(State, Clone, Debug, Default)]
    /// # struct Words { #[reduce(append)] seen: Vec<String> }
    /// # async fn note(ctx: Ctx) -> WordsUpdate { Words::update().seen([ctx.node()]) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let graph = StateGraph::new()
    ///     .node("search", note)
    ///     .node("ask", note)
    ///     .node("report", note)
    ///     .branch(START, |_: &Words| "search", ["search", "ask"])
    ///     .edge(["search", "ask"], "report") // `ask` never runs
    ///     .compile()?;
    /// let error = graph.invoke(Words::update()).await?.into_finished().unwrap_err();
    /// assert_eq!(error.code(), Code::StuckJoin);
    /// assert_eq!(error.state::<Words>().unwrap().seen, ["search"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_finished(self) -> Result<O, NotFinished>
    where
        O: Any + Send + Sync,
    {
        let (error, output) = match self {
            Outcome::Finished { output, stuck, .. } => match stuck_joins(&stuck) {
                None => return Ok(output),
                Some(error) => (error, output),
            },
            Outcome::Interrupted { output, interrupts, .. } => {
                let nodes: Vec<String> = interrupts.iter().map(Interrupt::place).collect();
                let problem = format!(
                    "the run is interrupted at {}: match on `Outcome::Interrupted`, and continue with `resume(..)` or \
                     `proceed()`",
                    nodes.join(", ")
                );
                (Error::new(Code::NotFinished, problem), output)
            }
            Outcome::Stopped { output, reason, .. } => {
                let problem = format!(
                    "the run was stopped: {reason}; match on `Outcome::Stopped`, and continue with `proceed()`"
                );
                (Error::new(Code::NotFinished, problem), output)
            }
        };
        Err(NotFinished(error.with_state(Arc::new(output))))
    }

    /// Why the run was stopped; `None` if it has finished or was interrupted.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        match self {
            Outcome::Stopped { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Joins that were still waiting when the run finished, including those of subgraphs.
    pub fn stuck(&self) -> &[StuckJoin] {
        match self {
            Outcome::Finished { stuck, .. } => stuck,
            _ => &[],
        }
    }

    /// The nodes of [detached](crate::IntoNode::detached) tasks that the end of the run cut off.
    pub fn cancelled(&self) -> &[String] {
        match self {
            Outcome::Finished { cancelled, .. } => cancelled,
            _ => &[],
        }
    }

    /// The reasons why the run waits; empty unless it was interrupted.
    pub fn interrupts(&self) -> &[Interrupt] {
        match self {
            Outcome::Interrupted { interrupts, .. } => interrupts,
            _ => &[],
        }
    }

    /// The earliest end of the run's [sleeps](crate::Ctx::sleep), after which a `proceed()` continues it;
    /// `None` if nothing sleeps.
    pub fn sleeps_until(&self) -> Option<SystemTime> {
        first_end(self.interrupts())
    }

    /// The amount of a unit that the run has spent, in all its calls. See [`Budget`](crate::Budget).
    pub fn spent(&self, unit: &str) -> u64 {
        let (Outcome::Finished { spent, .. }
        | Outcome::Interrupted { spent, .. }
        | Outcome::Stopped { spent, .. }) = self;
        spent.get(unit).copied().unwrap_or(0)
    }

    /// Temporary edits of this call that conflicted with those of a parallel task, and were dropped
    /// together.
    pub fn dropped_edits(&self) -> &[DroppedEdits] {
        let (Outcome::Finished { dropped, .. }
        | Outcome::Interrupted { dropped, .. }
        | Outcome::Stopped { dropped, .. }) = self;
        dropped
    }

    /// The run's id.
    pub fn run(&self) -> RunId {
        match self {
            Outcome::Finished { run, .. }
            | Outcome::Interrupted { run, .. }
            | Outcome::Stopped { run, .. } => *run,
        }
    }

    /// The last checkpoint, if the graph has a checkpointer.
    pub fn checkpoint(&self) -> Option<CheckpointId> {
        match self {
            Outcome::Finished { checkpoint, .. }
            | Outcome::Interrupted { checkpoint, .. }
            | Outcome::Stopped { checkpoint, .. } => *checkpoint,
        }
    }
}

/// The error for a run that has not finished, or has joins that still wait.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct NotFinished(Error);

impl NotFinished {
    pub(crate) fn new(error: Error) -> Self {
        NotFinished(error)
    }

    /// The stable code: [`Code::NotFinished`] or [`Code::StuckJoin`].
    pub fn code(&self) -> Code {
        self.0.code()
    }

    /// The state of the outcome. `None` if `O` is another type than the outcome's.
    pub fn state<O: Any + Send + Sync>(&self) -> Option<&O> {
        self.0.state()
    }
}

impl fmt::Debug for NotFinished {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl From<NotFinished> for Error {
    fn from(not_finished: NotFinished) -> Self {
        not_finished.0
    }
}

/// A join that did not fire because some of its sources never ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckJoin {
    /// Its subgraph, by its namespace in checkpoints; empty for the root graph.
    pub namespace: String,
    /// The target of the join.
    pub to: String,
    /// The sources that have arrived.
    pub arrived: Vec<String>,
    /// The sources that have not.
    pub missing: Vec<String>,
}

/// The error for joins that still wait, if there are any.
pub(crate) fn stuck_joins(stuck: &[StuckJoin]) -> Option<Error> {
    let list: Vec<String> = stuck.iter().map(ToString::to_string).collect();
    (!list.is_empty()).then(|| {
        let problem = format!(
            "the run is over and {}: make sure that every source runs, or let the join wait for fewer with `any`, `n_of` or a \
             timeout",
            list.join("; ")
        );
        Error::new(Code::StuckJoin, problem)
    })
}

impl fmt::Display for StuckJoin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the join into `{}` still waits for {}", self.to, quoted(&self.missing, ", "))?;
        write!(out, " after {}", quoted(&self.arrived, ", "))?;
        if self.namespace.is_empty() { Ok(()) } else { write!(out, " in the subgraph `{}`", self.namespace) }
    }
}
