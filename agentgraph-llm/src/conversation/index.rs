//! [`Index`]: what is known about a conversation, so that a round looks at its new messages only.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashTable;

use super::{Sendable, complete_after};
use crate::message::Message;

/// The number of messages up to which a look at all of them is cheaper than tables. Tests cross it often.
const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// The ids of a conversation and of its calls, and how much of it can be sent as it is.
///
/// [`update`](Index::update) compares messages by address: the index shares each one that it has seen, so a
/// message that was changed has another address. A message that was replaced, moved or removed makes the
/// index forget that message and all later ones.
#[derive(Clone, Default)]
pub(crate) struct Index {
    messages: Vec<Message>,
    /// The first message with each id, and the first with a call of each id.
    ids: HashTable<Place>,
    calls: HashTable<Place>,
    /// How many messages are in the tables.
    tabled: usize,
    sendable: Sendable,
}

/// The position of a message, under the hash of an id.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    at: usize,
}

impl Index {
    /// Makes this the index of `messages`.
    pub(crate) fn update(&mut self, messages: &[Message]) {
        let both = self.messages.iter().zip(messages);
        let same = both.take_while(|(known, message)| known.is_shared_with(message)).count();
        if same < self.messages.len() {
            self.truncate(same);
        }
        self.messages.extend_from_slice(&messages[same..]);
        if self.messages.len() > FEW {
            self.fill_tables();
        }
        self.sendable.advance(&self.messages);
    }

    /// Whether a message has this id.
    pub(crate) fn has_message(&self, id: &str) -> bool {
        self.has(&self.ids, id, |message| is_same(&message.id, id))
    }

    /// Whether a message has a call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.has(&self.calls, id, |message| message.tool_uses().any(|call| is_same(&call.id, id)))
    }

    /// The conversation as a provider accepts it: [`complete`](super::complete).
    pub(crate) fn complete(&self) -> Vec<Message> {
        complete_after(self.sendable, &self.messages)
    }

    fn has(&self, places: &HashTable<Place>, id: &str, has_it: impl Fn(&Message) -> bool) -> bool {
        let hash = hash(id);
        self.messages[self.tabled..].iter().any(&has_it)
            || places.find(hash, |place| place.hash == hash && has_it(&self.messages[place.at])).is_some()
    }

    fn fill_tables(&mut self) {
        let messages = &self.messages;
        for (at, message) in messages.iter().enumerate().skip(self.tabled) {
            add(&mut self.ids, &message.id, at, |at| messages[at].id == message.id);
            for call in message.tool_uses() {
                let has_it = |at: usize| messages[at].tool_uses().any(|known| known.id == call.id);
                add(&mut self.calls, &call.id, at, has_it);
            }
        }
        self.tabled = messages.len();
    }

    fn truncate(&mut self, len: usize) {
        self.messages.truncate(len);
        self.ids.retain(|place| place.at < len);
        self.calls.retain(|place| place.at < len);
        self.tabled = self.tabled.min(len);
        self.sendable.truncate(len);
    }
}

/// Adds a position, unless an earlier message has the id.
fn add(places: &mut HashTable<Place>, id: &str, at: usize, has_it: impl Fn(usize) -> bool) {
    let hash = hash(id);
    let is_known = |place: &Place| place.hash == hash && has_it(place.at);
    places.entry(hash, is_known, |place| place.hash).or_insert(Place { hash, at });
}

/// Ids of one source are often alike up to a number at their ends: a look there saves most comparisons.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.as_bytes().last_chunk::<4>() == other.as_bytes().last_chunk()
        && one == other
}

/// A hash (FNV-1a) of the end of an id, where ids of one source differ. Ids that collide cost a look each.
fn hash(id: &str) -> u64 {
    let end = id.bytes().rev().take(16);
    end.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The index of the conversation in a state, kept from one node to the next.
///
/// Not part of the state's value: it is not stored, any two are equal, and a missing one is built again.
/// Clones share it until one of them is updated.
#[derive(Default)]
pub(crate) struct KeptIndex(Mutex<Option<Arc<Index>>>);

impl KeptIndex {
    /// The index of these messages.
    pub(crate) fn of(&self, messages: &[Message]) -> Arc<Index> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.get_or_insert_default();
        Arc::make_mut(index).update(messages);
        Arc::clone(index)
    }
}

