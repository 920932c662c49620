//! The server's own settings, who may change things, and what was done.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// What holds for the whole server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Setting {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: u64,
    /// Applications must show a token.
    pub(crate) to_check_auth: bool,
    /// Only metrics that are declared are taken.
    pub(crate) to_filter_metric: bool,
}

/// Who may use the admin routes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) email: String,
    pub(crate) first_name: Option<String>,
    pub(crate) last_name: Option<String>,
    pub(crate) role: String,
    pub(crate) image_url: Option<String>,
    pub(crate) local_time_zone: Option<String>,
}

/// One thing that was done to an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditEntry {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) data: Value,
}
