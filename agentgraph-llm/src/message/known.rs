//! [`Known`]: tables of a list of messages, so that a round looks at its new messages only.

use hashbrown::HashTable;

use super::Message;
use super::completed::Completed;
use super::sendable::Sendable;

/// The number of messages up to which a look at all of them is cheaper than tables. Tests cross it often.
const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// The ids of a conversation and of its calls, and how much of it can be sent as it is.
///
/// The methods take the messages. New ones may follow those in the tables; before any other change,
/// [`truncate`](Known::truncate) drops the entries of the changed message and of all later ones.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The first message with each id, and the first with a call of each id.
    ids: HashTable<Place>,
    calls: HashTable<Place>,
    /// How many messages are in the tables.
    tabled: usize,
    /// Several of these may have the same id; the table has the first of them.
    has_twins: bool,
    sendable: Sendable,
    pub(super) completed: Completed,
}

/// The position of a message, under the hash of an id.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    at: usize,
}

impl Known {
    pub(super) const fn nothing() -> Self {
        Known {
            ids: HashTable::new(),
            calls: HashTable::new(),
            tabled: 0,
            has_twins: false,
            sendable: Sendable::NOTHING,
            completed: Completed::nothing(),
        }
    }

    /// Looks at new messages.
    pub(super) fn learn(&mut self, messages: &[Message]) {
        if messages.len() > FEW {
            self.fill_tables(messages);
        }
        self.sendable.advance(messages);
    }

    /// Drops the entries of all messages but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.sendable.truncate(len);
        self.completed.truncate(len);
        if self.tabled > len {
            self.ids.retain(|place| place.at < len);
            self.calls.retain(|place| place.at < len);
            self.tabled = len;
        }
    }

    /// The last message with this id.
    pub(super) fn position(&self, messages: &[Message], id: &str) -> Option<usize> {
        let begin = if self.has_twins { 0 } else { self.tabled };
        let new = messages[begin..].iter().rposition(|message| is_same(&message.id, id));
        new.map(|at| begin + at).or_else(|| find(&self.ids, id, |at| is_same(&messages[at].id, id)))
    }

    /// Whether a message has a call with this id.
    pub(super) fn has_call(&self, messages: &[Message], id: &str) -> bool {
        let has_it = |message: &Message| message.tool_uses().any(|call| is_same(&call.id, id));
        messages[self.tabled..].iter().any(has_it)
            || find(&self.calls, id, |at| has_it(&messages[at])).is_some()
    }

    /// How many messages at the beginning can be sent as they are.
    pub(super) fn sendable(&self, messages: &[Message]) -> usize {
        self.sendable.of(messages)
    }

    fn fill_tables(&mut self, messages: &[Message]) {
        for (at, message) in messages.iter().enumerate().skip(self.tabled) {
            self.has_twins |= !add(&mut self.ids, &message.id, at, |at| messages[at].id == message.id);
            for call in message.tool_uses() {
                let has_it = |at: usize| messages[at].tool_uses().any(|known| known.id == call.id);
                add(&mut self.calls, &call.id, at, has_it);
            }
        }
        self.tabled = messages.len();
    }
}

fn find(places: &HashTable<Place>, id: &str, has_it: impl Fn(usize) -> bool) -> Option<usize> {
    let hash = hash(id);
    places.find(hash, |place| place.hash == hash && has_it(place.at)).map(|place| place.at)
}

/// Adds a position, unless an earlier message has the id.
fn add(places: &mut HashTable<Place>, id: &str, at: usize, has_it: impl Fn(usize) -> bool) -> bool {
    let hash = hash(id);
    let is_known = |place: &Place| place.hash == hash && has_it(place.at);
    places.entry(hash, is_known, |place| place.hash).or_insert(Place { hash, at }).get().at == at
}

/// Ids of one source are often alike up to a number at their ends: a look there saves most comparisons.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.as_bytes().last_chunk::<4>() == other.as_bytes().last_chunk()
        && one == other
}

/// A hash of the end of an id, where ids of one source differ: its two words, multiplied and folded. Ids that
/// collide cost a look each.
fn hash(id: &str) -> u64 {
    let mut end = [0; 16];
    let len = id.len().min(end.len());
    end[..len].copy_from_slice(&id.as_bytes()[id.len() - len..]);
    let words = u128::from_le_bytes(end) ^ 0x9e37_79b9_7f4a_7c15_c2b2_ae3d_27d4_eb4f;
    let product = (words >> 64) * (words & u128::from(u64::MAX));
    ((product >> 64) ^ product) as u64
}
