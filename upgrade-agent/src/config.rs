//! The settings: flags take precedence over the environment, the environment over a file, the file over
//! defaults.
//!
//! Secrets come from the environment only, are kept in `SecretString` and never displayed. The environment is
//! a function argument, so tests do not change their own. `source.rs` has the precedence, `report.rs` the
//! report of sources, `file.rs` the file and `folder.rs` the data folder of each platform.

mod file;
mod folder;
mod report;
mod restate;
mod source;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentgraph_llm::anthropic::DEFAULT_MODEL;
use agentgraph_llm::{ModelName, Provider};
use secrecy::{ExposeSecret, SecretString};

use file::FileConfig;
pub(crate) use report::{Report, SettingReport};
pub(crate) use restate::RestateConfig;
pub(crate) use source::truth;
use source::{Key, Range, Sources};

const MODEL_TIMEOUT: f64 = 60.0;
const TIMEOUT: f64 = 30.0;
const CONFIDENCE: f64 = 0.7;

// The second variable of a setting is the one of UpGrade's own agent.
const URL: Key = Key { name: "url", flag: "--url", variables: &["UPGRADE_API_URL"] };
const PLAIN_HTTP: Key = Key {
    name: "allow_plain_http",
    flag: "--allow-plain-http",
    variables: &["UPGRADE_AGENT_ALLOW_PLAIN_HTTP"],
};
const API_TIMEOUT: Key =
    Key { name: "timeout", flag: "--timeout", variables: &["UPGRADE_AGENT_TIMEOUT", "UPGRADE_API_TIMEOUT"] };
const ACCOUNT: Key = Key {
    name: "service_account",
    flag: "--service-account",
    variables: &["UPGRADE_AGENT_SERVICE_ACCOUNT", "UPGRADE_SERVICE_ACCOUNT_KEY_PATH"],
};
const TOKEN: Key = Key { name: "token", flag: "", variables: &["UPGRADE_TOKEN"] };
const CLIENT_KEY: Key = Key { name: "client_key", flag: "", variables: &["UPGRADE_CLIENT_KEY"] };
const CLIENT_SECRET: Key = Key { name: "client_secret", flag: "", variables: &["UPGRADE_CLIENT_SECRET"] };
const DATA_DIR: Key = Key { name: "data_dir", flag: "--data-dir", variables: &["UPGRADE_AGENT_DATA_DIR"] };
const OFFLINE: Key = Key { name: "offline", flag: "--offline", variables: &["UPGRADE_AGENT_OFFLINE"] };
const MODEL_NAME: Key =
    Key { name: "model", flag: "--model", variables: &["UPGRADE_AGENT_MODEL", "ANTHROPIC_MODEL_NAME"] };
const MODEL_TIME: Key = Key {
    name: "model_timeout",
    flag: "--model-timeout",
    variables: &["UPGRADE_AGENT_MODEL_TIMEOUT", "ANTHROPIC_API_TIMEOUT"],
};
/// The name of the model that needs no provider.
const OFFLINE_MODEL: &str = "offline";
const HEAT: Key =
    Key { name: "temperature", flag: "--temperature", variables: &["UPGRADE_AGENT_TEMPERATURE"] };
const SURENESS: Key =
    Key { name: "confidence", flag: "--confidence", variables: &["UPGRADE_AGENT_CONFIDENCE"] };

