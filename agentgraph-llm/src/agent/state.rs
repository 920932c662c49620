//! The state of an agent: the conversation, and what the agent counts.

use agentgraph::State;
use serde::{Deserialize, Serialize};

use super::kept::KeptMessages;
use crate::json::RawJson;
use crate::message::{Message, Messages};
use crate::middleware::{Bill, MessageEdits, Slots};
use crate::model::{StopReason, Usage};
use crate::tool_loop::LoopEnd;
use crate::tool_node::MessageChannels;

/// The state of an agent without channels of its own.
///
/// A text, a message or a list of messages is an update that adds them to the conversation, so
/// `agent.invoke("hello")` works.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentState {
    /// The conversation.
    #[reduce(by_id)]
    pub messages: Messages,
    /// What the agent counts and keeps in the whole thread.
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    pub thread_record: AgentRecord,
    /// What the agent counts and keeps in one run.
    #[channel(run)]
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    pub run_record: AgentRecord,
}

impl From<&str> for AgentStateUpdate {
    fn from(text: &str) -> Self {
        Message::user(text).into()
    }
}

impl From<String> for AgentStateUpdate {
    fn from(text: String) -> Self {
        Message::user(text).into()
    }
}

impl From<Message> for AgentStateUpdate {
    fn from(message: Message) -> Self {
        AgentState::update().messages([message])
    }
}

impl From<Vec<Message>> for AgentStateUpdate {
    fn from(messages: Vec<Message>) -> Self {
        AgentState::update().messages(messages)
    }
}

/// A state that an agent can have. [`agent_channels!`](crate::agent_channels) implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of an agent",
    label = "needs `AgentChannels`",
    note = "give it the three channels of `AgentState` and write `agent_channels!({Self});`"
)]
pub trait AgentChannels: MessageChannels {
    /// The conversation as a list that requests share; `None` if the state has a `Vec`.
    fn shared_messages(&self) -> Option<&Messages> {
        None
    }

    /// What the agent counts and keeps in the whole thread.
    fn thread_record(&self) -> &AgentRecord;

    /// What the agent counts and keeps in the run.
    fn run_record(&self) -> &AgentRecord;

    /// The update for a change that an agent makes.
    fn change(change: AgentChange) -> Self::Update;
}

/// Implements [`AgentChannels`](crate::AgentChannels) for a state with the channels of an agent beside its
/// own.
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph_llm::agent::{AgentRecord, RecordChange};
/// use agentgraph_llm::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Shop {
///     #[reduce(by_id)]
///     messages: Messages,
///     #[reduce(with = AgentRecord::add, write = RecordChange)]
///     thread_record: AgentRecord,
///     #[channel(run)]
///     #[reduce(with = AgentRecord::add, write = RecordChange)]
///     run_record: AgentRecord,
///     /// The channel of the shop.
///     #[reduce(append)]
///     basket: Vec<String>,
/// }
/// agentgraph_llm::agent_channels!(Shop);
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let model = ScriptedModel::new([Reply::text("Welcome.")]);
/// let agent = Agent::new(model).state::<Shop>().compile()?;
/// let input = Shop::update().messages([Message::user("hello")]).basket(["tea"]);
/// let answer = agent.invoke(input).finish().await?;
/// assert_eq!((answer.text(), answer.state.basket), ("Welcome.".to_owned(), vec!["tea".to_owned()]));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! agent_channels {
    ($state:ty) => {
        impl $crate::MessageChannels for $state {
            fn messages(&self) -> &[$crate::Message] {
                &self.messages
            }

            fn add_messages(
                messages: ::std::vec::Vec<$crate::Message>,
            ) -> <$state as $crate::agent::State>::Update {
                <$state>::update().messages(messages)
            }

            fn add_results(
                results: ::std::vec::Vec<$crate::Message>,
                direct: ::std::vec::Vec<::std::string::String>,
            ) -> <$state as $crate::agent::State>::Update {
                let update = <$state>::update().messages(results);
                if direct.is_empty() {
                    return update;
                }
                update.run_record($crate::agent::RecordChange::direct(direct))
            }
        }

        impl $crate::AgentChannels for $state {
            fn shared_messages(&self) -> ::std::option::Option<&$crate::Messages> {
                (&self.messages as &dyn ::std::any::Any).downcast_ref()
            }

            fn thread_record(&self) -> &$crate::agent::AgentRecord {
                &self.thread_record
            }

            fn run_record(&self) -> &$crate::agent::AgentRecord {
                &self.run_record
            }

            // Otherwise the change and the update are moved once more.
            #[inline]
            fn change(change: $crate::agent::AgentChange) -> <$state as $crate::agent::State>::Update {
                let $crate::agent::AgentChange { put, removed, replaced, thread, run, .. } = change;
                let mut update = <$state>::update();
                if let Some(messages) = replaced {
                    update = update.overwrite_messages(messages.into());
                }
                if !removed.is_empty() {
                    update = update.remove_messages(removed);
                }
                if !put.is_empty() {
                    update = update.messages(put);
                }
                if let Some(thread) = thread {
                    update = update.thread_record(thread);
                }
                if let Some(run) = run {
                    update = update.run_record(run);
                }
                update
            }
        }
    };
}

