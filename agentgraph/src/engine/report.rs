//! [`Report`]: notes for the caller beside the result of a call.

use crate::context::UnreportedStops;
use crate::words::DroppedEdits;

/// Notes for the caller beside the result of a call.
#[derive(Default)]
pub(crate) struct Report {
    /// Static interrupts in subgraphs that are not reported to the caller yet.
    pub(in crate::engine) unreported: Vec<UnreportedStops>,
    /// The nodes of detached tasks that the end of the run cut off.
    pub(in crate::engine) cancelled: Vec<String>,
    /// The temporary edits that were dropped.
    pub(crate) dropped: Vec<DroppedEdits>,
}
