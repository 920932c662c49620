//! Days, months and years of times as the wire has them, and times as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(i64);

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Day {
    pub(super) fn since_epoch(days: u64) -> Self {
        Self(i64::try_from(days).unwrap_or(i64::MAX / 2))
    }

    /// The day of a time like `2026-11-21T07:09:00.000Z`, for somebody whose clock is so many minutes
    /// ahead.
    pub(crate) fn of(time: &str, minutes_ahead: i64) -> Option<Self> {
        let part = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
        let date = Self::from_civil(part(0..4)?, part(5..7)?, part(8..10)?);
        let minute = part(11..13)?.checked_mul(60)?.checked_add(part(14..16)?)?;
        let all = date.0.checked_mul(1440)?.checked_add(minute)?.checked_add(minutes_ahead)?;
        Some(Self(all.div_euclid(1440)))
    }

    /// Year, month and day.
    pub(crate) fn civil(self) -> (i64, i64, i64) {
        let shifted = self.0 + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        (era * 400 + year_of_era + i64::from(month <= 2), month, day)
    }

    fn from_civil(year: i64, month: i64, day: i64) -> Self {
        let year = year - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let march_month = (month + 9).rem_euclid(12);
        let of_year = (153 * march_month + 2) / 5 + day - 1;
        Self(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
    }

    pub(super) fn before(self, days: i64) -> Self {
        Self(self.0 - days)
    }

    /// The first day of the month that lies so many months back.
    pub(super) fn first_of_month(self, months_back: i64) -> Self {
        let (year, month, _) = self.civil();
        let months = year * 12 + month - 1 - months_back;
        Self::from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1)
    }

    /// The first day of the year that lies so many years back.
    pub(super) fn first_of_year(self, years_back: i64) -> Self {
        Self::from_civil(self.civil().0 - years_back, 1, 1)
    }

    /// As JavaScript writes it: `Sat Nov 21 2026`.
    pub(crate) fn word(self) -> String {
        let (year, month, day) = self.civil();
        let weekday = WEEKDAYS[self.0.rem_euclid(7) as usize];
        let month = MONTHS[(month - 1).rem_euclid(12) as usize];
        format!("{weekday} {month} {day:02} {year:04}")
    }
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
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = Day::since_epoch(days).civil();
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let milli = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// A time as the database gives it back: to the millisecond, in UTC. One that says nothing of its zone
/// is in UTC; what is none is none.
pub(crate) fn instant(text: &str) -> Option<String> {
    const DAY: i64 = 86_400_000;
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let (clock, ahead) = zone(time)?;
    if date.len() > "YYYY-MM-DD".len() {
        return None;
    }
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let day = Day::from_civil(parts.next()??, parts.next()??, parts.next()??);
    let all = day.0.checked_mul(DAY)?.checked_add(millis(clock)?)?.checked_sub(ahead.checked_mul(60_000)?)?;
    let (year, month, day) = Day(all.div_euclid(DAY)).civil();
    let of_day = all.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let milli = of_day % 1000;
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"))
}

/// What a clock showed, and by how many minutes it is ahead.
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

/// The milliseconds since midnight that a clock shows.
fn millis(clock: &str) -> Option<i64> {
    if clock.is_empty() {
        return Some(0);
    }
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let milli = format!("{fraction:0<3}").get(0..3)?.parse::<i64>().ok()?;
    let is_time = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    is_time.then(|| ((hour * 60 + minute) * 60 + second) * 1000 + milli)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_named_as_javascript_names_them() {
        let day = |time: &str, ahead| Day::of(time, ahead).unwrap();
        assert_eq!(day("2026-11-21T07:09:00.000Z", 0).word(), "Sat Nov 21 2026");
        assert_eq!(day("2026-11-21T23:30:00.000Z", 60).word(), "Sun Nov 22 2026");
        assert_eq!(day("2024-03-01T00:10:00.000Z", -60).word(), "Thu Feb 29 2024");
        assert_eq!(day("2026-01-31T00:00:00.000Z", 0).first_of_month(2).word(), "Sat Nov 01 2025");
        assert_eq!(day("2026-01-31T00:00:00.000Z", 0).first_of_year(1).word(), "Wed Jan 01 2025");
        assert_eq!(Day::of("soon", 0), None);
    }

    #[test]
    fn times_are_written_as_the_wire_has_them() {
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
    fn times_are_given_back_in_utc() {
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
        fn a_day_is_the_one_that_its_date_names(days in -200_000_i64..200_000) {
            let (year, month, day) = Day(days).civil();
            prop_assert_eq!(Day::from_civil(year, month, day), Day(days));
        }
    }
}
