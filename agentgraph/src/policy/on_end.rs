//! [`OnEnd`]: how a detached node ends.

use std::time::Duration;

/// The fate of a [detached](crate::IntoNode::detached) node that still runs when every other node has
/// ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnEnd {
    /// It is dropped at its current await. The default.
    #[default]
    Cancel,
    /// The run waits for it after every other node has ended, at most this long, then drops it. The time is
    /// shared by all its tasks, including those that start meanwhile.
    Await(Duration),
}
