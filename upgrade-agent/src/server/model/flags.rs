//! Feature flags, their lists, and who was shown them.

use serde::{Deserialize, Serialize};

use super::Stamp;
use crate::client::FilterMode;

/// A feature that applications show to some students only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Flag {
    /// Counts flags in the order of their making.
    pub(in crate::server) sequence: u64,
    pub(in crate::server) columns: FlagColumns,
    pub(in crate::server) inclusion: Vec<FlagTie>,
    pub(in crate::server) exclusion: Vec<FlagTie>,
}

/// A flag's own columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct FlagColumns {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    pub(in crate::server) key: String,
    pub(in crate::server) description: String,
    pub(in crate::server) context: Vec<String>,
    pub(in crate::server) tags: Vec<String>,
    pub(in crate::server) status: String,
    pub(in crate::server) filter_mode: FilterMode,
}

/// That a segment is one of a flag's lists. One that is not enabled is as if it were not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct FlagTie {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) segment_id: String,
    pub(in crate::server) enabled: bool,
    pub(in crate::server) list_type: String,
}

/// That a student was shown a feature, first at this time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Exposure {
    pub(in crate::server) created_at: String,
}
