//! Reducers: how a write changes a channel.
//!
//! A [`Reducer`] is a type, not a value: `derive(State)` names it in the type of the field's [`Slot`], so
//! that a merge is plain code. It must be deterministic, since a write may first be tried (for a router)
//! and then be applied again.

mod by_id;
#[doc(hidden)]
pub mod derived;
mod extreme;
mod items;
mod list;
mod map;
mod shown;
mod single;
mod slot;
mod sum;

pub use by_id::{ById, Keyed, KeyedWrite};
pub use extreme::{Max, Min, MinSome};
pub use items::{Items, Texts};
pub use list::Append;
pub use map::{MapState, Merge};
pub use single::{Last, Once};
pub use slot::{Slot, Write};
pub use sum::{Addend, Sum, Summands};

use serde::Serialize;
use serde::de::DeserializeOwned;

use agentgraph_checkpoint::delta::{DeltaWriter, EncodeError};

/// How a write changes a channel of type `T`.
///
/// The reducers named in `#[reduce(..)]` implement this trait, and so does yours:
///
/// ```
/// use agentgraph::prelude::*;
/// use agentgraph::reduce::{Reducer, StoredReducer};
///
/// /// Collects flags.
/// struct Union;
/// impl Reducer<u64> for Union {
///     type Write = u64;
///     const KIND: &'static str = "union";
///     fn reduce(value: &mut u64, write: u64) {
///         *value |= write;
///     }
///     fn combine(write: &mut u64, later: u64) {
///         *write |= later;
///     }
/// }
///
/// impl StoredReducer<u64> for Union {}
///
/// #[derive(State, Clone, Default)]
/// struct Checks {
///     #[reduce(reducer = Union, write = u64)]
///     passed: u64,
/// }
///
/// let mut state = Checks { passed: 0b001 };
/// state.apply(&(), Checks::update().passed(0b010).passed(0b110)).unwrap();
/// assert_eq!(state.passed, 0b111);
/// ```
#[diagnostic::on_unimplemented(
    message = "the reducer `{Self}` does not reduce a channel of type `{T}`",
    label = "not what `{Self}` reduces",
    note = "`append` and `by_id` reduce a `Vec`, `merge` a `HashMap` or `BTreeMap`, `sum` a number; `with = path` takes a function for any other type"
)]
pub trait Reducer<T: Clone>: 'static {
    /// The value of one write.
    type Write: Clone + Send + Sync + 'static;

    /// The name of this kind of reducer, a part of a graph's fingerprint.
    const KIND: &'static str;

    /// Whether two writers in one superstep are an error.
    const EXCLUSIVE: bool = false;

    /// Whether `write` fits `value`. If not, the error is that of the run,
    /// [`Code::BadValue`](crate::Code::BadValue), and nothing is changed; [`Sum`] refuses a sum that its type
    /// cannot hold. By default every write fits. The text must not repeat the values, since they may be
    /// secret.
    ///
    /// # Errors
    /// If the write does not fit.
    fn check(value: &T, write: &Self::Write) -> Result<(), Misfit> {
        let _ = (value, write);
        Ok(())
    }

    /// Folds `write` into `value`, which it fits.
    fn reduce(value: &mut T, write: Self::Write);

    /// Adds a later write of the same update to the first.
    fn combine(write: &mut Self::Write, later: Self::Write);

    /// Turns an overwriting value into one that this reducer could have built. [`ById`] keeps each key
    /// once.
    fn admit(value: T) -> T {
        value
    }

    /// [`reduce`](Reducer::reduce) as a trial. The result contains everything needed to undo it; the
    /// default clones the value.
    fn try_on(value: &mut T, write: &mut Self::Write) -> Undo<T> {
        let before = value.clone();
        Self::reduce(value, write.clone());
        Undo::Restore(before)
    }

    /// Undoes a [`try_on`](Reducer::try_on), with the result of that call.
    fn take_off(value: &mut T, write: &mut Self::Write, undo: Undo<T>) {
        let _ = write;
        if let Undo::Restore(before) = undo {
            *value = before;
        }
    }
}

/// A write that does not fit the value of its channel, with the reason: see [`Reducer::check`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(String);

impl Misfit {
    /// The reason, as the text after the channel's name in a message.
    ///
    /// ```
    /// let misfit = agentgraph::reduce::Misfit::new("a rating is at most 5");
    /// assert_eq!(misfit.to_string(), "a rating is at most 5");
    /// ```
    pub fn new(problem: impl Into<String>) -> Self {
        Misfit(problem.into())
    }
}

/// A reducer whose changes can be stored. The provided methods store the whole value at every change; a
/// reducer with a smaller delta writes that.
///
/// For the `Union` of [`Reducer`]'s example, `impl StoredReducer<u64> for Union {}` is enough.
pub trait StoredReducer<T: Clone + Serialize>: Reducer<T, Write: Serialize + DeserializeOwned> {
    /// Like [`reduce`](Reducer::reduce), and records the change.
    ///
    /// # Errors
    /// If the change cannot be encoded.
    fn reduce_recorded(
        value: &mut T,
        write: Self::Write,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        Self::reduce(value, write);
        Self::record(value, delta)
    }

    /// Records the whole value, in a form that this reducer's deltas can be applied to.
    ///
    /// # Errors
    /// If the value cannot be encoded.
    fn record(value: &T, delta: &mut DeltaWriter) -> Result<(), EncodeError> {
        delta.set(value)
    }
}

/// How to undo a write that was only tried.
#[derive(Debug)]
#[non_exhaustive]
pub enum Undo<T> {
    /// The write has changed nothing.
    Nothing,
    /// Restore this value.
    Restore(T),
    /// Value and write were swapped.
    Swap,
    /// The list had this many items; the others belong to the write.
    Tail(usize),
    /// Undo these steps from the last to the first; `old` contains the items they displaced, in the same
    /// order.
    Steps {
        /// The displaced items.
        old: T,
        /// The steps.
        steps: Vec<UndoStep>,
    },
}

/// One step of [`Undo::Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoStep {
    /// An item was added at the end.
    Added,
    /// The item at this position was replaced.
    Replaced(usize),
    /// The item at this position was removed.
    Removed(usize),
}

/// A reducer that calls a function, for `#[reduce(with = path)]`. The derive creates one such type for each
/// field.
pub trait ReduceFn<T>: 'static {
    /// The function's second argument.
    type Write: Clone + Send + Sync + 'static;
    /// Calls it.
    fn call(value: &mut T, write: Self::Write);
}

/// The reducer of `#[reduce(with = path)]`: any function `fn(&mut T, W)`. The whole value is stored.
#[derive(Debug)]
pub struct With<F>(std::marker::PhantomData<fn() -> F>);

impl<T: Clone, F: ReduceFn<T>> Reducer<T> for With<F> {
    /// The writes of one update, in order.
    type Write = Vec<F::Write>;
    const KIND: &'static str = "with";

    fn reduce(value: &mut T, write: Self::Write) {
        for one in write {
            F::call(value, one);
        }
    }

    fn combine(write: &mut Self::Write, later: Self::Write) {
        write.extend(later);
    }
}

impl<T: Clone + Serialize, F: ReduceFn<T, Write: Serialize + DeserializeOwned>> StoredReducer<T> for With<F> {}
