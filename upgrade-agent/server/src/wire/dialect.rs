//! The dialects of UpGrade.

/// A wire dialect of UpGrade: routes, bodies, words and errors of one version.
///
/// ```
/// use upgrade_simulator::Dialect;
///
/// assert_eq!(Dialect::V62.version(), "6.2.0");
/// assert_eq!(Dialect::V65.version(), "6.5.0");
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
    /// The version of the server.
    pub fn version(self) -> &'static str {
        match self {
            Self::V62 => "6.2.0",
            Self::V65 => "6.5.0",
        }
    }

    /// The dialect of a version such as `6.5.0`; none if the text is not a version.
    pub(crate) fn of_version(version: &str) -> Option<Self> {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        let major = parts.next()??;
        let minor = parts.next()??;
        Some(if (major, minor) < (6, 3) { Self::V62 } else { Self::V65 })
    }
}
