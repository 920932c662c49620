//! The execution log: the executed actions, in order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::{Action, ExperimentRef};
use crate::state::TurnError;

/// An executed action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The time of its end, RFC 3339.
    pub timestamp: String,
    /// The turn that ran it.
    pub turn: u64,
    /// The action with its parameters.
    pub action: Action,
    /// The experiment that the action was about, if any.
    pub experiment: Option<ExperimentRef>,
    /// The outcome.
    pub status: LogStatus,
    /// The server's answer, shortened; `null` if the action failed.
    pub result: Value,
    /// The error.
    pub error: Option<TurnError>,
    /// The sentence that the person read about it.
    pub summary: String,
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStatus {
    /// It was done.
    Success,
    /// Not done, as far as the server reported.
    Error,
}
