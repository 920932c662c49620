//! [`Turns`]: which of several tasks goes on next, drawn from a seed.

use agentgraph_checkpoint::engine::Lock;
use std::task::Waker;

/// Lets one task at a time be polled.
pub(super) struct Turns(Lock<Queue>);

struct Queue {
    random: u64,
    waiting: Vec<(usize, Waker)>,
    /// The call whose turn it is.
    called: Option<usize>,
    taken: Vec<usize>,
}

impl Turns {
    pub(super) fn new(seed: u64) -> Self {
        Turns(Lock::new(Queue { random: seed, waiting: Vec::new(), called: None, taken: Vec::new() }))
    }

    /// Whether it is the turn of this call. If not, it is woken when it is.
    pub(super) fn take(&self, call: usize, waker: &Waker) -> bool {
        let mut queue = self.0.lock();
        if queue.called == Some(call) {
            queue.called = None;
            queue.taken.push(call);
            return true;
        }
        queue.waiting.retain(|(waiting, _)| *waiting != call);
        queue.waiting.push((call, waker.clone()));
        false
    }

    /// Draws the next call among those that wait. Returns false if none does.
    pub(super) fn next(&self) -> bool {
        let mut queue = self.0.lock();
        queue.called = None;
        if queue.waiting.is_empty() {
            return false;
        }
        let drawn = (queue.draw() % queue.waiting.len() as u64) as usize;
        // The order in which tasks came must not matter, only their numbers and the seed.
        queue.waiting.sort_by_key(|(call, _)| *call);
        let (call, waker) = queue.waiting.remove(drawn);
        queue.called = Some(call);
        drop(queue);
        waker.wake();
        true
    }

    /// A call has ended, or was dropped.
    pub(super) fn forget(&self, call: usize) {
        let mut queue = self.0.lock();
        queue.waiting.retain(|(waiting, _)| *waiting != call);
        if queue.called == Some(call) {
            queue.called = None;
        }
    }

    /// The calls whose turns there were, in order.
    pub(super) fn taken(&self) -> Vec<usize> {
        self.0.lock().taken.clone()
    }
}

impl Queue {
    /// SplitMix64: one addition and a mix, and every seed gives another sequence.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
