//! Services with a simulated time: `sleep` returns at once, and tests can read how long it would have
//! taken.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::Services;

/// A clock that moves only when `sleep` is called.
#[derive(Clone, Default)]
pub struct Clock(Arc<Inner>);

#[derive(Default)]
struct Inner {
    micros: AtomicU64,
    random: AtomicU64,
    slept: Mutex<Vec<Duration>>,
}

impl Clock {
    /// Returns the duration of every sleep, in order.
    pub fn slept(&self) -> Vec<Duration> {
        self.0.slept.lock().unwrap().clone()
    }

    /// Moves the clock.
    pub fn advance(&self, duration: Duration) {
        self.0.micros.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
    }

    /// Sets the number that `random` returns.
    pub fn set_random(&self, number: u64) {
        self.0.random.store(number, Ordering::SeqCst);
    }
}

#[async_trait::async_trait]
impl Services for Clock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.micros.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        self.0.slept.lock().unwrap().push(duration);
        self.0.micros.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
    }

    fn random(&self) -> u64 {
        self.0.random.load(Ordering::SeqCst)
    }
}

/// Services whose wall clock is the clock of Tokio, so that pausing it stops all time.
pub struct TokioClock(tokio::time::Instant);

impl Default for TokioClock {
    fn default() -> Self {
        TokioClock(tokio::time::Instant::now())
    }
}

#[async_trait::async_trait]
impl Services for TokioClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        7
    }
}
