//! [`RetryPolicy`]: how often, when and after which errors a node is retried.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{BoxError, Terminal, caused_by};
use crate::panic::NodePanic;
use crate::policy::Timeout;

/// How often, when and after which errors a node is retried.
///
/// The wait before attempt n + 1 is `initial * factor^(n-1)`, at most `max`, less a random part of up to
/// half of it, so that nodes that failed together do not retry together.
///
/// ```
/// use agentgraph::RetryPolicy;
/// use std::time::Duration;
/// let policy = RetryPolicy::attempts(4).initial(Duration::from_millis(200)).retry_on(|error| error.is::<std::io::Error>());
/// assert_eq!(policy.max_attempts(), 4);
/// ```
#[derive(Clone)]
pub struct RetryPolicy {
    attempts: u32,
    initial: Duration,
    factor: f64,
    max: Duration,
    retry_on: Option<Arc<ErrorTest>>,
}

/// Whether an error is worth another attempt.
type ErrorTest = dyn Fn(&BoxError) -> bool + Send + Sync;

impl RetryPolicy {
    /// The most attempts, including the first (1 means no retry). The first wait is 0.5 s, each further one
    /// twice as long, up to 30 s. Retries every error that is not [`Terminal`], and every timeout whose
    /// attempt was [stopped](crate::Timeout::unstopped); a panic is not retried.
    pub fn attempts(attempts: u32) -> Self {
        RetryPolicy {
            attempts: attempts.max(1),
            initial: Duration::from_millis(500),
            factor: 2.0,
            max: Duration::from_secs(30),
            retry_on: None,
        }
    }

    /// The wait before the second attempt.
    #[must_use]
    pub fn initial(mut self, wait: Duration) -> Self {
        self.initial = wait;
        self
    }

    /// The factor from each wait to the next; values under 1 count as 1.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// The longest wait.
    #[must_use]
    pub fn max(mut self, wait: Duration) -> Self {
        self.max = wait;
        self
    }

    /// Retries only the errors for which `test` is true; terminal ones never. This includes timeouts that did
    /// not [stop](crate::Timeout::unstopped) their attempt: its side effects may then happen twice.
    #[must_use]
    pub fn retry_on(mut self, test: impl Fn(&BoxError) -> bool + Send + Sync + 'static) -> Self {
        self.retry_on = Some(Arc::new(test));
        self
    }

    /// The number of attempts.
    pub fn max_attempts(&self) -> u32 {
        self.attempts
    }

    pub(crate) fn retries(&self, attempt: u32, error: &BoxError) -> bool {
        attempt < self.attempts
            && caused_by::<Terminal>(&**error).is_none()
            && caused_by::<NodePanic>(&**error).is_none()
            && match &self.retry_on {
                None => caused_by::<Timeout>(&**error).is_none_or(|timeout| !timeout.unstopped),
                Some(test) => test(error),
            }
    }

    /// The wait after `attempt`; `random` selects a value in its upper half.
    pub(crate) fn wait(&self, attempt: u32, random: u64) -> Duration {
        let grown = self.initial.as_secs_f64() * self.factor.powi(attempt.saturating_sub(1).min(1000) as i32);
        let capped = grown.min(self.max.as_secs_f64());
        let share = 1.0 - 0.5 * (random as f64 / u64::MAX as f64);
        Duration::try_from_secs_f64(capped * share).unwrap_or(self.max)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RetryPolicy")
            .field("attempts", &self.attempts)
            .field("initial", &self.initial)
            .field("factor", &self.factor)
            .field("max", &self.max)
            .field("retry_on", &self.retry_on.is_some())
            .finish()
    }
}
