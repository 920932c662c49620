//! The two wire dialects of UpGrade.

use std::fmt;

/// A wire dialect, which follows from the version in a server's health response.
///
/// ```
/// use upgrade_agent::client::Dialect;
///
/// assert_eq!(Dialect::of_version("6.2.0"), Some(Dialect::V62));
/// assert_eq!(Dialect::of_version("6.3.0-beta"), Some(Dialect::V65));
/// assert_eq!(Dialect::of_version("six"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Versions up to 6.2: `enrolling`, one object per segment, ids of conditions kept.
    V62,
    /// Versions from 6.3 on: `running`, lists of segments, ids of conditions replaced.
    V65,
}

impl Dialect {
    /// The dialect of a version such as `6.5.0`; `None` if the text is not a version.
    pub fn of_version(version: &str) -> Option<Self> {
        Some(if parts(version)? < (6, 3) { Self::V62 } else { Self::V65 })
    }

    /// Whether a version lacks the routes of version 6 for students' applications.
    pub(super) fn is_before_6(version: &str) -> bool {
        parts(version).is_some_and(|parts| parts < (6, 0))
    }
}

/// The major and the minor number.
fn parts(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim().trim_start_matches('v').split('.');
    Some((number(parts.next()?)?, parts.next().map_or(Some(0), number)?))
}

fn number(part: &str) -> Option<u32> {
    let digits = part.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V62 => "UpGrade up to 6.2",
            Self::V65 => "UpGrade from 6.3",
        })
    }
}
