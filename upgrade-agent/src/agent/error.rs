//! What keeps a turn from ending with a reply.

use agentgraph::{Code, CompileError, Error};

/// Why there is no [`Turn`](super::Turn), or no agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent cannot be built from what it was given.
    #[error("E_AGENT_CONFIG: {0}")]
    Config(String),
    /// The message has no words.
    #[error("E_AGENT_EMPTY: the message is empty: say what you want")]
    Empty,
    /// The turn went round in circles.
    #[error(
        "E_AGENT_ENDLESS: the turn did not come to an end; say it in other words, on a new thread if it comes again"
    )]
    Endless,
    /// Somebody else went on with the thread, from another process.
    #[error("{}: somebody else is using this thread: wait until that turn has ended, or use another thread", .0.code())]
    Busy(#[source] Error),
    /// The store or the engine failed.
    #[error(transparent)]
    Engine(Error),
}

impl AgentError {
    /// The stable code, such as `E_AGENT_EMPTY`; the engine's own for what the engine failed with.
    pub fn code(&self) -> &'static str {
        match self {
            AgentError::Config(_) => "E_AGENT_CONFIG",
            AgentError::Empty => "E_AGENT_EMPTY",
            AgentError::Endless => "E_AGENT_ENDLESS",
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
