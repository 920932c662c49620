//! Feature flags and their lists.

use serde::{Deserialize, Serialize};

use super::Stamp;
use crate::wire::words::FilterMode;

/// A feature that applications show to some students only.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Flag {
    /// The number in the order of creation.
    pub(crate) sequence: u64,
    pub(crate) columns: FlagColumns,
    pub(crate) inclusion: Vec<FlagTie>,
    pub(crate) exclusion: Vec<FlagTie>,
}

/// The columns of a flag.
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

/// The tie from a flag to a segment as one of its lists. A disabled tie has no effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FlagTie {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) segment_id: String,
    pub(crate) enabled: bool,
    pub(crate) list_type: String,
}
