//! [`ThreadState`]: a checkpoint of a thread, as bytes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::shown::SentFailure;
use super::values::{StateForm, ValuesByName};
use crate::error::Error;
use crate::failure::Failure;
use crate::run::view::Checkpoint;
use crate::state::StoredState;
use crate::typed::{AnyState, Seen};
use crate::words::{DoneStep, GraphEdit, Interrupt, OpenChild};
use agentgraph_checkpoint::{CheckpointId, RunId, Source};

/// A [`Checkpoint`] as a serde value without the types of the state. It contains secret channels too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThreadState {
    /// As [`Checkpoint::id`].
    pub id: CheckpointId,
    /// As [`Checkpoint::parent`].
    pub parent: Option<CheckpointId>,
    /// As [`Checkpoint::run`].
    pub run: RunId,
    /// As [`Checkpoint::source`].
    pub source: Source,
    /// As [`Checkpoint::created`].
    pub created: SystemTime,
    /// As [`Checkpoint::next`].
    pub next: Vec<String>,
    /// As [`Checkpoint::finished`].
    pub finished: bool,
    /// As [`Checkpoint::deferred`].
    pub deferred: Vec<String>,
    /// As [`Checkpoint::interrupts`].
    pub interrupts: Vec<Interrupt>,
    failures: Vec<SentFailure>,
    /// As [`Checkpoint::steps`].
    pub steps: Vec<DoneStep>,
    /// As [`Checkpoint::children`].
    pub children: Vec<OpenChild>,
    /// As [`Checkpoint::abandoned`].
    pub abandoned: Option<RunId>,
    /// As [`Checkpoint::edits`].
    pub edits: Vec<GraphEdit>,
    /// As [`Checkpoint::skips`].
    pub skips: Vec<String>,
    /// As [`Checkpoint::memories`].
    pub memories: BTreeMap<String, CheckpointId>,
    /// As [`Checkpoint::unknown_fields`].
    pub unknown_fields: Vec<String>,
    values: ValuesByName,
    /// As [`Checkpoint::merged`].
    #[serde(default)]
    pub merged: Vec<String>,
}

impl ThreadState {
    /// The form of a checkpoint whose state has this schema.
    ///
    /// # Errors
    /// [`Code::Encode`](crate::Code::Encode) if the state cannot be encoded.
    pub fn of<S: StoredState>(schema: &S::Schema, checkpoint: Checkpoint<S>) -> Result<Self, Error> {
        let values = StateForm::of::<S>(schema).values(Seen::of(&checkpoint.values))?;
        Ok(Self::with_values(values, checkpoint))
    }

    pub(super) fn shown(form: &StateForm, checkpoint: Checkpoint<AnyState>) -> Result<Self, Error> {
        let values = form.values(checkpoint.values.seen())?;
        Ok(Self::with_values(values, checkpoint))
    }

    fn with_values<S>(values: ValuesByName, checkpoint: Checkpoint<S>) -> Self {
        let Checkpoint { id, parent, run, source, created, next, finished, deferred, .. } = checkpoint;
        let Checkpoint { interrupts, failures, steps, children, abandoned, .. } = checkpoint;
        let Checkpoint { merged, edits, skips, memories, unknown_fields, .. } = checkpoint;
        ThreadState {
            id,
            parent,
            run,
            source,
            created,
            next,
            finished,
            deferred,
            interrupts,
            failures: failures.iter().map(SentFailure::from).collect(),
            steps,
            children,
            abandoned,
            edits,
            skips,
            memories,
            unknown_fields,
            values,
            merged,
        }
    }

    /// As [`Checkpoint::failures`].
    pub fn failures(&self) -> Vec<Failure> {
        self.failures.iter().cloned().map(Failure::from).collect()
    }

    /// The state.
    ///
    /// # Errors
    /// If the values do not fit `S`.
    pub fn values<S: StoredState>(&self, schema: &S::Schema) -> Result<S, Error> {
        StateForm::of::<S>(schema).state(self.values.clone())
    }

    /// The checkpoint, as the graph itself shows it.
    ///
    /// # Errors
    /// If the values do not fit `S`.
    pub fn into_checkpoint<S: StoredState>(self, schema: &S::Schema) -> Result<Checkpoint<S>, Error> {
        let failures = self.failures();
        Ok(Checkpoint {
            id: self.id,
            parent: self.parent,
            run: self.run,
            source: self.source,
            created: self.created,
            values: StateForm::of::<S>(schema).state(self.values)?,
            merged: self.merged,
            next: self.next,
            finished: self.finished,
            deferred: self.deferred,
            interrupts: self.interrupts,
            failures,
            steps: self.steps,
            children: self.children,
            abandoned: self.abandoned,
            edits: self.edits,
            skips: self.skips,
            memories: self.memories,
            unknown_fields: self.unknown_fields,
            #[cfg(feature = "draw")]
            drawn: None,
        })
    }
}
