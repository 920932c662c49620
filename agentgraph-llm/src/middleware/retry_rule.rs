//! When a failed call is made again, and after which wait. Pure; time and randomness come from a [`Clock`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::http::{Clock, SystemClock};
use crate::retry::Backoff;

/// How often, and how long apart.
#[derive(Clone)]
pub(super) struct RetryRule {
    pub(super) max_retries: u32,
    pub(super) backoff: Backoff,
    pub(super) clock: Arc<dyn Clock>,
}

/// A longer wait than this, asked for by a provider, is not kept: the call fails at once.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(60);

impl Default for RetryRule {
    fn default() -> Self {
        let backoff =
            Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60), jitter: 0.25 };
        RetryRule { max_retries: 2, backoff, clock: Arc::new(SystemClock) }
    }
}

impl RetryRule {
    /// The wait before the retry after `retries` others; `None` to give up. A provider's wait is kept: never
    /// an earlier try.
    pub(super) fn wait(&self, retries: u32, asked: Option<Duration>) -> Option<Duration> {
        if retries >= self.max_retries || asked.is_some_and(|asked| asked > LONGEST_ASKED_WAIT) {
            return None;
        }
        let own = self.backoff.wait(retries, self.clock.jitter());
        Some(asked.filter(|asked| !asked.is_zero()).unwrap_or(own))
    }
}

impl fmt::Debug for RetryRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = out.debug_struct("RetryRule");
        parts.field("max_retries", &self.max_retries).field("backoff", &self.backoff).finish_non_exhaustive()
    }
}
