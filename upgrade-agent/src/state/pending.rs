//! The state between two turns.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConfirmKind, Confirmation};
use crate::actions::ActionKind;

/// The parameters of an action as a model gave them, unchecked.
pub type Params = Map<String, Value>;

/// The parameters or the confirmation that the agent waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Pending {
    /// Nothing: the next message starts something new.
    #[default]
    Nothing,
    /// Missing parameters of an action.
    Missing(IncompleteAction),
    /// A yes to an action. Only the next message can give it.
    Confirm(Box<Confirmation>),
}

/// An incomplete action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncompleteAction {
    /// The action, if it is known already.
    pub action: Option<ActionKind>,
    /// The parameters so far.
    pub params: Params,
    /// The parameters to ask for. Empty if the person wants a change and has not said which.
    pub missing: Vec<String>,
    /// The question that the person was asked.
    pub question: String,
    /// Suggested answers.
    pub options: Vec<String>,
}

/// A summary of [`Pending`] for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "waits_for", rename_all = "snake_case")]
pub enum PendingSummary {
    /// Parameters.
    Parameters {
        /// The action, if it is known already.
        action: Option<ActionKind>,
        /// The parameters to ask for.
        missing: Vec<String>,
    },
    /// A yes.
    Confirmation {
        /// The action.
        action: ActionKind,
        /// The question.
        message: String,
        /// The kind of confirmation.
        answer: ConfirmKind,
    },
}

impl Pending {
    /// The summary; `None` if nothing is pending.
    pub fn summary(&self) -> Option<PendingSummary> {
        match self {
            Pending::Nothing => None,
            Pending::Missing(missing) => {
                Some(PendingSummary::Parameters { action: missing.action, missing: missing.missing.clone() })
            }
            Pending::Confirm(asked) => Some(PendingSummary::Confirmation {
                action: asked.proposal().action.kind(),
                message: asked.message().to_owned(),
                answer: asked.kind(),
            }),
        }
    }
}
