//! The settings file: JSON with known names, those of the document among them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gaia_agent::report::PriceSetting;
use serde::{Deserialize, Deserializer};

use super::ConfigError;

const NAME: &str = "gaia-agent.json";

/// The settings of a file; absent ones are not set. One field per setting.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileConfig {
    pub(super) log_to_file: Option<bool>,
    pub(super) use_cache: Option<bool>,
    pub(super) cache_file: Option<PathBuf>,
    pub(super) cache_ttl_hours: Option<u64>,
    pub(super) cache_max_entries: Option<usize>,
    pub(super) fuzzy_cache: Option<f64>,
    pub(super) recursion_limit: Option<u64>,
    /// `null` sends none.
    #[serde(deserialize_with = "or_null")]
    pub(super) temperature: Option<Option<f32>>,
    pub(super) max_retries: Option<u32>,
    pub(super) reformulate: Option<bool>,
    pub(super) model: Option<String>,
    pub(super) fallback: Option<String>,
    pub(super) media_model: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) patterns: Option<bool>,
    pub(super) python: Option<PathBuf>,
    /// The addresses of services by name.
    pub(super) addresses: BTreeMap<String, String>,
    /// The hosts that files may be downloaded from; all if empty.
    pub(super) download_hosts: Vec<String>,
    /// The prices of models by name.
    pub(super) prices: BTreeMap<String, PriceSetting>,
    pub(super) username: Option<String>,
    pub(super) agent_code: Option<String>,
}

fn or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl FileConfig {
    /// Reads a file that must be there.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |why: String| ConfigError::File { path: path.to_owned(), why };
        let text =
            std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        // A list would be taken for the values of the first settings.
        if !text.trim_start().starts_with('{') {
            return Err(wrong("it is no JSON object".to_owned()));
        }
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// The settings file of the data folder, if there is one.
    pub(super) fn of_data_dir(folder: &Path) -> Result<Self, ConfigError> {
        let path = folder.join(NAME);
        match path.symlink_metadata() {
            Ok(_) => FileConfig::read(&path),
            Err(_) => Ok(FileConfig::default()),
        }
    }
}
