//! A message of a conversation, and its blocks.
//!
//! States keep messages and checkpoints store them, so their stored form is plain: structs and externally
//! tagged enums, which read back alike from MessagePack and JSON. The form is independent of any provider's
//! wire format; content without a name here is kept raw.

mod block;
mod by_id;
mod completed;
mod ids;
mod known;
mod media;
mod messages;
mod origin;
mod sendable;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::shared::shared;

pub use block::{Block, RedactedThinking, TextBlock, Thinking, ToolInput, ToolResult, ToolUse};
pub use ids::MessageIds;
pub use media::{Media, MediaSource};
pub use messages::Messages;
pub use origin::Origin;
pub(crate) use sendable::{is_answered, is_results};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// A message of a conversation.
///
/// A clone shares its [fields](MessageFields) until one of the two is changed, so a request with the whole
/// conversation costs no copy of it.
///
/// ```
/// use agentgraph_llm::{Message, Role};
///
/// let message = Message::user("What is 2 + 2?").with_id("m-1");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.text(), "What is 2 + 2?");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Message(Arc<MessageFields>);

/// The fields of a [`Message`], which dereferences to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename = "Message")]
pub struct MessageFields {
    /// The key for a state's `by_id` reducer. Unique unless set by hand; never sent to a provider.
    pub id: String,
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub content: Vec<Block>,
    /// The model that wrote the message, if a model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// A token limit or a refusal ended the answer, so its calls may be incomplete and are not run. Never
    /// sent to a provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_incomplete: bool,
}

impl Message {
    /// A message of these blocks, with a fresh id.
    pub fn new(role: Role, content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        Message::named(MessageIds::default().next_id(), role, content)
    }

    /// The same with this id, without making another one.
    pub(crate) fn named(id: String, role: Role, content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        let content = content.into_iter().map(Into::into).collect();
        MessageFields { id, role, content, origin: None, is_incomplete: false }.into()
    }

    /// Instructions to the model.
    pub fn system(text: impl Into<String>) -> Self {
        Message::new(Role::System, [TextBlock::new(text)])
    }

    /// A message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Message::new(Role::User, [TextBlock::new(text)])
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::new(Role::Assistant, [TextBlock::new(text)])
    }

    /// The results of the calls of one assistant message. All of them belong in one message.
    ///
    /// ```
    /// use agentgraph_llm::{Message, Role, ToolResult};
    ///
    /// let message = Message::tool_results([ToolResult::text("call-1", "4"), ToolResult::error("call-2", "no such file")]);
    /// assert_eq!(message.role, Role::User);
    /// assert_eq!(message.results().filter(|result| result.is_error).count(), 1);
    /// ```
    pub fn tool_results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Message::new(Role::User, results)
    }

    /// Sets the id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the model that wrote the message.
    pub fn with_origin(mut self, origin: impl Into<Origin>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Whether both are clones of one message, unchanged since.
    pub(crate) fn is_shared_with(&self, other: &Message) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The text blocks, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }

    /// The tool calls of the message, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(Block::as_tool_use)
    }

    /// The results of tool calls, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(Block::as_tool_result)
    }
}

shared!(Message, MessageFields);

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MessageFields::deserialize(deserializer).map(Message::from)
    }
}

impl agentgraph::Keyed for Message {
    #[inline]
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}
