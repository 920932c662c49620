//! [`Buffers`]: the memory of the superstep under way.

use crate::engine::channel_uses::ChannelUses;
use crate::engine::frontier::Frontier;
use crate::engine::step_results::StepResults;
use crate::state::State;
use crate::step::Goto;

/// The memory of the superstep under way. It lives as long as the call, so that a superstep allocates nothing
/// for itself.
pub(crate) struct Buffers<S: State> {
    /// The frontier that its merge makes.
    pub(super) next: Frontier,
    pub(super) gotos: Vec<Goto>,
    pub(super) uses: ChannelUses,
    pub(super) ends: StepResults<S>,
    /// An ephemeral channel was written in the last superstep.
    pub(super) ephemeral: bool,
    /// The node for the limit is running.
    pub(super) beyond_limit: bool,
    /// The time of the first join that has one has come, whatever the clock says.
    pub(super) is_due: bool,
    /// The nodes that it skips.
    pub(super) skipped: Vec<u32>,
}

impl<S: State> Default for Buffers<S> {
    fn default() -> Self {
        Buffers {
            next: Frontier::default(),
            gotos: Vec::new(),
            uses: ChannelUses::default(),
            ends: StepResults::default(),
            ephemeral: true,
            beyond_limit: false,
            is_due: false,
            skipped: Vec::new(),
        }
    }
}
