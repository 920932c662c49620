//! The failures that end the program, as messages that begin with a code.

use std::path::PathBuf;
use std::process::ExitCode;

use gaia_agent::agent::{BuildError, SolveError};
use gaia_agent::evaluation::ApiError;
use gaia_agent::evaluation::submission::SubmitError;

use super::screen::Screen;
use crate::config::ConfigError;

/// The reason for the end of the program.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("E_GAIA_CONFIG: {0}")]
    Usage(String),
    #[error("E_GAIA_DATA: {}: {why}; make it usable, or choose another folder with --data-dir", path.display())]
    Data { path: PathBuf, why: std::io::Error },
    #[error("E_GAIA_IN_USE: another run works in {}: wait for its end, or choose another folder with --data-dir", path.display())]
    InUse { path: PathBuf },
    #[error("E_GAIA_QUESTIONS: {0}")]
    Questions(String),
    #[error("E_GAIA_UNKNOWN: {0}")]
    Unknown(String),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Solve(#[from] SolveError),
    #[error("{0}")]
    Model(#[from] agentgraph_llm::Error),
    #[error("{0}")]
    Engine(#[from] agentgraph::Error),
    #[error("{0}")]
    Store(#[from] agentgraph::checkpoint::StoreError),
    #[error("E_GAIA_DATA: {0}")]
    System(#[from] std::io::Error),
}

/// What the libraries advise, and what a person can do about it here.
const ADVICE: [(&str, &str); 6] = [
    (" or `api_key(..)`", " in the environment or in `.env`"),
    ("set a longer `timeout(..)`", "try again"),
    ("set it, or `base_url(..)`", "set it"),
    ("`longest_wait(..)`", "this program"),
    ("set `PythonSettings::unconfined` to run", "use --unsafe-python to run"),
    ("or no Python 3.8 or later", "or no Python 3.8 or later: --python names another one"),
];

/// A message that speaks of the options of the program, and not of those of its libraries.
pub(super) fn in_words_of_the_program(message: &str) -> String {
    ADVICE.iter().fold(message.to_owned(), |text, (library, program)| text.replace(library, program))
}

impl Failure {
    /// Prints the failure and returns the exit code.
    pub(super) fn report(&self, screen: Screen) -> ExitCode {
        screen.note(&in_words_of_the_program(&self.to_string()));
        let is_misused =
            matches!(self, Failure::Config(_) | Failure::Usage(_) | Failure::Api(ApiError::Address(_)))
                || matches!(self, Failure::Build(_))
                || matches!(self, Failure::Model(error) if error.code() == agentgraph_llm::Code::Config);
        ExitCode::from(if is_misused { 2 } else { 1 })
    }
}
