//! [`Min`] and [`Max`]: the least and the greatest of all writes.

use std::cmp::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Reducer, StoredReducer, Undo};

/// `#[reduce(min)]`: keeps the least of the value and all writes. Parallel tasks may all write.
///
/// The first value is the field's default, and a minimum starts best from nothing: in a field of type
/// `Option<T>`, any write replaces `None`. For the rest, see [`Max`].
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Flight {
///     #[reduce(min)]
///     cheapest: Option<f64>,
/// }
///
/// let mut flight = Flight::default();
/// flight.apply(&(), Flight::update().cheapest(310.5).cheapest(290.0).cheapest(None)).unwrap();
/// assert_eq!(flight.cheapest, Some(290.0));
/// ```
#[derive(Debug)]
pub struct Min;

/// `#[reduce(max)]`: keeps the greatest of the value and all writes. Parallel tasks may all write.
///
/// It takes every type with an order, numbers, texts and times among them. The first value is the field's
/// default. An equal write changes nothing. A value that has no order, such as a `NaN`, is ignored as a
/// write, and any write replaces it as a value. So the order of the writes does not matter. Checkpoints store
/// the outcome.
///
/// ```
/// use agentgraph::prelude::*;
///
/// #[derive(State, Clone, Debug, Default)]
/// struct Triage {
///     #[reduce(max)]
///     risk: f64,
/// }
///
/// let mut triage = Triage::default();
/// triage.apply(&(), Triage::update().risk(0.4).risk(f64::NAN).risk(0.2)).unwrap();
/// assert_eq!(triage.risk, 0.4);
/// ```
#[derive(Debug)]
pub struct Max;

/// [`Min`] of a field of type `Option<T>`. The derive chooses it by the name of the type, since a `None` is
/// the least value of the standard order, and a minimum would never leave it.
#[derive(Debug)]
pub struct MinSome;

/// Whether `write` replaces `value` because it is on the `wanted` side of it, or because `value` has no
/// order.
fn replaces<T: PartialOrd>(value: &T, write: &T, wanted: Ordering) -> bool {
    match write.partial_cmp(value) {
        Some(ordering) => ordering == wanted,
        None => value.partial_cmp(value).is_none() && write.partial_cmp(write).is_some(),
    }
}

fn less<T: PartialOrd>(value: &T, write: &T) -> bool {
    replaces(value, write, Ordering::Less)
}

fn greater<T: PartialOrd>(value: &T, write: &T) -> bool {
    replaces(value, write, Ordering::Greater)
}

fn less_some<T: PartialOrd>(value: &Option<T>, write: &Option<T>) -> bool {
    match (value, write) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(value), Some(write)) => less(value, write),
    }
}

macro_rules! extreme {
    ($reducer:ty, $kind:literal, $replaces:ident, $type:ty) => {
        impl<T: PartialOrd + Clone + Send + Sync + 'static> Reducer<$type> for $reducer {
            type Write = $type;
            const KIND: &'static str = $kind;

            fn reduce(value: &mut $type, write: $type) {
                if $replaces(value, &write) {
                    *value = write;
                }
            }

            fn combine(write: &mut $type, later: $type) {
                Self::reduce(write, later);
            }

            fn try_on(value: &mut $type, write: &mut $type) -> Undo<$type> {
                if $replaces(value, write) {
                    std::mem::swap(value, write);
                    Undo::Swap
                } else {
                    Undo::Nothing
                }
            }

            fn take_off(value: &mut $type, write: &mut $type, undo: Undo<$type>) {
                if matches!(undo, Undo::Swap) {
                    std::mem::swap(value, write);
                }
            }
        }

        impl<T> StoredReducer<$type> for $reducer where
            T: PartialOrd + Serialize + DeserializeOwned + Clone + Send + Sync + 'static
        {
        }
    };
}

extreme!(Min, "min", less, T);
extreme!(Max, "max", greater, T);
extreme!(MinSome, "min", less_some, Option<T>);
