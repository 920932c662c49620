//! The execution log: what was really done, in order, whatever anybody says about it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::{Action, ExperimentRef};
use crate::state::TurnError;

/// An action that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When it ended, RFC 3339.
    pub timestamp: String,
    /// The turn in which it ran.
    pub turn: u64,
    /// The action with its parameters.
    pub action: Action,
    /// The experiment it was about, if it was about one.
    pub experiment: Option<ExperimentRef>,
    /// How it ended.
    pub status: LogStatus,
    /// What the server answered, in short; `null` if it failed.
    pub result: Value,
    /// Why it failed.
    pub error: Option<TurnError>,
    /// One sentence about it, as the person was told.
    pub summary: String,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStatus {
    /// It was done.
    Success,
    /// It was not done, as far as the server said.
    Error,
}
