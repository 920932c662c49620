//! [`ThreadState`]: a checkpoint of a thread, as bytes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::shown::SentFailure;
use super::values::{StateForm, ValuesByName};
use crate::error::Error;
use crate::failure::Failure;
use crate::run::view::{Checkpoint, with_common_fields};
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
        let failures = checkpoint.failures.iter().map(SentFailure::from).collect();
        with_common_fields!(checkpoint, ThreadState { failures, values })
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
        let values = StateForm::of::<S>(schema).state(self.values)?;
        Ok(with_common_fields!(
            self,
            Checkpoint {
                #[cfg(feature = "draw")]
                drawn: None,
                values,
                failures,
            }
        ))
    }
}
