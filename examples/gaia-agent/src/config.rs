//! The settings of the program: flags take precedence over the environment, the environment over `.env`, that
//! over the file `gaia-agent.json`, and the file over defaults.
//!
//! Keys come from the environment and `.env` only, are kept in `SecretString` and never displayed. The
//! environment is a function argument, so tests do not change their own.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentgraph_llm::{ModelName, Provider};
use gaia_agent::agent::PromptChoice;
use gaia_agent::report::PriceSetting;
use gaia_agent::settings::{Addresses, Settings};
use secrecy::SecretString;

use file::FileConfig;

const MODEL: &str = "openai:gpt-4o";
const FALLBACK: &str = "openai:gpt-4o-mini";
const MEDIA: &str = "gemini:gemini-2.5-flash";
const OFFLINE: &str = "offline";
const NONE: &str = "none";

/// Settings that flags can give.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// Where threads, the cache, logs, downloads and gaia-agent.json lie [env: GAIA_AGENT_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The folder that the tools see as the current one, without hidden files [default: the working
    /// directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// A file of settings [default: gaia-agent.json in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The language model, such as openai:NAME, anthropic:NAME, gemini:NAME or ollama:NAME; or offline [env:
    /// GAIA_AGENT_MODEL] [default: openai:gpt-4o with OPENAI_API_KEY, else offline]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model that is asked when the first fails, or none [env: GAIA_AGENT_FALLBACK] [default:
    /// openai:gpt-4o-mini with an OpenAI model, else none]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) fallback: Option<String>,
    /// The model that sees and hears, or none [env: GAIA_AGENT_MEDIA_MODEL] [default: gemini:gemini-2.5-flash
    /// with GEMINI_API_KEY]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) media_model: Option<String>,
    /// Allow the tools that run Python code: in a folder of its own, without a network; Linux with Landlock
    #[arg(long, global = true)]
    pub(crate) allow_python: bool,
    /// Allow them also where code cannot be confined: it can then read and change all your files
    #[arg(long, global = true)]
    pub(crate) unsafe_python: bool,
    /// The interpreter, whose libraries the code has [default: python3]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// The most answers of the model for a question (`recursion_limit`) [default: 50]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) recursion_limit: Option<u64>,
    /// The temperature, from 0; none sends none [default: 0]
    #[arg(long, global = true, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) temperature: Option<String>,
    /// How often a failed request to a model is made again (`max_retries`) [default: 5]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// Leave an answer as it is if the model did not bring it into the form (`reformulate`)
    #[arg(long, global = true)]
    pub(crate) no_reformulate: bool,
    /// Neither use nor keep answers of the cache (`use_cache`)
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// The file of the cache (`cache_file`) [default: agent_cache.json in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cache_file: Option<PathBuf>,
    /// Take the answer of a question that is alike, from this likeness up, 0 to 1 [default: off]
    #[arg(long, global = true, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) fuzzy_cache: Option<f64>,
    /// Write no log file (`log_to_file`)
    #[arg(long, global = true)]
    pub(crate) no_log: bool,
    /// The prompt: a, b, or ab for half of the questions each
    #[arg(long, global = true, value_name = "a|b|ab")]
    pub(crate) prompt: Option<String>,
    /// Answer plain arithmetic and the like by patterns, without a model
    #[arg(long, global = true)]
    pub(crate) patterns: bool,
}

/// The complete settings. One field per setting.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) work_dir: PathBuf,
    pub(crate) models: Models,
    pub(crate) keys: Keys,
    pub(crate) settings: Settings,
    pub(crate) cache: CacheConfig,
    pub(crate) prompts: PromptChoice,
    pub(crate) prompts_name: String,
    pub(crate) patterns: bool,
    pub(crate) tools: ToolConfig,
    pub(crate) prices: BTreeMap<String, PriceSetting>,
    pub(crate) submitter: Submitter,
}

#[derive(Clone, Debug)]
pub(crate) struct Models {
    /// None for the offline model.
    pub(crate) main: Option<ModelConfig>,
    pub(crate) fallback: Option<ModelConfig>,
    pub(crate) media: Option<ModelConfig>,
}

/// The keys of services that are no models.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) tavily: Option<SecretString>,
    pub(crate) hugging_face: Option<SecretString>,
}

/// The bounds of the cache of answers.
#[derive(Clone, Debug)]
pub(crate) struct CacheConfig {
    pub(crate) lifetime: Option<Duration>,
    pub(crate) entries: Option<usize>,
    pub(crate) fuzzy: Option<f64>,
}

/// What tools may do and reach.
#[derive(Clone, Debug)]
pub(crate) struct ToolConfig {
    pub(crate) python: bool,
    pub(crate) unsafe_python: bool,
    pub(crate) interpreter: Option<PathBuf>,
    pub(crate) addresses: Addresses,
    pub(crate) download_hosts: Vec<String>,
}

/// Who submits answers.
#[derive(Clone, Debug)]
pub(crate) struct Submitter {
    pub(crate) username: Option<String>,
    pub(crate) agent_code: Option<String>,
}

