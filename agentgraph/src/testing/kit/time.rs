//! [`VirtualTime`]: a clock that a test moves.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;

use super::drive::{Idle, drive};
use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::Services;

/// A clock for [`services`](crate::CompiledGraph::services) that stands still until a test moves it. Waits
/// between attempts, timeouts, deadlines and sleeps of the graph then take no real time. It begins in 1970,
/// its random numbers are 1, 2, 3, .., and waits between attempts have no random part. Clones are the same
/// clock.
///
/// [`run`](VirtualTime::run) moves it whenever a future has nothing else to do. [`advance`] and
/// [`advance_to_next`] move it by hand.
///
/// A node reaches the clock by the same value, as a dependency or a capture: [`sleep`](VirtualTime::sleep)
/// waits on it. `tokio::time` does not know this clock.
///
/// ```
/// use std::time::Duration;
///
/// use agentgraph::prelude::*;
/// use agentgraph::testing::VirtualTime;
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Trip { #[reduce(append)] log: Vec<String> }
/// async fn wait(time: Dep<VirtualTime>) -> TripUpdate {
///     time.sleep(Duration::from_secs(3600)).await;
///     Trip::update().log(["on time"])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let time = VirtualTime::new();
/// let graph = StateGraph::new().node("wait", wait).edge(START, "wait").dep(time.clone()).compile()?;
/// let graph = graph.services(time.clone());
/// let outcome = time.run(graph.invoke(Trip::update())).await?;
/// assert_eq!(outcome.output().log, ["on time"]);
/// assert_eq!(time.elapsed(), Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
///
/// [`advance`]: VirtualTime::advance
/// [`advance_to_next`]: VirtualTime::advance_to_next
#[derive(Clone, Default)]
pub struct VirtualTime(Arc<Lock<Clock>>);

#[derive(Default)]
struct Clock {
    /// Since 1970.
    now: Duration,
    /// The waits under way, by their end and the order in which they began.
    timers: BTreeMap<TimerKey, Timer>,
    begun: u64,
    drawn: u64,
    ended: Vec<Duration>,
    /// How often a wait was polled before its end.
    pending_polls: u64,
}

type TimerKey = (Duration, u64);

#[derive(Default)]
struct Timer {
    fired: bool,
    waker: Option<Waker>,
}

impl VirtualTime {
    /// A new clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// The time since the clock was made.
    pub fn elapsed(&self) -> Duration {
        self.0.lock().now
    }

    /// The lengths of the waits that have ended, in the order of their ends. A timeout that did not fire is
    /// not among them.
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().ended.clone()
    }

    /// Waits for `duration` on this clock.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.timer(duration)
    }

    /// Moves the clock. Waits end in the order of their ends, those with one end in the order in which they
    /// began.
    pub fn advance(&self, duration: Duration) {
        let until = self.elapsed().saturating_add(duration);
        while self.fire_next(Some(until)) {}
        let mut clock = self.0.lock();
        clock.now = clock.now.max(until);
    }

    /// Moves the clock to the end of the next wait. Returns false if nothing waits. Of several waits with one
    /// end, each call ends one.
    pub fn advance_to_next(&self) -> bool {
        self.fire_next(None)
    }

    /// Runs a future. When it is pending and was not woken, the runtime gets 128 turns for other work; then
    /// the clock moves to the end of the next wait.
    ///
    /// A future that waits for a socket or a thread is pending as well, so its timeouts may fire before the
    /// answer is there. Keep such a future out of virtual time, or move the clock by hand.
    pub async fn run<F: IntoFuture>(&self, future: F) -> F::Output {
        let mut future = pin!(future.into_future());
        let idle = |rested| if rested && self.advance_to_next() { Idle::Continue } else { Idle::Wait };
        match drive(future.as_mut(), || false, idle).await {
            Some(output) => output,
            None => pending().await,
        }
    }

    /// Moves the clock to `until`, if that lies ahead.
    pub(super) fn advance_to(&self, until: SystemTime) {
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.advance(until.saturating_sub(self.elapsed()));
    }

    /// How often a wait was polled before its end. It grows while a node that waits on the clock is polled.
    pub(super) fn pending_polls(&self) -> u64 {
        self.0.lock().pending_polls
    }

    fn timer(&self, duration: Duration) -> Sleep {
        let mut clock = self.0.lock();
        clock.begun += 1;
        let key = (clock.now.saturating_add(duration), clock.begun);
        let fired = duration.is_zero();
        clock.timers.insert(key, Timer { fired, waker: None });
        Sleep { time: self.clone(), key, duration }
    }

    /// Ends the next wait that ends by `until`, and wakes it.
    fn fire_next(&self, until: Option<Duration>) -> bool {
        let mut clock = self.0.lock();
        let waiting = clock.timers.iter_mut().filter(|(_, timer)| !timer.fired);
        let mut due = waiting.filter(|((end, _), _)| until.is_none_or(|until| *end <= until));
        let Some((&(end, _), timer)) = due.next() else { return false };
        timer.fired = true;
        let waker = timer.waker.take();
        clock.now = clock.now.max(end);
        drop(clock);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

/// A wait on a [`VirtualTime`]. Its end is fixed when it is made.
struct Sleep {
    time: VirtualTime,
    key: TimerKey,
    duration: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.time.0.lock();
        let Some(timer) = clock.timers.get_mut(&self.key) else { return Poll::Ready(()) };
        if timer.fired {
            clock.timers.remove(&self.key);
            clock.ended.push(self.duration);
            return Poll::Ready(());
        }
        timer.waker = Some(cx.waker().clone());
        clock.pending_polls += 1;
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.time.0.lock().timers.remove(&self.key);
    }
}

impl Services for VirtualTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(self.elapsed()).unwrap_or(UNIX_EPOCH)
    }

    fn elapsed(&self) -> Duration {
        VirtualTime::elapsed(self)
    }

    fn sleep<'a, 'async_trait>(&'a self, duration: Duration) -> BoxFuture<'async_trait, ()>
    where
        'a: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.timer(duration))
    }

    fn random(&self) -> u64 {
        let mut clock = self.0.lock();
        clock.drawn += 1;
        clock.drawn
    }
}

impl fmt::Debug for VirtualTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = self.0.lock();
        out.debug_struct("VirtualTime")
            .field("elapsed", &clock.now)
            .field("waiting", &clock.timers.len())
            .finish()
    }
}
