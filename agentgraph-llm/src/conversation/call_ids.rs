//! Calls with ids of their own.
//!
//! Results, questions to persons and idempotency keys are found by the id of a call. Some servers number the
//! calls of each answer from 0, and some give two calls of one answer the same id.

use std::collections::BTreeSet;

use futures_util::StreamExt;

use crate::message::{Block, ToolUse};
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
    // Most answers: a change of the message would copy it if it is shared.
    let is_new = |call: &ToolUse| !call.id.is_empty() && !is_in_conversation(&call.id);
    if response.message.tool_uses().nth(1).is_none() && response.message.tool_uses().all(is_new) {
        return;
    }
    let mut stored = AnswerIds::default();
    for block in &mut response.message.content {
        if let Block::ToolUse(call) = block {
            stored.add(&mut call.id, &is_in_conversation);
        }
    }
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
