//! [`Sum`]: a number that writes are added to.

use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Misfit, Reducer, StoredReducer};

/// `#[reduce(sum)]`: adds each write to the value, in task order. Parallel tasks may all write.
///
/// A sum that the type cannot hold is an error of the run, [`Code::BadValue`](crate::Code::BadValue), and
/// changes nothing. Floating-point numbers follow IEEE 754: they do not overflow, and a `NaN` stays one.
/// Checkpoints store the outcome.
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Bill {
///     #[reduce(sum)]
///     cents: u32,
/// }
///
/// async fn tea() -> BillUpdate {
///     Bill::update().cents(250)
/// }
/// async fn cake() -> BillUpdate {
///     Bill::update().cents(400)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let graph = StateGraph::new()
///     .node("tea", tea)
///     .node("cake", cake)
///     .edge(START, "tea")
///     .edge(START, "cake")
///     .compile()?;
/// assert_eq!(graph.invoke(Bill::update()).finish().await?.cents, 650);
///
/// let error = graph.invoke(Bill::update().cents(u32::MAX)).await.unwrap_err();
/// assert_eq!(error.code(), agentgraph::Code::BadValue);
/// assert!(error.message().contains("`cents`"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sum;

/// A number that [`Sum`] can add. Implement it for a number of your own, such as an amount of money.
///
/// ```
/// use agentgraph::reduce::Addend;
///
/// struct Cents(u32);
///
/// impl Addend for Cents {
///     fn checked_sum(&self, more: &Self) -> Option<Self> {
///         self.0.checked_add(more.0).map(Cents)
///     }
/// }
/// assert_eq!(Cents(2).checked_sum(&Cents(3)).map(|sum| sum.0), Some(5));
/// assert!(Cents(2).checked_sum(&Cents(u32::MAX)).is_none());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be summed",
    label = "no number that `sum` adds",
    note = "`sum` adds numbers and `Duration`s; implement `agentgraph::reduce::Addend` for a number of your own, or use `with = path`"
)]
pub trait Addend: Sized {
    /// The sum; `None` if the type cannot hold it.
    fn checked_sum(&self, more: &Self) -> Option<Self>;
}

macro_rules! checked {
    ($($number:ty),*) => {
        $(impl Addend for $number {
            fn checked_sum(&self, more: &Self) -> Option<Self> {
                self.checked_add(*more)
            }
        })*
    };
}

checked!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, Duration);

macro_rules! floating {
    ($($number:ty),*) => {
        $(impl Addend for $number {
            fn checked_sum(&self, more: &Self) -> Option<Self> {
                Some(self + more)
            }
        })*
    };
}

floating!(f32, f64);

/// The writes of one update to a [`Sum`] channel. They are added one by one, since the sum of two may
/// overflow where the value and both of them do not. One write takes no memory of its own.
#[derive(Clone, PartialEq)]
pub struct Summands<T>(T, Vec<T>);

impl<T> Summands<T> {
    /// The numbers, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.0).chain(&self.1)
    }
}

impl<T: fmt::Debug> fmt::Debug for Summands<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.1[..] {
            [] => self.0.fmt(out),
            _ => out.debug_list().entries(self.iter()).finish(),
        }
    }
}

impl<T: Serialize> Serialize for Summands<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Summands<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut numbers = Vec::<T>::deserialize(deserializer)?.into_iter();
        let first = numbers.next().ok_or_else(|| D::Error::custom("a sum of no numbers"))?;
        Ok(Summands(first, numbers.collect()))
    }
}

impl<T> From<T> for Summands<T> {
    fn from(number: T) -> Self {
        Summands(number, Vec::new())
    }
}

impl<T: Addend + Clone> Summands<T> {
    fn added_to(&self, value: &T) -> Option<T> {
        self.iter().try_fold(None, |sum: Option<T>, more| {
            sum.as_ref().unwrap_or(value).checked_sum(more).map(Some)
        })?
    }
}

impl<T: Addend + Clone + Send + Sync + 'static> Reducer<T> for Sum {
    type Write = Summands<T>;
    const KIND: &'static str = "sum";

    fn check(value: &T, write: &Summands<T>) -> Result<(), Misfit> {
        match write.added_to(value) {
            Some(_) => Ok(()),
            // Without the numbers, which may be secret.
            None => Err(Misfit::new(format!(
                "the sum is more than `{}` can hold: use a wider type, or `#[reduce(with = ..)]` with a function that \
                 limits it",
                std::any::type_name::<T>()
            ))),
        }
    }

    fn reduce(value: &mut T, write: Summands<T>) {
        if let Some(sum) = write.added_to(value) {
            *value = sum;
        }
    }

    fn combine(write: &mut Summands<T>, later: Summands<T>) {
        write.1.push(later.0);
        write.1.extend(later.1);
    }
}

impl<T> StoredReducer<T> for Sum where T: Addend + Serialize + DeserializeOwned + Clone + Send + Sync + 'static
{}
