//! Advice on failures that only the program can give: about its files, commands and flags.

use agentgraph::Code;
use upgrade_agent::agent::AgentError;

use super::failure::program_words;
use super::store::Store;

/// The failure of a turn, with the advice.
pub(super) fn failure_text(error: &AgentError, thread: &str, store: &Store) -> String {
    let text = program_words(&error.to_string());
    let AgentError::Engine(cause) = error else { return text };
    match advice(cause.code(), thread, store) {
        Some(advice) => format!("{text}\n{advice}"),
        None => text,
    }
}

fn advice(code: Code, thread: &str, store: &Store) -> Option<String> {
    let give_up = format!("`upgrade-agent threads delete {thread}`");
    match (code, store) {
        (Code::CorruptCheckpoint | Code::UnknownFormat | Code::GraphChanged, Store::File { path, .. }) => {
            Some(format!(
                "The thread lies in {}, and is left as it is: talk on another with --thread, or give it up with {give_up}",
                path.display()
            ))
        }
        (Code::CorruptCheckpoint | Code::UnknownFormat | Code::GraphChanged, Store::Restate(_)) => {
            Some(format!(
                "The thread is left as it is: start a worker of the release that wrote it, talk on another with --thread, or \
             give it up with {give_up}"
            ))
        }
        (Code::Store, Store::File { path, .. }) => Some(format!(
            "This turn may not be kept in {}; what was kept before is not changed. To talk on meanwhile, choose another \
             folder with --data-dir",
            path.display()
        )),
        (Code::Host, Store::Restate(server)) => Some(server.advice()),
        _ => None,
    }
}
