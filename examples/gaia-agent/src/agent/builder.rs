//! The settings of a [`GaiaAgent`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use agentgraph::Checkpointer;
use agentgraph_llm::middleware::{ModelFallback, ModelRetry, RefusedSettings};
use agentgraph_llm::retry::Backoff;
use agentgraph_llm::{Agent, ChatModel, ChatRequest, Clock, SecretString, SystemClock};

use super::GaiaAgent;
use super::context::TrimContext;
use super::form::AnswerForm;
use super::journal::Journal;
use super::prompt::PromptChoice;
use super::shortcuts::Shortcuts;
use super::vote;
use crate::cache::AnswerCache;
use crate::log::{Log, Secrets};
use crate::net::{Guard, Http};
use crate::python::PythonSettings;
use crate::settings::{Addresses, Settings};
use crate::solving::Solving;
use crate::tools::{Services, offered};

/// The settings of a [`GaiaAgent`]. One field per setting.
#[must_use = "nothing is made until `build()`"]
pub struct GaiaAgentBuilder {
    models: Models,
    settings: Settings,
    prompts: PromptChoice,
    patterns: bool,
    cache: Option<AnswerCache>,
    log: Log,
    reach: Reach,
    python: Option<PythonSettings>,
    folder: PathBuf,
    current: Option<PathBuf>,
    saver: Option<Arc<dyn Checkpointer>>,
    times: Times,
}

/// The models that are asked.
struct Models {
    main: Arc<dyn ChatModel>,
    fallback: Option<Arc<dyn ChatModel>>,
    media: Option<Arc<dyn ChatModel>>,
}

/// What tools reach outside of this process.
struct Reach {
    addresses: Option<Addresses>,
    are_local: bool,
    guard: Guard,
    tavily_key: Option<SecretString>,
}

/// Time, and the waits between attempts.
struct Times {
    clock: Arc<dyn Clock>,
    backoff: Backoff,
    now: fn() -> SystemTime,
}

/// A setting that cannot be used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The agent of `agentgraph-llm` refuses it.
    #[error(transparent)]
    Agent(#[from] agentgraph_llm::Error),
    /// The HTTP client, the addresses or the folders.
    #[error("E_GAIA_CONFIG: {0}")]
    Config(String),
}

/// The message, as `fn main() -> Result<()>` prints `Debug`.
impl std::fmt::Debug for BuildError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl GaiaAgentBuilder {
    pub(super) fn new(model: Arc<dyn ChatModel>) -> Self {
        GaiaAgentBuilder {
            models: Models { main: model, fallback: None, media: None },
            settings: Settings::default(),
            prompts: PromptChoice::default(),
            patterns: false,
            cache: None,
            log: Log::off(Secrets::default()),
            reach: Reach { addresses: None, are_local: false, guard: Guard::new(), tavily_key: None },
            python: None,
            folder: PathBuf::from("."),
            current: None,
            saver: None,
            times: Times {
                clock: Arc::new(SystemClock),
                backoff: Backoff {
                    first: std::time::Duration::from_secs(1),
                    longest: std::time::Duration::from_secs(60),
                    // Many questions that are refused together do not come back together.
                    jitter: 1.0,
                },
                now: SystemTime::now,
            },
        }
    }

    /// Sets the model that is asked when the first fails.
    pub fn fallback(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.fallback = Some(model);
        self
    }

    /// Sets the model that sees and hears. Without it, the tools for media are not offered.
    pub fn media(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.media = Some(model);
        self
    }

    /// Sets the limit of rounds, the temperature, the number of retries and the call for the form of an
    /// answer. The log and the cache are given themselves.
    pub fn settings(mut self, settings: &Settings) -> Self {
        self.settings = settings.clone();
        self
    }

    /// Sets the prompts.
    pub fn prompts(mut self, prompts: PromptChoice) -> Self {
        self.prompts = prompts;
        self
    }

