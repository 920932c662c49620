//! How `Debug` shows the writes of a derived update: values, unless they are secret or have no `Debug`.

use std::fmt;

use crate::state::MASK;

/// A value that may have no `Debug`. Of the two traits below, the compiler takes the first that fits: the
/// second one needs one more reference.
pub struct Peeked<'a, T>(&'a T);

/// The value, to be asked whether it can be shown.
pub fn peeked<T>(value: &T) -> Peeked<'_, T> {
    Peeked(value)
}

/// The value, if it has `Debug`.
pub trait WithDebug<'a> {
    /// It.
    fn shown(&self) -> Option<&'a dyn fmt::Debug>;
}

impl<'a, T: fmt::Debug> WithDebug<'a> for Peeked<'a, T> {
    fn shown(&self) -> Option<&'a dyn fmt::Debug> {
        Some(self.0)
    }
}

/// Nothing, for a value without `Debug`.
pub trait WithoutDebug<'a> {
    /// It.
    fn shown(&self) -> Option<&'a dyn fmt::Debug>;
}

impl<'a, T> WithoutDebug<'a> for &Peeked<'a, T> {
    fn shown(&self) -> Option<&'a dyn fmt::Debug> {
        None
    }
}

/// One write as `Debug` shows it: `3`, `append ["x"]`, `overwrite [secret]`.
pub struct ShownWrite<'a> {
    /// The kind of the channel's reducer, or `overwrite`.
    how: &'a str,
    /// `None` if it cannot be shown.
    value: Option<&'a dyn fmt::Debug>,
    secret: bool,
}

/// A write by a reducer of this kind, or an `overwrite`; a secret one is masked.
pub fn shown_write<'a>(how: &'a str, value: Option<&'a dyn fmt::Debug>, secret: bool) -> ShownWrite<'a> {
    ShownWrite { how, value, secret }
}

impl fmt::Debug for ShownWrite<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(self.how, "once" | "last") {
            write!(out, "{} ", self.how)?;
        }
        match self.value {
            _ if self.secret => out.write_str(MASK),
            Some(value) => value.fmt(out),
            None => out.write_str(".."),
        }
    }
}
