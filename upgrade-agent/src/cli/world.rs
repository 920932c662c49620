//! Everything a conversation needs: the data folder, the server, the model, the threads, and the agent over them.

use std::sync::Arc;

use agentgraph::{Checkpointer, SqliteSaver};
use agentgraph_llm::{AnthropicModel, ChatModel};
use upgrade_agent::agent::UpgradeAgent;
use upgrade_agent::client::UpgradeClient;
use upgrade_agent::offline::{self, OfflineModel};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

use super::failure::Failure;
use super::screen;
use crate::config::{Config, ModelConfig};

/// All of it.
pub(super) struct World {
    pub(super) agent: UpgradeAgent,
    pub(super) client: UpgradeClient,
    threads: Arc<SqliteSaver>,
    /// Lives as long as the conversation.
    server: Option<ServerHandle>,
    /// What answers, in a sentence.
    pub(super) introduction: String,
}

impl World {
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        make_folder(config)?;
        let threads = Arc::new(SqliteSaver::open(config.threads_file()).await?);
        let server = match &config.url {
            Some(_) => None,
            None => Some(EmbeddedServer::builder().data_file(config.server_file()).start().await?),
        };
        let client = client(config, server.as_ref())?;
        let model = model(config.model.as_ref())?;
        let agent = UpgradeAgent::builder()
            .model(model)
            .client(client.clone())
            .checkpointer(threads.clone())
            .confidence(config.confidence)
            .temperature(config.temperature)
            .build()?;
        let introduction = introduction(config);
        Ok(World { agent, client, threads, server, introduction })
    }

    pub(super) async fn thread_names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.threads.threads().await?)
    }

    /// Lets the embedded server's last calls end.
    pub(super) async fn close(self) {
        if let Some(server) = self.server {
            server.shutdown().await;
        }
    }
}

/// Prints the names of all threads.
pub(super) async fn list_threads(config: &Config) -> Result<(), Failure> {
    make_folder(config)?;
    for name in SqliteSaver::open(config.threads_file()).await?.threads().await? {
        screen::line(&name);
    }
    Ok(())
}

fn make_folder(config: &Config) -> Result<(), Failure> {
    let path = &config.data_dir;
    std::fs::create_dir_all(path).map_err(|why| Failure::DataDir { path: path.clone(), why })
}

fn client(config: &Config, server: Option<&ServerHandle>) -> Result<UpgradeClient, Failure> {
    let url = config.url.as_deref().or(server.map(ServerHandle::url)).unwrap_or_default();
    let mut builder = UpgradeClient::builder(url);
    // The embedded server asks for no token, and a real one's token is none of its business.
    if let Some(token) = config.token.clone().filter(|_| server.is_none()) {
        builder = builder.token(token);
    }
    Ok(builder.build()?)
}

fn model(config: Option<&ModelConfig>) -> Result<Arc<dyn ChatModel>, Failure> {
    let Some(config) = config else { return Ok(Arc::new(OfflineModel::new())) };
    let mut builder =
        AnthropicModel::builder().api_key(config.key.clone()).model(&config.name).timeout(config.timeout);
    if let Some(url) = &config.base_url {
        builder = builder.base_url(url);
    }
    Ok(Arc::new(builder.build()?))
}

fn introduction(config: &Config) -> String {
    let model = match &config.model {
        Some(model) => format!("The model {} answers.", model.name),
        None => offline::INTRODUCTION.to_owned(),
    };
    let server = match &config.url {
        Some(url) => format!("The UpGrade server is {url}."),
        None => "The UpGrade server is embedded; its data are kept.".to_owned(),
    };
    format!("{model}\n{server}")
}
