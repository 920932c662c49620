//! The failures that end the program, as messages.

use std::path::PathBuf;
use std::process::ExitCode;

use agentgraph::checkpoint::StoreError;
use upgrade_agent::agent::AgentError;
use upgrade_agent::client::ClientError;
use upgrade_agent::server::ServerError;

use super::occupant::{self, Occupant};
use super::screen::Screen;
use crate::config::ConfigError;

/// The reason for the end of the program. Every text starts with a stable code and says what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("E_DATA_DIR: cannot use the data folder {}: {why}; correct that or choose another with --data-dir", path.display())]
    DataDir { path: PathBuf, why: std::io::Error },
    #[error("E_SERVER_IN_USE: {} is in use by {}, or choose another folder with --data-dir", path.display(), occupant_text(occupant))]
    InUse { path: PathBuf, occupant: Option<Occupant> },
    #[error("{0}")]
    Server(ServerError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{}", program_words(&.0.to_string()))]
    Model(#[from] agentgraph_llm::Error),
    #[error("{0}")]
    Agent(#[from] AgentError),
    /// A failed turn, with advice.
    #[error("{0}")]
    Turn(String),
    /// A server for web clients that does not serve.
    #[error("E_SYSTEM: {}", with_causes(.0))]
    Web(#[from] agentgraph_server::ServerError),
    /// A worker or a relay that does not serve.
    #[cfg(feature = "restate")]
    #[error("{}", super::restate::of_serving(.0))]
    Serve(#[from] agentgraph_restate::ServeError),
    #[error(
        "E_OUTPUT: the reply could not be written; if it asks something, that is asked again before a yes counts"
    )]
    Output,
    #[error(
        "{}\nThe file is left as it is; to talk on meanwhile, choose another folder with --data-dir. Moving the file away gives \
         up all conversations in it",
        program_words(&.0.to_string())
    )]
    Store(#[from] StoreError),
    #[error(
        "E_UNKNOWN_THREAD: there is no conversation {name}{}; `upgrade-agent threads` lists them",
        suggestion(near)
    )]
    NoThread { name: String, near: Option<String> },
    #[error(
        "E_RESTORE_DUE: conversation {name} has to restore the status of experiment '{experiment}' first: go on with it, or \
         say there: give up the restore"
    )]
    OwesRestore { name: String, experiment: String },
    #[error("E_SYSTEM: {0}")]
    System(#[from] std::io::Error),
}

impl Failure {
    /// Prints the failure and returns the exit code.
    pub(super) fn report(&self, screen: Screen) -> ExitCode {
        screen.warn(&self.to_string());
        let misused = matches!(self, Failure::Config(_))
            || self.has_unusable_address()
            || matches!(self, Failure::Client(error) if error.code() == "E_UPGRADE_CONFIG")
            || matches!(self, Failure::Model(error) if error.code() == agentgraph_llm::Code::Config);
        ExitCode::from(if misused { 2 } else { 1 })
    }

    #[cfg(feature = "restate")]
    fn has_unusable_address(&self) -> bool {
        use agentgraph_restate::ServeError::{IdentityKey, OpenToAll, RelayOpenToAll};
        matches!(self, Failure::Serve(OpenToAll { .. } | RelayOpenToAll { .. } | IdentityKey))
    }

    #[cfg(not(feature = "restate"))]
    fn has_unusable_address(&self) -> bool {
        false
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::InUse { path } => {
                let occupant = occupant::of(&path);
                Failure::InUse { path, occupant }
            }
            error => Failure::Server(error),
        }
    }
}

/// A message with its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Messages of the libraries name their own methods; the program has options for them.
pub(super) fn program_words(message: &str) -> String {
    const OPTIONS: &[(&str, &str)] = &[
        ("`.allow_plain_http()`", "--allow-plain-http"),
        (", or raise `SqliteSaverBuilder::max_size`, then continue with `proceed()`", ", then go on"),
    ];
    OPTIONS.iter().fold(message.to_owned(), |text, (method, option)| text.replace(method, option))
}

fn occupant_text(occupant: &Option<Occupant>) -> String {
    occupant.as_ref().map_or_else(|| "another program: end that one".to_owned(), ToString::to_string)
}

fn suggestion(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}
