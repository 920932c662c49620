//! [`StopReason`]: why a run stopped before its end.

use std::fmt;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The call reached its limit of supersteps.
    Limit,
    /// Its cancellation token was cancelled.
    Cancelled,
    /// It was asked to stop between two supersteps, by a token or by [`Ctx::drain`](crate::Ctx::drain).
    Drained,
    /// The call reached its deadline.
    Deadline,
    /// The run reached a limit of its [`Budget`](crate::Budget).
    Budget,
}

impl StopReason {
    /// The reason as one word, in spans and in the JSON form of [events](crate::Event).
    ///
    /// ```
    /// assert_eq!(agentgraph::StopReason::Drained.as_str(), "drained");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::Limit => "limit",
            StopReason::Cancelled => "cancelled",
            StopReason::Drained => "drained",
            StopReason::Deadline => "deadline",
            StopReason::Budget => "budget",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            StopReason::Limit => "the limit of supersteps was reached",
            StopReason::Cancelled => "it was cancelled",
            StopReason::Drained => "it was asked to stop",
            StopReason::Deadline => "its deadline has passed",
            StopReason::Budget => "its budget is used up",
        })
    }
}
