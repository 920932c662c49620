//! The boundary between two supersteps: reasons to end the call there, and reporting static interrupts.

use crate::engine::{Loop, Pause};
use crate::error::Error;
use crate::words::{Interrupt, InterruptKind, StoredStop};

impl Loop {
    /// The reason to end the call between two supersteps. Static interrupts come before the limit and the
    /// token: the next call passes them, so they have to be reported.
    #[inline]
    pub(super) fn boundary(&mut self) -> Option<Pause> {
        if self.position.frontier.is_empty() {
            return Some(Pause::Finished);
        }
        if self.position.graph.rules.breaks.is_some()
            && let Some(pause) = self.break_before()
        {
            return Some(pause);
        }
        if self.runtime.shared.outer.is_some() {
            return self.boundary_inside();
        }
        if let Some(reason) = self.listeners.halt.as_mut().and_then(|halt| halt.at_boundary()) {
            return Some(Pause::Stopped(reason));
        }
        self.used_up().map(Pause::Stopped)
    }

    pub(super) fn break_before(&mut self) -> Option<Pause> {
        let past = std::mem::take(&mut self.inheritance.past_breaks);
        let breaks = self.position.graph.rules.breaks.as_ref().filter(|_| !past)?;
        let stops =
            self.position.frontier.nodes().filter(|node| breaks.before.get(*node as usize) == Some(&true));
        self.static_interrupts(stops, InterruptKind::Before)
    }

    /// `ended` are the nodes of the merged superstep; the frontier is the next one.
    pub(super) fn break_after(&self, ended: &[u32]) -> Option<Pause> {
        let breaks = self.position.graph.rules.breaks.as_ref()?;
        let stops = ended.iter().copied().filter(|node| breaks.after.get(*node as usize) == Some(&true));
        if self.position.frontier.is_empty() {
            return None;
        }
        self.static_interrupts(stops, InterruptKind::After)
    }

    fn static_interrupts(&self, nodes: impl Iterator<Item = u32>, kind: InterruptKind) -> Option<Pause> {
        let mut interrupts: Vec<Interrupt> = Vec::new();
        for node in nodes {
            let name = self.position.graph.name(node);
            if interrupts.iter().all(|told| told.node != name) {
                interrupts.push(Interrupt::fixed(name.to_owned(), kind));
            }
        }
        (!interrupts.is_empty()).then_some(Pause::Interrupted(interrupts))
    }

    /// Stores that a static interrupt is reported to the caller, so that the next call continues past it.
    /// This is not stored earlier, since a caller that was dropped before has not seen the interrupt.
    pub(super) async fn note_stops_reported(&mut self, stops: &[Interrupt]) -> Result<(), Error> {
        self.end_waiting().await?;
        self.store_reported(StoredStop::of_own_graph(stops)).await
    }
}
