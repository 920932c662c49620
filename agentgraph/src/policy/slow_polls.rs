//! [`SlowPolls`]: detects nodes that block the thread of their run.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::Services;

/// A longer poll counts as slow: everything else on its thread waits for it.
const SLOW: Duration = Duration::from_millis(100);

/// Polls of nodes that are timed after a slow poll of a run. A busy machine makes a poll slow, too, so a
/// graph whose nodes are fast is soon not timed any more.
const TIMED: u32 = 1000;

/// Slow polls of a graph. Nodes are timed only after a slow poll of their run, so that normally no step reads
/// a clock.
#[derive(Debug, Default)]
pub(crate) struct SlowPolls {
    /// The number of node polls still to be timed.
    timed: AtomicU32,
    named: Lock<BTreeSet<String>>,
}

impl SlowPolls {
    /// Whether the polls of nodes are timed now.
    #[inline]
    pub(crate) fn times_nodes(&self) -> bool {
        self.timed.load(Ordering::Relaxed) > 0
    }

    /// Awaits a run and times each poll of it.
    pub(crate) async fn watch_run<T>(&self, services: &dyn Services, run: impl Future<Output = T>) -> T {
        let mut run = pin!(run);
        poll_fn(|cx| {
            let begun = services.elapsed();
            let polled = run.as_mut().poll(cx);
            if services.elapsed().saturating_sub(begun) > SLOW {
                self.timed.store(TIMED, Ordering::Relaxed);
            }
            polled
        })
        .await
    }

    /// Times a poll of a node, and warns once for each slow node.
    pub(crate) fn watch_node<T>(
        &self,
        services: &dyn Services,
        name: impl FnOnce() -> String,
        poll: impl FnOnce() -> T,
    ) -> T {
        let begun = services.elapsed();
        let polled = poll();
        let took = services.elapsed().saturating_sub(begun);
        if took > SLOW {
            self.warn(name(), took);
        } else {
            // Not atomic as a whole: a lost decrement only times one more poll.
            self.timed.store(self.timed.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
        polled
    }

    fn warn(&self, node: String, took: Duration) {
        let mut named = self.named.lock();
        if named.insert(node.clone()) {
            tracing::warn!(
                target: "agentgraph",
                node,
                milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "a node blocked the thread of its run, which stalls the whole run: add `.blocking()` to the node, or `.spawned()` if it computes"
            );
        }
    }
}
