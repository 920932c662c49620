//! [`Exclusive`]: what one may use at a time, for work that awaits nothing.
//!
//! A fair lock is handed to whoever waits first. A future that nobody polls for long, such as that of a run
//! whose stream is not read, would have it then, and all others would wait for him. This one is taken by
//! whoever is there, so that who waits has nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Debug)]
pub(super) struct Exclusive<T> {
    inside: Mutex<T>,
    /// Rings whenever somebody is done.
    left: Notify,
    waiting: AtomicUsize,
}

impl<T> Exclusive<T> {
    pub(super) fn new(inside: T) -> Self {
        Exclusive { inside: Mutex::new(inside), left: Notify::new(), waiting: AtomicUsize::new(0) }
    }

    /// Works on it when nobody else does.
    pub(super) async fn with<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        let mut work = Some(work);
        let mut waits = None;
        loop {
            // Before the attempt: who leaves after it is heard.
            let mut left = pin!(self.left());
            left.as_mut().enable();
            if let Some(done) = self.try_once(&mut work) {
                return done;
            }
            waits.get_or_insert_with(|| Waits::new(&self.waiting));
            left.await;
        }
    }

    /// Works on it, unless somebody does.
    pub(super) fn try_with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        self.try_once(&mut Some(work))
    }

    /// Works on it, unless somebody does or waits for it.
    pub(super) fn try_before_others<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        match self.waiting.load(Ordering::Relaxed) {
            0 => self.try_with(work),
            _ => None,
        }
    }

    /// Until somebody is done, from now on.
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

/// One who waits, also if he is dropped.
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
