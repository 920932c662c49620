//! [`Messages`]: a list of messages that clones share.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Message;
use super::known::Known;

/// A conversation: a `Vec` of messages that clones share until one of them is changed.
///
/// It dereferences to the `Vec` and is stored as one. With a channel `#[reduce(by_id)] messages: Messages`,
/// the cost of a round does not grow with the conversation: ids are found in a table, and a request shares
/// the list of the state. With a `Vec<Message>`, each round reads all ids and copies all references.
///
/// ```
/// use agentgraph_llm::{ChatRequest, Message, Messages};
///
/// let mut messages = Messages::from(vec![Message::user("2 + 2?")]);
/// let mut request = ChatRequest::default();
/// request.messages = messages.clone();
/// messages.push(Message::assistant("4"));
/// assert_eq!((messages.len(), request.messages.len()), (2, 1));
/// assert_eq!(messages[..1], request.messages[..]);
/// ```
#[derive(Clone, Default)]
pub struct Messages(Option<Arc<List>>);

/// The messages and their tables.
#[derive(Clone, Default)]
pub(super) struct List {
    pub(super) items: Vec<Message>,
    known: Known,
}

static EMPTY: List = List { items: Vec::new(), known: Known::nothing() };

impl Messages {
    /// A list without messages.
    pub const fn new() -> Self {
        Messages(None)
    }

    /// Adds a message at the end, whatever its id is.
    pub fn push(&mut self, message: Message) {
        self.own().items.push(message);
    }

    /// Whether a message has this id.
    pub(crate) fn has_message(&self, id: &str) -> bool {
        self.list().position(id).is_some()
    }

    /// Whether a message has a call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        let List { items, known } = self.list();
        known.has_call(items, id)
    }

    /// How many messages at the beginning a provider accepts as they are.
    pub(crate) fn sendable(&self) -> usize {
        let List { items, known } = self.list();
        known.sendable(items)
    }

    /// The conversation with the results of each answer in their place, as `complete` adds them to a list.
    pub(crate) fn completed(&self, complete: fn(&[Message], &mut Vec<Message>)) -> Messages {
        let List { items, known } = self.list();
        known.completed.of(items, complete)
    }

    /// The first `len` messages, to which others are added.
    pub(super) fn cut(&mut self, len: usize) -> &mut Vec<Message> {
        let List { items, known } = self.own();
        known.truncate(len);
        items.truncate(len);
        items
    }

    /// Adds new messages to the tables, so that the lookups above read none of them.
    pub(crate) fn learn(&mut self) {
        self.own().learn();
    }

    /// Makes this a copy of `messages`. Messages are compared by address: a changed one has another address.
    pub(crate) fn follow(&mut self, messages: &[Message]) {
        let both = self.iter().zip(messages);
        let same = both.take_while(|(known, message)| known.is_shared_with(message)).count();
        if same < self.len().max(messages.len()) {
            let list = self.own();
            if same < list.items.len() {
                list.known.truncate(same);
                list.items.truncate(same);
            }
            list.items.extend_from_slice(&messages[same..]);
            list.learn();
        }
    }

    fn list(&self) -> &List {
        self.0.as_deref().unwrap_or(&EMPTY)
    }

    /// The list to be changed; copied first if a clone shares it.
    pub(super) fn own(&mut self) -> &mut List {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl List {
    /// The last message with this id.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.known.position(&self.items, id)
    }

    /// Replaces the message at `at`, or adds one at the end.
    pub(super) fn put(&mut self, message: Message, at: Option<usize>) {
        match at {
            Some(at) => {
                self.known.truncate(at);
                self.items[at] = message;
            }
            None => self.items.push(message),
        }
        self.learn();
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.known.truncate(at);
        self.items.remove(at);
    }

    fn learn(&mut self) {
        self.known.learn(&self.items);
    }
}

impl Deref for Messages {
    type Target = Vec<Message>;

    #[inline]
    fn deref(&self) -> &Vec<Message> {
        &self.list().items
    }
}

impl DerefMut for Messages {
    /// The caller may change any message, so the tables are dropped.
    fn deref_mut(&mut self) -> &mut Vec<Message> {
        match self.0.as_mut().and_then(Arc::get_mut) {
            Some(list) => list.known = Known::nothing(),
            None => *self = Messages::from(self.to_vec()),
        }
        &mut self.own().items
    }
}

impl AsRef<[Message]> for Messages {
    fn as_ref(&self) -> &[Message] {
        self
    }
}

impl From<Vec<Message>> for Messages {
    fn from(items: Vec<Message>) -> Self {
        Messages(Some(Arc::new(List { items, known: Known::nothing() })))
    }
}

impl From<Messages> for Vec<Message> {
    fn from(messages: Messages) -> Self {
        messages.0.map(|list| Arc::unwrap_or_clone(list).items).unwrap_or_default()
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

impl Extend<Message> for Messages {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        self.own().items.extend(messages);
    }
}

impl IntoIterator for Messages {
    type Item = Message;
    type IntoIter = std::vec::IntoIter<Message>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Messages {
    type Item = &'a mut Message;
    type IntoIter = std::slice::IterMut<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: AsRef<[Message]> + ?Sized> PartialEq<T> for Messages {
    fn eq(&self, other: &T) -> bool {
        self[..] == *other.as_ref()
    }
}

impl Eq for Messages {}

impl PartialEq<Messages> for Vec<Message> {
    fn eq(&self, other: &Messages) -> bool {
        *self == **other
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list().items.fmt(out)
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list().items.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Messages::from)
    }
}
