//! [`Express`]: supersteps of ready tasks, one after another, as the engine sees them. The shell runs them,
//! since it knows the state.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::coop::unconstrained;

use crate::context::RunShared;
use crate::engine::channel_uses::ChannelUses;
use crate::engine::merge::Merge;
use crate::erased::Started;
use crate::error::Error;
use crate::typed::AnyState;

/// The parts of a run that the sequence changes.
pub(crate) struct ExpressParts<'a, 'm> {
    /// The merge reads the frontier in `next` and replaces it.
    pub(crate) merge: Merge<'m>,
    pub(crate) state: &'a mut AnyState,
    pub(crate) uses: &'a mut ChannelUses,
    /// The greatest number of tasks that run side by side.
    pub(crate) max_concurrency: usize,
    pub(crate) shared: &'a Arc<RunShared>,
    /// The numbers of supersteps that the call has started and merged.
    pub(crate) step: &'a mut u64,
    pub(crate) merged: &'a mut u64,
}

/// The superstep that ends a sequence: its tasks are started, and one of them was pending at its first poll
/// or returned what the shell does not merge.
pub(crate) enum Begun {
    /// Its only task, of this node.
    Only(u32, Started),
    /// All its tasks, by index.
    Several(Vec<(u32, Started)>),
}

/// Sorts started tasks. Not in the shell, where it would be compiled for each state type.
pub(crate) fn in_task_order(tasks: &mut [(u32, Started)]) {
    tasks.sort_unstable_by_key(|(index, _)| *index);
}

/// Calls `work` outside tokio's cooperative budget: with more ready tasks than it allows, the rest would be
/// delayed for nothing.
pub(crate) fn without_budget(cx: &mut Context<'_>, work: &mut dyn FnMut(&mut Context<'_>)) {
    let work = poll_fn(|cx| {
        work(cx);
        Poll::Ready(())
    });
    // It is ready at its only poll.
    let _ = pin!(unconstrained(work)).poll(cx);
}

/// Runs one superstep of ready tasks after another.
pub(crate) trait Express: Send + Sync {
    /// Continues as long as all tasks of each superstep are ready and return updates, or its only one returns
    /// a command that only goes to nodes. Returns the first superstep in which that is not so; `None` if the
    /// sequence ends between two supersteps.
    ///
    /// # Errors
    /// If a merge fails.
    fn run(&self, parts: ExpressParts<'_, '_>, cx: &mut Context<'_>) -> Result<Option<Begun>, Error>;
}
