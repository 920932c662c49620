//! Times, as people and programs read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

const DAY: u64 = 24 * 60 * 60;

/// How long ago something was.
pub(super) fn ago(passed: Duration) -> String {
    let seconds = passed.as_secs();
    let counted = |count: u64, unit: &str| format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" });
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => counted(seconds / 60, "minute"),
        3600..DAY => counted(seconds / 3600, "hour"),
        _ => counted(seconds / DAY, "day"),
    }
}

/// The time in UTC, to the second; times before 1970 are 1970.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let time = Timestamp::try_from(time.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    format!("{time:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_rfc_3339_in_utc() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_age_of_a_time_is_shown_in_its_largest_unit() {
        let told = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(told(59), "just now");
        assert_eq!(told(60), "1 minute ago");
        assert_eq!(told(7300), "2 hours ago");
        assert_eq!(told(DAY * 3), "3 days ago");
    }
}
