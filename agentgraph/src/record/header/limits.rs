//! The time limits of one task, as stored.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::words::Timeouts;

/// Time limits in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLimits {
    /// The limit of a whole attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<u64>,
    /// The limit of its silence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle: Option<u64>,
}

impl From<Timeouts> for StoredLimits {
    fn from(limits: Timeouts) -> Self {
        // Rounded up, so that no limit becomes zero.
        let micros = |limit: Duration| u64::try_from(limit.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        StoredLimits { run: limits.run.map(micros), idle: limits.idle.map(micros) }
    }
}

impl From<StoredLimits> for Timeouts {
    fn from(stored: StoredLimits) -> Self {
        Timeouts { run: stored.run.map(Duration::from_micros), idle: stored.idle.map(Duration::from_micros) }
    }
}
