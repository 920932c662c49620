//! Feature flags, their lists, and who was shown them.

use serde::{Deserialize, Serialize};

use super::Stamp;
use crate::wire::words::FilterMode;

/// A feature that applications show to some students only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Flag {
    /// Counts flags in the order of their making.
    pub(crate) sequence: u64,
    pub(crate) columns: FlagColumns,
    pub(crate) inclusion: Vec<FlagTie>,
    pub(crate) exclusion: Vec<FlagTie>,
}

/// A flag's own columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlagColumns {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) description: String,
    pub(crate) context: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) status: String,
    pub(crate) filter_mode: FilterMode,
}

/// That a segment is one of a flag's lists. One that is not enabled is as if it were not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlagTie {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) segment_id: String,
    pub(crate) enabled: bool,
    pub(crate) list_type: String,
}

/// That a student was shown a feature, first at this time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exposure {
    pub(crate) created_at: String,
}
