//! Days and times in the formats of the wire and of JavaScript.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::Date;
use jiff::{Span, Timestamp, ToSpan, tz};

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(Date);

impl Day {
    /// The day of a time like `2026-11-21T07:09:00.000Z` on a clock that is so many minutes ahead of UTC.
    pub(crate) fn of(time: &str, minutes_ahead: i64) -> Option<Self> {
        let part = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
        let date = date(part(0..4)?, part(5..7)?, part(8..10)?)?;
        let minute = part(11..13)?.checked_mul(60)?.checked_add(part(14..16)?)?;
        let ahead = Span::new().try_minutes(minute.checked_add(minutes_ahead)?).ok()?;
        date.at(0, 0, 0, 0).checked_add(ahead).ok().map(|moment| Self(moment.date()))
    }

    pub(crate) fn year(self) -> i64 {
        self.0.year().into()
    }

    /// The day so many days earlier.
    pub(super) fn before(self, days: i64) -> Self {
        Self(self.0.saturating_sub(days.days()))
    }

    /// The first day of the month that lies so many months back.
    pub(super) fn first_of_month(self, months_back: i64) -> Self {
        Self(self.0.first_of_month().saturating_sub(months_back.months()))
    }

    /// The first day of the year that lies so many years back.
    pub(super) fn first_of_year(self, years_back: i64) -> Self {
        Self(self.0.first_of_year().saturating_sub(years_back.years()))
    }

    /// The day as JavaScript writes it: `Sat Nov 21 2026`.
    pub(crate) fn word(self) -> String {
        self.0.strftime("%a %b %d %Y").to_string()
    }
}

/// A day beyond the end of its month is one of the next, as in JavaScript.
fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let first = Date::new(year.try_into().ok()?, month.try_into().ok()?, 1).ok()?;
    first.checked_add(Span::new().try_days(day.checked_sub(1)?).ok()?).ok()
}

/// A time as UpGrade writes it: UTC, with milliseconds and `Z`.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use upgrade_simulator::timestamp;
///
/// assert_eq!(timestamp(UNIX_EPOCH + Duration::from_millis(951_782_400_007)), "2000-02-29T00:00:00.007Z");
/// ```
pub fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX);
    written(time)
}

fn written(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// A time in the database's format: UTC, to the millisecond. A text without a zone is read as UTC; a text
/// that is no time gives `None`.
pub(crate) fn instant(text: &str) -> Option<String> {
    let (day, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let (clock, ahead) = zone(time)?;
    if day.len() > "YYYY-MM-DD".len() {
        return None;
    }
    let mut parts = day.split('-').map(|part| part.parse::<i64>().ok());
    let midnight = date(parts.next()??, parts.next()??, parts.next()??)?.at(0, 0, 0, 0);
    let millis = millis(clock)?.checked_sub(ahead.checked_mul(60_000)?)?;
    let moment = midnight.checked_add(Span::new().try_milliseconds(millis).ok()?).ok()?;
    tz::Offset::UTC.to_timestamp(moment).ok().map(written)
}

/// The reading of the clock, and the minutes by which its zone is ahead of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, ahead) = time.split_at(at);
    let digits: String = ahead.chars().filter(char::is_ascii_digit).collect();
    let hours = digits.get(0..2)?.parse::<i64>().ok()?;
    let minutes = digits.get(2..4).map_or(Some(0), |minutes| minutes.parse::<i64>().ok())?;
    let minutes = hours * 60 + minutes;
    Some((clock, if ahead.starts_with('-') { -minutes } else { minutes }))
}

/// The milliseconds since midnight on a clock.
fn millis(clock: &str) -> Option<i64> {
    if clock.is_empty() {
        return Some(0);
    }
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let hour = parts.next()??;
    let minute = parts.next()??;
    let second = parts.next().unwrap_or(Some(0))?;
    let milli = format!("{fraction:0<3}").get(0..3)?.parse::<i64>().ok()?;
    let is_time = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    is_time.then(|| ((hour * 60 + minute) * 60 + second) * 1000 + milli)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_formatted_as_in_javascript() {
        let day = |time: &str, ahead| Day::of(time, ahead).unwrap();
        assert_eq!(day("2026-11-21T07:09:00.000Z", 0).word(), "Sat Nov 21 2026");
        assert_eq!(day("2026-11-21T23:30:00.000Z", 60).word(), "Sun Nov 22 2026");
        assert_eq!(day("2024-03-01T00:10:00.000Z", -60).word(), "Thu Feb 29 2024");
        assert_eq!(day("2026-01-31T00:00:00.000Z", 0).first_of_month(2).word(), "Sat Nov 01 2025");
        assert_eq!(day("2026-01-31T00:00:00.000Z", 0).first_of_year(1).word(), "Wed Jan 01 2025");
        assert_eq!(Day::of("soon", 0), None);
    }

    #[test]
    fn timestamps_have_milliseconds_and_end_with_z() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_220_561_670, "2026-11-21T00:22:41.670Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ];
        for (millis, written) in cases {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_millis(millis)), written);
        }
    }

    #[test]
    fn times_with_a_zone_are_converted_to_utc() {
        let told = |text| instant(text).unwrap_or_default();
        assert_eq!(told("2027-01-31"), "2027-01-31T00:00:00.000Z");
        assert_eq!(told("2027-01-31T10:20"), "2027-01-31T10:20:00.000Z");
        assert_eq!(told("2027-01-31 10:20:30.5+02:00"), "2027-01-31T08:20:30.500Z");
        assert_eq!(told("2026-12-31T23:30:00-0130"), "2027-01-01T01:00:00.000Z");
        assert_eq!(told("1969-12-31T23:59:59.999Z"), "1969-12-31T23:59:59.999Z");
        for none in ["", "soon", "2027-01", "2027-01-31T25:00Z", "2027-01-31Tnoon", "2027-01-31T10:00+x"] {
            assert_eq!(instant(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn a_written_time_is_read_as_itself(millis in 0..200_000 * 86_400_000_u64) {
            let written = timestamp(UNIX_EPOCH + Duration::from_millis(millis));
            prop_assert_eq!(instant(&written), Some(written));
        }
    }
}