/// Settings that flags can give.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// The API of an UpGrade server, such as http://localhost:3030/api: it mostly ends in /api
    /// [env: UPGRADE_API_URL] [default: an embedded server]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Let keys and tokens go over http to other machines, where whoever carries the traffic can read them
    /// [env: UPGRADE_AGENT_ALLOW_PLAIN_HTTP]
    #[arg(long, global = true)]
    pub(crate) allow_plain_http: bool,
    /// The longest one call of the server may take, in seconds [env: UPGRADE_AGENT_TIMEOUT] [default: 30]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// The key file of the Google service account that the server knows [env: UPGRADE_AGENT_SERVICE_ACCOUNT]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) service_account: Option<PathBuf>,
    /// Where threads, the embedded server's data and upgrade-agent.json lie [env: UPGRADE_AGENT_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A file of settings [default: upgrade-agent.json in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The language model: NAME of Anthropic, or anthropic:NAME, openai:NAME, openai-chat:NAME, gemini:NAME,
    /// ollama:NAME, llama-cpp:NAME, vllm:NAME, or offline [env: UPGRADE_AGENT_MODEL]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The longest wait for a model to begin or to go on with its answer, in seconds [env:
    /// UPGRADE_AGENT_MODEL_TIMEOUT] [default: 60]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) model_timeout: Option<f64>,
    /// The temperature to ask the model for, from 0; newer models take none [env: UPGRADE_AGENT_TEMPERATURE]
    /// [default: not sent]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// How sure the agent must be, 0 to 1, before it does not ask back [env: UPGRADE_AGENT_CONFIDENCE]
    /// [default: 0.7]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,
    /// Answer by rules, without a language model [env: UPGRADE_AGENT_OFFLINE]
    #[arg(long, global = true)]
    pub(crate) offline: bool,
    /// The ingress of a Restate server whose workers run the conversations, such as http://127.0.0.1:8080
    /// [env: UPGRADE_AGENT_RESTATE] [default: this program runs them]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) restate: Option<String>,
    /// The admin API of the Restate server, where workers register and conversations are listed
    /// [env: UPGRADE_AGENT_RESTATE_ADMIN] [default: http://127.0.0.1:9070]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) restate_admin: Option<String>,
    /// The relay that carries the pieces of replies from the workers of a Restate server to the chat
    /// [env: UPGRADE_AGENT_RELAY] [default: replies come whole]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) relay: Option<String>,
}

/// The complete settings. One field per setting.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The URL of the server; none for the embedded one.
    pub(crate) url: Option<String>,
    /// Whether keys and tokens may be sent to other machines over http.
    pub(crate) allow_plain_http: bool,
    pub(crate) timeout: Duration,
    pub(crate) token: Option<SecretString>,
    pub(crate) service_account: Option<PathBuf>,
    /// The key and secret for the calls of students' applications.
    pub(crate) client_key: Option<(String, SecretString)>,
    pub(crate) data_dir: PathBuf,
    /// The language model; none for the offline one.
    pub(crate) model: Option<ModelConfig>,
    /// Not sent if none.
    pub(crate) temperature: Option<f32>,
    pub(crate) confidence: f64,
    pub(crate) restate: RestateConfig,
    /// The sources of the settings.
    pub(crate) report: Report,
}

/// A language model.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    pub(crate) name: ModelName,
    /// None for servers that need no key.
    pub(crate) key: Option<SecretString>,
    /// An address other than the provider's.
    pub(crate) base_url: Option<String>,
    pub(crate) timeout: Duration,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("E_CONFIG_FILE: {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("E_CONFIG_VALUE: {from}: {why}")]
    Value { from: String, why: String },
    #[error("E_CONFIG_DATA_DIR: there is no folder for this user's data: give one with --data-dir")]
    NoDataDir,
}

/// A function that reads an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// Reads all settings.
    ///
    /// # Errors
    /// Names the source of the invalid setting, and what would be valid.
    pub(crate) fn collect(flags: &Flags, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let given = flags.config.as_deref().map(FileConfig::read).transpose()?;
        let mut sources = Sources::new(environment);
        if let (Some(file), Some(path)) = (given, &flags.config) {
            sources.file = (file, path.clone());
        }
        let data_dir = data_dir(flags, &mut sources)?;
        if flags.config.is_none() {
            sources.file = FileConfig::of_data_dir(&data_dir)?;
        }
        let file = sources.file.0.clone();
        Ok(Config {
            url: sources.text(&URL, flags.url.clone(), file.url, "the embedded server"),
            allow_plain_http: sources.truth(
                &PLAIN_HTTP,
                flags.allow_plain_http.then_some(true),
                file.allow_plain_http,
            )?,
            timeout: seconds(&mut sources, &API_TIMEOUT, flags.timeout, file.timeout, TIMEOUT)?,
            token: sources.secret(&TOKEN),
            service_account: sources.path(
                &ACCOUNT,
                flags.service_account.clone(),
                file.service_account,
                None,
            ),
            client_key: client_key(&mut sources)?,
            model: model(flags, &mut sources)?,
            // A temperature has few digits.
            temperature: sources
                .number_if_set(&HEAT, flags.temperature, file.temperature, "not sent", &Range::FROM_0)?
                .map(|number| number as f32),
            confidence: sources.number(
                &SURENESS,
                flags.confidence,
                file.confidence,
                CONFIDENCE,
                &Range::SHARE,
            )?,
            restate: RestateConfig::collect(flags, &mut sources),
            data_dir,
            report: sources.report,
        })
    }

    /// The flag, the variable or the file that a setting comes from.
    pub(crate) fn source(&self, setting: &str) -> String {
        let told = self.report.0.iter().find(|told| told.name == setting && told.set);
        told.map_or_else(|| setting.to_owned(), |told| told.from.clone())
    }

    /// The file of the threads.
    pub(crate) fn threads_file(&self) -> PathBuf {
        self.data_dir.join("threads.db")
    }

    /// The file of notes about statuses to restore, which all threads share.
    pub(crate) fn restores_file(&self) -> PathBuf {
        self.data_dir.join("restores.db")
    }

    /// The file of the typed lines.
    pub(crate) fn history_file(&self) -> PathBuf {
        self.data_dir.join("history.txt")
    }

    /// The file of the embedded server's data.
    pub(crate) fn server_file(&self) -> PathBuf {
        self.data_dir.join("server.db")
    }
}

