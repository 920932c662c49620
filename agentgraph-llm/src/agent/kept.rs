//! [`KeptMessages`]: the list that requests share if the agent's state has a `Vec`.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::message::{Message, Messages};

/// A copy of the conversation in a state, kept from one node to the next.
///
/// Not part of the state's value: it is not stored, any two are equal, and a missing one is made again.
#[derive(Default)]
pub(super) struct KeptMessages(Mutex<Messages>);

impl KeptMessages {
    /// The copy of these messages.
    pub(super) fn of(&self, messages: &[Message]) -> Messages {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.follow(messages);
        kept.clone()
    }
}

impl Clone for KeptMessages {
    fn clone(&self) -> Self {
        KeptMessages(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl PartialEq for KeptMessages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for KeptMessages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeptMessages")
    }
}
