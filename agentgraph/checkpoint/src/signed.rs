//! Numbers and times in databases, whose integers are signed.

use std::time::SystemTime;

use crate::services::{from_micros, micros};

/// A number, or the largest that fits.
pub(crate) fn integer(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

pub(crate) fn as_time(time: SystemTime) -> i64 {
    integer(micros(time))
}

pub(crate) fn from_time(micros: i64) -> SystemTime {
    from_micros(u64::try_from(micros).unwrap_or(0))
}

/// No lease has a fence that the database cannot store.
pub(crate) fn as_fence(fence: u64) -> i64 {
    i64::try_from(fence).unwrap_or(-1)
}
