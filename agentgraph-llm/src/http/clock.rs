//! Time and chance for retries, given in so that tests need neither.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

/// Time and chance for retries.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time of day, against which a `Retry-After` date is read.
    fn now(&self) -> SystemTime;

    /// A number from 0 to 1: how much of the jitter to take.
    fn jitter(&self) -> f64;

    /// Waits.
    async fn sleep(&self, wait: Duration);
}

/// The system's clock, tokio's timer, and chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn jitter(&self) -> f64 {
        let bits = RandomState::new().build_hasher().finish() >> 11;
        bits as f64 / (1_u64 << 53) as f64
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}
