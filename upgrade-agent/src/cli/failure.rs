//! What ends the program, told to a person.

use std::process::ExitCode;

use agentgraph::Error as EngineError;
use upgrade_agent::agent::AgentError;
use upgrade_agent::client::ClientError;
use upgrade_agent::server::ServerError;

use crate::config::ConfigError;

/// Why the program ends early. Every text begins with a stable code and says what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("E_DATA_DIR: cannot write to the data folder {}: {why}; make it writable or choose another with --data-dir", path.display())]
    DataDir { path: std::path::PathBuf, why: std::io::Error },
    #[error("{0}")]
    Server(#[from] ServerError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{0}")]
    Model(#[from] agentgraph_llm::Error),
    #[error("{0}")]
    Agent(#[from] AgentError),
    #[error("{0}")]
    Store(#[from] EngineError),
    #[error("E_SYSTEM: {0}")]
    System(#[from] std::io::Error),
}

impl Failure {
    /// Prints it and gives the exit code.
    pub(super) fn report(&self) -> ExitCode {
        super::screen::warn(&self.to_string());
        let misused = matches!(self, Failure::Config(_))
            || matches!(self, Failure::Client(error) if error.code() == "E_UPGRADE_CONFIG")
            || matches!(self, Failure::Model(error) if error.code() == agentgraph_llm::Code::Config);
        ExitCode::from(if misused { 2 } else { 1 })
    }
}
