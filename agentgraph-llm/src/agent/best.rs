//! [`BestAnswer`]: the best that a conversation has, for runs that end without an answer.

use crate::conversation::answer_with;
use crate::message::{Message, Role};

/// The best answer that a conversation has so far: see [`AgentAnswer::best`](super::AgentAnswer::best).
///
/// ```
/// use agentgraph_llm::agent::BestAnswer;
/// use agentgraph_llm::prelude::*;
/// use serde_json::json;
///
/// let call = |id: &str| ToolUse::new(id, "count", json!({}));
/// let mut messages = vec![Message::user("How many?"), Message::new(Role::Assistant, [call("call-1")])];
/// assert_eq!(BestAnswer::of(&messages), BestAnswer::Nothing);
///
/// messages.push(Message::tool_results([ToolResult::text("call-1", "7")]));
/// assert_eq!(BestAnswer::of(&messages), BestAnswer::ToolResult { tool: "count".into(), text: "7".into() });
///
/// messages.push(Message::new(Role::Assistant, [Block::text("Seven, I think."), call("call-2").into()]));
/// assert_eq!(BestAnswer::of(&messages).text(), Some("Seven, I think."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BestAnswer {
    /// The run finished with this text.
    Final(String),
    /// The run has not finished, and this is the last text that the model wrote in it.
    Text(String),
    /// The model wrote no text, and this is the result of the last call that succeeded.
    ToolResult {
        /// The tool that was called.
        tool: String,
        /// The text of its result.
        text: String,
    },
    /// There is neither a text nor a result.
    Nothing,
}

impl BestAnswer {
    /// The best in the messages after the last one of the person. It is never [`Final`](BestAnswer::Final):
    /// a conversation does not say whether its run has finished.
    pub fn of(messages: &[Message]) -> Self {
        let is_said = |message: &Message| message.role == Role::User && message.results().next().is_none();
        let since = messages.iter().rposition(is_said).map_or(messages, |at| &messages[at + 1..]);
        let texts = since.iter().rev().filter(|message| message.role == Role::Assistant).map(Message::text);
        if let Some(text) = texts.into_iter().find(|text| !text.trim().is_empty()) {
            return BestAnswer::Text(text);
        }
        let results: Vec<_> = since.iter().flat_map(Message::results).collect();
        let found = results.into_iter().rev().find(|result| !result.is_error && has_text(&result.as_text()));
        found.map_or(BestAnswer::Nothing, |result| {
            let call = answer_with(since, &result.tool_use_id)
                .and_then(|answer| answer.tool_uses().find(|call| call.id == result.tool_use_id));
            let tool = call.map(|call| call.name.clone()).unwrap_or_default();
            BestAnswer::ToolResult { tool, text: result.as_text() }
        })
    }

    /// The text; `None` if there is nothing.
    pub fn text(&self) -> Option<&str> {
        match self {
            BestAnswer::Final(text) | BestAnswer::Text(text) | BestAnswer::ToolResult { text, .. } => {
                Some(text)
            }
            BestAnswer::Nothing => None,
        }
    }

    /// Whether the run finished with it.
    pub fn is_final(&self) -> bool {
        matches!(self, BestAnswer::Final(_))
    }
}

fn has_text(text: &str) -> bool {
    !text.trim().is_empty()
}
