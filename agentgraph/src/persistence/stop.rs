//! [`StopRequest`]: a request from outside that a run stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use futures_util::task::AtomicWaker;

/// Whether a run was asked to stop. A run that has a lease looks at it between two supersteps and whenever it
/// waits; that costs one load.
#[derive(Default)]
pub(crate) struct StopRequest {
    asked: AtomicBool,
    waker: AtomicWaker,
}

impl StopRequest {
    /// Asks the run to stop, and wakes it if it waits.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.waker.wake();
    }

    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// [`is_asked`](Self::is_asked) of a run that waits: a later request wakes it.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> bool {
        if self.is_asked() {
            return true;
        }
        self.waker.register(cx.waker());
        self.is_asked()
    }
}
