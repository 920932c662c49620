//! One turn of a conversation, and the blocks it is made of.
//!
//! A message is what a state keeps and a checkpoint stores, so its stored form is plain: structs and
//! externally tagged enums, which MessagePack and JSON read back alike. It does not know any provider's wire;
//! what a provider sent and this crate has no name for is kept raw.

mod block;
mod ids;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use block::{
    Block, Image, ImageSource, RedactedThinking, TextBlock, Thinking, ToolInput, ToolResult, ToolUse,
};
pub use ids::MessageIds;

/// Who speaks.
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

/// One turn of a conversation.
///
/// ```
/// use agentgraph_llm::{Message, Role};
///
/// let message = Message::user("What is 2 + 2?").with_id("m-1");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.text(), "What is 2 + 2?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// The key under which a state's `by_id` reducer keeps it. Unique unless set by hand; never sent to a
    /// provider.
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of these blocks with a fresh id.
    pub fn new(role: Role, content: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        let content = content.into_iter().map(Into::into).collect();
        Message { id: MessageIds::default().next_id(), role, content }
    }

    /// Instructions to the model.
    pub fn system(text: impl Into<String>) -> Self {
        Message::new(Role::System, [TextBlock::new(text)])
    }

    /// What the person says.
    pub fn user(text: impl Into<String>) -> Self {
        Message::new(Role::User, [TextBlock::new(text)])
    }

    /// What the model says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::new(Role::Assistant, [TextBlock::new(text)])
    }

    /// The results of the calls of one assistant message: all of them belong in one message.
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

    /// The same message under another id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// All text blocks, one after the other.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }

    /// The calls the model asks for, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(Block::as_tool_use)
    }

    /// The results of calls, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(Block::as_tool_result)
    }
}

impl agentgraph::Keyed for Message {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}
