//! The errors of the agent.

use agentgraph::{Code, CompileError, Error};

/// The reason for which there is no [`Turn`](super::Turn), or no agent.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The settings of the agent are invalid.
    #[error("E_AGENT_CONFIG: {0}")]
    Config(String),
    /// The message has no words.
    #[error("E_AGENT_EMPTY: the message is empty: say what you want")]
    Empty,
    /// The turn exceeded its limit of supersteps.
    #[error(
        "E_AGENT_ENDLESS: the turn did not come to an end; say it in other words, on a new thread if it comes again"
    )]
    Endless,
    /// The turn reached its deadline.
    #[error("E_AGENT_DEADLINE: the turn took longer than it may; your next message ends it first")]
    Deadline,
    /// The turn reached a limit of its budget.
    #[error("E_AGENT_BUDGET: the turn used more than it may; your next message ends it first")]
    Budget,
    /// The turn waits for an answer to a question that no node of the agent asks.
    #[error("E_AGENT_WAITS: the turn waits for an answer that this agent does not take; begin a new thread")]
    Waits,
    /// The events of the turn ended without its end.
    #[error("E_AGENT_NO_END: the events of the turn ended without its end; the thread shows how far it came")]
    NoEnd,
    /// The turn was stopped from elsewhere, such as by a cancellation on the Restate server.
    #[error("{}: this turn was stopped from elsewhere; your next message ends it first", Code::NotFinished)]
    Stopped,
    /// Another process runs a turn of the thread.
    #[error("{}: somebody else is using this thread: wait until that turn has ended, or use another thread", .0.code())]
    Busy(#[source] Error),
    /// The store or the engine failed.
    #[error(transparent)]
    Engine(Error),
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl std::fmt::Debug for AgentError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl AgentError {
    /// The stable code, such as `E_AGENT_EMPTY`; errors of the engine have the engine's code.
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::Config(_) => "E_AGENT_CONFIG",
            AgentError::Empty => "E_AGENT_EMPTY",
            AgentError::Endless => "E_AGENT_ENDLESS",
            AgentError::Deadline => "E_AGENT_DEADLINE",
            AgentError::Budget => "E_AGENT_BUDGET",
            AgentError::Waits => "E_AGENT_WAITS",
            AgentError::NoEnd => "E_AGENT_NO_END",
            AgentError::Stopped => Code::NotFinished.as_str(),
            AgentError::Busy(error) | AgentError::Engine(error) => error.code().as_str(),
        }
    }
}

impl From<Error> for AgentError {
    fn from(error: Error) -> Self {
        match error.code() {
            Code::Stale
            | Code::ThreadBusy
            | Code::LeaseLost
            | Code::RunUnfinished
            | Code::NothingToResume => AgentError::Busy(error),
            _ => AgentError::Engine(error),
        }
    }
}

impl From<CompileError> for AgentError {
    fn from(error: CompileError) -> Self {
        AgentError::Config(error.to_string())
    }
}
