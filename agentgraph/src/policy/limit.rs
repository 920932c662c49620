//! [`Limit`]: how many attempts of some nodes run at once, and how many begin in a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use agentgraph_checkpoint::services::Services;

/// A limit that nodes share: those of one graph, or of several in one process. Attempts beyond it wait, in
/// their order. Clones are the same limit.
///
/// An attempt waits before its timeouts begin. It keeps its place in the
/// [`max_concurrency`](crate::RunBuilder::max_concurrency) of its call meanwhile.
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
    /// At most `most` attempts at once, at least one. The name is for people.
    pub fn new(name: impl Into<Arc<str>>, most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Limit { name: name.into(), most, places: Arc::new(Semaphore::new(most)), rate: None }
    }

    /// At most `starts` attempts, at least one, begin in any span of time as long as `per`.
    #[must_use]
    pub fn rate(self, starts: usize, per: Duration) -> Self {
        let rate = Rate { starts: starts.max(1), per, next: Semaphore::new(1), begun: Mutex::default() };
        Limit { rate: Some(Arc::new(rate)), ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of attempts that run now.
    pub fn running(&self) -> usize {
        self.most - self.places.available_permits()
    }

    /// Waits until an attempt may begin. It runs until the place is dropped.
    pub(crate) async fn enter(&self, services: &dyn Services) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        let place = self.places.acquire().await.ok();
        // Last, or attempts that have waited for a place would begin together.
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
    /// Held by the attempt that begins next. An attempt that is dropped while it waits leaves nothing behind.
    next: Semaphore,
    /// The last starts, the oldest first; at most `starts` of them.
    begun: Mutex<VecDeque<Duration>>,
}

impl Rate {
    async fn wait(&self, services: &dyn Services) {
        let _next = self.next.acquire().await;
        while let Err(wait) = self.begin(services.elapsed()) {
            services.sleep(wait).await;
        }
    }

    /// Notes a start; the error is the wait until there may be one.
    fn begin(&self, now: Duration) -> Result<(), Duration> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.len() == self.starts {
            let oldest = begun.front().copied().unwrap_or_default();
            // A clock that went back does not make the wait longer than the span.
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
