//! [`Store`]: where the conversations are.

use std::path::PathBuf;
use std::sync::Arc;

use agentgraph::{Checkpointer, Code, SqliteSaver};
use upgrade_agent::agent::UpgradeAgent;

use super::failure::Failure;
use super::restate::Server;

/// The place of the conversations.
pub(super) enum Store {
    /// A file of the data folder.
    File { saver: Arc<SqliteSaver>, path: PathBuf },
    /// A Restate server.
    Restate(Box<Server>),
}

impl Store {
    /// The names of all conversations.
    pub(super) async fn names(&self) -> Result<Vec<String>, Failure> {
        match self {
            Store::File { saver, .. } => Ok(saver.threads().await?),
            Store::Restate(server) => server.threads().await,
        }
    }

    /// Whether there is a conversation of this name, though it may be unreadable.
    pub(super) async fn has(&self, agent: &UpgradeAgent, name: &str) -> Result<bool, Failure> {
        match self {
            Store::File { .. } => Ok(self.names().await?.iter().any(|known| known == name)),
            Store::Restate(_) => match agent.last(name).await {
                Ok(found) => Ok(found.is_some()),
                Err(error) if error.code() == Code::Host.as_str() => Err(error.into()),
                Err(_) => Ok(true),
            },
        }
    }

    /// Deletes a conversation.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Failure> {
        match self {
            Store::File { saver, .. } => Ok(saver.delete_thread(name).await?),
            Store::Restate(server) => server.delete(name).await,
        }
    }
}