    /// Answers some questions by patterns, without a model. Off if not set.
    pub fn patterns(mut self, patterns: bool) -> Self {
        self.patterns = patterns;
        self
    }

    /// Keeps answers in a cache, and uses them.
    pub fn cache(mut self, cache: AnswerCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets the log.
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Sets the addresses of the services that tools use. `are_local` is for a server on this machine, which
    /// no proxy knows.
    pub fn addresses(mut self, addresses: Addresses, are_local: bool) -> Self {
        (self.reach.addresses, self.reach.are_local) = (Some(addresses), are_local);
        self
    }

    /// Sets the key of Tavily. Without it, its tool is not offered.
    pub fn tavily_key(mut self, key: SecretString) -> Self {
        self.reach.tavily_key = Some(key);
        self
    }

    /// Sets what may be downloaded.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.reach.guard = guard;
        self
    }

    /// Allows Python code. Off if not set: see [`python`](crate::python).
    pub fn python(mut self, python: PythonSettings) -> Self {
        self.python = Some(python);
        self
    }

    /// Sets the folder below which `downloads` is: the working directory if not set.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the current folder of the tools. Without it they see the downloads of their question alone.
    pub fn current_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current = Some(folder.into());
        self
    }

    /// Stores the threads in `saver`. Without it, a question that was stopped begins anew.
    pub fn checkpointer(mut self, saver: impl Checkpointer) -> Self {
        self.saver = Some(Arc::new(saver));
        self
    }

    /// Sets the clock of the retries, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.times.clock = clock;
        self
    }

    /// Sets the waits before retries.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.times.backoff = backoff;
        self
    }

    /// Makes the agent.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn build(self) -> Result<GaiaAgent, BuildError> {
        let config = |why: String| BuildError::Config(why);
        let addresses = match self.reach.addresses {
            Some(addresses) => addresses,
            None => Addresses::public_except(|_| None).map_err(config)?,
        };
        let services = Arc::new(Services {
            http: Http::new(self.reach.are_local).map_err(|error| config(error.to_string()))?,
            guard: self.reach.guard.service(addresses.archive.clone()),
            addresses,
            tavily_key: self.reach.tavily_key,
            media: self.models.media,
            python: self.python,
        });
        let mut request = ChatRequest::default();
        request.temperature = self.settings.temperature;
        let main = self.models.main;
        let model = main.info().to_string();
        let retry = ModelRetry::new()
            .max_retries(self.settings.max_retries)
            .backoff(self.times.backoff)
            .clock(self.times.clock);
        // Each model is retried before the next is asked, and the log has each attempt.
        let agent = Agent::new(Arc::clone(&main))
            .name("gaia")
            .state::<Solving>()
            .settings(request)
            .max_rounds(self.settings.recursion_limit)
            .tools(offered(&services))
            .middleware(Shortcuts {
                cache: self.cache.clone(),
                patterns: self.patterns,
                log: self.log.clone(),
            })
            .middleware(AnswerForm {
                model: Arc::clone(&main),
                reformulate: self.settings.reformulate,
                log: self.log.clone(),
            })
            .middleware(TrimContext(self.log.clone()))
            .middleware(ModelFallback::new(self.models.fallback))
            .middleware(retry)
            .middleware(RefusedSettings::new())
            .middleware(Journal(self.log.clone()))
            .compile()?;
        let votes = vote::graph().map_err(|error| config(error.to_string()))?;
        let (agent, votes) = match self.saver {
            Some(saver) => (agent.checkpointer(Arc::clone(&saver)), votes.checkpointer(saver)),
            None => (agent, votes),
        };
        Ok(GaiaAgent {
            agent,
            votes,
            services,
            cache: self.cache,
            prompts: self.prompts,
            model,
            log: self.log,
            current: self.current,
            downloads: Path::new(&self.folder).join("downloads"),
            now: self.times.now,
        })
    }
}
