//! Whether a failed call is tried again, and after which wait. Pure: the failure and the number of retries
//! are arguments.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use crate::error::Error;
use crate::retry::{self, Backoff};

/// The longest wait of a server that is respected; after a longer one the own back-off applies.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(60);

const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(8), jitter: 0.25 };

/// The limit of retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) max_retries: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { max_retries: 2 }
    }
}

impl Policy {
    /// The wait before the next attempt after `tries` retries; `None` to give up. `jitter` is from 0 to 1 and
    /// takes up to a quarter off the own back-off. A wait of the server is kept exactly.
    pub(crate) fn wait(&self, error: &Error, tries: u32, jitter: f64) -> Option<Duration> {
        if tries >= self.max_retries || !error.is_retryable() {
            return None;
        }
        let asked = error.retry_after().filter(|wait| !wait.is_zero() && *wait <= LONGEST_ASKED_WAIT);
        Some(asked.unwrap_or_else(|| BACKOFF.wait(tries, jitter)))
    }
}

/// The server's own verdict on a retry: `true`, `false`, or none.
pub(crate) fn verdict(headers: &HeaderMap) -> Option<bool> {
    match text(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The wait that the server asks for.
pub(crate) fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    retry::retry_after(|name| text(headers, name), now)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::error::Code;

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: Pairs) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn waits_double_up_to_a_cap_and_jitter_subtracts_up_to_a_quarter() {
        let policy = Policy { max_retries: 9 };
        let error = Error::new(Code::Server, "");
        let waits: Vec<_> =
            (0..6).map(|tries| policy.wait(&error, tries, 0.0).unwrap().as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(policy.wait(&error, 0, 1.0), Some(Duration::from_millis(375)));
        assert_eq!(policy.wait(&error, 1, 0.5), Some(Duration::from_millis(875)));
    }

    #[test]
    fn a_requested_wait_of_up_to_a_minute_is_used_exactly() {
        let policy = Policy::default();
        let wait = |asked: Duration| {
            policy
                .wait(&Error::new(Code::RateLimited, "").with_retry_after(asked), 0, 1.0)
                .unwrap()
                .as_millis()
        };
        assert_eq!(wait(Duration::from_millis(1)), 1);
        assert_eq!(wait(Duration::from_secs(60)), 60_000);
        assert_eq!(wait(Duration::from_secs(61)), 375);
        assert_eq!(wait(Duration::ZERO), 375);
    }

    #[test]
    fn only_retryable_errors_are_retried_up_to_the_limit() {
        let policy = Policy::default();
        let gives_up = |code, tries| policy.wait(&Error::new(code, ""), tries, 0.0).is_none();
        for code in [Code::Auth, Code::Billing, Code::BadRequest, Code::NotFound, Code::Decode] {
            assert!(gives_up(code, 0), "{code}");
        }
        for code in [
            Code::RateLimited,
            Code::Overloaded,
            Code::Server,
            Code::Conflict,
            Code::Timeout,
            Code::Connection,
        ] {
            assert!(!gives_up(code, 1), "{code}");
            assert!(gives_up(code, 2), "{code}");
        }
    }

    #[test]
    fn the_retry_header_is_true_false_or_none() {
        assert_eq!(verdict(&headers(&[("x-should-retry", "true")])), Some(true));
        assert_eq!(verdict(&headers(&[("x-should-retry", "false")])), Some(false));
        assert_eq!(verdict(&headers(&[("x-should-retry", "maybe")])), None);
        assert_eq!(verdict(&headers(&[])), None);
    }
}
