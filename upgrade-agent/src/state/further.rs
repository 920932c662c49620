//! The requests of a message beside the one that is met first.

use serde::{Deserialize, Serialize};

/// Requests that wait until nothing is open, and are offered then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherRequests {
    /// The requests, in the person's words.
    pub requests: Vec<String>,
    /// The turn of the message.
    pub turn: u64,
    /// Whether they were offered at the end of the last turn. The next message takes one of them, or they are
    /// dropped.
    pub offered: bool,
}

impl FurtherRequests {
    pub(crate) fn new(requests: Vec<String>, turn: u64) -> Self {
        FurtherRequests { requests, turn, offered: false }
    }

    /// The requests after a turn with this message, which may have left a question open.
    pub(crate) fn after(&self, message: &str, is_open: bool) -> Self {
        let mut left = self.clone();
        if self.offered {
            match self.requests.iter().position(|request| request == message.trim()) {
                Some(taken) => drop(left.requests.remove(taken)),
                None => left.requests.clear(),
            }
        }
        left.offered = !is_open && !left.requests.is_empty();
        left
    }

    /// The sentence about them: when they are offered, and in the turn of the message.
    pub(crate) fn text(&self, is_open: bool, turn: u64) -> Option<String> {
        let quoted: Vec<String> = self.requests.iter().map(|request| format!("\"{request}\"")).collect();
        let quoted = quoted.join(", then ");
        match is_open {
            _ if self.requests.is_empty() => None,
            true => (self.turn == turn)
                .then(|| format!("I take one thing at a time. After this you asked for: {quoted}.")),
            false => Some(format!("You also asked for: {quoted}. Choose it or say it, and I go on with it.")),
        }
    }
}
