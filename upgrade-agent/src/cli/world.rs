//! The parts of a conversation: the data folder, the server, the model, the threads, and the agent over them.

use std::path::Path;
use std::sync::Arc;

use agentgraph::SqliteSaver;
use agentgraph::store::SqliteStore;
use agentgraph_llm::ChatModel;
use upgrade_agent::agent::{AgentError, Turn, UpgradeAgent, UpgradeAgentBuilder};
use upgrade_agent::client::{ClientError, UpgradeClient};
use upgrade_agent::offline::{self, OfflineModel};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};
use upgrade_agent::state::Pending;

use super::advice;
use super::failure::Failure;
use super::occupant::Note;
use super::patience::hinted;
use super::restate::Server;
use super::screen::Screen;
use super::store::Store;
use crate::config::{Config, ModelConfig};

/// The parts of a conversation.
pub(super) struct World {
    pub(super) agent: UpgradeAgent,
    /// Checks the server before a turn; none if workers elsewhere call it.
    pub(super) client: Option<UpgradeClient>,
    pub(super) store: Store,
    /// Lives as long as the conversation.
    server: Option<ServerHandle>,
    _note: Option<Note>,
    /// A sentence about the server and the model.
    pub(super) introduction: String,
}

impl World {
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        make_folder(config)?;
        if let Some(ingress) = &config.restate.ingress {
            return Self::elsewhere(Server::connect(config, ingress)?);
        }
        let store = file(config).await?;
        let server = match &config.url {
            Some(_) => None,
            None => {
                keep_private(&config.server_file());
                Some(EmbeddedServer::builder().data_file(config.server_file()).start().await?)
            }
        };
        let client = client(config, server.as_ref())?;
        keep_private(&config.restores_file());
        let restores = SqliteStore::open(config.restores_file()).await?;
        let agent = builder(config, client.clone())?.checkpointer(store.clone()).store(restores).build()?;
        let note = server.as_ref().map(|server| Note::leave(&config.server_file(), server.url()));
        Ok(World {
            agent,
            client: Some(client),
            store: Store::File { saver: store, path: config.threads_file() },
            server,
            _note: note,
            introduction: introduction(config),
        })
    }

    /// The conversations of a Restate server, whose workers run the turns.
    fn elsewhere(server: Server) -> Result<Self, Failure> {
        Ok(World {
            agent: server.agent()?,
            client: None,
            introduction: server.introduction(),
            store: Store::Restate(Box::new(server)),
            server: None,
            _note: None,
        })
    }

    /// Waits for the first answer of a Restate server and its workers, and says for what.
    pub(super) async fn meet(&self, thread: &str, screen: Screen) -> Result<(), AgentError> {
        let Store::Restate(server) = &self.store else { return Ok(()) };
        let hint = format!("Waiting for an answer. {}.", server.advice());
        hinted(screen, &hint, self.agent.last(thread)).await?;
        server.check_relay(screen).await;
        Ok(())
    }

    /// Restores the statuses that plans of other threads had to leave changed, as far as the server answers.
    /// The open thread restores its own.
    pub(super) async fn restore_others(&self, thread: &str, screen: Screen) {
        let mut threads = self.agent.threads_to_restore().await;
        threads.retain(|other| other != thread);
        let Some(client) = self.client.as_ref().filter(|_| !threads.is_empty()) else { return };
        if client.connect().await.is_err() {
            return;
        }
        for other in threads {
            // A failure is reported when that thread goes on; if it is busy, its plan runs in this moment.
            if let Ok(Some(turn)) = self.agent.recover(&other).await {
                screen.warn(&format!("Thread {other}: {}", turn.reply));
            }
        }
    }

    /// Whether a message can be taken now. A yes that could not be carried out is better given later, so
    /// before one the server must be reachable and accept the authorization.
    pub(super) async fn is_ready(&self, thread: &str) -> Result<(), ClientError> {
        let Some(client) = &self.client else { return Ok(()) };
        client.connect().await?;
        // The turn reports a thread that cannot be read.
        let state = self.agent.conversation(thread).await.ok().flatten();
        if state.is_some_and(|state| matches!(state.pending, Pending::Confirm(_))) {
            client.context_metadata().await?;
        }
        Ok(())
    }

    /// A stopped plan may have set a status that nothing else restores, so the turn is ended now.
    pub(super) async fn end_plan(&self, thread: &str) -> Option<Turn> {
        let stopped = self.agent.conversation(thread).await.ok().flatten();
        stopped.filter(|state| state.plan.is_some())?;
        // A failure here appears again before the next turn, and is reported then.
        self.agent.recover(thread).await.ok().flatten()
    }

    /// The failure of a turn, with advice.
    pub(super) fn failure_text(&self, error: &AgentError, thread: &str) -> String {
        advice::failure_text(error, thread, &self.store)
    }

    /// Waits for the last calls of the embedded server.
    pub(super) async fn close(self) {
        if let Some(server) = self.server {
            server.shutdown().await;
        }
    }
}

