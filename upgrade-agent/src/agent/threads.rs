//! Whose turn it is on a thread, and what was going on there when a message came. Knows nothing of what turns do.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// One lock a thread, as long as somebody holds or awaits it.
#[derive(Default)]
pub(super) struct Threads(Mutex<HashMap<String, Weak<Thread>>>);

#[derive(Default)]
struct Thread {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// How many turns have had the lock.
    begun: AtomicU64,
}

/// A message that has come, and waits for its turn.
pub(super) struct Arrival {
    thread: Arc<Thread>,
    free: bool,
    begun: u64,
}

/// The thread is held until this is dropped.
pub(super) struct Held {
    _guard: OwnedMutexGuard<()>,
    _thread: Arc<Thread>,
    /// Whether another turn ran or began between the arrival and now.
    pub(super) waited: bool,
}

impl Threads {
    pub(super) fn arrive(&self, thread: &str) -> Arrival {
        let thread = self.thread(thread);
        let free = thread.lock.try_lock().is_ok();
        let begun = thread.begun.load(Ordering::SeqCst);
        Arrival { thread, free, begun }
    }

    fn thread(&self, name: &str) -> Arc<Thread> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(super) async fn hold(self) -> Held {
        let guard = Arc::clone(&self.thread.lock).lock_owned().await;
        let others = self.thread.begun.fetch_add(1, Ordering::SeqCst) != self.begun;
        Held { _guard: guard, _thread: self.thread, waited: others || !self.free }
    }
}
