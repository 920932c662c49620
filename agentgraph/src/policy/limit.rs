//! [`Limit`]: the maximum concurrency and start rate of nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use agentgraph_checkpoint::engine::Lock;
use agentgraph_checkpoint::services::Services;

/// A limit shared by nodes of one graph, or of several graphs in one process. Attempts beyond it wait in FIFO
/// order. Clones share the limit.
///
/// The wait is not part of the attempt's timeouts. A waiting task keeps its place in the
/// [`max_concurrency`](crate::RunBuilder::max_concurrency) of its call.
///
/// ```
/// # use agentgraph::prelude::*;
/// use std::time::Duration;
///
/// use agentgraph::policy::Limit;
///
/// # #[derive(State, Clone, Debug, Default)]
/// # struct Trip { #[reduce(append)] found: Vec<String> }
/// async fn search() -> TripUpdate {
///     Trip::update().found(["a flight"])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// // At most 4 searches at once, and 10 in any second.
/// let searches = Limit::new("search", 4).rate(10, Duration::from_secs(1));
/// let flights = StateGraph::new().node("search", search.limit(&searches)).edge(START, "search").compile()?;
/// let hotels = StateGraph::new().node("search", search.limit(&searches)).edge(START, "search").compile()?;
/// let (flights, hotels) = tokio::join!(
///     flights.invoke(Trip::update()).into_future(),
///     hotels.invoke(Trip::update()).into_future(),
/// );
/// assert_eq!(flights?.output().found, hotels?.output().found);
/// assert_eq!(searches.running(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Limit {
    name: Arc<str>,
    most: usize,
    places: Arc<Semaphore>,
    rate: Option<Arc<Rate>>,
}

impl Limit {
    /// Allows `most` attempts at once; 0 counts as 1. The name is informational.
    pub fn new(name: impl Into<Arc<str>>, most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Limit { name: name.into(), most, places: Arc::new(Semaphore::new(most)), rate: None }
    }

    /// Also limits the rate: at most `starts` attempts start within any window of length `per`. 0 counts as
    /// 1.
    #[must_use]
    pub fn rate(self, starts: usize, per: Duration) -> Self {
        let rate = Rate { starts: starts.max(1), per, next: Semaphore::new(1), begun: Lock::default() };
        Limit { rate: Some(Arc::new(rate)), ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its rate alone.
    pub(crate) fn of_rate(self) -> Self {
        Limit { places: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), ..self }
    }

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// The number of attempts that run now.
    pub fn running(&self) -> usize {
        self.most - self.places.available_permits()
    }

    /// Waits for a place, which the attempt occupies until the permit is dropped.
    pub(crate) async fn enter(&self, services: &dyn Services) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        let place = self.places.acquire().await.ok();
        // After the place: otherwise attempts that queued for a place could start in a burst.
        if let Some(rate) = &self.rate {
            rate.wait(services).await;
        }
        place
    }
}

#[derive(Debug)]
struct Rate {
    starts: usize,
    per: Duration,
    /// Held by the first waiter. A dropped waiter releases it without consuming a start.
    next: Semaphore,
    /// The most recent starts, oldest first; at most `starts` of them.
    begun: Lock<VecDeque<Duration>>,
}

impl Rate {
    async fn wait(&self, services: &dyn Services) {
        let _next = self.next.acquire().await;
        while let Err(wait) = self.begin(services.elapsed()) {
            services.sleep(wait).await;
        }
    }

    /// Records a start, or returns the time until the next one is allowed.
    fn begin(&self, now: Duration) -> Result<(), Duration> {
        let mut begun = self.begun.lock();
        if begun.len() == self.starts {
            let oldest = begun.front().copied().unwrap_or_default();
            // Even if the clock was set back, the wait is at most `per`.
            let wait = self.per.saturating_sub(now.saturating_sub(oldest));
            if !wait.is_zero() {
                return Err(wait);
            }
            begun.pop_front();
        }
        begun.push_back(now);
        Ok(())
    }
}
