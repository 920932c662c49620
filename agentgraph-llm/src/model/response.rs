//! The response of a chat model.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::{Extra, RawJson};
use crate::message::Message;
use crate::model::{RateLimits, Usage};

/// The response of a chat model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatResponse {
    /// The assistant's message. Its `id` is assigned by this crate, not by the provider.
    pub message: Message,
    /// The reason for the end of the message.
    pub stop: StopReason,
    /// The tokens used.
    pub usage: Usage,
    /// The model, as the provider names it.
    pub model: String,
    /// The provider's id of the response.
    pub id: String,
    /// Further fields, such as Anthropic's `stop_sequence` and `stop_details`.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
    /// The usage as the provider wrote it, with the counts that [`usage`](Self::usage) has no place for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_usage: Option<RawJson>,
    /// The provider's id of the request, which its support asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider's rate limits at the time of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RateLimits>,
}

impl ChatResponse {
    /// A response without usage, model and id. For authors of models.
    pub fn new(message: Message, stop: StopReason) -> Self {
        let response = ChatResponse {
            message,
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            model: String::new(),
            id: String::new(),
            extra: Extra::new(),
            raw_usage: None,
            request_id: None,
            limits: None,
        };
        response.with_stop(stop)
    }

    /// Sets why the message ended. The message keeps whether its calls can be run.
    #[must_use]
    pub fn with_stop(mut self, stop: StopReason) -> Self {
        let is_incomplete = stop.is_truncated() || stop == StopReason::Refusal;
        // A change of a shared message would copy it.
        if self.message.is_incomplete != is_incomplete {
            self.message.is_incomplete = is_incomplete;
        }
        self.stop = stop;
        self
    }

    /// Sets the tokens used.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the name of the model.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the provider's id.
    pub fn with_response_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }
}

/// The reason for the end of a message. Any other reason is an error, [`Code::StopReason`](crate::Code), and
/// its message no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its answer.
    EndTurn,
    /// The limit of output tokens was reached; the last block may be cut.
    MaxTokens,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The provider paused a long turn: send the message back unchanged to continue.
    PauseTurn,
    /// The model refused.
    Refusal,
    /// The context window is full; the last block may be cut.
    ContextWindowExceeded,
}

impl StopReason {
    /// Whether the last block may be cut.
    pub fn is_truncated(&self) -> bool {
        matches!(self, StopReason::MaxTokens | StopReason::ContextWindowExceeded)
    }

    /// The reason as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::ToolUse => "tool_use",
            StopReason::PauseTurn => "pause_turn",
            StopReason::Refusal => "refusal",
            StopReason::ContextWindowExceeded => "model_context_window_exceeded",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
