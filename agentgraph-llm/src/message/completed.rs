//! [`Completed`]: a conversation with the results of each answer in their place, kept from one request to the
//! next.

use std::sync::{Mutex, PoisonError};

use super::{Message, Messages, Role};

/// The completed conversation of the last request, where it is not the conversation itself. The next request
/// completes the turns that are new; without a request in between, nothing is done for a new message.
#[derive(Default)]
pub(super) struct Completed(Mutex<Turns>);

/// All turns but the last have ended: later messages change nothing in them.
#[derive(Clone, Default)]
struct Turns {
    /// How many messages are before the last answer.
    ended: usize,
    /// How many messages these are in the list.
    len: usize,
    /// How many messages the whole list has completed.
    seen: usize,
    list: Messages,
}

impl Completed {
    pub(super) const fn nothing() -> Self {
        Completed(Mutex::new(Turns { ended: 0, len: 0, seen: 0, list: Messages::new() }))
    }

    /// The completed conversation. `complete` adds messages that begin with an answer, or with all others,
    /// to a list.
    pub(super) fn of(&self, messages: &[Message], complete: fn(&[Message], &mut Vec<Message>)) -> Messages {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Turns { ended, len, seen, list } = &mut *turns;
        let last = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or_default();
        if last > *ended && last == *seen {
            // The last request had the whole turn.
            (*ended, *len) = (last, list.len());
        }
        let items = list.cut(*len);
        if last > *ended {
            complete(&messages[*ended..last], items);
            (*ended, *len) = (last, items.len());
        }
        complete(&messages[*ended..], items);
        *seen = messages.len();
        list.clone()
    }

    /// Forgets the messages after the first `len`. Another message in the place of the last answer may belong
    /// to the turn before it.
    pub(super) fn truncate(&mut self, len: usize) {
        let turns = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if len <= turns.ended && turns.ended > 0 {
            *turns = Turns::default();
        } else if len < turns.seen {
            turns.seen = 0;
        }
    }
}

impl Clone for Completed {
    fn clone(&self) -> Self {
        Completed(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}
