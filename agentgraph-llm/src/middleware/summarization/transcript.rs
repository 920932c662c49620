//! A conversation as text, for a model that summarises it.

use std::fmt::Write;

use super::cut::cut_by_tokens;
use crate::message::{Block, Message, Role};
use crate::model::TokenCount;

/// The characters of a token, by estimate.
const CHARS_PER_TOKEN: usize = 4;

/// The end of the conversation that has at most `trim` tokens. If the last message alone has more, the end of
/// it.
pub(super) fn of(messages: &[Message], trim: Option<u64>) -> String {
    let Some(trim) = trim else { return text(messages) };
    let text = text(&messages[cut_by_tokens(messages, trim, TokenCount::of_message)..]);
    let longest = usize::try_from(trim).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
    let skipped = text.chars().count().saturating_sub(longest);
    text.chars().skip(skipped).collect()
}

fn text(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let author = match message.role {
            Role::System => "System",
            Role::User => "User",
            Role::Assistant => "Assistant",
        };
        for block in &message.content {
            // Writing to a string does not fail.
            let _ = write_block(&mut text, author, block);
        }
    }
    text
}

fn write_block(text: &mut String, author: &str, block: &Block) -> std::fmt::Result {
    match block {
        Block::Text(block) => writeln!(text, "{author}: {}", block.text),
        Block::ToolUse(call) => writeln!(text, "{author} calls {}: {}", call.name, call.input.text()),
        Block::ToolResult(result) if result.is_error => {
            writeln!(text, "Error of the tool: {}", result.as_text())
        }
        Block::ToolResult(result) => writeln!(text, "Result of the tool: {}", result.as_text()),
        Block::Thinking(_) | Block::RedactedThinking(_) => Ok(()),
        _ => writeln!(text, "{author}: (content that is no text)"),
    }
}
