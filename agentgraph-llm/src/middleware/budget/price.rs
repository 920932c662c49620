//! Prices of tokens, and the cost of a response. Pure; all money is in integers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::Bill;
use crate::error::{Code, Error, Result};
use crate::model::Usage;

/// An amount of money, exact to a millionth of the unit in which prices are given.
///
/// ```
/// use agentgraph_llm::middleware::{Money, Price};
/// use agentgraph_llm::Usage;
///
/// // In cents per million tokens: 3 $ in, 15 $ out.
/// let price = Price::new(300, 1500);
/// let cost = price.cost(&Usage::new(10_000, 2_000));
/// assert_eq!(cost, Money::units(6));          // 3 + 3 cents
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money {
    millionths: u64,
}

impl Money {
    /// Whole units, such as cents if prices are in cents.
    pub const fn units(units: u64) -> Self {
        Money { millionths: units.saturating_mul(1_000_000) }
    }

    /// Millionths of a unit.
    pub const fn millionths(millionths: u64) -> Self {
        Money { millionths }
    }

    /// The amount in millionths of a unit.
    pub const fn as_millionths(self) -> u64 {
        self.millionths
    }

    /// The amount in whole units, rounded up.
    pub const fn as_units(self) -> u64 {
        self.millionths.div_ceil(1_000_000)
    }

    /// The sum; it does not overflow.
    pub const fn plus(self, other: Money) -> Self {
        Money { millionths: self.millionths.saturating_add(other.millionths) }
    }
}

/// The price of a model: units of money for a million tokens of each sort. The unit is up to you, such as
/// cents or millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Price {
    /// Input that was not in a cache.
    pub input: u64,
    /// Output, with thinking.
    pub output: u64,
    /// Input that was read from a cache.
    pub cached_read: u64,
    /// Input that was written to a cache.
    pub cache_write: u64,
}

impl Price {
    /// A price where cached input costs as much as other input.
    pub const fn new(input: u64, output: u64) -> Self {
        Price { input, output, cached_read: input, cache_write: input }
    }

    /// Sets the prices of reading from and writing to a cache.
    pub const fn with_cache(mut self, read: u64, write: u64) -> Self {
        self.cached_read = read;
        self.cache_write = write;
        self
    }

    /// The cost of these tokens.
    pub fn cost(&self, usage: &Usage) -> Money {
        let cached = usage.input_cached_read.saturating_add(usage.input_cache_write);
        let parts = [
            (usage.input_total.saturating_sub(cached), self.input),
            (usage.input_cached_read, self.cached_read),
            (usage.input_cache_write, self.cache_write),
            (usage.output_total, self.output),
        ];
        // Units per million tokens, times tokens, are millionths of a unit.
        let cost = parts.into_iter().map(|(tokens, price)| Money::millionths(tokens.saturating_mul(price)));
        cost.fold(Money::default(), Money::plus)
    }
}

/// The prices of models by their names.
///
/// ```
/// use agentgraph_llm::middleware::{Price, PriceTable};
///
/// let prices = PriceTable::new().with("small", Price::new(25, 125)).with("large", Price::new(300, 1500));
/// assert_eq!(prices.of("small-2026-11-01").unwrap(), Price::new(25, 125));
/// assert!(prices.of("medium").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceTable {
    prices: BTreeMap<String, Price>,
}

impl PriceTable {
    /// A table without prices.
    pub fn new() -> Self {
        PriceTable::default()
    }

    /// Sets the price of a model, and of all models whose name begins with this one and a `-` or `@`, such as
    /// dated versions. The longest name counts.
    pub fn with(mut self, model: impl Into<String>, price: Price) -> Self {
        self.prices.insert(model.into(), price);
        self
    }

    /// The cost of a bill.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the table has no price for one of its models.
    pub fn cost(&self, bill: &Bill) -> Result<Money> {
        bill.iter()
            .try_fold(Money::default(), |sum, (model, usage)| Ok(sum.plus(self.of(model)?.cost(&usage))))
    }

    /// The price of a model.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the table has none: a call without a price would not count.
    pub fn of(&self, model: &str) -> Result<Price> {
        let names = |name: &str| match model.strip_prefix(name) {
            Some(rest) => rest.is_empty() || rest.starts_with(['-', '@']),
            None => false,
        };
        // In their order, a longer name comes after its own prefix.
        let found = self.prices.iter().rev().find(|(name, _)| names(name)).map(|(_, price)| *price);
        found.ok_or_else(|| {
            let message = format!("the price table has no price for the model `{model}`: add one");
            Error::new(Code::Config, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_of_a_sum_cost_as_much_as_the_sum(
            price in (0_u64..10_000, 0_u64..10_000, 0_u64..10_000, 0_u64..10_000),
            usages in prop::collection::vec((0_u64..1000, 0_u64..1000, 0_u64..1000, 0_u64..1000), 0..8),
        ) {
            let price = Price::new(price.0, price.1).with_cache(price.2, price.3);
            let usages: Vec<_> = usages
                .into_iter()
                .map(|(plain, read, write, output)| {
                    let mut usage = Usage::new(plain + read + write, output);
                    (usage.input_cached_read, usage.input_cache_write) = (read, write);
                    (usage, plain * price.input + read * price.cached_read + write * price.cache_write + output * price.output)
                })
                .collect();
            for (usage, cost) in &usages {
                prop_assert_eq!(price.cost(usage).as_millionths(), *cost);
            }
            let total: Usage = usages.iter().map(|(usage, _)| *usage).sum();
            let parts = usages.iter().map(|(usage, _)| price.cost(usage)).fold(Money::default(), Money::plus);
            prop_assert_eq!(price.cost(&total), parts);
        }
    }

    #[test]
    fn the_longest_name_counts_and_amounts_do_not_overflow() {
        let prices = PriceTable::new().with("m", Price::new(1, 1)).with("m-large", Price::new(2, 2));
        assert_eq!(prices.of("m-large-2026").unwrap().input, 2);
        assert_eq!(prices.of("m-2026").unwrap().input, 1);
        assert!(prices.of("max").is_err());
        assert_eq!(Price::new(u64::MAX, 1).cost(&Usage::new(2, 1)).as_millionths(), u64::MAX);
        assert_eq!(Money::millionths(1).as_units(), 1);
    }
}
