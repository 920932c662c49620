//! [`Report`]: what a call tells its caller beside how it ended.

use crate::context::UntoldStops;
use crate::words::DroppedEdits;

/// What a call tells its caller beside how it ended.
#[derive(Default)]
pub(crate) struct Report {
    /// Static interrupts in subgraphs that the caller is about to be told of.
    pub(in crate::engine) untold: Vec<UntoldStops>,
    /// The nodes of detached tasks that the end of the run cut off.
    pub(in crate::engine) cancelled: Vec<String>,
    /// The temporary edits that were dropped.
    pub(crate) dropped: Vec<DroppedEdits>,
}
