//! The rate limits in the headers of a response.

use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderMap;

use crate::model::{Quota, RateLimits};

/// The names of the headers with the rate limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitHeaders {
    /// Those of the limit of requests.
    pub requests: QuotaHeaders,
    /// Those of the limit of tokens.
    pub tokens: QuotaHeaders,
}

/// The names of the headers of one rate limit.
#[derive(Clone, Copy, Debug)]
pub struct QuotaHeaders {
    /// The limit.
    pub limit: &'static str,
    /// What is left of it.
    pub remaining: &'static str,
    /// When it is full again: a date, a time or a number of seconds.
    pub reset: &'static str,
}

impl LimitHeaders {
    /// The limits; `None` if no header has any.
    pub(super) fn read(&self, headers: &HeaderMap, now: SystemTime) -> Option<RateLimits> {
        let limits = RateLimits::new(self.requests.read(headers, now), self.tokens.read(headers, now));
        (limits != RateLimits::default()).then_some(limits)
    }
}

impl QuotaHeaders {
    fn read(&self, headers: &HeaderMap, now: SystemTime) -> Option<Quota> {
        let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
        let number = |name| text(name)?.parse().ok();
        let resets_in = text(self.reset).and_then(|text| time_until(text, now));
        let quota = Quota::new(number(self.limit), number(self.remaining), resets_in);
        (quota != Quota::default()).then_some(quota)
    }
}

/// Reads a date such as `2026-11-23T10:00:00Z`, a time such as `6m0s` or `20ms`, or a number of seconds. A
/// date that has passed is no time at all.
fn time_until(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(date) = text.parse::<Timestamp>() {
        return Some(SystemTime::from(date).duration_since(now).unwrap_or_default());
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    text.parse::<SignedDuration>().ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_reset_is_a_date_a_time_or_a_number() {
        // 2026-11-23T10:00:00Z
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_428_000);
        for (text, millis) in [
            ("2026-11-23T10:00:07Z", Some(7000)),
            ("2026-11-23T12:00:00+02:00", Some(0)),
            ("2026-11-23T09:00:00Z", Some(0)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("20ms", Some(20)),
            ("1s", Some(1000)),
            ("1.5", Some(1500)),
            ("0", Some(0)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(time_until(text, now), millis.map(Duration::from_millis), "{text}");
        }
    }
}