/// A model, with its key and address.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    pub(crate) name: ModelName,
    /// None for servers that need no key.
    pub(crate) key: Option<SecretString>,
    pub(crate) base_url: Option<String>,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("E_GAIA_CONFIG: {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("E_GAIA_CONFIG: {name}: {why}")]
    Value { name: String, why: String },
    #[error("E_GAIA_CONFIG: there is no folder for this user's data: give one with --data-dir")]
    NoDataDir,
}

impl ConfigError {
    fn value(name: impl Into<String>, why: impl std::fmt::Display) -> Self {
        ConfigError::Value { name: name.into(), why: why.to_string() }
    }
}

/// The process's environment, and `.env` behind it.
struct Environment<'a> {
    process: &'a dyn Fn(&str) -> Option<String>,
    file: BTreeMap<String, String>,
}

impl Environment<'_> {
    /// A variable; one that is blank counts as not set.
    fn get(&self, name: &str) -> Option<String> {
        let set = |value: String| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        (self.process)(name).and_then(set).or_else(|| self.file.get(name).cloned().and_then(set))
    }

    fn key(&self, names: &[&str]) -> Option<SecretString> {
        names.iter().find_map(|name| self.get(name)).map(SecretString::from)
    }
}

impl Models {
    /// The offline model answers if it is asked for, and if no model is named and there is no key.
    fn of(flags: &Flags, environment: &Environment<'_>, file: &FileConfig) -> Result<Self, ConfigError> {
        let default = |provider: Provider, name| environment.key(provider.key_variables()).map(|_| name);
        let choose = |flag: &str, named: [&Option<String>; 2], off: &str, default: Option<&str>| {
            let variable = format!("GAIA_AGENT_{}", flag[2..].to_uppercase().replace('-', "_"));
            let [flagged, filed] = named;
            let named = flagged.clone().or_else(|| environment.get(&variable)).or_else(|| filed.clone());
            let name = named.as_deref().or(default).filter(|name| *name != off);
            name.map(|name| configured(name, flag, environment)).transpose()
        };
        let main = choose("--model", [&flags.model, &file.model], OFFLINE, default(Provider::OpenAi, MODEL))?;
        let fallback = match &main {
            // Without a model to fall back from there is none to fall back to.
            None => None,
            Some(model) => {
                let is_of_openai = matches!(model.name.provider, Provider::OpenAi | Provider::OpenAiChat);
                let default = (is_of_openai && model.name.to_string() != FALLBACK).then_some(FALLBACK);
                choose("--fallback", [&flags.fallback, &file.fallback], NONE, default)?
            }
        };
        let named = [&flags.media_model, &file.media_model];
        let media = choose("--media-model", named, NONE, default(Provider::Gemini, MEDIA))?;
        Ok(Models { main, fallback, media })
    }
}

impl Config {
    /// Reads all settings. `folder` is the working directory.
    ///
    /// # Errors
    /// Names the invalid setting, and what would be valid.
    pub(crate) fn collect(
        flags: &Flags,
        process: &dyn Fn(&str) -> Option<String>,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        let environment = Environment { process, file: dot_env(&folder.join(".env"))? };
        let data_dir =
            flags.data_dir.clone().or_else(|| environment.get("GAIA_AGENT_DATA_DIR").map(PathBuf::from));
        let data_dir = data_dir.or_else(|| of_user(&environment)).ok_or(ConfigError::NoDataDir)?;
        let data_dir = folder.join(data_dir);
        let file = match &flags.config {
            Some(path) => FileConfig::read(path)?,
            None => FileConfig::of_data_dir(&data_dir)?,
        };
        let models = Models::of(flags, &environment, &file)?;
        let settings = settings(flags, &file, &data_dir)?;
        let prompts_name = flags.prompt.clone().or(file.prompt).unwrap_or_else(|| "a".to_owned());
        let prompts = prompts(&prompts_name)?;
        let fuzzy = flags.fuzzy_cache.or(file.fuzzy_cache);
        if fuzzy.is_some_and(|from| !(0.5..=1.0).contains(&from)) {
            return Err(ConfigError::value("--fuzzy-cache", "a likeness is a number from 0.5 to 1"));
        }
        let addresses = file.addresses.clone();
        let address = |name: &str| {
            let variable = format!("GAIA_AGENT_{}_URL", name.to_uppercase());
            environment.get(&variable).or_else(|| addresses.get(name).cloned())
        };
        if let Some(unknown) = addresses.keys().find(|name| !Addresses::NAMES.contains(&name.as_str())) {
            let why = format!("there is no service `{unknown}`; there are {}", Addresses::NAMES.join(", "));
            return Err(ConfigError::value("addresses", why));
        }
        Ok(Config {
            work_dir: flags.work_dir.clone().map_or_else(|| folder.to_owned(), |dir| folder.join(dir)),
            models,
            keys: Keys {
                tavily: environment.key(&["TAVILY_API_KEY"]),
                hugging_face: environment.key(&["HF_TOKEN"]),
            },
            cache: CacheConfig {
                lifetime: file.cache_ttl_hours.map(|hours| Duration::from_secs(hours.saturating_mul(3600))),
                entries: file.cache_max_entries,
                fuzzy,
            },
            prompts,
            prompts_name,
            patterns: flags.patterns || file.patterns.unwrap_or(false),
            tools: ToolConfig {
                python: flags.allow_python || flags.unsafe_python,
                unsafe_python: flags.unsafe_python,
                interpreter: flags.python.clone().or(file.python).map(|path| {
                    match path.components().count() {
                        1 => path,
                        _ => folder.join(path),
                    }
                }),
                addresses: Addresses::public_except(address)
                    .map_err(|why| ConfigError::value("addresses", why))?,
                download_hosts: file.download_hosts,
            },
            prices: file.prices,
            submitter: Submitter {
                username: environment.get("HF_USERNAME").or(file.username),
                agent_code: file.agent_code,
            },
            settings,
            data_dir,
        })
    }

