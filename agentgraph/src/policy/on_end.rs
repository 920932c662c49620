//! What becomes of a detached node when the run is at its end.

use std::time::Duration;

/// What becomes of a [detached](crate::IntoNode::detached) node that still runs when everything else has
/// ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnEnd {
    /// It is dropped where it stands. The default.
    #[default]
    Cancel,
    /// The run waits for it, so long at most from where everything else has ended, and drops it then. The
    /// time is that of all its tasks together, with those that begin meanwhile.
    Await(Duration),
}
