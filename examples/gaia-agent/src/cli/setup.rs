//! The parts of the program: the data folder, the models, the embedded world, and the agent over them.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use agentgraph::SqliteSaver;
use agentgraph::checkpoint::{Checkpointer, Put, StoreError, delegate};
use agentgraph_llm::{ChatModel, GeminiModel};
use async_trait::async_trait;
use gaia_agent::agent::{GaiaAgent, GaiaAgentBuilder};
use gaia_agent::cache::AnswerCache;
use gaia_agent::evaluation::EvaluationClient;
use gaia_agent::log::{Log, Secrets};
use gaia_agent::net::Guard;
use gaia_agent::offline::OfflineModel;
use gaia_agent::python::PythonSettings;
use gaia_agent::run::RunBook;
use gaia_agent::settings::Addresses;
use gaia_agent::world::{World, WorldServer};

use super::failure::Failure;
use super::screen::Screen;
use crate::config::{Config, ModelConfig};

/// The name of the embedded server as the source of questions.
pub(super) const EMBEDDED: &str = "embedded";

/// The agent, and what lives as long as it.
pub(super) struct Setup {
    pub(super) agent: GaiaAgent,
    pub(super) log: Log,
    /// The embedded world, where it is used.
    pub(super) server: Option<WorldServer>,
}

impl Setup {
    /// The agent, with the public services or with those of the embedded world. `evaluation` is the server
    /// whose files may be downloaded, if it is not the embedded one. The offline model knows the embedded
    /// world alone.
    pub(super) async fn open(
        config: &Config,
        is_embedded: bool,
        evaluation: Option<&EvaluationClient>,
        commits: Commits,
        screen: Screen,
    ) -> Result<Self, Failure> {
        let is_embedded = is_embedded || config.models.main.is_none();
        let server = if is_embedded { Some(WorldServer::start(World::new()).await?) } else { None };
        let builder = builder(config, commits).await?;
        let log = log(config)?;
        let mut guard = Guard::new().hosts(config.tools.download_hosts.clone());
        let embedded = server.as_ref().map(WorldServer::url).map(EvaluationClient::new).transpose()?;
        if let Some(client) = evaluation.or(embedded.as_ref()) {
            guard = guard.trusted(client.base().clone());
        }
        let mut builder = builder.guard(guard).log(log.clone());
        builder = match &server {
            Some(server) => {
                let media =
                    GeminiModel::builder().api_key("embedded").model("embedded").base_url(server.media_url());
                let addresses = Addresses::on(server.url()).map_err(Failure::Usage)?;
                builder
                    .addresses(addresses, true)
                    .tavily_key("embedded".into())
                    .media(Arc::new(media.build()?))
            }
            None => real_services(builder, config)?,
        };
        if config.settings.use_cache {
            builder = builder.cache(cache(config));
        }
        if config.tools.python {
            let python = python(config);
            let sandbox = python.sandbox().await.map_err(|error| Failure::Usage(error.to_string()))?;
            if let Some(warning) = sandbox.warning() {
                screen.note(warning);
            }
            builder = builder.python(python);
        }
        if config.models.main.is_none() {
            screen.note(gaia_agent::offline::INTRODUCTION);
        }
        Ok(Setup { agent: builder.build()?, log, server })
    }
}

fn python(config: &Config) -> PythonSettings {
    let folder = config.data_dir.join("python");
    let mut python = PythonSettings::new(folder).helper(std::env::current_exe().ok());
    python.unconfined = config.tools.unsafe_python;
    if let Some(interpreter) = &config.tools.interpreter {
        python.program = interpreter.clone();
    }
    python
}

/// The agent for looking at threads: nothing is asked.
pub(super) async fn reader(config: &Config) -> Result<GaiaAgent, Failure> {
    Ok(builder(config, Commits::new(1)).await?.build()?)
}

