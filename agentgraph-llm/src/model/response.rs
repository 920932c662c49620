//! The response of a chat model.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::json::{Extra, RawJson};
use crate::message::Message;
use crate::model::RateLimits;

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
        ChatResponse {
            message,
            stop,
            usage: Usage::default(),
            model: String::new(),
            id: String::new(),
            extra: Extra::new(),
            raw_usage: None,
            request_id: None,
            limits: None,
        }
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

/// The tokens used by a response, in the same sense for every provider: the totals include their parts.
///
/// ```
/// use agentgraph_llm::Usage;
///
/// let total = Usage::new(100, 20) + Usage::new(50, 5);
/// assert_eq!((total.input_total, total.output_total, total.total()), (150, 25, 175));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens, including cached ones.
    pub input_total: u64,
    /// The part of the input that was read from a cache.
    pub input_cached_read: u64,
    /// The part of the input that was written to a cache.
    pub input_cache_write: u64,
    /// All output tokens, including thinking.
    pub output_total: u64,
    /// The part of the output that is thinking.
    pub output_reasoning: u64,
}

impl Usage {
    /// Input and output tokens, without cache and thinking.
    pub fn new(input_total: u64, output_total: u64) -> Self {
        Usage { input_total, output_total, ..Usage::default() }
    }

    /// The sum of input and output.
    pub fn total(&self) -> u64 {
        self.input_total.saturating_add(self.output_total)
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            input_total: self.input_total.saturating_add(other.input_total),
            input_cached_read: self.input_cached_read.saturating_add(other.input_cached_read),
            input_cache_write: self.input_cache_write.saturating_add(other.input_cache_write),
            output_total: self.output_total.saturating_add(other.output_total),
            output_reasoning: self.output_reasoning.saturating_add(other.output_reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(usages: I) -> Usage {
        usages.fold(Usage::default(), Add::add)
    }
}
