//! [`RunEnd`]: how a driven call ended, as bytes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::shown::{SentDropped, SentError, stop_reason};
use super::values::{StateForm, ValuesByName};
use crate::error::{Code, Error};
use crate::record::header::StoredStuck;
use crate::run::future::AnyRun;
use crate::state::StoredState;
use crate::typed::{AnyState, Seen};
use crate::words::{Interrupt, Outcome, StopReason};
use agentgraph_checkpoint::{CheckpointId, RunId};

/// How a driven call ended: its [`Outcome`] or its [`Error`], as a serde value without the types of the
/// state. It contains the whole last state, secret channels too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd(End);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Finished { at: EndPlace, stuck: Vec<StoredStuck>, cancelled: Vec<String> },
    Interrupted { at: EndPlace, interrupts: Vec<Interrupt> },
    Stopped { at: EndPlace, reason: String },
    Failed(SentError),
}

/// The parts that every outcome has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EndPlace {
    output: ValuesByName,
    run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spent: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<SentDropped>,
}

impl RunEnd {
    /// The end of a call whose state has this schema, as its caller sees it.
    pub fn of<S: StoredState>(schema: &S::Schema, result: &Result<Outcome<S>, Error>) -> Self {
        StateForm::of::<S>(schema).end(result, |state| Seen::of(state))
    }

    pub(super) fn failed(error: &Error) -> Self {
        RunEnd(End::Failed(SentError::without_state(error)))
    }

    /// The same end, of a failed run with the error's code, message and place alone: for an answer that
    /// has no room for its causes and the last state, too.
    pub fn shortened(mut self) -> Self {
        if let End::Failed(error) = &mut self.0 {
            error.shorten();
        }
        self
    }

    /// Whether the run has finished.
    pub fn is_finished(&self) -> bool {
        matches!(self.0, End::Finished { .. })
    }

    /// Whether the run waits.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.0, End::Interrupted { .. })
    }

    /// Why the run was stopped; `None` if it was not, or if this release does not know the reason.
    pub fn stop_reason(&self) -> Option<StopReason> {
        match &self.0 {
            End::Stopped { reason, .. } => stop_reason(reason),
            _ => None,
        }
    }

    /// The reasons why the run waits; empty unless it was interrupted.
    pub fn interrupts(&self) -> &[Interrupt] {
        match &self.0 {
            End::Interrupted { interrupts, .. } => interrupts,
            _ => &[],
        }
    }

    /// The earliest time at which a sleep of the run ends, which `proceed()` then continues; `None` if it
    /// does not sleep.
    pub fn sleeps_until(&self) -> Option<SystemTime> {
        self.interrupts().iter().filter_map(|interrupt| interrupt.until).min()
    }

    /// The text of the error's code, such as `E_NODE_FAILED`; `None` if the call did not fail.
    pub fn error_code(&self) -> Option<&str> {
        match &self.0 {
            End::Failed(error) => Some(&error.code),
            _ => None,
        }
    }

    /// The run's id; `None` if the call failed.
    pub fn run(&self) -> Option<RunId> {
        self.0.place().map(|at| at.run)
    }

    /// The last checkpoint; `None` if the call failed.
    pub fn checkpoint(&self) -> Option<CheckpointId> {
        self.0.place()?.checkpoint
    }

    /// The result of the call, as a call on the graph itself returns it. The causes of an error are texts.
    ///
    /// # Errors
    /// The error of the call; a code that this release does not know becomes [`Code::Host`]. Also if the last
    /// state does not fit `S`.
    pub fn into_result<S: StoredState>(self, schema: &S::Schema) -> Result<Outcome<S>, Error> {
        let form = StateForm::of::<S>(schema);
        let (EndPlace { output, run, checkpoint, spent, dropped }, how) = match self.0 {
            End::Finished { at, stuck, cancelled } => (at, How::Finished(stuck, cancelled)),
            End::Interrupted { at, interrupts } => (at, How::Interrupted(interrupts)),
            End::Stopped { at, reason } => (at, How::Stopped(known_reason(&reason)?)),
            End::Failed(error) => return Err(error.into_error::<S>(&form)),
        };
        let output = form.state::<S>(output)?;
        let spent = spent.into_iter().map(|(unit, amount)| (unit.into(), amount)).collect();
        let dropped = dropped.into_iter().map(Into::into).collect();
        Ok(match how {
            How::Finished(stuck, cancelled) => {
                let stuck = stuck.into_iter().map(Into::into).collect();
                Outcome::Finished { output, stuck, cancelled, run, checkpoint, spent, dropped }
            }
            How::Interrupted(interrupts) => {
                Outcome::Interrupted { output, interrupts, run, checkpoint, spent, dropped }
            }
            How::Stopped(reason) => Outcome::Stopped { output, reason, run, checkpoint, spent, dropped },
        })
    }
}

/// The parts in which outcomes differ.
enum How {
    Finished(Vec<StoredStuck>, Vec<String>),
    Interrupted(Vec<Interrupt>),
    Stopped(StopReason),
}

fn known_reason(name: &str) -> Result<StopReason, Error> {
    stop_reason(name).ok_or_else(|| {
        let problem =
            format!("the run was stopped for a reason that this release does not know, `{name}`: update it");
        Error::new(Code::Host, problem)
    })
}

impl StateForm {
    /// The end of a run that is still to be awaited.
    pub(super) async fn end_of(self, run: AnyRun) -> RunEnd {
        self.end(&run.await, AnyState::seen)
    }

    fn end<O>(&self, result: &Result<Outcome<O>, Error>, seen: fn(&O) -> Seen<'_>) -> RunEnd {
        let end = match result {
            Ok(outcome) => self.values(seen(outcome.output())).map(|output| End::of(outcome, output)),
            Err(error) => Ok(End::Failed(SentError::of(self, error))),
        };
        end.map_or_else(|error| RunEnd::failed(&error), RunEnd)
    }
}

impl End {
    fn of<O>(outcome: &Outcome<O>, output: ValuesByName) -> Self {
        let (Outcome::Finished { spent, .. }
        | Outcome::Interrupted { spent, .. }
        | Outcome::Stopped { spent, .. }) = outcome;
        let at = EndPlace {
            output,
            run: outcome.run(),
            checkpoint: outcome.checkpoint(),
            spent: spent.iter().map(|(unit, amount)| (unit.to_string(), *amount)).collect(),
            dropped: outcome.dropped_edits().iter().map(SentDropped::from).collect(),
        };
        match outcome {
            Outcome::Finished { stuck, cancelled, .. } => End::Finished {
                at,
                stuck: stuck.iter().cloned().map(|join| join.within("")).collect(),
                cancelled: cancelled.clone(),
            },
            Outcome::Interrupted { interrupts, .. } => {
                End::Interrupted { at, interrupts: interrupts.clone() }
            }
            Outcome::Stopped { reason, .. } => End::Stopped { at, reason: reason.as_str().to_owned() },
        }
    }

    fn place(&self) -> Option<&EndPlace> {
        match self {
            End::Finished { at, .. } | End::Interrupted { at, .. } | End::Stopped { at, .. } => Some(at),
            End::Failed(_) => None,
        }
    }
}
