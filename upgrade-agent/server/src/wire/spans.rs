//! Spans of time in statistics: days, months or years, newest first.

use super::calendar::Day;

/// The ranges that a body may request.
pub(crate) const RANGES: [&str; 7] = [
    "last_seven_days",
    "last_two_weeks",
    "last_one_month",
    "last_three_months",
    "last_six_months",
    "last_twelve_months",
    "total",
];

/// The unit and the number of the spans of a range.
#[derive(Clone, Copy)]
pub(crate) enum SpanUnit {
    Days(i64),
    Months(i64),
    Years(i64),
}

impl SpanUnit {
    /// The spans of a range, for something created that many years ago.
    pub(crate) fn of(range: &str, age: i64) -> Self {
        match range {
            "last_seven_days" => Self::Days(7),
            "last_two_weeks" => Self::Days(14),
            "last_one_month" => Self::Days(30),
            "last_three_months" => Self::Months(3),
            "last_six_months" => Self::Months(6),
            "last_twelve_months" => Self::Months(12),
            _ => Self::Years(age + 1),
        }
    }

    /// The first days of all spans, newest first.
    pub(crate) fn starts(self, today: Day) -> Vec<Day> {
        match self {
            Self::Days(n) => (0..n).map(|back| today.before(back)).collect(),
            Self::Months(n) => (0..n).map(|back| today.first_of_month(back)).collect(),
            Self::Years(n) => (0..n).map(|back| today.first_of_year(back)).collect(),
        }
    }

    /// The first day of the span that contains a day.
    pub(crate) fn start(self, day: Day) -> Day {
        match self {
            Self::Days(_) => day,
            Self::Months(_) => day.first_of_month(0),
            Self::Years(_) => day.first_of_year(0),
        }
    }
}
