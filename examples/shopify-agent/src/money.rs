//! Amounts of money: whole hundredths, read from and written as decimal text. No float is involved.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount in hundredths of the shop's currency.
///
/// ```
/// use shopify_agent::money::Money;
///
/// let price: Money = "1.25".parse()?;
/// assert_eq!(price.times(6).map(|total| total.to_string()).as_deref(), Some("7.50"));
/// assert!("1.255".parse::<Money>().is_err());
/// # Ok::<(), shopify_agent::money::NotMoney>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

/// A text that is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount of money: a decimal number with at most two decimals is expected")]
pub struct NotMoney(String);

impl Money {
    /// An amount of hundredths.
    pub const fn from_hundredths(hundredths: i64) -> Self {
        Money(hundredths)
    }

    /// The amount for several pieces; `None` if it is too large to count.
    pub fn times(self, pieces: u32) -> Option<Money> {
        self.0.checked_mul(pieces.into()).map(Money)
    }

    /// The sum; `None` if it is too large to count.
    pub fn plus(self, other: Money) -> Option<Money> {
        self.0.checked_add(other.0).map(Money)
    }
}

impl FromStr for Money {
    type Err = NotMoney;

    /// Reads `12`, `12.5` or `12.50`; further decimals must be zeros, which Shopify sends for some
    /// currencies.
    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let read = || {
            let (sign, digits) = match text.strip_prefix('-') {
                Some(rest) => (-1, rest),
                None => (1, text),
            };
            let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
            let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let (cents, beyond) = decimals.split_at(decimals.len().min(2));
            if whole.is_empty() || !is_number(whole) || !is_number(cents) || beyond.bytes().any(|b| b != b'0')
            {
                return None;
            }
            let cents: i64 = format!("{cents:0<2}").parse().ok()?;
            let whole = whole.parse::<i64>().ok()?.checked_mul(100)?;
            Some(Money(sign * whole.checked_add(cents)?))
        };
        read().ok_or_else(|| NotMoney(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(out, "{sign}{}.{:02}", self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Money {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^-?\d+\.\d{2}$" })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_exactly_or_refused() {
        for (text, hundredths) in
            [("0", 0), ("12", 1200), ("12.5", 1250), ("0.07", 7), ("-3.10", -310), ("1.2500", 125)]
        {
            assert_eq!(text.parse::<Money>().unwrap(), Money(hundredths), "{text}");
        }
        for text in
            ["", ".5", "1.255", "1e3", "1,50", "NaN", "99999999999999999999", "--1", "1.-5", "$1", "1.é"]
        {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    #[test]
    fn sums_that_cannot_be_counted_are_none() {
        assert_eq!(Money(i64::MAX).times(2), None);
        assert_eq!(Money(i64::MAX).plus(Money(1)), None);
    }

    proptest! {
        #[test]
        fn an_amount_survives_its_text(hundredths in -1_000_000_000_000i64..1_000_000_000_000) {
            let money = Money(hundredths);
            prop_assert_eq!(money.to_string().parse::<Money>().unwrap(), money);
        }
    }
}
