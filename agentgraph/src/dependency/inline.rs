//! A pass without awaits, listeners and store: a plain loop.
//!
//! It does the same as the general loop with one node at a time. A property test checks this.

use super::base::Base;
use super::deps::{Deps, Slot};
use super::outputs::Outputs;
use super::ready::ReadySet;
use super::wiring::Wiring;
use crate::attempt::guarded;
use crate::dependency::outputs::{Output, PassInput};
use crate::error::BoxError;
use crate::panic::NodePanic;

/// The place of a node that is not in the queue.
const NOWHERE: u32 = u32::MAX;

/// The progress of a node.
#[derive(Clone, Copy)]
struct InlineNode {
    /// The number of dependencies that it waits for.
    waits: u32,
    place: u32,
}

/// Runs a pass over outputs whose nodes need nothing but outputs.
///
/// # Errors
/// The node that failed, and its error.
pub(crate) fn run<O: Output, S: PassInput>(
    wiring: &Wiring<O, S>,
    outputs: &mut Outputs<O, S>,
) -> Result<(), (u32, BoxError)> {
    let base = &*wiring.base;
    let turn = |node| InlineNode {
        waits: (base.sources.row(node).len() + base.before.row(node).len()) as u32,
        place: NOWHERE,
    };
    let mut turns: Vec<InlineNode> = (0..base.nodes).map(turn).collect();
    let mut queue = Queue { nodes: Vec::with_capacity(turns.len()), ready: ReadySet::default() };
    for node in base.roots() {
        queue.enter(node, &mut turns[node as usize]);
    }
    outputs.order.reserve(turns.len());
    while let Some(node) = queue.next() {
        let output = call(wiring, outputs, node).map_err(|error| (node, error))?;
        outputs.slots[node as usize] = Slot::Own(output);
        outputs.finish(node);
        advance(base, node, &mut turns, &mut queue);
    }
    Ok(())
}

#[inline]
fn call<O: Output, S: PassInput>(
    wiring: &Wiring<O, S>,
    outputs: &Outputs<O, S>,
    node: u32,
) -> Result<O, BoxError> {
    let sources = wiring.base.sources.row(node);
    let deps = Deps::borrowed(outputs.all_names(), &outputs.slots, sources);
    let called: Result<_, NodePanic> = guarded(|_| wiring.nodes[node as usize].call.call_now(deps, None));
    called.unwrap_or_else(|panicked| Err(panicked.into()))
}

#[inline]
fn advance(base: &Base, node: u32, turns: &mut [InlineNode], queue: &mut Queue) {
    for target in base.targets.row(node) {
        let turn = &mut turns[*target as usize];
        turn.waits -= 1;
        queue.enter(*target, turn);
    }
    for target in base.after.row(node) {
        let turn = &mut turns[*target as usize];
        turn.waits -= 1;
        if turn.waits == 0 && turn.place != NOWHERE {
            queue.ready.insert(turn.place);
        }
    }
}

struct Queue {
    nodes: Vec<u32>,
    ready: ReadySet,
}

impl Queue {
    /// Assigns the node its place if it has none, and lets it run if it waits for nothing.
    #[inline]
    fn enter(&mut self, node: u32, turn: &mut InlineNode) {
        if turn.place == NOWHERE {
            turn.place = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        if turn.waits == 0 {
            self.ready.insert(turn.place);
        }
    }

    #[inline]
    fn next(&mut self) -> Option<u32> {
        Some(self.nodes[self.ready.pop()? as usize])
    }
}
