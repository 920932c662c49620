//! Results of durable steps, as records hold them.

use serde::{Deserialize, Serialize};

use crate::record::bytes::Bytes;

/// A durable step of a task: its name, and which call of that name it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct OnceKey {
    pub(crate) name: String,
    pub(crate) call: OnceCall,
}

/// One of several calls of a durable step with one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnceCall {
    /// The n-th call without a key in an attempt, counted from 0.
    Nth(u32),
    /// The call with this key.
    Key(String),
}

/// The result of a durable step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredOnce {
    pub(crate) key: OnceKey,
    /// The result in MessagePack.
    pub(crate) value: Bytes,
}
