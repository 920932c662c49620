//! [`Express`]: supersteps of one ready task after another, as the engine sees them. The shell runs them,
//! since it knows the state.

use std::sync::Arc;
use std::task::Context;

use crate::context::RunShared;
use crate::engine::merge::Merge;
use crate::erased::{NodeFuture, NodeResult};
use crate::error::Error;
use crate::typed::AnyState;

/// The parts of a run that the sequence changes.
pub(crate) struct ExpressParts<'a, 'm> {
    pub(crate) merge: Merge<'m>,
    pub(crate) state: &'a mut AnyState,
    pub(crate) shared: &'a Arc<RunShared>,
    /// The numbers of supersteps that the call has started and merged.
    pub(crate) step: &'a mut u64,
    pub(crate) merged: &'a mut u64,
}

/// The reason why the sequence ends.
pub(crate) enum ExpressExit {
    /// At a boundary between two supersteps.
    Boundary,
    /// The task of a superstep was pending at its first poll.
    Pending(u32, NodeFuture<AnyState>),
    /// The task returned something other than an update.
    Ended(u32, NodeResult<AnyState>),
}

/// Runs one ready task after another.
pub(crate) trait Express: Send + Sync {
    /// Continues as long as each superstep is one task that is ready and returns an update.
    ///
    /// # Errors
    /// If a merge fails.
    fn run(&self, parts: ExpressParts<'_, '_>, cx: &mut Context<'_>) -> Result<ExpressExit, Error>;
}
