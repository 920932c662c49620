//! The back-off between retries and the reader of `Retry-After`, for every client of this workspace that
//! speaks HTTP. Pure: time and randomness are arguments.

use std::time::{Duration, SystemTime};

/// A wait that doubles with each retry up to a bound, minus a random share of it.
///
/// ```
/// use agentgraph_llm::retry::Backoff;
/// use std::time::Duration;
///
/// let backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(1), jitter: 0.5 };
/// assert_eq!(backoff.wait(0, 0.0), Duration::from_millis(200));
/// assert_eq!(backoff.wait(0, 1.0), Duration::from_millis(100));
/// assert_eq!(backoff.wait(9, 0.0), Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The wait before the first retry.
    pub first: Duration,
    /// The wait never grows beyond this.
    pub longest: Duration,
    /// The largest share, from 0 to 1, that randomness takes off a wait.
    pub jitter: f64,
}

impl Backoff {
    /// The wait after that many retries. `random` is from 0 to 1; a number that is not finite counts as 0.
    pub fn wait(&self, retries: u32, random: f64) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(retries)).min(self.longest);
        doubled.mul_f64(1.0 - share(self.jitter) * share(random))
    }
}

fn share(number: f64) -> f64 {
    if number.is_finite() { number.clamp(0.0, 1.0) } else { 0.0 }
}

/// The wait that the headers of a response ask for: `retry-after-ms` in milliseconds, else `retry-after` in
/// seconds (a fraction is allowed) or as a date. `None` if they ask for none, or for a time that has passed.
///
/// `header` looks up a header by its name in lower case.
///
/// ```
/// use agentgraph_llm::retry::retry_after;
/// use std::time::{Duration, SystemTime};
///
/// let header = |name: &str| (name == "retry-after").then_some("1.5");
/// assert_eq!(retry_after(header, SystemTime::now()), Some(Duration::from_millis(1500)));
/// ```
pub fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> Option<Duration> {
    let number = |name| header(name)?.trim().parse::<f64>().ok();
    if let Some(millis) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    httpdate::parse_http_date(header("retry-after")?.trim()).ok()?.duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    #[test]
    fn the_wait_is_read_from_milliseconds_seconds_and_dates() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let cases: &[(Headers, Option<u64>)] = &[
            (&[("retry-after", "2")], Some(2000)),
            (&[("retry-after", "120")], Some(120_000)),
            (&[("retry-after", "0.25")], Some(250)),
            (&[("retry-after", " 3 ")], Some(3000)),
            (&[("retry-after", " 0 ")], Some(0)),
            (&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1500)),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(9000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:49 GMT")], Some(12_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e400")], None),
            (&[("retry-after", "99999999999999999999999")], None),
            (&[("retry-after", "tomorrow")], None),
            (&[], None),
        ];
        for (headers, expected) in cases {
            let header =
                |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            assert_eq!(retry_after(header, now), expected.map(Duration::from_millis), "{headers:?}");
        }
    }

    #[test]
    fn the_back_off_never_exceeds_its_longest_wait() {
        let longest = Duration::from_secs(20);
        let endless = Backoff { first: Duration::MAX, longest, jitter: 0.5 };
        assert_eq!(endless.wait(u32::MAX - 1, 0.0), longest);
        assert_eq!([7.0, f64::NAN].map(|random| endless.wait(0, random).as_secs()), [10, 20]);
    }
}
