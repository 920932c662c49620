//! [`Starts`]: announces the new runs of a thread to the readers of that thread only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::broadcast;

use super::{LiveRun, lock};

/// How many new runs a reader of a thread may be behind. One that is further behind looks them up.
pub(crate) const BEHIND: usize = 64;

/// The threads that are being followed.
#[derive(Default)]
pub(crate) struct Starts {
    threads: Mutex<HashMap<String, broadcast::Sender<Arc<LiveRun>>>>,
}

impl Starts {
    /// Follows a thread: every run that it gets from now on.
    pub(crate) fn follow(&self, thread: &str) -> broadcast::Receiver<Arc<LiveRun>> {
        let mut threads = lock(&self.threads);
        if let Some(followed) = threads.get(thread) {
            return followed.subscribe();
        }
        // Only before the map grows: then each new thread costs a constant time on average.
        if threads.len() == threads.capacity() {
            threads.retain(|_, followed| followed.receiver_count() > 0);
        }
        let followed = broadcast::Sender::new(BEHIND);
        let reader = followed.subscribe();
        threads.insert(thread.to_owned(), followed);
        reader
    }

    pub(crate) fn is_followed(&self, thread: &str) -> bool {
        lock(&self.threads).get(thread).is_some_and(|followed| followed.receiver_count() > 0)
    }

    /// Tells the readers of a run's thread of it.
    pub(crate) fn tell(&self, run: &Arc<LiveRun>) {
        let mut threads = lock(&self.threads);
        if let Some(followed) = threads.get(&run.thread)
            && followed.send(Arc::clone(run)).is_err()
        {
            // The last reader has gone.
            threads.remove(&run.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast::error::TryRecvError;

    use super::*;

    fn run_of(thread: &str) -> Arc<LiveRun> {
        LiveRun::new("run", thread, None, None)
    }

    #[test]
    fn a_start_wakes_only_the_readers_of_its_thread() {
        let starts = Starts::default();
        let (mut one, mut two, mut other) = (starts.follow("a"), starts.follow("a"), starts.follow("b"));
        starts.tell(&run_of("a"));
        assert_eq!(one.try_recv().unwrap().thread, "a");
        assert_eq!(two.try_recv().unwrap().thread, "a");
        assert!(matches!(other.try_recv(), Err(TryRecvError::Empty)));
    }

    #[test]
    fn threads_without_readers_are_forgotten() {
        let starts = Starts::default();
        drop(starts.follow("a"));
        assert!(!starts.is_followed("a"));
        starts.tell(&run_of("a"));
        assert!(lock(&starts.threads).is_empty());
        let kept = starts.follow("kept");
        (0..1000).for_each(|n| drop(starts.follow(&n.to_string())));
        assert!(starts.is_followed("kept"));
        assert!(lock(&starts.threads).len() < 64);
        drop(kept);
    }

    #[test]
    fn no_start_is_lost_to_a_reader_that_came_before_it() {
        let starts = Starts::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // Others come and go meanwhile, so that the thread is forgotten and followed again.
                scope.spawn(|| (0..1000).for_each(|_| drop(starts.follow("a"))));
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let mut reader = starts.follow("a");
                        starts.tell(&run_of("a"));
                        assert!(!matches!(
                            reader.try_recv(),
                            Err(TryRecvError::Empty | TryRecvError::Closed)
                        ));
                    }
                });
            }
        });
    }
}
