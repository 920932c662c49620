//! Driving a future whose clock, order and end are the test's.

use agentgraph_checkpoint::engine::Lock;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Turns that the runtime gets for other work before time moves. Tokio looks for finished IO every 61 turns.
const TURNS: u32 = 128;

/// What to do with a future that is pending and was not woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Something inside it was woken.
    Continue,
    /// It waits for something outside, which will wake it.
    Wait,
}

/// Whether the future was woken; wakes the task around it as well.
struct Bell {
    rung: AtomicBool,
    outer: Lock<Option<Waker>>,
}

impl Bell {
    fn waker(outer: &Waker) -> (Arc<Self>, Waker) {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), outer: Lock::new(Some(outer.clone())) });
        (Arc::clone(&bell), Waker::from(bell))
    }

    fn lead_to(&self, outer: &Waker) {
        let mut known = self.outer.lock();
        if known.as_ref().is_none_or(|known| !known.will_wake(outer)) {
            *known = Some(outer.clone());
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let outer = self.outer.lock().clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

/// Polls `future` to its end, or until `is_killed` after a poll; then `None`. While it is pending and was not
/// woken, `idle` may go on inside. Its argument is true once the runtime had its turns.
pub(super) async fn drive<F: Future>(
    mut future: Pin<&mut F>,
    is_killed: impl Fn() -> bool,
    idle: impl Fn(bool) -> Idle,
) -> Option<F::Output> {
    let mut bell: Option<(Arc<Bell>, Waker)> = None;
    let mut turns = 0;
    let mut polls = 0_u32;
    poll_fn(move |cx| {
        let (bell, waker) = bell.get_or_insert_with(|| Bell::waker(cx.waker()));
        bell.lead_to(cx.waker());
        loop {
            if bell.rung.swap(false, Ordering::AcqRel) {
                turns = 0;
                polls = polls.wrapping_add(1);
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                    return Poll::Ready(Some(output));
                }
                if is_killed() {
                    return Poll::Ready(None);
                }
                if bell.rung.load(Ordering::Acquire) {
                    // A future that wakes itself for ever must not starve the tasks beside it.
                    if polls.is_multiple_of(TURNS) {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    continue;
                }
            }
            let rested = turns >= TURNS;
            match idle(rested) {
                // Nothing is woken if the wait that ended is no part of this future.
                Idle::Continue if bell.rung.load(Ordering::Acquire) => {}
                Idle::Wait if rested => return Poll::Pending,
                Idle::Continue | Idle::Wait => {
                    turns += 1;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}
