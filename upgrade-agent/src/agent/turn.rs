//! What came of one message.

use serde::Serialize;

use crate::balance::BalanceReport;
use crate::state::{ConversationState, PendingSummary, ResponseKind, TurnError};

/// One turn, ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// How many turns the thread has had with this one; what
    /// [`UpgradeAgent::heard`](super::UpgradeAgent::heard) is told.
    pub number: u64,
    /// What the agent says.
    pub reply: String,
    /// What kind of reply it is.
    pub kind: ResponseKind,
    /// Answers the person may want to give.
    pub suggested: Vec<String>,
    /// The nodes that ran, in order.
    pub path: Vec<String>,
    /// The reply of the unfinished turn that was ended before this one.
    pub recovered: Option<String>,
    /// What went wrong.
    pub errors: Vec<TurnError>,
    /// How a split came out, if the turn looked at one.
    pub balance: Option<Box<BalanceReport>>,
    /// What the agent waits for now.
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