async fn builder(config: &Config, commits: Commits) -> Result<GaiaAgentBuilder, Failure> {
    make_folder(&config.data_dir)?;
    let threads = config.data_dir.join("threads.db");
    keep_private(&threads);
    let saver = SqliteSaver::open(&threads).await?;
    let builder = match &config.models.main {
        None => GaiaAgent::builder(OfflineModel::new()),
        Some(model) => GaiaAgent::builder(real(model)?),
    };
    let mut builder = builder
        .settings(&config.settings)
        .prompts(config.prompts)
        .patterns(config.patterns)
        .folder(&config.data_dir)
        .current_folder(&config.work_dir)
        .checkpointer(Watched { saver, commits });
    if let Some(fallback) = &config.models.fallback {
        builder = builder.fallback(real(fallback)?);
    }
    Ok(builder)
}

fn real_services(mut builder: GaiaAgentBuilder, config: &Config) -> Result<GaiaAgentBuilder, Failure> {
    builder = builder.addresses(config.tools.addresses.clone(), false);
    if let Some(key) = &config.keys.tavily {
        builder = builder.tavily_key(key.clone());
    }
    if let Some(media) = &config.models.media {
        // Its calls have no middleware, so its own client retries.
        builder = builder.media(named(media).build()?);
    }
    Ok(builder)
}

/// A model whose retries are those of the agent.
fn real(model: &ModelConfig) -> Result<Arc<dyn ChatModel>, Failure> {
    Ok(named(model).max_retries(0).build()?)
}

fn named(model: &ModelConfig) -> agentgraph_llm::NamedModel {
    let mut settings = model.name.settings();
    if let Some(key) = &model.key {
        settings = settings.api_key(key.clone());
    }
    if let Some(url) = &model.base_url {
        settings = settings.base_url(url);
    }
    settings
}

/// The cache of the settings.
pub(super) fn cache(config: &Config) -> AnswerCache {
    let mut cache = AnswerCache::new(&config.settings.cache_file);
    if let Some(lifetime) = config.cache.lifetime {
        cache = cache.lifetime(lifetime);
    }
    if let Some(entries) = config.cache.entries {
        cache = cache.max_entries(entries);
    }
    if let Some(from) = config.cache.fuzzy {
        cache = cache.fuzzy(from);
    }
    cache
}

/// The runs of the data folder.
pub(super) fn runs(config: &Config) -> RunBook {
    RunBook::new(config.data_dir.join("runs"))
}

fn log(config: &Config) -> Result<Log, Failure> {
    let secrets = Secrets::new(config.secrets());
    if !config.settings.log_to_file {
        return Ok(Log::off(secrets));
    }
    let made = Log::create(&config.data_dir, SystemTime::now(), secrets);
    made.map_err(|why| Failure::Data { path: config.data_dir.clone(), why })
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path).map_err(|why| Failure::Data { path: path.to_owned(), why })
}

/// Threads hold what files and pages say. If the file is there before SQLite opens it, SQLite's other files
/// get its mode.
#[cfg(unix)]
fn keep_private(file: &Path) {
    use std::os::unix::fs::OpenOptionsExt;
    // A failure is reported when the file is opened.
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
}

#[cfg(not(unix))]
fn keep_private(_: &Path) {}

/// The threads in which something was stored.
pub(super) type Commits = tokio::sync::broadcast::Sender<String>;

/// A store that names the thread of each commit.
struct Watched {
    saver: SqliteSaver,
    commits: Commits,
}

#[async_trait]
impl Checkpointer for Watched {
    async fn put(&self, put: Put<'_>) -> Result<(), StoreError> {
        let thread = put.place.thread.to_owned();
        let stored = self.saver.put(put).await;
        // An error means that no page is open.
        let _ = self.commits.send(thread);
        stored
    }

    delegate!(self => &self.saver; get, row, put_writes, list, threads, delete_thread, outlives_its_process);
    delegate!(self => &self.saver; keeps_secrets, leases, catalog, upkeep);
}
