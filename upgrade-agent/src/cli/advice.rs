//! Advice on failures that only the program can give: about its files, commands and flags.

use std::path::Path;

use agentgraph::Code;
use upgrade_agent::agent::AgentError;

/// The failure of a turn, with the advice.
pub(super) fn failure_text(error: &AgentError, thread: &str, file: &Path) -> String {
    let code = match error {
        AgentError::Engine(error) => error.code(),
        _ => return error.to_string(),
    };
    let file = file.display();
    match code {
        Code::CorruptCheckpoint | Code::UnknownFormat | Code::GraphChanged => format!(
            "{error}\nThe thread lies in {file}, and is left as it is: talk on another with --thread, or give it up with \
             `upgrade-agent threads delete {thread}`"
        ),
        Code::Store => {
            format!(
                "{error}\nThis turn may not be kept in {file}; what was kept before is not changed. To talk on meanwhile, choose \
                 another folder with --data-dir"
            )
        }
        _ => error.to_string(),
    }
}
