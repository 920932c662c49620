//! What a conversation waits for between two turns.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConfirmKind, Confirmation};
use crate::actions::ActionKind;

/// Parameters of an action as a model gave them, unchecked.
pub type Params = Map<String, Value>;

/// What the agent waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Pending {
    /// Nothing: the next message begins anew.
    #[default]
    Nothing,
    /// Parameters of an action.
    Missing(IncompleteAction),
    /// A yes to an action. Only the next message can give it.
    Confirm(Box<Confirmation>),
}

/// An action that is not complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncompleteAction {
    /// The action, if that is known already.
    pub action: Option<ActionKind>,
    /// What is known of its parameters.
    pub params: Params,
    /// The parameters to ask for. Empty if the person wants to change something and has not said what.
    pub missing: Vec<String>,
    /// What the person was asked.
    pub question: String,
    /// Answers the person may want to give.
    pub options: Vec<String>,
}

/// What is waited for, for somebody outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "waits_for", rename_all = "snake_case")]
pub enum PendingSummary {
    /// Parameters.
    Parameters {
        /// The action, if that is known already.
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
        /// How yes is said.
        answer: ConfirmKind,
    },
}

impl Pending {
    /// The same for somebody outside; `None` if nothing is waited for.
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
