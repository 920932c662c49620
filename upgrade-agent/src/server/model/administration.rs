//! The server's own settings, who may change things, and what was done.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// What holds for the whole server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Setting {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: u64,
    /// Applications must show a token.
    pub(in crate::server) to_check_auth: bool,
    /// Only metrics that are declared are taken.
    pub(in crate::server) to_filter_metric: bool,
}

/// Who may use the admin routes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Account {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) email: String,
    pub(in crate::server) first_name: Option<String>,
    pub(in crate::server) last_name: Option<String>,
    pub(in crate::server) role: String,
    pub(in crate::server) image_url: Option<String>,
    pub(in crate::server) local_time_zone: Option<String>,
}

/// One thing that was done to an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Deed {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    #[serde(rename = "type")]
    pub(in crate::server) kind: String,
    pub(in crate::server) data: Value,
}
