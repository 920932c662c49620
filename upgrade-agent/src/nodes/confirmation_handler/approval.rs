//! A question that is open, and a yes that was given.
//!
//! Both can be made only by the node above. They can be read back from a checkpoint, and from nothing else:
//! neither can be deserialised from JSON, which is all that a model ever writes.

use serde::{Deserialize, Deserializer, Serialize, de};
use uuid::Uuid;

use super::kind_of;
use crate::actions::{self, Proposal};
use crate::reply::{ConfirmKind, DELETE_WORD};

/// An open question: shall this be done?
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confirmation {
    proposal: Proposal,
    message: String,
    kind: ConfirmKind,
    asked_turn: u64,
}

/// An action that the person said yes to.
///
/// Nobody outside the confirmation handler can make one:
///
/// ```compile_fail,E0624
/// use upgrade_agent::state::{Approval, Confirmation};
///
/// fn approve(asked: &Confirmation) -> Approval {
///     Approval::new(asked.proposal().clone(), uuid::Uuid::nil())
/// }
/// ```
///
/// and no JSON becomes one, though a checkpoint's bytes do:
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

    /// The same question, asked again in a later turn.
    pub(super) fn asked_again(&self, asked_turn: u64) -> Self {
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

    pub(super) fn suggested(&self) -> Vec<String> {
        let words: &[&str] = match self.kind {
            ConfirmKind::YesNo => &["Yes", "No", "Modify"],
            // The word is to be typed, so it is no answer to pick.
            ConfirmKind::TypeDelete => &["Cancel"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// What is asked about.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// The question.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How yes is said.
    pub fn kind(&self) -> ConfirmKind {
        self.kind
    }

    /// The turn that asked. Only the message of the turn after it is an answer.
    pub fn asked_turn(&self) -> u64 {
        self.asked_turn
    }
}

impl Approval {
    pub(super) fn new(proposal: Proposal, key: Uuid) -> Self {
        Approval { proposal, key }
    }

    /// What was approved.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// What tells this approval from every other: the id of the experiment that it creates, the uniquifier of
    /// the visit that it marks.
    pub fn key(&self) -> Uuid {
        self.key
    }
}

/// The same fields, so that the derived reading can be had behind the check.
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

/// Checkpoints are MessagePack, a format for machines; JSON and its like call themselves readable.
fn only_checkpoints<'de, D: Deserializer<'de>>(from: &D) -> Result<(), D::Error> {
    if from.is_human_readable() {
        Err(de::Error::custom("what the person was asked or said yes to is read only from a checkpoint"))
    } else {
        Ok(())
    }
}
