//! Futures that are pending for a number of polls, and futures that are polled a number of times.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Is pending for `polls` polls, and wakes itself each time.
pub async fn pending_for(polls: u32) {
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls a future at most `polls` times, and drops it if it is not done by then.
pub async fn at_most<F: Future + Unpin>(mut future: F, polls: u32) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        let polled = Pin::new(&mut future).poll(cx).map(Some);
        if left == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        // Wakes itself, so that the polls go on even if the future is never woken.
        cx.waker().wake_by_ref();
        polled
    })
    .await
}

/// Polls once, with a waker that does nothing.
pub fn poll_once<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
