//! Days, months and years of times as the wire has them.

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(i64);

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Day {
    pub(super) fn since_epoch(days: u64) -> Self {
        Self(i64::try_from(days).unwrap_or(i64::MAX / 2))
    }

    /// The day of a time like `2026-11-21T07:09:00.000Z`, for somebody whose clock is so many minutes
    /// ahead.
    pub(super) fn of(time: &str, minutes_ahead: i64) -> Option<Self> {
        let part = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
        let date = Self::from_civil(part(0..4)?, part(5..7)?, part(8..10)?);
        let minute = part(11..13)?.checked_mul(60)?.checked_add(part(14..16)?)?;
        let all = date.0.checked_mul(1440)?.checked_add(minute)?.checked_add(minutes_ahead)?;
        Some(Self(all.div_euclid(1440)))
    }

    /// Year, month and day.
    pub(super) fn civil(self) -> (i64, i64, i64) {
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
    pub(super) fn word(self) -> String {
        let (year, month, day) = self.civil();
        let weekday = WEEKDAYS[self.0.rem_euclid(7) as usize];
        let month = MONTHS[(month - 1).rem_euclid(12) as usize];
        format!("{weekday} {month} {day:02} {year:04}")
    }
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

    proptest! {
        #[test]
        fn a_day_is_the_one_that_its_date_names(days in -200_000_i64..200_000) {
            let (year, month, day) = Day(days).civil();
            prop_assert_eq!(Day::from_civil(year, month, day), Day(days));
        }
    }
}
