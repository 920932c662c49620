//! [`ThreadProblem`]: the problem of one thread, in an operation on many.

use std::fmt;

use crate::error::{Code, Error};

/// A thread that could not be processed, among others that were.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadProblem {
    /// The name of the thread.
    pub thread: String,
    /// The code of the error.
    pub code: Code,
    /// The message of the error.
    pub message: String,
}

impl ThreadProblem {
    pub(super) fn of(thread: &str, error: &Error) -> Self {
        ThreadProblem { thread: thread.to_owned(), code: error.code(), message: error.to_string() }
    }
}

impl fmt::Display for ThreadProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}
