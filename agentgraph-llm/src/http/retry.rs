//! Whether and when to try again. Pure: what the server said and how often it was asked, in; a wait, out.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use crate::error::Error;

/// A server may ask for a wait of up to this; for a longer one, the own back-off is taken.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(60);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// How often to try again.
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
    /// How long to wait before the next try after `tries` retries; `None` to give up. `jitter` is from 0 to 1
    /// and takes up to a quarter off the own back-off; a wait that the server asked for is kept exactly.
    pub(crate) fn wait(&self, error: &Error, tries: u32, jitter: f64) -> Option<Duration> {
        if tries >= self.max_retries || !error.is_retryable() {
            return None;
        }
        let asked = error.retry_after().filter(|wait| !wait.is_zero() && *wait <= LONGEST_ASKED_WAIT);
        Some(asked.unwrap_or_else(|| back_off(tries, jitter)))
    }
}

fn back_off(tries: u32, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(tries));
    doubled.min(LONGEST_WAIT).mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0))
}

/// What the server asks for in so many words: to try again, or not to.
pub(crate) fn verdict(headers: &HeaderMap) -> Option<bool> {
    match text(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The wait the server asks for: milliseconds, else seconds with or without a fraction, else a date.
pub(crate) fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let number = |name| text(headers, name)?.parse::<f64>().ok();
    if let Some(millis) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    httpdate::parse_http_date(text(headers, "retry-after")?).ok()?.duration_since(now).ok()
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

    /// Sun, 06 Nov 1994 08:49:37 GMT
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    #[test]
    fn the_asked_wait_is_read_from_milliseconds_seconds_and_dates() {
        let cases: &[(Pairs, Option<u64>)] = &[
            (&[("retry-after", "2")], Some(2000)),
            (&[("retry-after", "0.25")], Some(250)),
            (&[("retry-after", " 3 ")], Some(3000)),
            (&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1500)),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(9000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:49 GMT")], Some(12_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e400")], None),
            (&[("retry-after", "tomorrow")], None),
            (&[], None),
        ];
        for (pairs, expected) in cases {
            assert_eq!(asked_wait(&headers(pairs), now()), expected.map(Duration::from_millis), "{pairs:?}");
        }
    }

    #[test]
    fn waits_double_to_a_cap_and_jitter_takes_up_to_a_quarter() {
        let policy = Policy { max_retries: 9 };
        let error = Error::new(Code::Server, "");
        let waits: Vec<_> =
            (0..6).map(|tries| policy.wait(&error, tries, 0.0).unwrap().as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(policy.wait(&error, 0, 1.0), Some(Duration::from_millis(375)));
        assert_eq!(policy.wait(&error, 1, 0.5), Some(Duration::from_millis(875)));
    }

    #[test]
    fn an_asked_wait_is_kept_exactly_between_zero_and_a_minute() {
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
    fn what_cannot_help_is_not_tried_again_and_the_rest_only_as_often_as_allowed() {
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
    fn the_servers_own_verdict_is_true_false_or_none() {
        assert_eq!(verdict(&headers(&[("x-should-retry", "true")])), Some(true));
        assert_eq!(verdict(&headers(&[("x-should-retry", "false")])), Some(false));
        assert_eq!(verdict(&headers(&[("x-should-retry", "maybe")])), None);
        assert_eq!(verdict(&headers(&[])), None);
    }
}
