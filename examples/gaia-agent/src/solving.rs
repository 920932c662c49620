//! [`Solving`]: what is stored of a question.

use agentgraph::State;
use agentgraph_llm::Message;
use agentgraph_llm::agent::{AgentRecord, RecordChange};

use crate::task::Attachment;

/// The stored state of a question: the channels of an agent, and the question itself.
#[derive(State, Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Solving {
    /// The instructions, the question, and all answers and results.
    #[reduce(by_id)]
    pub messages: Vec<Message>,
    /// The counters of the agent.
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    pub thread_record: AgentRecord,
    /// The same; a question is one run.
    #[channel(run)]
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    pub run_record: AgentRecord,
    /// The id of the question.
    pub task_id: String,
    /// Its text.
    pub question: String,
    /// How hard it is.
    pub level: u8,
    /// Its file.
    pub attachment: Attachment,
    /// The version of the prompt.
    pub prompt: String,
    /// The primary model.
    pub model: String,
    /// When it was begun, in milliseconds since 1970.
    pub began: u64,
}

agentgraph_llm::agent_channels!(Solving);
