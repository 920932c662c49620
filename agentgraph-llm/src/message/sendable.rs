//! [`Sendable`]: how much of a conversation a provider accepts as it is.

use super::{Block, Message, Role};

/// How many messages at the beginning can be sent as they are.
#[derive(Clone, Copy, Default)]
pub(super) struct Sendable {
    len: usize,
    /// How many messages were looked at.
    at: usize,
    /// Where the turn of the last answer began: results that come later in it are moved to its front.
    turn: usize,
}

impl Sendable {
    pub(super) const NOTHING: Self = Sendable { len: 0, at: 0, turn: 0 };

    /// Their number, after a look at new messages.
    pub(super) fn of(mut self, messages: &[Message]) -> usize {
        self.advance(messages);
        self.len
    }

    /// Looks at the messages from `at` on.
    pub(super) fn advance(&mut self, messages: &[Message]) {
        while let Some(message) = messages.get(self.at) {
            if message.role != Role::Assistant {
                if message.results().next().is_some() {
                    self.len = self.turn;
                    return;
                }
                self.at += 1;
            } else if message.tool_uses().next().is_none() {
                self.at += 1;
                self.turn = self.at;
            } else if messages.get(self.at + 1).is_some_and(|next| is_answered(message, next)) {
                self.turn = self.at;
                self.at += 2;
            } else {
                break;
            }
        }
        self.len = self.at;
    }

    /// Forgets the messages after the first `len`. The last turn among these is looked at again, or all of
    /// them if `turn` is not among them: results in the place of an answer belong to the turn before it.
    pub(super) fn truncate(&mut self, len: usize) {
        if self.at >= len {
            let at = if self.turn < len { self.turn } else { 0 };
            *self = Sendable { len: at, at, turn: at };
        }
    }
}

/// Whether a message has the results of all calls of an answer, in their order, and nothing else.
pub(crate) fn is_answered(answer: &Message, next: &Message) -> bool {
    match (&*answer.content, &*next.content) {
        // Most turns: without iterators this costs a third.
        ([Block::ToolUse(call)], [Block::ToolResult(result)]) => {
            next.role != Role::Assistant && call.id == result.tool_use_id
        }
        _ => {
            let ids = next.results().map(|result| &result.tool_use_id);
            next.role != Role::Assistant
                && is_results(next)
                && ids.eq(answer.tool_uses().map(|call| &call.id))
        }
    }
}

/// Whether a message has results and nothing else.
pub(crate) fn is_results(message: &Message) -> bool {
    !message.content.is_empty() && message.content.iter().all(|block| block.as_tool_result().is_some())
}
