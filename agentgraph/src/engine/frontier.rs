//! [`Frontier`]: the tasks to run next.

use crate::context::{TaskOrigin, TaskRequest};
use crate::step::InputValue;

/// The tasks to run next: nodes whose trigger fired, and dispatches.
///
/// The *task order* is: nodes in order of declaration, then dispatches in the order they were made. Merging,
/// reporting and storing tasks use this order, never the order of completion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier {
    pub(in crate::engine) pulled: Vec<u32>,
    pub(in crate::engine) dispatched: Vec<Dispatched>,
    /// Deferred nodes that were reached: they wait until nothing else can run.
    pub(in crate::engine) deferred: Vec<u32>,
}

/// A planned dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatched {
    pub(crate) node: u32,
    /// The node that dispatched it.
    pub(crate) from: u32,
    /// Its index among all dispatches of the frontier, so that (from, index) is unique.
    pub(crate) index: u32,
    pub(crate) input: InputValue,
}

impl Frontier {
    /// Whether nothing runs next.
    pub(super) fn is_empty(&self) -> bool {
        self.pulled.is_empty() && self.dispatched.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.pulled.len() + self.dispatched.len()
    }

    /// The nodes that edges led to, and the dispatches.
    #[inline]
    pub(super) fn parts(&self) -> (&[u32], &[Dispatched]) {
        (&self.pulled, &self.dispatched)
    }

    /// The dispatch at `index`, if that task is one.
    #[inline]
    fn dispatch_at(&self, index: usize) -> Option<&Dispatched> {
        self.dispatched.get(index.checked_sub(self.pulled.len())?)
    }

    /// Removes all tasks; deferred nodes stay.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.pulled.clear();
        self.dispatched.clear();
    }

    /// The request of the task at `index` in this superstep, and its input if it is a dispatch.
    #[inline]
    pub(crate) fn request(
        &self,
        index: usize,
        step: u64,
        origin: TaskOrigin,
    ) -> (TaskRequest, Option<&InputValue>) {
        let (node, input) = self.task(index);
        let origin = match self.dispatch_at(index) {
            None => origin,
            Some(dispatch) => origin.led_by(dispatch.from, dispatch.index),
        };
        (TaskRequest { step, node, index: index as u32, attempt: 1, handles: false, origin }, input)
    }

    /// The node of the task at `index`, and its input if it is a dispatch.
    #[inline]
    pub(crate) fn task(&self, index: usize) -> (u32, Option<&InputValue>) {
        match self.pulled.get(index) {
            Some(node) => (*node, None),
            None => {
                let dispatch = &self.dispatched[index - self.pulled.len()];
                (dispatch.node, Some(&dispatch.input))
            }
        }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.pulled.iter().copied().chain(self.dispatched.iter().map(|dispatch| dispatch.node))
    }

    /// Adds a dispatch from a record.
    pub(crate) fn add_dispatch(&mut self, dispatch: Dispatched) {
        self.dispatched.push(dispatch);
    }

    pub(crate) fn pull(&mut self, node: u32) {
        self.pulled.push(node);
    }

    pub(super) fn dispatch(&mut self, node: u32, from: u32, input: InputValue) {
        let index = self.dispatched.len() as u32;
        self.dispatched.push(Dispatched { node, from, index, input });
    }

    /// Puts the pulled nodes in task order, each once.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.pulled.len() > 1 {
            self.pulled.sort_unstable();
            self.pulled.dedup();
        }
    }

    /// Removes the nodes that no longer exist.
    pub(super) fn cancel(&mut self, is_gone: impl Fn(u32) -> bool) {
        self.pulled.retain(|node| !is_gone(*node));
        self.dispatched.retain(|dispatch| !is_gone(dispatch.node));
        self.deferred.retain(|node| !is_gone(*node));
    }

    /// Moves the deferred nodes out of the pulled ones.
    pub(super) fn put_off(&mut self, is_deferred: impl Fn(u32) -> bool) {
        self.deferred.extend(self.pulled.extract_if(.., |node| is_deferred(*node)));
        self.deferred.sort_unstable();
        self.deferred.dedup();
    }
}
