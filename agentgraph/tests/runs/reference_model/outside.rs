//! The world outside the state: the clock and the effects of nodes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::Services;

#[derive(Clone, Default)]
pub struct Outside {
    /// The number of the current act.
    round: Arc<AtomicU64>,
    clock: Arc<AtomicU64>,
    /// Every completed execution of a task, by its key.
    effects: Arc<Mutex<Vec<String>>>,
    /// Called with the key of each task that begins or completes; panics if the task must not run.
    #[allow(clippy::type_complexity)]
    check: Option<Arc<dyn Fn(&str) + Send + Sync>>,
}

impl Outside {
    /// Calls `check` with the key of each task that begins or completes.
    pub fn checked(check: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Outside { check: Some(Arc::new(check)), ..Outside::default() }
    }

    pub fn begin(&self, round: u64, now: u64) {
        self.round.store(round, Ordering::SeqCst);
        self.set_clock(now);
    }

    pub fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }

    pub fn set_clock(&self, now: u64) {
        self.clock.store(now, Ordering::SeqCst);
    }

    pub fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    pub fn touch(&self, key: &str) {
        if let Some(check) = &self.check {
            check(key);
        }
    }

    pub fn complete(&self, key: String) {
        self.touch(&key);
        self.effects.lock().unwrap().push(key);
    }
}

/// Tasks set the clock, and sleeping takes no time.
#[async_trait::async_trait]
impl Services for Outside {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.clock.load(Ordering::SeqCst))
    }

    async fn sleep(&self, _: Duration) {}

    fn random(&self) -> u64 {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        COUNT.fetch_add(1, Ordering::SeqCst)
    }
}
