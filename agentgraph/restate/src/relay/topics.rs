//! [`Topics`]: the topics of all threads, each until it has been idle for five minutes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::topic::Topic;

/// How long a topic without readers is kept after its last event.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Topics are looked through for old ones when so many were asked for since the last time.
const BETWEEN_LOOKS: usize = 256;

pub(super) struct Topics {
    events_kept: usize,
    now: fn() -> Instant,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    topics: HashMap<(String, String), (Arc<Topic>, Instant)>,
    asked: usize,
}

impl Topics {
    pub(super) fn new(events_kept: usize, now: fn() -> Instant) -> Self {
        Topics { events_kept, now, known: Mutex::default() }
    }

    /// The topic of a thread.
    pub(super) fn of(&self, graph: &str, thread: &str) -> Arc<Topic> {
        let now = (self.now)();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked += 1;
        if known.asked >= BETWEEN_LOOKS {
            known.asked = 0;
            known.topics.retain(|_, (topic, heard)| {
                Arc::strong_count(topic) > 1 || now.duration_since(*heard) < KEPT
            });
        }
        let key = (graph.to_owned(), thread.to_owned());
        let (topic, heard) =
            known.topics.entry(key).or_insert_with(|| (Arc::new(Topic::new(self.events_kept)), now));
        *heard = now;
        Arc::clone(topic)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    }

    fn now() -> Instant {
        NOW.get().unwrap_or_else(Instant::now)
    }

    #[test]
    fn topics_are_forgotten_unless_they_have_readers() {
        let begun = Instant::now();
        NOW.set(Some(begun));
        let topics = Topics::new(10, now);
        let read = topics.of("g", "read");
        topics.of("g", "idle");
        NOW.set(Some(begun + KEPT));
        (0..BETWEEN_LOOKS).for_each(|_| drop(topics.of("g", "busy")));
        let known = topics.known.lock().map(|known| known.topics.len()).unwrap_or_default();
        assert_eq!(known, 2);
        assert!(Arc::ptr_eq(&read, &topics.of("g", "read")));
    }
}
