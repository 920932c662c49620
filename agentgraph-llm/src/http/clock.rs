//! Time and randomness for retries, as a trait so that tests can replace them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

/// Time and randomness for retries.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The current time, to which the date of a `Retry-After` is compared.
    fn now(&self) -> SystemTime;

    /// A random number from 0 to 1: the share of the jitter.
    fn jitter(&self) -> f64;

    /// Sleeps.
    async fn sleep(&self, wait: Duration);
}

/// The system's clock and randomness, and tokio's timer.
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

#[async_trait]
impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> SystemTime {
        (**self).now()
    }

    fn jitter(&self) -> f64 {
        (**self).jitter()
    }

    async fn sleep(&self, wait: Duration) {
        (**self).sleep(wait).await;
    }
}
