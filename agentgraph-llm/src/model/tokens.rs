//! The number of tokens of a request.

use crate::message::{Block, MediaSource, Message, ToolResult};
use crate::model::ChatRequest;

/// Characters of a token, on average over English text and code.
const CHARS_PER_TOKEN: u64 = 4;
/// Tokens that a message costs beside its content.
const PER_MESSAGE: u64 = 3;
/// Tokens of an image, a recording or a document whose size says nothing about them.
const PER_MEDIUM: u64 = 1_000;

/// The number of tokens of a request.
///
/// ```
/// use agentgraph_llm::{ChatRequest, TokenCount};
///
/// let count = TokenCount::estimate(&ChatRequest::user("How many tokens are in this sentence?"));
/// assert_eq!((count.tokens, count.is_exact), (13, false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenCount {
    /// The number of tokens.
    pub tokens: u64,
    /// The server counted; otherwise the number is an estimate.
    pub is_exact: bool,
}

impl TokenCount {
    /// A number from the server.
    pub fn exact(tokens: u64) -> Self {
        TokenCount { tokens, is_exact: true }
    }

    /// An estimate: a token for every four characters, rounded up for each message, three for each message,
    /// and a thousand for each image, recording or document.
    pub fn estimate(request: &ChatRequest) -> Self {
        let system = request.system.iter().map(|text| in_text(text) + PER_MESSAGE);
        let messages = request.messages.iter().map(TokenCount::of_message);
        let tools = request.tools.iter().map(|tool| match &tool.raw {
            Some(raw) => in_text(raw.get()),
            None => {
                in_text(&tool.name) + in_text(&tool.description) + in_text(&tool.input_schema.to_string())
            }
        });
        let output = request.output.iter().map(|output| in_text(&output.schema.to_string()));
        let tokens = system.chain(messages).chain(tools).chain(output).sum();
        TokenCount { tokens, is_exact: false }
    }

    /// The estimate for one message.
    pub fn of_message(message: &Message) -> u64 {
        PER_MESSAGE + of_blocks(&message.content)
    }
}

fn of_blocks(blocks: &[Block]) -> u64 {
    blocks.iter().map(of_block).sum()
}

fn of_block(block: &Block) -> u64 {
    match block {
        Block::Text(block) => in_text(&block.text),
        Block::ToolUse(call) => in_text(&call.name) + in_text(call.input.text()),
        Block::ToolResult(ToolResult { content, .. }) => of_blocks(content),
        Block::Thinking(block) => in_text(&block.thinking),
        Block::RedactedThinking(block) => in_text(&block.data),
        Block::Image(media) | Block::Audio(media) | Block::Video(media) | Block::Document(media) => {
            match &media.source {
                MediaSource::Other(raw) => in_text(raw.get()),
                _ => PER_MEDIUM,
            }
        }
        Block::Unknown(raw) => in_text(raw.get()),
    }
}

fn in_text(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(CHARS_PER_TOKEN)
}
