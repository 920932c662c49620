//! Calls with ids of their own.
//!
//! Results, questions to persons and idempotency keys are found by the id of a call. Some servers number the
//! calls of each answer from 0, and some give two calls of one answer the same id.

use std::collections::BTreeSet;

use futures_util::StreamExt;

use crate::message::{Block, Message};
use crate::model::{ChatEvent, ChatResponse, ChatStream};

/// The stream of an answer in which an id that a call before it has gets a number at its end, such as
/// `call_0-2`, and an empty one is `call`. The provider gets the call back under that id, with its result.
pub(crate) fn with_distinct_calls(
    stream: ChatStream,
    is_in_conversation: impl Fn(&str) -> bool + Send + 'static,
) -> ChatStream {
    let mut heard = AnswerIds::default();
    ChatStream::new(stream.map(move |event| {
        let mut event = event?;
        match &mut event {
            ChatEvent::ToolUseStarted { id, .. } => heard.add(id, &is_in_conversation),
            ChatEvent::Restarted {} => heard = AnswerIds::default(),
            // An id that was heard is new: the conversation was searched for it when its call began.
            ChatEvent::Finished(response) => {
                make_calls_distinct(response, |id| !heard.0.contains(id) && is_in_conversation(id));
            }
            _ => {}
        }
        Ok(event)
    }))
}

/// The same for an answer that came as a whole.
pub(crate) fn make_calls_distinct(response: &mut ChatResponse, is_in_conversation: impl Fn(&str) -> bool) {
    let mut stored = AnswerIds::default();
    for block in &mut response.message.content {
        if let Block::ToolUse(call) = block {
            stored.add(&mut call.id, &is_in_conversation);
        }
    }
}

/// Whether a message of the conversation has a call with this id. Without a set of all ids, which each round
/// would have to copy.
pub(crate) fn has_call(messages: &[Message], id: &str) -> bool {
    messages.iter().flat_map(Message::tool_uses).any(|call| is_same(&call.id, id))
}

/// Whether a message of the conversation has this id.
pub(crate) fn has_message(messages: &[Message], id: &str) -> bool {
    messages.iter().any(|message| is_same(&message.id, id))
}

/// Ids of one source are often alike up to a number at their ends: a look there saves most comparisons.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.as_bytes().last() == other.as_bytes().last() && one == other
}

/// The ids of the calls of one answer.
#[derive(Default)]
struct AnswerIds(BTreeSet<String>);

impl AnswerIds {
    fn add(&mut self, id: &mut String, is_in_conversation: impl Fn(&str) -> bool) {
        if id.is_empty() {
            "call".clone_into(id);
        }
        let is_known = |id: &str| self.0.contains(id) || is_in_conversation(id);
        if is_known(id) {
            let free = (2_u64..).map(|number| format!("{id}-{number}")).find(|other| !is_known(other));
            *id = free.unwrap_or_default();
        }
        self.0.insert(id.clone());
    }
}
