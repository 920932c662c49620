//! [`Source`]: why a checkpoint was written.

use serde::{Deserialize, Serialize};

/// Why a checkpoint was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A run started: this is its input.
    Input,
    /// A superstep.
    #[default]
    Loop,
    /// The state was edited.
    Update,
    /// A copy, the first checkpoint of a branch.
    Fork,
}