fn data_dir(flags: &Flags, sources: &mut Sources<'_>) -> Result<PathBuf, ConfigError> {
    let of_user = folder::of_user(sources.environment);
    let in_file = sources.file.0.data_dir.clone();
    sources.path(&DATA_DIR, flags.data_dir.clone(), in_file, of_user).ok_or(ConfigError::NoDataDir)
}

/// The offline model answers if it is asked for, and if no provider is named and there is no key.
fn model(flags: &Flags, sources: &mut Sources<'_>) -> Result<Option<ModelConfig>, ConfigError> {
    let file = sources.file.0.clone();
    let offline = sources.truth(&OFFLINE, flags.offline.then_some(true), file.offline)?;
    let text = sources.text(&MODEL_NAME, flags.model.clone(), file.model, DEFAULT_MODEL);
    let offline = offline || text.as_deref() == Some(OFFLINE_MODEL);
    let name = model_name(text.as_deref().filter(|_| !offline).unwrap_or(DEFAULT_MODEL))?;
    let timeout = seconds(sources, &MODEL_TIME, flags.model_timeout, file.model_timeout, MODEL_TIMEOUT)?;
    let provider = name.provider;
    let key = sources.secret(&Key { name: "api_key", flag: "", variables: provider.key_variables() });
    let address = Key { name: "base_url", flag: "", variables: provider.url_variables() };
    let base_url = sources.text(&address, None, None, "the provider's own");
    let has_provider = text.is_some_and(|text| text.parse::<ModelName>().is_ok());
    if offline || (key.is_none() && !has_provider) {
        return Ok(None);
    }
    if key.is_none() && provider.requires_key() {
        let why = format!("needs a key in {}", provider.key_variables().join(" or "));
        return Err(ConfigError::Value { from: format!("the model {name}"), why });
    }
    Ok(Some(ModelConfig { name, key, base_url, timeout }))
}

/// A name without a provider is one of Anthropic.
fn model_name(text: &str) -> Result<ModelName, ConfigError> {
    text.parse().or_else(|error: agentgraph_llm::Error| {
        let provider = text.split_once(':').map(|(provider, _)| provider);
        if provider.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')) {
            return Err(ConfigError::Value {
                from: MODEL_NAME.flag.to_owned(),
                why: error.message().to_owned(),
            });
        }
        Ok(ModelName::new(Provider::Anthropic, text))
    })
}

/// The key and the secret are useless without each other.
fn client_key(sources: &mut Sources<'_>) -> Result<Option<(String, SecretString)>, ConfigError> {
    let alone = |has: &Key, lacks: &Key| ConfigError::Value {
        from: has.variables[0].to_owned(),
        why: format!("needs {} beside it", lacks.variables[0]),
    };
    match (sources.secret(&CLIENT_KEY), sources.secret(&CLIENT_SECRET)) {
        (Some(key), Some(secret)) => Ok(Some((key.expose_secret().to_owned(), secret))),
        (Some(_), None) => Err(alone(&CLIENT_KEY, &CLIENT_SECRET)),
        (None, Some(_)) => Err(alone(&CLIENT_SECRET, &CLIENT_KEY)),
        (None, None) => Ok(None),
    }
}

fn seconds(
    sources: &mut Sources<'_>,
    key: &Key,
    flag: Option<f64>,
    file: Option<f64>,
    default: f64,
) -> Result<Duration, ConfigError> {
    let seconds = sources.number(key, flag, file, default, &Range::SECONDS)?;
    // The range contains only valid durations.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn is_here(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests;
