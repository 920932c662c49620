//! Where settings come from: flags, then the environment, then a file, then defaults.
//!
//! Secrets come from the environment only, are kept in `SecretString` and shown by nothing. The environment is given in as
//! a function, so that a test needs none of its own.

mod file;
mod folder;

use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use file::FileConfig;

const MODEL: &str = "claude-sonnet-4-5";
const MODEL_TIMEOUT: f64 = 60.0;
const TEMPERATURE: f32 = 0.1;
const CONFIDENCE: f64 = 0.7;

/// Settings that flags can give.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Flags {
    /// The API of an UpGrade server, such as http://localhost:3030/api [env: UPGRADE_API_URL] [default: an embedded server]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Where threads, the embedded server's data and upgrade-agent.json lie [env: UPGRADE_AGENT_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A file of settings [default: upgrade-agent.json in the data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The language model's name [env: UPGRADE_AGENT_MODEL]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The longest a model call may take, in seconds [env: UPGRADE_AGENT_MODEL_TIMEOUT] [default: 60]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) model_timeout: Option<f64>,
    /// The model's temperature, from 0 [env: UPGRADE_AGENT_TEMPERATURE] [default: 0.1]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) temperature: Option<f32>,
    /// How sure the agent must be, 0 to 1, before it does not ask back [env: UPGRADE_AGENT_CONFIDENCE] [default: 0.7]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,
    /// Answer by rules, without a language model [env: UPGRADE_AGENT_OFFLINE]
    #[arg(long, global = true)]
    pub(crate) offline: bool,
}

/// Settings, complete.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The server; the embedded one if there is none.
    pub(crate) url: Option<String>,
    pub(crate) token: Option<SecretString>,
    pub(crate) data_dir: PathBuf,
    /// The language model; the offline one if there is none.
    pub(crate) model: Option<ModelConfig>,
    pub(crate) temperature: f32,
    pub(crate) confidence: f64,
}

/// A language model.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    pub(crate) key: SecretString,
    /// Another address than the provider's own.
    pub(crate) base_url: Option<String>,
    pub(crate) name: String,
    pub(crate) timeout: Duration,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("E_CONFIG_FILE: {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("E_CONFIG_VALUE: {from}: {why}")]
    Value { from: String, why: String },
    #[error("E_CONFIG_DATA_DIR: there is no folder for this user's data: give one with --data-dir")]
    NoDataDir,
}

/// Reads the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// Collects all settings.
    ///
    /// # Errors
    /// Names the place of the setting that cannot be used, and what would do.
    pub(crate) fn collect(flags: &Flags, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let env = Env(environment);
        let given = flags.config.as_deref().map(FileConfig::read).transpose()?;
        let data_dir = data_dir(flags, &env, given.as_ref())?;
        let file = match given {
            Some(file) => file,
            None => FileConfig::of_data_dir(&data_dir)?,
        };
        Ok(Config {
            url: flags.url.clone().or(env.text("UPGRADE_API_URL")).or(file.url.clone()),
            token: env.text("UPGRADE_TOKEN").map(SecretString::from),
            model: model(flags, &env, &file)?,
            temperature: number(
                flags.temperature,
                "--temperature",
                &env,
                "UPGRADE_AGENT_TEMPERATURE",
                file.temperature,
            )?
            .unwrap_or(TEMPERATURE),
            confidence: number(
                flags.confidence,
                "--confidence",
                &env,
                "UPGRADE_AGENT_CONFIDENCE",
                file.confidence,
            )?
            .unwrap_or(CONFIDENCE),
            data_dir,
        })
    }

    /// Where the threads are kept.
    pub(crate) fn threads_file(&self) -> PathBuf {
        self.data_dir.join("threads.db")
    }

    /// Where the lines that were typed are kept.
    pub(crate) fn history_file(&self) -> PathBuf {
        self.data_dir.join("history.txt")
    }

    /// Where the embedded server keeps its data.
    pub(crate) fn server_file(&self) -> PathBuf {
        self.data_dir.join("server.db")
    }
}

struct Env<'a>(Environment<'a>);

impl Env<'_> {
    /// A variable; one that is blank counts as not set.
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, wanted: &str) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let why = || format!("`{text}` is not {wanted}");
        text.parse().map(Some).map_err(|_| ConfigError::Value { from: name.to_owned(), why: why() })
    }
}

fn data_dir(flags: &Flags, env: &Env<'_>, file: Option<&FileConfig>) -> Result<PathBuf, ConfigError> {
    let set = flags.data_dir.clone().or_else(|| env.text("UPGRADE_AGENT_DATA_DIR").map(PathBuf::from));
    let set = set.or_else(|| file.and_then(|file| file.data_dir.clone()));
    set.or_else(|| folder::of_user(env.0)).ok_or(ConfigError::NoDataDir)
}

fn model(flags: &Flags, env: &Env<'_>, file: &FileConfig) -> Result<Option<ModelConfig>, ConfigError> {
    let offline = flags.offline || truth(env, "UPGRADE_AGENT_OFFLINE")?.or(file.offline).unwrap_or(false);
    let name = flags.model.clone().or(env.text("UPGRADE_AGENT_MODEL")).or(file.model.clone());
    let variable = "UPGRADE_AGENT_MODEL_TIMEOUT";
    let seconds = number(flags.model_timeout, "--model-timeout", env, variable, file.model_timeout)?
        .unwrap_or(MODEL_TIMEOUT);
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
    let timeout = timeout.ok_or_else(|| ConfigError::Value {
        from: "the model's timeout".to_owned(),
        why: format!("{seconds} is not a time in seconds; give one above 0, such as 60"),
    })?;
    let key = env.text("ANTHROPIC_API_KEY").filter(|_| !offline);
    Ok(key.map(|key| ModelConfig {
        key: SecretString::from(key),
        base_url: env.text("ANTHROPIC_BASE_URL"),
        name: name.unwrap_or_else(|| MODEL.to_owned()),
        timeout,
    }))
}

/// A number by flag, variable or file.
fn number<T: std::str::FromStr + Copy + Into<f64>>(
    flag: Option<T>,
    flag_name: &str,
    env: &Env<'_>,
    variable: &str,
    file: Option<T>,
) -> Result<Option<T>, ConfigError> {
    let (value, from) = match (flag, env.parsed(variable, "a number")?) {
        (Some(flag), _) => (Some(flag), flag_name),
        (None, Some(value)) => (Some(value), variable),
        (None, None) => (file, "the file of settings"),
    };
    let limit = if flag_name == "--confidence" { 1.0 } else { f64::MAX };
    match value {
        Some(value) if !(0.0..=limit).contains(&value.into()) => Err(ConfigError::Value {
            from: from.to_owned(),
            why: format!(
                "{} is out of range: {} takes a number from 0{}",
                value.into(),
                flag_name.trim_start_matches('-'),
                if limit == 1.0 { " to 1" } else { " up" }
            ),
        }),
        value => Ok(value),
    }
}

fn truth(env: &Env<'_>, name: &str) -> Result<Option<bool>, ConfigError> {
    let Some(text) = env.text(name) else { return Ok(None) };
    match text.to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(Some(true)),
        "0" | "false" | "no" | "off" => Ok(Some(false)),
        _ => Err(ConfigError::Value {
            from: name.to_owned(),
            why: format!("`{text}` is neither true nor false"),
        }),
    }
}

fn is_here(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests;
