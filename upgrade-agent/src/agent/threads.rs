//! The locks of threads, their state at the arrival of a message, and the questions that were delivered to
//! the caller. Knows nothing of the content of turns.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

#[derive(Default)]
pub(super) struct Threads {
    /// One lock per thread, as long as it is held or awaited.
    locks: Mutex<HashMap<String, Weak<Thread>>>,
    /// The turns whose replies were delivered to the caller and ask for a yes.
    asked: Mutex<HashMap<String, u64>>,
}

#[derive(Default)]
struct Thread {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// The number of turns that have taken the lock.
    begun: AtomicU64,
    /// The number of turns that have released the lock.
    ended: AtomicU64,
}

/// A message that waits for the lock of its thread.
pub(super) struct Arrival {
    thread: Arc<Thread>,
    free: bool,
    begun: u64,
}

/// The lock of a thread, released on drop.
pub(super) struct ThreadGuard {
    _guard: OwnedMutexGuard<()>,
    thread: Arc<Thread>,
    /// Whether another turn ran or started since the message arrived.
    pub(super) waited: bool,
}

impl Threads {
    pub(super) fn arrive(&self, thread: &str) -> Arrival {
        let thread = self.thread(thread);
        let ended = thread.ended.load(Ordering::SeqCst);
        let begun = thread.begun.load(Ordering::SeqCst);
        Arrival { thread, free: begun == ended, begun }
    }

    /// Waits until no turn runs, and prevents new ones. A message that arrives meanwhile does not count as
    /// one that waited.
    pub(super) async fn between_turns(&self, thread: &str) -> OwnedMutexGuard<()> {
        Arc::clone(&self.thread(thread).lock).lock_owned().await
    }

    /// Records that the caller gets the reply of a turn, and whether it asks for a yes.
    pub(super) fn give(&self, thread: &str, turn: u64, asks: bool) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asks {
            asked.insert(thread.to_owned(), turn);
        } else {
            asked.remove(thread);
        }
    }

    /// The turn whose question was delivered to the caller.
    pub(super) fn given(&self, thread: &str) -> Option<u64> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).get(thread).copied()
    }

    fn thread(&self, name: &str) -> Arc<Thread> {
        let mut threads = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|_, thread| thread.strong_count() > 0);
        match threads.get(name).and_then(Weak::upgrade) {
            Some(thread) => thread,
            None => {
                let thread = Arc::new(Thread::default());
                threads.insert(name.to_owned(), Arc::downgrade(&thread));
                thread
            }
        }
    }
}

impl Arrival {
    pub(super) async fn hold(self) -> ThreadGuard {
        let guard = Arc::clone(&self.thread.lock).lock_owned().await;
        let others = self.thread.begun.fetch_add(1, Ordering::SeqCst) != self.begun;
        ThreadGuard { _guard: guard, thread: self.thread, waited: others || !self.free }
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.thread.ended.fetch_add(1, Ordering::SeqCst);
    }
}
