//! The outcome of one message.

use serde::Serialize;

use crate::balance::BalanceReport;
use crate::state::{ConversationState, PendingSummary, ResponseKind, TurnError};

/// One finished turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// The number of this turn on its thread, for [`UpgradeAgent::heard`](super::UpgradeAgent::heard).
    pub number: u64,
    /// The agent's reply.
    pub reply: String,
    /// The kind of the reply.
    pub kind: ResponseKind,
    /// Suggested answers.
    pub suggested: Vec<String>,
    /// The nodes that ran, in order.
    pub path: Vec<String>,
    /// The reply of the unfinished turn that was ended before this one.
    pub recovered: Option<String>,
    /// The errors of the turn.
    pub errors: Vec<TurnError>,
    /// The split of students that the turn looked at.
    pub balance: Option<Box<BalanceReport>>,
    /// The parameters or the confirmation that the agent waits for.
    pub pending: Option<PendingSummary>,
}

impl Turn {
    pub(super) fn of(state: ConversationState) -> Self {
        Turn {
            number: state.turns,
            reply: state.reply.unwrap_or_default(),
            kind: state.kind,
            suggested: state.suggested,
            path: state.path,
            recovered: None,
            errors: state.errors,
            balance: state.balance.map(Box::new),
            pending: state.pending.summary(),
        }
    }

    /// Whether the reply asks for a yes.
    pub fn asks_for_a_yes(&self) -> bool {
        matches!(self.pending, Some(PendingSummary::Confirmation { .. }))
    }

    pub(super) fn recovering(mut self, reply: Option<String>) -> Self {
        self.recovered = reply;
        self
    }
}