/// Opens the conversations for reading, without an UpGrade server and a model.
pub(super) struct Threads {
    pub(super) agent: UpgradeAgent,
    pub(super) store: Store,
}

impl Threads {
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        make_folder(config)?;
        if let Some(ingress) = &config.restate.ingress {
            let server = Server::connect(config, ingress)?;
            return Ok(Threads { agent: server.agent()?, store: Store::Restate(Box::new(server)) });
        }
        let store = file(config).await?;
        let agent = UpgradeAgent::builder()
            .model(OfflineModel::new())
            .client(UpgradeClient::builder("http://localhost").build()?)
            .checkpointer(store.clone())
            .build()?;
        Ok(Threads { agent, store: Store::File { saver: store, path: config.threads_file() } })
    }
}

/// The agent of a worker. Conversations are not stored here.
#[cfg(feature = "restate")]
pub(super) fn for_workers(config: &Config) -> Result<UpgradeAgentBuilder, Failure> {
    builder(config, client(config, None)?)
}

/// An agent with the model and the numbers of the settings.
fn builder(config: &Config, client: UpgradeClient) -> Result<UpgradeAgentBuilder, Failure> {
    Ok(UpgradeAgent::builder()
        .model(model(config)?)
        .client(client)
        .confidence(config.confidence)
        .temperature(config.temperature))
}

/// Opens the file of the conversations.
async fn file(config: &Config) -> Result<Arc<SqliteSaver>, Failure> {
    keep_private(&config.threads_file());
    Ok(Arc::new(SqliteSaver::open(config.threads_file()).await?))
}

fn make_folder(config: &Config) -> Result<(), Failure> {
    let path = &config.data_dir;
    private_folder()
        .create(path)
        .and_then(|()| make_private(path))
        .and_then(|()| try_to_write(path))
        .map_err(|why| Failure::DataDir { path: path.clone(), why })
}

/// An existing folder may be readable by others, and the conversations must not be. If the file is created
/// before SQLite opens it, SQLite's other files get its mode.
#[cfg(unix)]
pub(super) fn keep_private(file: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    // A failure is reported when the file is opened.
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    if file.is_file() {
        let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    }
}

#[cfg(not(unix))]
pub(super) fn keep_private(_: &Path) {}

/// An existing folder becomes private. One that is meant for everybody, such as `/tmp`, is refused.
#[cfg(unix)]
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const STICKY: u32 = 0o1000;
    let mode = folder.metadata()?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    if mode & STICKY != 0 {
        return Err(std::io::Error::other("it is shared by all users, and conversations must be private"));
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(|why| {
        std::io::Error::other(format!("others can read it, and its mode cannot be set to 0700: {why}"))
    })
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// An existing folder may be read-only, for which SQLite's message would be unclear.
fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let trial = folder.join(format!(".trial-{}", uuid::Uuid::new_v4()));
    std::fs::File::create_new(&trial)?;
    std::fs::remove_file(trial)
}

/// Creates folders that only their owner can read.
fn private_folder() -> std::fs::DirBuilder {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder
}

fn client(config: &Config, server: Option<&ServerHandle>) -> Result<UpgradeClient, Failure> {
    let url = config.url.as_deref().or(server.map(ServerHandle::url)).unwrap_or_default();
    let mut builder = UpgradeClient::builder(url).timeout(config.timeout).deadline(config.timeout);
    // The embedded server requires no token, and a token for a real server must not be sent to it.
    if server.is_some() {
        return Ok(builder.build()?);
    }
    if let Some(token) = config.token.clone() {
        builder = builder.token(token);
    }
    if let Some(file) = &config.service_account {
        builder = builder.service_account_file(file);
    }
    if let Some((key, secret)) = config.client_key.clone() {
        builder = builder.client_key(key, secret);
    }
    if config.allow_plain_http {
        builder = builder.allow_plain_http();
    }
    Ok(builder.build()?)
}

fn model(config: &Config) -> Result<Arc<dyn ChatModel>, Failure> {
    let Some(ModelConfig { key, base_url, name, timeout }) = &config.model else {
        return Ok(Arc::new(OfflineModel::new()));
    };
    let mut settings = name.settings().timeout(*timeout);
    if let Some(key) = key {
        settings = settings.api_key(key.clone());
    }
    if let Some(url) = base_url {
        settings = settings.base_url(url);
    }
    if config.allow_plain_http {
        settings = settings.allow_plain_http();
    }
    Ok(settings.build()?)
}

/// A sentence about the model, and one about the server.
pub(super) fn introduction(config: &Config) -> String {
    let model = match &config.model {
        Some(model) => format!("The model {} answers.", model.name.model),
        None => offline::INTRODUCTION.to_owned(),
    };
    let server = match &config.url {
        Some(url) => format!("The UpGrade server is {url}."),
        None => "The UpGrade server is embedded; its data are kept.".to_owned(),
    };
    format!("{model}\n{server}")
}
