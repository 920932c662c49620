//! Serde forms of words and errors that have none of their own, or whose own form lacks something.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::values::{StateForm, ValuesByName};
use crate::error::causes::{Cause, texts_of_causes};
use crate::error::{Code, Error};
use crate::failure::Failure;
use crate::state::StoredState;
use crate::words::{DroppedEdits, EditError, GraphEdit, Rejection, StopReason};
use std::sync::Arc;

/// A [`Failure`] with its namespace, which checkpoints do not repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SentFailure {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    failure: Failure,
}

impl From<&Failure> for SentFailure {
    fn from(failure: &Failure) -> Self {
        SentFailure { namespace: failure.namespace().to_owned(), failure: failure.clone() }
    }
}

impl From<SentFailure> for Failure {
    fn from(sent: SentFailure) -> Self {
        sent.failure.within(&sent.namespace)
    }
}

/// [`DroppedEdits`]; the reason also as text, for a reader that does not know its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SentDropped {
    by: String,
    edits: Vec<GraphEdit>,
    edit: GraphEdit,
    why: Value,
    text: String,
    lost: Vec<String>,
}

impl From<&DroppedEdits> for SentDropped {
    fn from(dropped: &DroppedEdits) -> Self {
        let DroppedEdits { by, edits, why, lost } = dropped.clone();
        SentDropped {
            by,
            edits,
            edit: why.edit().clone(),
            why: serde_json::to_value(why.why()).unwrap_or_default(),
            text: why.why().to_string(),
            lost,
        }
    }
}

impl From<SentDropped> for DroppedEdits {
    fn from(sent: SentDropped) -> Self {
        let SentDropped { by, edits, edit, why, text, lost } = sent;
        let why = Rejection::deserialize(why).unwrap_or(Rejection::Unfit(text));
        DroppedEdits { by, edits, why: EditError::new(edit, why), lost }
    }
}

const REASONS: [StopReason; 5] =
    [StopReason::Limit, StopReason::Cancelled, StopReason::Drained, StopReason::Deadline, StopReason::Budget];

/// The reason with this name.
pub(super) fn stop_reason(name: &str) -> Option<StopReason> {
    REASONS.into_iter().find(|reason| reason.as_str() == name)
}

/// An [`Error`], with the texts of its causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SentError {
    pub(super) code: String,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<String>,
    pub(super) attempt: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<SentFailure>,
    /// The nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<ValuesByName>,
}

impl SentError {
    pub(super) fn of(form: &StateForm, error: &Error) -> Self {
        SentError { state: form.values_of_failed(error), ..SentError::without_state(error) }
    }

    pub(super) fn without_state(error: &Error) -> Self {
        SentError {
            code: error.code().as_str().to_owned(),
            message: error.message().to_owned(),
            node: error.node().map(str::to_owned),
            thread: error.thread().map(str::to_owned),
            attempt: error.attempt(),
            failures: error.failures().iter().map(SentFailure::from).collect(),
            causes: texts_of_causes(error),
            state: None,
        }
    }

    pub(super) fn shorten(&mut self) {
        (self.failures, self.causes, self.state) = (Vec::new(), Vec::new(), None);
    }

    /// The error, without its state if that does not fit this state any more.
    pub(super) fn into_error<S: StoredState>(mut self, form: &StateForm) -> Error {
        let state = self.state.take();
        let error = self.into_plain_error();
        match state.and_then(|values| form.state::<S>(values).ok()) {
            Some(state) => error.with_state(Arc::new(state)),
            None => error,
        }
    }

    pub(super) fn into_plain_error(self) -> Error {
        let SentError { code, message, node, thread, attempt, failures, causes, .. } = self;
        let error = match Code::ALL.iter().copied().find(|known| known.as_str() == code) {
            Some(code) => Error::new(code, message),
            None => Error::new(Code::Host, format!("{code}, which this release does not know: {message}")),
        };
        let error = match node {
            Some(node) => error.at_node(&node),
            None => error,
        };
        let failures = failures.into_iter().map(Failure::from).collect();
        let error = error.on_thread(thread.as_deref()).on_attempt(attempt).with_failures(failures);
        match Cause::of(causes) {
            Some(cause) => error.with_source(*cause),
            None => error,
        }
    }
}
