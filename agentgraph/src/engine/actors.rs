//! [`Actors`]: the nodes that act in a superstep, including handlers of failed tasks.

use std::sync::Arc;

use crate::engine::frontier::Frontier;
use crate::failure::Failure;

/// The nodes that act in a superstep.
#[derive(Clone, Copy)]
pub(super) struct Actors<'a> {
    pub(in crate::engine) frontier: &'a Frontier,
    pub(in crate::engine) handled: &'a [Handover],
}

impl Actors<'_> {
    /// The node that acts at `index`: the node of the task, or the handler of its failure.
    #[inline]
    pub(super) fn node(self, index: usize) -> u32 {
        match handled(self.handled, index as u32) {
            None => self.frontier.task(index).0,
            Some(handled) => handled.handler,
        }
    }
}

/// A failed task, and the handler that replaces it.
#[derive(Debug)]
pub(super) struct Handover {
    pub(in crate::engine) index: u32,
    pub(in crate::engine) handler: u32,
    pub(in crate::engine) failure: Arc<Failure>,
    /// Whether the failure is in the store.
    pub(in crate::engine) stored: bool,
}

impl Handover {
    pub(super) fn copy(&self) -> Self {
        Handover { failure: Arc::clone(&self.failure), ..*self }
    }
}

/// Inserts a handover in task order.
pub(super) fn add_handled(all: &mut Vec<Handover>, handled: Handover) {
    let at = all.partition_point(|other| other.index < handled.index);
    all.insert(at, handled);
}

/// The handover of the task at `index`, if its failure is handled.
pub(super) fn handled(all: &[Handover], index: u32) -> Option<&Handover> {
    let at = all.binary_search_by_key(&index, |handled| handled.index).ok()?;
    all.get(at)
}
