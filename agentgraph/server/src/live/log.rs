//! [`ThreadLog`]: the newest events of a thread, for the readers that follow it. The whole log is in the
//! records, which it does not know: a reader that is further behind gets nothing here.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{OnceCell, watch};

use super::lock;

/// An event of a thread.
#[derive(Debug)]
pub(crate) struct LoggedEvent {
    /// The first event of a thread has 1.
    pub(crate) seq: u64,
    /// Its method, with the name of a custom event: `values`, `input.requested`, `custom`, `custom:name`, ..
    pub(crate) channel: String,
    /// The subgraph, level by level; empty for the graph of the thread.
    pub(crate) namespace: Vec<String>,
    /// The event as clients get it: one line of JSON.
    pub(crate) text: String,
}

/// How many bytes of events a thread that is followed keeps in memory. The newest event always stays.
const RECENT_BYTES: usize = 1024 * 1024;

/// The log of one thread, in the memory of its writers and its readers.
pub(crate) struct ThreadLog {
    pub(crate) thread: String,
    /// Held from the choice of a number to the write of the records: the line of a thread writes, and who
    /// ends a run that waits in it.
    pub(crate) writing: tokio::sync::Mutex<()>,
    recent: Mutex<Recent>,
    last: watch::Sender<u64>,
    is_loaded: OnceCell<()>,
    /// No event is older than this, in milliseconds since 1970: clients leave out what is older than the
    /// state that they have, and another replica with another clock may have made that.
    floor: AtomicI64,
}

#[derive(Default)]
struct Recent {
    events: VecDeque<Arc<LoggedEvent>>,
    bytes: usize,
}

impl ThreadLog {
    pub(super) fn new(thread: &str) -> Arc<Self> {
        Arc::new(ThreadLog {
            thread: thread.to_owned(),
            writing: tokio::sync::Mutex::default(),
            recent: Mutex::default(),
            last: watch::Sender::new(0),
            is_loaded: OnceCell::new(),
            floor: AtomicI64::new(0),
        })
    }

    /// Begins after the last number of the records, which is asked for once.
    pub(crate) async fn load<E>(&self, last: impl Future<Output = Result<Option<u64>, E>>) -> Result<(), E> {
        let load = async || {
            self.last.send_replace(last.await?.unwrap_or(0));
            Ok(())
        };
        self.is_loaded.get_or_try_init(load).await.map(drop)
    }

    /// The number of the last event; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Learns of events that another replica has added. Those here are not the newest any more.
    pub(crate) fn catch_up(&self, last: u64) {
        if last > self.last() {
            self.clear();
            self.last.send_modify(|known| *known = last.max(*known));
        }
    }

    pub(crate) fn not_before(&self, time: i64) {
        self.floor.fetch_max(time, Ordering::Relaxed);
    }

    /// The time of an event that happens now, in milliseconds since 1970.
    pub(crate) fn time(&self, now: i64) -> i64 {
        now.max(self.floor.load(Ordering::Relaxed))
    }

    /// Shows events that the records have.
    pub(crate) fn add(&self, events: Vec<LoggedEvent>) {
        let Some(last) = events.last().map(|event| event.seq) else { return };
        let mut recent = lock(&self.recent);
        for event in events {
            recent.bytes += event.text.len();
            recent.events.push_back(Arc::new(event));
        }
        while recent.bytes > RECENT_BYTES
            && recent.events.len() > 1
            && let Some(oldest) = recent.events.pop_front()
        {
            recent.bytes -= oldest.text.len();
        }
        drop(recent);
        self.last.send_replace(last);
    }

    /// Forgets the events of a thread that was removed. A new thread of this id goes on with the numbers, so
    /// that its readers miss nothing.
    pub(crate) fn clear(&self) {
        *lock(&self.recent) = Recent::default();
    }

    /// Waits for an event after a number.
    pub(crate) async fn until_after(&self, seq: u64) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = self.last.subscribe().wait_for(|last| *last > seq).await;
    }

    /// The events after a number. `None` if not all of them are here.
    pub(crate) fn after(&self, seq: u64) -> Option<Vec<Arc<LoggedEvent>>> {
        let recent = lock(&self.recent);
        if recent.events.front()?.seq > seq.saturating_add(1) {
            return None;
        }
        Some(recent.events.iter().filter(|event| event.seq > seq).cloned().collect())
    }
}
