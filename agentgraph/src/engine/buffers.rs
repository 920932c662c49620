//! [`Buffers`]: the working memory of the current superstep.

use crate::engine::channel_uses::ChannelUses;
use crate::engine::frontier::Frontier;
use crate::engine::step_results::StepResults;
use crate::step::Goto;

/// The working memory of the current superstep. It lives as long as the call, so that supersteps reuse its
/// allocations.
pub(super) struct Buffers {
    /// The frontier that the merge builds.
    pub(super) next: Frontier,
    pub(super) gotos: Vec<Goto>,
    pub(super) uses: ChannelUses,
    pub(super) ends: StepResults,
    /// Whether the last superstep wrote an ephemeral channel.
    pub(super) ephemeral: bool,
    /// Whether the node for the limit is running.
    pub(super) beyond_limit: bool,
    /// Whether the first join with a timeout is due, whatever the clock shows.
    pub(super) is_due: bool,
    /// The nodes that this superstep skips.
    pub(super) skipped: Vec<u32>,
}

impl Default for Buffers {
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
