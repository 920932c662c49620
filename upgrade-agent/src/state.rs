//! The state of a conversation: what a thread keeps, and what one turn uses and the engine resets.
//!
//! Knows no model, no server and no routing. Everything a node reads or writes is a field here; there is no
//! other place where a conversation could be kept, so two of them cannot mix.

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
pub use log::{LogEntry, LogStatus};
pub use pending::{IncompleteAction, Params, Pending, PendingSummary};
pub use turn::{Analysis, DroppedAction, ErrorClass, Intent, PresetReply, ResponseKind, TurnError};

/// One conversation.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub struct ConversationState {
    /// What was said, oldest first: the person's texts and the agent's replies.
    #[reduce(by_id)]
    pub history: Vec<Message>,
    /// How many turns have begun. An input writes the number to add.
    #[reduce(with = count, write = u64)]
    pub turns: u64,
    /// The last turn whose question is known to have reached the person.
    #[reduce(with = latest)]
    #[serde(default)]
    pub heard: u64,
    /// What the agent waits for.
    pub pending: Pending,
    /// The action that the person said yes to and that has not run to its end.
    pub approved: Option<Approval>,
    /// The plan that is being run, step by step.
    pub plan: Option<PlanRun>,
    /// Every action that was run, oldest first.
    #[reduce(append)]
    pub execution_log: Vec<LogEntry>,
    /// The contexts, as last fetched.
    pub context_metadata: Option<CachedValue<ContextMetadata>>,
    /// The experiments' names, as last fetched and not changed since by this conversation.
    pub experiment_names: Option<CachedValue<Vec<ExperimentName>>>,
    /// The experiments, as last fetched and not changed since by this conversation.
    pub experiments: Option<CachedValue<Vec<Experiment>>>,
    /// What "that experiment" means.
    pub last_experiment: Option<ExperimentRef>,

    /// What the person said.
    #[channel(run)]
    pub user_input: String,
    /// Whether that was said before the person could have read what is asked: it is no yes.
    #[channel(run)]
    pub said_early: bool,
    /// The last turn whose reply was shown where that was said, if that is known: a yes to a later question
    /// is none.
    #[channel(run)]
    pub read_up_to: Option<u64>,
    /// What the analyzer made of it.
    #[channel(run)]
    pub analysis: Option<Analysis>,
    /// What was looked up for this turn, by name.
    #[channel(run)]
    #[reduce(merge)]
    pub gathered_info: BTreeMap<String, Value>,
    /// An action that is complete and waits to be asked about.
    #[channel(run)]
    pub proposal: Option<Proposal>,
    /// The question that this turn's message did not answer.
    #[channel(run)]
    pub dropped: Option<DroppedAction>,
    /// How a split came out that this turn looked at.
    #[channel(run)]
    pub balance: Option<BalanceReport>,
    /// What went wrong.
    #[channel(run)]
    #[reduce(append)]
    pub errors: Vec<TurnError>,
    /// Sentences that go before the reply whatever it is.
    #[channel(run)]
    #[reduce(append)]
    pub notes: Vec<String>,
    /// The reply, where a node already knows it word for word.
    #[channel(run)]
    pub preset: Option<PresetReply>,
    /// What kind of reply it is to be.
    #[channel(run)]
    pub kind: ResponseKind,
    /// Answers the person may want to give.
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
    /// The actions that this turn ran.
    pub fn executed(&self) -> impl Iterator<Item = &LogEntry> {
        self.execution_log.iter().filter(|entry| entry.turn == self.turns)
    }
}

/// Something fetched from the server, and the turn it was fetched in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedValue<T> {
    /// What was fetched.
    pub value: T,
    /// The turn.
    pub turn: u64,
}

impl<T> CachedValue<T> {
    /// Fetched in this turn.
    pub fn new(value: T, turn: u64) -> Self {
        CachedValue { value, turn }
    }

    /// How many turns ago it was fetched.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.turn)
    }
}

fn latest(heard: &mut u64, turn: u64) {
    *heard = turn.max(*heard);
}

fn count(turns: &mut u64, more: u64) {
    *turns = turns.saturating_add(more);
}
