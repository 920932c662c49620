//! The time limits of a node, as data.

use std::time::Duration;

/// The timeouts of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    pub(crate) run: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}
