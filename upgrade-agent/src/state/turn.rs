//! What lives for one turn.

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

/// What the analyzer made of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// What the person wants.
    pub intent: Intent,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The request in a sentence, with what it refers to spelled out.
    pub summary: String,
}

/// A question that a message did not answer: it is not open any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DroppedAction {
    /// The action that was asked about.
    pub action: ActionKind,
    /// Its parameters.
    pub params: Params,
    /// The action in a few words.
    pub title: String,
}

/// What kind of reply a turn ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// Says something.
    #[default]
    Answer,
    /// Asks for parameters.
    Question,
    /// Asks for a yes.
    Confirmation,
    /// Asks what is meant.
    Clarification,
    /// Says what was done.
    Report,
}

/// A reply that a node knows word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetReply {
    /// The text.
    pub text: String,
    /// What kind of reply it is.
    pub kind: ResponseKind,
}

impl PresetReply {
    /// A reply.
    pub fn new(kind: ResponseKind, text: impl Into<String>) -> Self {
        PresetReply { text: text.into(), kind }
    }
}

/// Something that went wrong in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// What kind of trouble.
    pub class: ErrorClass,
    /// What happened and what to do.
    pub message: String,
    /// The node it happened in.
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