impl Clone for KeptIndex {
    fn clone(&self) -> Self {
        KeptIndex(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl PartialEq for KeptIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for KeptIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeptIndex")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::conversation::complete;
    use crate::message::{Block, Role, ToolResult, ToolUse};

    /// A change of a conversation between two looks of the index. Of few ids, so that they come twice.
    #[derive(Clone, Debug)]
    enum Edit {
        Add(Message),
        Insert(usize, Message),
        Replace(usize, Message),
        Remove(usize),
        Swap(usize, usize),
        Truncate(usize),
        /// Changes the fields of a message in place.
        Rename(usize, u8),
        /// The same messages, read from a checkpoint.
        Restore,
        /// The first messages as one, as a summary.
        Shorten(usize, Message),
        /// A fork, which the index knows as well.
        Fork,
        Look,
    }

    fn id(n: u8) -> String {
        format!("id-{n}")
    }

    fn messages() -> impl Strategy<Value = Message> {
        let call = (0_u8..5).prop_map(|n| Block::from(ToolUse::new(id(n), "tool", json!({}))));
        let result = (0_u8..5).prop_map(|n| Block::from(ToolResult::text(id(n), "done")));
        let content = prop_oneof![
            prop::collection::vec(call, 1..3).prop_map(|calls| (Role::Assistant, calls)),
            prop::collection::vec(result, 1..3).prop_map(|results| (Role::User, results)),
            any::<bool>().prop_map(|user| {
                (if user { Role::User } else { Role::Assistant }, vec![Block::text("text")])
            }),
        ];
        (content, 0_u8..8).prop_map(|((role, content), n)| Message::named(id(n), role, content))
    }

    /// An answer with a call, and its result.
    fn turn() -> impl Strategy<Value = Vec<Edit>> {
        (0_u8..8, 0_u8..5).prop_map(|(n, call)| {
            let answer = Message::named(id(n), Role::Assistant, [ToolUse::new(id(call), "tool", json!({}))]);
            let result = Message::named(id(n + 1), Role::User, [ToolResult::text(id(call), "done")]);
            vec![Edit::Add(answer), Edit::Look, Edit::Add(result)]
        })
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        let at = || 0_usize..12;
        let one = prop_oneof![
            4 => messages().prop_map(Edit::Add),
            1 => (at(), messages()).prop_map(|(at, message)| Edit::Insert(at, message)),
            1 => (at(), messages()).prop_map(|(at, message)| Edit::Replace(at, message)),
            1 => at().prop_map(Edit::Remove),
            1 => (at(), at()).prop_map(|(one, other)| Edit::Swap(one, other)),
            1 => at().prop_map(Edit::Truncate),
            1 => (at(), 0_u8..8).prop_map(|(at, n)| Edit::Rename(at, n)),
            1 => Just(Edit::Restore),
            1 => (at(), messages()).prop_map(|(count, message)| Edit::Shorten(count, message)),
            1 => Just(Edit::Fork),
            3 => Just(Edit::Look),
        ];
        let steps = prop_oneof![2 => one.prop_map(|edit| vec![edit]), 1 => turn()];
        prop::collection::vec(steps, 1..25).prop_map(|steps| steps.concat())
    }

    fn apply(messages: &mut Vec<Message>, edit: &Edit) {
        let len = messages.len();
        match edit {
            Edit::Add(message) => messages.push(message.clone()),
            Edit::Insert(at, message) if *at <= len => messages.insert(*at, message.clone()),
            Edit::Replace(at, message) if *at < len => messages[*at] = message.clone(),
            Edit::Remove(at) if *at < len => drop(messages.remove(*at)),
            Edit::Swap(one, other) if *one < len && *other < len => messages.swap(*one, *other),
            Edit::Truncate(len) => messages.truncate(*len),
            Edit::Rename(at, n) if *at < len => messages[*at].id = id(*n),
            Edit::Restore => {
                let copy = |message: &Message| (**message).clone().into();
                *messages = messages.iter().map(copy).collect();
            }
            Edit::Shorten(count, message) if *count <= len => {
                messages.splice(..*count, [message.clone()]);
            }
            _ => {}
        }
    }

    fn agrees(index: &Index, messages: &[Message]) -> Result<(), TestCaseError> {
        for id in (0..9).map(id) {
            prop_assert_eq!(index.has_message(&id), messages.iter().any(|message| message.id == id));
            let has_call = messages.iter().flat_map(Message::tool_uses).any(|call| call.id == id);
            prop_assert_eq!(index.has_call(&id), has_call, "{}", id);
        }
        prop_assert_eq!(index.complete(), complete(messages));
        Ok(())
    }

    #[test]
    fn results_in_the_place_of_an_answer_belong_to_the_turn_before() {
        let answer = |id: &str, call: &str| {
            Message::named(id.to_owned(), Role::Assistant, [ToolUse::new(call, "tool", json!({}))])
        };
        let result = |id: &str, call: &str, text: &str| {
            Message::named(id.to_owned(), Role::User, [ToolResult::text(call, text)])
        };
        let mut messages =
            vec![answer("1", "a"), result("2", "a", "one"), answer("3", "b"), result("4", "b", "two")];
        let kept = KeptIndex::default();
        assert_eq!(kept.of(&messages).complete(), messages);
        messages.truncate(2);
        messages.push(result("5", "a", "three"));
        assert_eq!(kept.of(&messages).complete(), complete(&messages));
        assert_eq!(complete(&messages).len(), 2, "the later result of the call counts");
    }

    proptest! {
        // Faults that it was shown to catch: positions that stay in the tables after a truncation, or are
        // not added again; the last position of an id instead of the first; messages compared by id; a turn
        // that is not looked at again; a conversation without tables that is not searched.
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_kept_index_says_what_a_look_at_all_messages_says(edits in edits()) {
            let (mut kept, mut messages) = (KeptIndex::default(), Vec::new());
            let mut fork: Option<(KeptIndex, Vec<Message>)> = None;
            for edit in &edits {
                apply(&mut messages, edit);
                match edit {
                    Edit::Look => agrees(&kept.of(&messages), &messages)?,
                    Edit::Fork => {
                        let other = fork.replace((kept.clone(), messages.clone()));
                        (kept, messages) = other.unwrap_or((kept, messages));
                    }
                    _ => {}
                }
            }
            agrees(&kept.of(&messages), &messages)?;
            if let Some((kept, messages)) = fork {
                agrees(&kept.of(&messages), &messages)?;
            }
        }
    }
}
