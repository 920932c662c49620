//! The tokens of an answer.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// The tokens used by a response, in the same sense for every provider: the totals include their parts.
///
/// ```
/// use agentgraph_llm::Usage;
///
/// let total = Usage::new(100, 20) + Usage::new(50, 5);
/// assert_eq!((total.input_total, total.output_total, total.total()), (150, 25, 175));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens, including cached ones.
    pub input_total: u64,
    /// The part of the input that was read from a cache.
    pub input_cached_read: u64,
    /// The part of the input that was written to a cache.
    pub input_cache_write: u64,
    /// All output tokens, including thinking.
    pub output_total: u64,
    /// The part of the output that is thinking.
    pub output_reasoning: u64,
}

impl Usage {
    /// Input and output tokens, without cache and thinking.
    pub fn new(input_total: u64, output_total: u64) -> Self {
        Usage { input_total, output_total, ..Usage::default() }
    }

    /// The sum of input and output.
    pub fn total(&self) -> u64 {
        self.input_total.saturating_add(self.output_total)
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            input_total: self.input_total.saturating_add(other.input_total),
            input_cached_read: self.input_cached_read.saturating_add(other.input_cached_read),
            input_cache_write: self.input_cache_write.saturating_add(other.input_cache_write),
            output_total: self.output_total.saturating_add(other.output_total),
            output_reasoning: self.output_reasoning.saturating_add(other.output_reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(usages: I) -> Usage {
        usages.fold(Usage::default(), Add::add)
    }
}
