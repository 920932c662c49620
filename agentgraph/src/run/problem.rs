//! [`ThreadProblem`]: what is wrong with one thread, where many are looked at.

use std::fmt;

use crate::error::{Code, Error};

/// A thread that could not be dealt with, beside others that were.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadProblem {
    /// Its name.
    pub thread: String,
    /// What kind of problem it is.
    pub code: Code,
    /// What the error said.
    pub message: String,
}

impl ThreadProblem {
    pub(crate) fn of(thread: &str, error: &Error) -> Self {
        ThreadProblem { thread: thread.to_owned(), code: error.code(), message: error.to_string() }
    }
}

impl fmt::Display for ThreadProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
