//! The causes of an error as texts, for other processes, and texts as causes.

use std::error::Error as StdError;
use std::iter::successors;

/// The most causes that are kept of an error.
const MOST: usize = 16;

/// The texts of the causes, the nearest first.
pub(crate) fn texts_of_causes(error: &(dyn StdError + 'static)) -> Vec<String> {
    successors(error.source(), |&cause| cause.source()).take(MOST).map(ToString::to_string).collect()
}

/// A cause in another process: its text, and its own cause.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Cause {
    text: String,
    #[source]
    cause: Option<Box<Cause>>,
}

impl Cause {
    /// The nearest cause; its text is the first.
    pub(crate) fn of(texts: Vec<String>) -> Option<Box<Self>> {
        texts.into_iter().rev().fold(None, |cause, text| Some(Box::new(Cause { text, cause })))
    }
}
