//! The model that wrote a message, and what another model may see of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::info::ModelInfo;
use crate::json::Extra;
use crate::message::{Block, Message};

/// The model that wrote a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The provider, as in [`ModelInfo::provider`].
    pub provider: String,
    /// The name that the request asked for.
    pub model: String,
}

impl Origin {
    /// A model of a provider.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Origin { provider: provider.into(), model: model.into() }
    }

    fn is(&self, info: &ModelInfo) -> bool {
        self.provider == info.provider && self.model == info.model
    }
}

impl From<&ModelInfo> for Origin {
    fn from(info: &ModelInfo) -> Self {
        Origin::new(info.provider.clone(), info.model.clone())
    }
}

impl Message {
    /// The message as `model` may get it. A message of the same model, or of no model, is unchanged. One of
    /// another model loses what only its author understands: thinking and its signatures, unknown blocks, and
    /// the [`Extra`] fields of its blocks. Providers refuse such state if they did not make it.
    ///
    /// ```
    /// use agentgraph_llm::{Block, Message, ModelInfo, Origin, Role, Thinking};
    ///
    /// let thought = Block::from(Thinking::new("Hm.", Some("signed".to_owned())));
    /// let mut message = Message::new(Role::Assistant, [thought, Block::text("Yes.")]);
    /// message.origin = Some(Origin::new("anthropic", "one"));
    ///
    /// assert_eq!(message.for_model(&ModelInfo::new("anthropic", "one")).content.len(), 2);
    /// assert_eq!(message.for_model(&ModelInfo::new("anthropic", "two")).content, [Block::text("Yes.")]);
    /// ```
    pub fn for_model(&self, model: &ModelInfo) -> Cow<'_, Message> {
        match &self.origin {
            Some(origin) if !origin.is(model) => {
                let content = self.content.iter().filter_map(plain).collect();
                let mut message = self.clone();
                message.content = content;
                Cow::Owned(message)
            }
            _ => Cow::Borrowed(self),
        }
    }
}

/// A block without what only its author understands.
fn plain(block: &Block) -> Option<Block> {
    let mut block = block.clone();
    let extra = match &mut block {
        Block::Thinking(_) | Block::RedactedThinking(_) | Block::Unknown(_) => return None,
        Block::Text(block) => &mut block.extra,
        Block::ToolUse(call) => &mut call.extra,
        Block::ToolResult(result) => &mut result.extra,
        Block::Image(media) | Block::Audio(media) | Block::Video(media) | Block::Document(media) => {
            &mut media.extra
        }
    };
    *extra = Extra::new();
    Some(block)
}
