//! Whether a failed call is made again, and after which wait. Pure: the failure and the number of retries
//! are arguments.

use std::time::{Duration, SystemTime};

use agentgraph_llm::retry::{self, Backoff};
use reqwest::header::HeaderMap;

use super::error::{ClientError, ErrorKind};

/// The longest back-off.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// The number of retries and the first back-off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) retries: u32,
    /// The back-off before the first retry; it doubles each time.
    pub(super) pause: Duration,
}

impl Policy {
    /// The wait before the next attempt; `None` to give up. The jitter, from 0 to 1, takes up to half off the
    /// back-off. A wait that the server asks for is kept in full.
    pub(super) fn wait(&self, tries: u32, asked: Option<Duration>, jitter: f64) -> Option<Duration> {
        if tries >= self.retries {
            return None;
        }
        let backoff = Backoff { first: self.pause, longest: LONGEST_PAUSE, jitter: 0.5 };
        let pause = backoff.wait(tries, jitter);
        Some(asked.map_or(pause, |asked| asked.max(pause)))
    }
}

/// Whether a retry may succeed after this status. A rate-limited call was not processed, while a failing
/// gateway may have passed the call on.
pub(super) fn passes(status: u16, repeatable: bool) -> bool {
    status == 429 || (repeatable && matches!(status, 502..=504))
}

/// Whether a retry may succeed after this error. Without a connection, the server received nothing.
pub(super) fn may_pass(why: &ClientError, repeatable: bool) -> bool {
    match why.kind() {
        ErrorKind::Connect => repeatable || !why.may_have_acted(),
        ErrorKind::Timeout => repeatable,
        _ => false,
    }
}

/// The wait that the server asks for.
pub(super) fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    retry::retry_after(|name| headers.get(name)?.to_str().ok(), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { retries: 9, pause: Duration::from_millis(200) };

    #[test]
    fn the_back_off_doubles_up_to_a_limit_and_jitter_removes_at_most_half() {
        let millis = |tries, jitter| POLICY.wait(tries, None, jitter).unwrap().as_millis();
        assert_eq!([0, 1, 2, 3].map(|tries| millis(tries, 0.0)), [200, 400, 800, 1600]);
        assert_eq!([0.0, 0.5, 1.0, 7.0, f64::NAN].map(|jitter| millis(0, jitter)), [200, 150, 100, 100, 200]);
        assert_eq!(millis(8, 0.0), 20_000);
        assert_eq!(POLICY.wait(9, None, 0.0), None);
        let endless = Policy { retries: u32::MAX, pause: Duration::MAX };
        assert_eq!(endless.wait(u32::MAX - 1, None, 0.0), Some(LONGEST_PAUSE));
    }

    #[test]
    fn a_wait_that_the_server_asks_for_is_never_shortened() {
        let second = Duration::from_secs(1);
        assert_eq!(POLICY.wait(0, Some(second), 1.0), Some(second));
        assert_eq!(POLICY.wait(4, Some(second), 0.0), Some(Duration::from_millis(3200)));
    }
}
