//! The settings, the accounts and the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// The settings of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Setting {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: u64,
    /// Whether applications need a token.
    pub(crate) to_check_auth: bool,
    /// Whether only declared metrics are accepted.
    pub(crate) to_filter_metric: bool,
}

/// An account for the admin routes.
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

/// An entry of the audit log.
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
