//! [`Exclusive`]: a lock for work without awaits.
//!
//! A fair lock is handed to the first waiter. If that future is not polled for long, such as the one of a
//! run whose stream is not read, it would hold the lock and all others would wait. This lock is taken by
//! the first call that runs, so a waiting call holds nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Debug)]
pub(crate) struct Exclusive<T> {
    inside: Mutex<T>,
    /// Notified whenever a call is done.
    left: Notify,
    waiting: AtomicUsize,
}

impl<T> Exclusive<T> {
    pub(crate) fn new(inside: T) -> Self {
        Exclusive { inside: Mutex::new(inside), left: Notify::new(), waiting: AtomicUsize::new(0) }
    }

    /// Runs `work` when no other call does.
    pub(crate) async fn with<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        let mut work = Some(work);
        let mut waits = None;
        loop {
            // Registered before the attempt, so that a call which finishes in between is noticed.
            let mut left = pin!(self.left());
            left.as_mut().enable();
            if let Some(done) = self.try_once(&mut work) {
                return done;
            }
            waits.get_or_insert_with(|| Waits::new(&self.waiting));
            left.await;
        }
    }

    /// Runs `work`, unless another call does.
    pub(super) fn try_with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        self.try_once(&mut Some(work))
    }

    /// Runs `work`, unless another call does or waits.
    pub(super) fn try_before_others<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        match self.waiting.load(Ordering::Relaxed) {
            0 => self.try_with(work),
            _ => None,
        }
    }

    /// Resolves when the next call is done.
    pub(super) fn left(&self) -> Notified<'_> {
        self.left.notified()
    }

    fn try_once<R>(&self, work: &mut Option<impl FnOnce(&T) -> R>) -> Option<R> {
        let inside = match self.inside.try_lock() {
            Ok(inside) => inside,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let done = work.take().map(|work| work(&inside));
        drop(inside);
        self.left.notify_waiters();
        done
    }
}

/// Counts a waiting call until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Waits(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