agent_channels!(AgentState);

/// A change of an agent's channels.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentChange {
    /// The messages to replace by id or to add.
    pub put: Vec<Message>,
    /// The ids of the messages to remove.
    pub removed: Vec<String>,
    /// The whole conversation, in the place of all others.
    pub replaced: Option<Messages>,
    /// The change of the thread's record.
    pub thread: Option<RecordChange>,
    /// The change of the run's record.
    pub run: Option<RecordChange>,
}

impl AgentChange {
    pub(crate) fn of_messages(edits: MessageEdits) -> Self {
        let MessageEdits { put, removed, replaced } = edits;
        AgentChange { put, removed, replaced, ..AgentChange::default() }
    }

    /// Adds a bill to both records.
    pub(crate) fn bill(&mut self, bill: Bill) {
        self.thread.get_or_insert_default().bill = bill.clone();
        self.run_mut().bill = bill;
    }

    pub(crate) fn run_mut(&mut self) -> &mut RecordChange {
        self.run.get_or_insert_default()
    }
}

/// What an agent counts and keeps, in a run or in a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AgentRecord {
    /// The number of the model's answers.
    pub rounds: u64,
    /// The tokens of all of them.
    pub usage: Usage,
    /// The tokens of the last one.
    pub last_usage: Usage,
    /// What was paid: the answers, and those that middleware asked for.
    pub bill: Bill,
    /// Why the last one ended.
    pub stop: Option<StopReason>,
    /// Why the run ended.
    pub end: Option<LoopEnd>,
    /// The value of the answer, if it has a form.
    pub output: Option<RawJson>,
    /// The number of answers that did not have the form.
    pub misfits: u32,
    /// The last answer did not have the form, or the provider paused it: the model goes on.
    pub goes_on: bool,
    /// The ids of the calls whose output is the answer.
    pub direct: Vec<String>,
    /// In a graph made by [`hand_off`](super::hand_off): the agent that has the conversation. `None` is the
    /// first one. Kept for the thread.
    pub active: Option<String>,
    slots: Slots,
    #[serde(skip)]
    kept: KeptMessages,
}

impl AgentRecord {
    /// The reducer.
    pub fn add(&mut self, change: RecordChange) {
        if let Some(answer) = change.answer {
            self.rounds += 1;
            self.usage += answer.usage;
            self.last_usage = answer.usage;
            self.stop = Some(answer.stop);
            self.end = None;
            self.output = None;
            self.goes_on = answer.goes_on;
            self.misfits += u32::from(answer.is_misfit);
            self.direct.clear();
        }
        self.bill.add_all(&change.bill);
        if change.end.is_some() {
            self.end = change.end;
        }
        if change.output.is_some() {
            self.output = change.output;
        }
        if let Some(usage) = change.used_by_worker {
            self.usage += *usage;
        }
        if change.active.is_some() {
            self.active = change.active;
        }
        for id in change.direct {
            if !self.direct.contains(&id) {
                self.direct.push(id);
            }
        }
        if let Some(slots) = change.slots {
            self.slots = slots;
        }
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }
}

/// The conversation of a state as a list that requests share.
pub(super) fn conversation_of<S: AgentChannels>(state: &S) -> Messages {
    let kept = || state.run_record().kept.of(state.messages());
    state.shared_messages().cloned().unwrap_or_else(kept)
}

/// A change of an [`AgentRecord`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecordChange {
    pub(crate) answer: Option<AnswerFacts>,
    pub(crate) end: Option<LoopEnd>,
    pub(crate) output: Option<RawJson>,
    pub(crate) direct: Vec<String>,
    /// The tokens of a worker, beside those of the agent's own answers.
    /// In a box, since it is rare and a change is moved a dozen times on its way into the state.
    pub(crate) used_by_worker: Option<Box<Usage>>,
    /// The agent that has the conversation from now on.
    pub(crate) active: Option<String>,
    pub(crate) bill: Bill,
    pub(crate) slots: Option<Slots>,
}

impl RecordChange {
    /// The ids of the calls whose output is the answer.
    pub fn direct(ids: Vec<String>) -> Self {
        RecordChange { direct: ids, ..RecordChange::default() }
    }

    pub(crate) fn used_by_worker(usage: Usage) -> Self {
        RecordChange { used_by_worker: Some(Box::new(usage)), ..RecordChange::default() }
    }

    pub(crate) fn handed_to(agent: &str) -> Self {
        RecordChange { active: Some(agent.to_owned()), ..RecordChange::default() }
    }

    pub(crate) fn slots(slots: Slots) -> Self {
        RecordChange { slots: Some(slots), ..RecordChange::default() }
    }
}

/// What a record keeps of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerFacts {
    pub(crate) usage: Usage,
    pub(crate) stop: StopReason,
    pub(crate) goes_on: bool,
    pub(crate) is_misfit: bool,
}
