//! The settings file: JSON with known keys.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ConfigError, is_here};

const NAME: &str = "upgrade-agent.json";
const KEYS: &[&str] = &[
    "url",
    "timeout",
    "service_account",
    "data_dir",
    "model",
    "model_timeout",
    "temperature",
    "confidence",
    "offline",
    "allow_plain_http",
    "restate",
    "restate_admin",
    "relay",
];
/// Keys of secrets, which are refused with an explanation.
const SECRETS: &[(&str, &str)] = &[
    ("token", "UPGRADE_TOKEN"),
    ("client_key", "UPGRADE_CLIENT_KEY"),
    ("client_secret", "UPGRADE_CLIENT_SECRET"),
    ("api_key", "ANTHROPIC_API_KEY"),
    ("anthropic_api_key", "ANTHROPIC_API_KEY"),
    ("relay_token", "UPGRADE_AGENT_RELAY_TOKEN"),
];

/// The settings of a file; absent ones are not set. One field per setting.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct FileConfig {
    pub(super) url: Option<String>,
    pub(super) timeout: Option<f64>,
    pub(super) service_account: Option<PathBuf>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) model: Option<String>,
    pub(super) model_timeout: Option<f64>,
    pub(super) temperature: Option<f64>,
    pub(super) confidence: Option<f64>,
    pub(super) offline: Option<bool>,
    pub(super) allow_plain_http: Option<bool>,
    pub(super) restate: Option<String>,
    pub(super) restate_admin: Option<String>,
    pub(super) relay: Option<String>,
}

impl FileConfig {
    /// Reads a file that must be there.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |why: String| ConfigError::File { path: path.to_owned(), why };
        let text =
            std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        parse(&text).map_err(wrong)
    }

    /// The settings file of the data folder, if there is one, and its path. It cannot set the data folder.
    pub(super) fn of_data_dir(folder: &Path) -> Result<(Self, PathBuf), ConfigError> {
        let path = folder.join(NAME);
        if !is_here(&path) {
            return Ok((FileConfig::default(), path));
        }
        let file = FileConfig::read(&path)?;
        match file.data_dir {
            None => Ok((file, path)),
            Some(_) => Err(ConfigError::File {
                path,
                why: "`data_dir` cannot be set in the data folder itself; use --data-dir or UPGRADE_AGENT_DATA_DIR".to_owned(),
            }),
        }
    }
}

fn parse(text: &str) -> Result<FileConfig, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let Value::Object(settings) = value else {
        return Err("must be a JSON object, such as {\"confidence\": 0.8}".to_owned());
    };
    if let Some(problem) = unknown(&settings) {
        return Err(problem);
    }
    serde_json::from_value(Value::Object(settings))
        .map_err(|error| format!("a setting does not fit: {error}"))
}

fn unknown(settings: &Map<String, Value>) -> Option<String> {
    let key = settings.keys().find(|key| !KEYS.contains(&key.as_str()))?;
    if let Some((_, variable)) = SECRETS.iter().find(|(name, _)| name == key) {
        return Some(format!(
            "`{key}` is a secret and does not belong in a file: set the variable {variable}"
        ));
    }
    Some(match nearest(key) {
        Some(near) => format!("there is no setting `{key}`; did you mean `{near}`?"),
        None => format!("there is no setting `{key}`; there are {}", KEYS.join(", ")),
    })
}

fn nearest(wrong: &str) -> Option<&'static str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let distance = |known: &str| strsim::damerau_levenshtein(&wrong.to_lowercase().replace('-', "_"), known);
    let near =
        KEYS.iter().map(|known| (distance(known), *known)).filter(|(distance, _)| *distance <= allowed);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}
