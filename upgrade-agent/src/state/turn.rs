//! The data of one turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Params;
use crate::actions::ActionKind;

/// What the person wants, as the analyzer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// A greeting or thanks.
    Greeting,
    /// A question that needs nothing from the server.
    DirectAnswer,
    /// Something that needs the server or a tool: a look-up, or an action.
    NeedsInfo,
    /// It is not clear what is meant.
    Unclear,
    /// A yes or no, although nothing waits for one.
    ConfirmReply,
    /// The wish to stop what is under way.
    Cancel,
}

/// The analyzer's reading of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The intent.
    pub intent: Intent,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The request in a sentence, with all references spelled out.
    pub summary: String,
}

/// A question that a message did not answer. It stays open if the message only asked something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DroppedAction {
    /// The action of the question.
    pub action: ActionKind,
    /// Its parameters.
    pub params: Params,
    /// A short title of the action.
    pub title: String,
}

/// The kind of a turn's reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// Information.
    #[default]
    Answer,
    /// A question for parameters.
    Question,
    /// A question for a yes.
    Confirmation,
    /// A question about the meaning.
    Clarification,
    /// A report of an execution.
    Report,
}

/// A reply whose text a node has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetReply {
    /// The text.
    pub text: String,
    /// The kind.
    pub kind: ResponseKind,
}

impl PresetReply {
    /// A reply of this kind.
    pub fn new(kind: ResponseKind, text: impl Into<String>) -> Self {
        PresetReply { text: text.into(), kind }
    }
}

/// An error of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// The class.
    pub class: ErrorClass,
    /// The message: what happened and what to do.
    pub message: String,
    /// The node that failed.
    pub node: String,
}

/// The kinds of trouble a turn can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The server or the model could not be reached, or failed.
    Api,
    /// The server or the model does not accept who asks.
    Auth,
    /// The request does not make sense to UpGrade.
    Validation,
    /// There is no such experiment, student or context.
    NotFound,
    /// Anything else.
    Unknown,
}
