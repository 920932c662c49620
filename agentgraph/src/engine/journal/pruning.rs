//! [`Pruning`]: a retention policy that is applied while a run goes on.
//!
//! The journal awaits it right after a commit, when nothing else of the run reads or stores: a segment that
//! was folded beside it could repeat deltas which it has made a full of.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::engine::journal::Journal;
use crate::error::Error;
use agentgraph_checkpoint::{CheckpointId, Checkpointer};

/// Removes the checkpoints of the run's thread that its policy does not keep. Returns the number of those
/// that stay.
type Prune = Box<dyn Fn(Arc<dyn Checkpointer>) -> BoxFuture<'static, Result<u64, Error>> + Send + Sync>;

/// When a thread is pruned, and how.
pub(crate) struct Pruning {
    prune: Prune,
    /// The fewest steps between two prunings.
    stride: u64,
    /// The first step of the next one; unknown before the first commit.
    due: Option<u64>,
    /// The bytes stored since the last one.
    bytes: u64,
}

impl Pruning {
    pub(crate) fn new(stride: u64, prune: Prune) -> Self {
        Pruning { prune, stride, due: None, bytes: 0 }
    }

    /// Pruning reads what it keeps, and writes the state once. So it waits until as many checkpoints were
    /// stored as the last one has kept, and as many bytes as the state has.
    pub(super) fn is_due(&self, id: CheckpointId, live: u64) -> bool {
        self.due.is_some_and(|due| id.step >= due) && self.bytes >= live
    }

    pub(super) fn stored(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Journal {
    /// Prunes the thread from now on.
    pub(crate) fn prune_with(&mut self, mut pruning: Pruning) {
        pruning.due = Some(self.next_id().step.saturating_add(pruning.stride));
        self.pruning = Some(pruning);
    }

    /// Prunes the thread, whose head is `id`. A failure does not end the run: the next time prunes it all.
    pub(super) async fn prune(&mut self, id: CheckpointId) {
        let Some(pruning) = &mut self.pruning else { return };
        let kept = (pruning.prune)(Arc::clone(&self.saver)).await;
        let kept = kept.unwrap_or_else(|error| {
            let thread = &*self.head.thread;
            tracing::warn!(target: "agentgraph", %error, thread, "a thread was not pruned");
            0
        });
        pruning.due = Some(id.step.saturating_add(pruning.stride.max(kept)));
        pruning.bytes = 0;
        // The records that contain values whole may be gone.
        self.next.delta.forget_records();
    }
}
