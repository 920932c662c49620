//! Calls with ids of their own.
//!
//! Results, questions to persons and idempotency keys are found by the id of a call. Some servers number the
//! calls of each answer from 0, and some give two calls of one answer the same id.

use std::collections::BTreeSet;

use futures_util::StreamExt;

use crate::message::{Block, Message};
use crate::model::{ChatEvent, ChatStream};

/// The stream of an answer in which an id that a call before it has gets a number at its end, such as
/// `call_0-2`, and an empty one is `call`. The provider gets the call back under that id, with its result.
pub(crate) fn with_distinct_calls(stream: ChatStream, conversation: &[Message]) -> ChatStream {
    let before: BTreeSet<String> =
        conversation.iter().flat_map(Message::tool_uses).map(|call| call.id.clone()).collect();
    let mut heard = before.clone();
    ChatStream::new(stream.map(move |event| {
        let mut event = event?;
        match &mut event {
            ChatEvent::ToolUseStarted { id, .. } => make_distinct(id, &mut heard),
            ChatEvent::Restarted {} => heard.clone_from(&before),
            ChatEvent::Finished(response) => {
                heard.clone_from(&before);
                for block in &mut response.message.content {
                    if let Block::ToolUse(call) = block {
                        make_distinct(&mut call.id, &mut heard);
                    }
                }
            }
            _ => {}
        }
        Ok(event)
    }))
}

fn make_distinct(id: &mut String, known: &mut BTreeSet<String>) {
    if id.is_empty() {
        "call".clone_into(id);
    }
    if known.contains(id.as_str()) {
        let free = (2_u64..).map(|number| format!("{id}-{number}")).find(|other| !known.contains(other));
        *id = free.unwrap_or_default();
    }
    known.insert(id.clone());
}
