//! The state of a conversation: the fields that a thread keeps, and the fields of one turn, which the engine
//! resets.
//!
//! Knows no model, no server and no routing. All data that nodes read or write are fields here, so
//! conversations cannot mix. One field per channel, which is why the struct is large.

mod further;
mod log;
mod pending;
mod turn;

use std::collections::BTreeMap;

use agentgraph::State;
use agentgraph_llm::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::{ExperimentRef, Proposal};
use crate::balance::BalanceReport;
use crate::client::{ContextMetadata, Experiment, ExperimentName};
pub use crate::nodes::confirmation_handler::{Approval, Confirmation};
pub use crate::plan::PlanRun;
pub use crate::reply::ConfirmKind;
pub use crate::restores::RestoreDue;
pub use further::FurtherRequests;
pub use log::{LogEntry, LogStatus};
pub use pending::{IncompleteAction, Params, Pending, PendingSummary};
pub use turn::{Analysis, DroppedAction, ErrorClass, Intent, PresetReply, ResponseKind, TurnError};

/// One conversation.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub struct ConversationState {
    /// The messages, oldest first: the person's texts and the agent's replies.
    #[reduce(by_id)]
    pub history: Vec<Message>,
    /// The number of turns that have started. An input writes the number to add.
    #[reduce(with = count, write = u64)]
    pub turns: u64,
    /// The last turn whose question is known to have been delivered.
    #[reduce(with = latest)]
    #[serde(default)]
    pub heard: u64,
    /// The parameters or the confirmation that the agent waits for.
    pub pending: Pending,
    /// The approved action that has not run to its end.
    pub approved: Option<Approval>,
    /// The plan that is running, step by step.
    pub plan: Option<PlanRun>,
    /// The statuses that plans could not restore. Each turn tries again.
    #[serde(default)]
    pub restores: Vec<RestoreDue>,
    /// Requests of an earlier message that are offered once nothing is open.
    #[serde(default)]
    pub further: FurtherRequests,
    /// The last turn that was cut off. Its plan ends early.
    #[reduce(with = latest)]
    #[serde(default)]
    pub cut_off: u64,
    /// All executed actions, oldest first.
    #[reduce(append)]
    pub execution_log: Vec<LogEntry>,
    /// The contexts, as last fetched.
    pub context_metadata: Option<CachedValue<ContextMetadata>>,
    /// The names of the experiments, as last fetched and not changed since by this conversation.
    pub experiment_names: Option<CachedValue<Vec<ExperimentName>>>,
    /// The experiments, as last fetched and not changed since by this conversation.
    pub experiments: Option<CachedValue<Vec<Experiment>>>,
    /// The experiment that "that experiment" refers to.
    pub last_experiment: Option<ExperimentRef>,

    /// The person's message.
    #[channel(run)]
    pub user_input: String,
    /// Whether the message was sent before the open question could be read, so that it is not a yes.
    #[channel(run)]
    pub said_early: bool,
    /// The last turn whose reply was shown in the program that sent the message, if known. A yes to a later
    /// question is not accepted.
    #[channel(run)]
    pub read_up_to: Option<u64>,
    /// The result of the analyzer.
    #[channel(run)]
    pub analysis: Option<Analysis>,
    /// The data looked up for this turn, by name.
    #[channel(run)]
    #[reduce(merge)]
    pub gathered_info: BTreeMap<String, Value>,
    /// A complete action that needs a confirmation.
    #[channel(run)]
    pub proposal: Option<Proposal>,
    /// The question that this turn's message did not answer.
    #[channel(run)]
    pub dropped: Option<DroppedAction>,
    /// The split of students that this turn looked at.
    #[channel(run)]
    pub balance: Option<BalanceReport>,
    /// The errors of the turn.
    #[channel(run)]
    #[reduce(append)]
    pub errors: Vec<TurnError>,
    /// Sentences that precede any reply.
    #[channel(run)]
    #[reduce(append)]
    pub notes: Vec<String>,
    /// The reply, if a node has set its text.
    #[channel(run)]
    pub preset: Option<PresetReply>,
    /// The kind of the reply.
    #[channel(run)]
    pub kind: ResponseKind,
    /// Suggested answers.
    #[channel(run)]
    pub suggested: Vec<String>,
    /// The nodes that ran, in order.
    #[channel(run)]
    #[reduce(append)]
    pub path: Vec<String>,
    /// The reply.
    #[channel(run)]
    pub reply: Option<String>,
}

impl ConversationState {
    /// Whether an approved plan is running, or is about to begin.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan.is_some()
            || self.approved.as_ref().is_some_and(|approved| approved.proposal().plan.is_some())
    }

    /// The experiment whose status this conversation has to restore, if any.
    pub fn owes_a_restore(&self) -> Option<&str> {
        let due = self.restores.first().map(|due| &due.experiment);
        let plan = || self.plan.as_ref().filter(|run| run.first_status().is_some());
        let about = due.or_else(|| plan()?.approved().proposal().about.as_ref());
        about.map(|about| about.name.as_str())
    }

    /// The actions that this turn executed.
    pub fn executed(&self) -> impl Iterator<Item = &LogEntry> {
        self.execution_log.iter().filter(|entry| entry.turn == self.turns)
    }
}

/// A fetched value, and the turn that fetched it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedValue<T> {
    /// The value.
    pub value: T,
    /// The turn.
    pub turn: u64,
}

impl<T> CachedValue<T> {
    /// A value fetched in this turn.
    pub fn new(value: T, turn: u64) -> Self {
        CachedValue { value, turn }
    }

    /// The number of turns since it was fetched.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.turn)
    }
}

fn latest(last: &mut u64, turn: u64) {
    *last = turn.max(*last);
}

fn count(turns: &mut u64, more: u64) {
    *turns = turns.saturating_add(more);
}
