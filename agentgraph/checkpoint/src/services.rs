//! The services a run takes from outside besides its tasks: time, randomness and threads.
//!
//! They know nothing of states or graphs, so one object serves a run and everything in it.

use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::id::RunId;

/// How far tokio's clock may lag behind the start of [`Services::elapsed`].
const BEFORE_BEGIN: Duration = Duration::from_secs(86_400);

/// Time, randomness and threads for runs. A test passes its own with `CompiledGraph::services`, so that every
/// run repeats exactly.
#[async_trait]
pub trait Services: Send + Sync + 'static {
    /// The wall clock; checkpoints carry it.
    fn now(&self) -> SystemTime;

    /// A monotonic clock, from an arbitrary start; time limits are measured with it, also around each poll of
    /// a run. By default that of tokio. If [`sleep`](Self::sleep) goes by another clock, return that one.
    fn elapsed(&self) -> Duration {
        static BEGIN: OnceLock<std::time::Instant> = OnceLock::new();
        let begin = *BEGIN.get_or_init(std::time::Instant::now);
        // A test may have paused tokio's clock before `begin`.
        (Instant::now() + BEFORE_BEGIN).saturating_duration_since(begin.into())
    }

    /// Waits; retry backoff and node timeouts use it.
    async fn sleep(&self, duration: Duration);

    /// Runs `work` as a task, for nodes with `.spawned()`. By default a tokio task.
    ///
    /// # Panics
    /// The default panics outside a tokio runtime.
    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }

    /// Runs `work` on a thread that may be blocked, for nodes with `.blocking()`. By default a thread of
    /// tokio's blocking pool, which has at most 512 threads unless configured otherwise.
    ///
    /// # Panics
    /// The default panics outside a tokio runtime.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        tokio::task::spawn_blocking(work);
    }

    /// A random number; backoff jitter and run ids use it.
    fn random(&self) -> u64;

    /// The id of a new run. Unless a run has to be built again from its start, leave it as it is: one random
    /// number for the process, then a count.
    fn run_id(&self) -> RunId {
        RunId::new(|| self.random())
    }
}

/// The real clock, tokio's timer and the operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemServices;

#[async_trait]
impl Services for SystemServices {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        // The standard library seeds each `RandomState` differently.
        RandomState::new().hash_one(0_u8)
    }
}

/// The microseconds since 1970, as times are stored; 0 for earlier times.
pub fn micros(time: SystemTime) -> u64 {
    let Ok(since) = time.duration_since(UNIX_EPOCH) else { return 0 };
    since.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(since.subsec_micros()))
}

/// The reverse of [`micros`]; 1970 if the system cannot represent the time.
pub fn from_micros(micros: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros)).unwrap_or(UNIX_EPOCH)
}

/// Yields once to other tasks. tokio's own `yield_now` also waits for the I/O driver.
pub fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
