//! Whether a failed call is tried again, and after which wait. Pure: the failure and the number of retries
//! are arguments.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use crate::error::{Error, Result};
use crate::retry::{self, Backoff};

const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(8), jitter: 0.25 };

/// The limits of retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) max_retries: u32,
    /// The longest wait that a server may ask for.
    pub(crate) longest_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { max_retries: 2, longest_wait: Duration::from_secs(60) }
    }
}

impl Policy {
    /// The wait before the next attempt after `tries` retries. `jitter` is from 0 to 1 and takes up to a
    /// quarter off the own back-off. A wait of the server is kept exactly.
    ///
    /// # Errors
    /// The error, to give up: because it is not retryable, after the last retry, or because the server asks
    /// for a longer wait than is allowed.
    pub(crate) fn wait(&self, error: Error, tries: u32, jitter: f64) -> Result<Duration> {
        if tries >= self.max_retries || !error.is_retryable() {
            return Err(error);
        }
        match error.retry_after().filter(|wait| !wait.is_zero()) {
            None => Ok(BACKOFF.wait(tries, jitter)),
            Some(asked) if asked <= self.longest_wait => Ok(asked),
            Some(asked) => {
                let longest = self.longest_wait;
                Err(error.with_note(&format!(
                    "; the server asks for a wait of {asked:?}, longer than the {longest:?} of `longest_wait(..)`"
                )))
            }
        }
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

    fn wait(policy: Policy, error: Error, tries: u32, jitter: f64) -> Option<u128> {
        policy.wait(error, tries, jitter).ok().map(|wait| wait.as_millis())
    }

    #[test]
    fn waits_double_up_to_a_cap_and_jitter_subtracts_up_to_a_quarter() {
        let policy = Policy { max_retries: 9, ..Policy::default() };
        let wait = |tries, jitter| wait(policy, Error::new(Code::Server, ""), tries, jitter).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|tries| wait(tries, 0.0)), [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!((wait(0, 1.0), wait(1, 0.5)), (375, 875));
    }

    #[test]
    fn a_wait_that_the_server_asks_for_is_kept_exactly_or_the_call_gives_up() {
        let policy = Policy { longest_wait: Duration::from_secs(90), ..Policy::default() };
        let asked = |asked: Duration| Error::new(Code::RateLimited, "busy").with_retry_after(asked);
        assert_eq!(wait(policy, asked(Duration::from_millis(1)), 0, 1.0), Some(1));
        assert_eq!(wait(policy, asked(Duration::from_secs(90)), 0, 1.0), Some(90_000));
        assert_eq!(wait(policy, asked(Duration::ZERO), 0, 1.0), Some(375));
        let error = policy.wait(asked(Duration::from_secs(91)), 0, 1.0).unwrap_err();
        assert!(error.message().starts_with("busy; ") && error.message().contains("91s"), "{error}");
        assert!(error.message().contains("90s of `longest_wait(..)`"), "{error}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(91)));
    }

    #[test]
    fn only_retryable_errors_are_retried_up_to_the_limit() {
        let gives_up = |code, tries| wait(Policy::default(), Error::new(code, ""), tries, 0.0).is_none();
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