    /// All keys, which are kept out of logs and threads.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let models = [&self.models.main, &self.models.fallback, &self.models.media].into_iter().flatten();
        let keys = models.filter_map(|model| model.key.clone());
        keys.chain(self.keys.tavily.clone()).chain(self.keys.hugging_face.clone()).collect()
    }

    /// The name of the primary model, as threads have it.
    pub(crate) fn model_name(&self) -> String {
        self.models.main.as_ref().map_or_else(|| OFFLINE.to_owned(), |model| model.name.to_string())
    }
}

fn dot_env(path: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let wrong = |why: dotenvy::Error| ConfigError::File {
        path: path.to_owned(),
        // The line may hold a key.
        why: match why {
            dotenvy::Error::LineParse(_, _) => "a line is no `NAME=value`".to_owned(),
            other => other.to_string(),
        },
    };
    if !path.is_file() {
        return Ok(BTreeMap::new());
    }
    dotenvy::from_path_iter(path).map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)
}

/// The folder for a user's data, by the convention of each platform.
fn of_user(environment: &Environment<'_>) -> Option<PathBuf> {
    // A relative path would depend on the working directory.
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA").or_else(|| absolute("APPDATA"))
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library").join("Application Support"))
    } else {
        absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local").join("share")))
    };
    base.map(|base| base.join("gaia-agent"))
}

fn configured(name: &str, flag: &str, environment: &Environment<'_>) -> Result<ModelConfig, ConfigError> {
    let name: ModelName =
        name.parse().map_err(|error: agentgraph_llm::Error| ConfigError::value(flag, error.message()))?;
    let provider = name.provider;
    let key = environment.key(provider.key_variables());
    if key.is_none() && provider.requires_key() {
        let why = format!("{name} needs a key in {}", provider.key_variables().join(" or "));
        return Err(ConfigError::value(flag, why));
    }
    let base_url = provider.url_variables().iter().find_map(|variable| environment.get(variable));
    Ok(ModelConfig { name, key, base_url })
}

fn settings(flags: &Flags, file: &FileConfig, data_dir: &Path) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    settings.log_to_file = !flags.no_log && file.log_to_file.unwrap_or(true);
    settings.use_cache = !flags.no_cache && file.use_cache.unwrap_or(true);
    let cache_file = flags.cache_file.clone().or_else(|| file.cache_file.clone());
    settings.cache_file = data_dir.join(cache_file.unwrap_or(settings.cache_file));
    settings.recursion_limit =
        flags.recursion_limit.or(file.recursion_limit).unwrap_or(settings.recursion_limit);
    if settings.recursion_limit == 0 {
        return Err(ConfigError::value(
            "recursion_limit",
            "a question needs one answer of the model at least",
        ));
    }
    settings.max_retries = flags.max_retries.or(file.max_retries).unwrap_or(settings.max_retries);
    settings.reformulate = !flags.no_reformulate && file.reformulate.unwrap_or(true);
    settings.temperature = match &flags.temperature {
        Some(text) if text == NONE => None,
        Some(text) => Some(temperature(text.parse().ok(), "--temperature")?),
        None => match file.temperature {
            Some(None) => None,
            Some(number) => Some(temperature(number, "temperature")?),
            None => settings.temperature,
        },
    };
    Ok(settings)
}

fn temperature(number: Option<f32>, name: &str) -> Result<f32, ConfigError> {
    let valid = number.filter(|number| number.is_finite() && *number >= 0.0);
    valid.ok_or_else(|| ConfigError::value(name, "a temperature is a number from 0 up, or none"))
}

fn prompts(name: &str) -> Result<PromptChoice, ConfigError> {
    match name {
        "a" => Ok(PromptChoice::A),
        "b" => Ok(PromptChoice::B),
        "ab" => Ok(PromptChoice::AB),
        other => Err(ConfigError::value(
            "--prompt",
            format!("there is no prompt `{other}`; there are a, b and ab"),
        )),
    }
}

#[cfg(test)]
mod tests;
