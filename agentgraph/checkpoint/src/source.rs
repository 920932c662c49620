//! Why a checkpoint was written.

use serde::{Deserialize, Serialize};

/// Why a checkpoint was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A run began: this is its input.
    Input,
    /// A superstep.
    #[default]
    Loop,
    /// Somebody edited the state.
    Update,
    /// A copy, where a branch begins.
    Fork,
}
