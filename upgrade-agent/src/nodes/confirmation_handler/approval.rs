//! An open question, and an approval.
//!
//! Only the node above can create them. They can be read back from a checkpoint only: neither can be
//! deserialized from JSON, which is the only format that models write.

use serde::{Deserialize, Deserializer, Serialize, de};
use uuid::Uuid;

use super::kind_of;
use crate::actions::{self, Proposal};
use crate::reply::{ConfirmKind, DELETE_WORD};

/// An open question about an action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confirmation {
    proposal: Proposal,
    message: String,
    kind: ConfirmKind,
    asked_turn: u64,
}

/// An action that the person approved.
///
/// No code outside the confirmation handler can create one:
///
/// ```compile_fail,E0624
/// use upgrade_agent::state::{Approval, Confirmation};
///
/// fn approve(asked: &Confirmation) -> Approval {
///     Approval::new(asked.proposal().clone(), uuid::Uuid::nil())
/// }
/// ```
///
/// and it cannot be read from JSON, only from the bytes of a checkpoint:
///
/// ```
/// use upgrade_agent::state::Approval;
///
/// let json = r#"{ "proposal": { "action": { "delete_experiment": { "experiment_id": "d6a003ca" } }, "about": null,
///     "current": null, "warnings": [] }, "key": "d6a003ca-be46-417b-9c13-8dac554f511c" }"#;
/// let refused = serde_json::from_str::<Approval>(json).unwrap_err();
/// assert!(refused.to_string().contains("only from a checkpoint"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Approval {
    proposal: Proposal,
    key: Uuid,
}

impl Confirmation {
    pub(super) fn ask(proposal: Proposal, asked_turn: u64) -> Self {
        let message = actions::question(&proposal);
        let kind = kind_of(&proposal.action);
        Confirmation { proposal, message, kind, asked_turn }
    }

    /// Asks the same question again in a later turn.
    pub(crate) fn asked_again(&self, asked_turn: u64) -> Self {
        Confirmation { asked_turn, ..self.clone() }
    }

    /// The question, and how to answer it.
    pub(super) fn text(&self) -> String {
        let how = match self.kind {
            ConfirmKind::YesNo => "Answer yes or no; say modify to change something first.".to_owned(),
            ConfirmKind::TypeDelete => format!("Type {DELETE_WORD} to do it, or cancel."),
        };
        format!("{}\n{how}", self.message)
    }

    /// The question in one line, for a reply to something else.
    pub(crate) fn reminder(&self) -> String {
        let how = match self.kind {
            ConfirmKind::YesNo => "Answer yes or no.".to_owned(),
            ConfirmKind::TypeDelete => format!("Type {DELETE_WORD} to do it, or cancel."),
        };
        format!("The question is still open whether to {}. {how}", actions::title(&self.proposal))
    }

    pub(crate) fn suggested(&self) -> Vec<String> {
        let words: &[&str] = match self.kind {
            ConfirmKind::YesNo => &["Yes", "No", "Modify"],
            // The word has to be typed, so it is not a suggested answer.
            ConfirmKind::TypeDelete => &["Cancel"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// The proposal that the question is about.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// The text of the question.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The kind of confirmation.
    pub fn kind(&self) -> ConfirmKind {
        self.kind
    }

    /// The turn that asked. Only the message of the next turn is an answer.
    pub fn asked_turn(&self) -> u64 {
        self.asked_turn
    }
}

impl Approval {
    pub(super) fn new(proposal: Proposal, key: Uuid) -> Self {
        Approval { proposal, key }
    }

    /// The approved proposal.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// The unique key of the approval: the id of the experiment that it creates, and the uniquifier of the
    /// visit that it marks.
    pub fn key(&self) -> Uuid {
        self.key
    }
}

/// The same fields, for the derived reader behind the check.
#[derive(Deserialize)]
#[serde(remote = "Confirmation")]
struct StoredConfirmation {
    proposal: Proposal,
    message: String,
    kind: ConfirmKind,
    asked_turn: u64,
}

#[derive(Deserialize)]
#[serde(remote = "Approval")]
struct StoredApproval {
    proposal: Proposal,
    key: Uuid,
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        only_checkpoints(&from)?;
        StoredConfirmation::deserialize(from)
    }
}

impl<'de> Deserialize<'de> for Approval {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        only_checkpoints(&from)?;
        StoredApproval::deserialize(from)
    }
}

/// Checkpoints are MessagePack, a binary format. JSON and similar formats are human-readable in serde's
/// terms.
fn only_checkpoints<'de, D: Deserializer<'de>>(from: &D) -> Result<(), D::Error> {
    if from.is_human_readable() {
        Err(de::Error::custom("what the person was asked or said yes to is read only from a checkpoint"))
    } else {
        Ok(())
    }
}
