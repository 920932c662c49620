//! [`Setup`]: the clock and the embedder that the clauses control.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::services::{Services, from_micros};
use crate::store::embedder::{Embedder, VectorIndex};

/// What a store under test is made with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The clock of the store.
    pub clock: Clock,
    /// The index of the store: whole values, compared by [`Letters`].
    pub index: VectorIndex,
}

impl Setup {
    /// A clock that begins in the year 2026, and an index.
    pub fn new() -> Self {
        Setup { clock: Clock::new(), index: VectorIndex::new(Letters) }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock that stands still until it is moved.
///
/// ```
/// use agentgraph_checkpoint::{Services, store::conformance::Clock};
/// use std::time::Duration;
///
/// let clock = Clock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now(), before + Duration::from_secs(5));
/// ```
#[derive(Clone, Debug)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// A clock that begins in the year 2026.
    pub fn new() -> Self {
        Clock(Arc::new(AtomicU64::new(1_767_225_600_000_000)))
    }

    /// Moves it on. Its copies move too.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Services for Clock {
    fn now(&self) -> SystemTime {
        from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Moves the clock on.
    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }

    fn random(&self) -> u64 {
        4
    }
}

/// Counts the letters from `a` to `d`. A text with `!` cannot be embedded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Letters;

#[async_trait]
impl Embedder for Letters {
    fn dimensions(&self) -> usize {
        4
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        if texts.iter().any(|text| text.contains('!')) {
            return Err("a text has a `!`".into());
        }
        let count = |text: &str, letter: char| text.chars().filter(|one| *one == letter).count() as f32;
        let vector = |text: &String| ['a', 'b', 'c', 'd'].map(|letter| count(text, letter)).to_vec();
        Ok(texts.iter().map(vector).collect())
    }
}
