//! What a model answers.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::json::Extra;
use crate::message::Message;

/// What a model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatResponse {
    /// The assistant's message. Its `id` is ours, not the provider's.
    pub message: Message,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What it cost in tokens.
    pub usage: Usage,
    /// The model that answered, as it names itself.
    pub model: String,
    /// The provider's id of the answer.
    pub id: String,
    /// Further fields, such as Anthropic's `stop_sequence` and `stop_details`.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ChatResponse {
    /// An answer without usage, model and id. For authors of models.
    pub fn new(message: Message, stop: StopReason) -> Self {
        let usage = Usage::default();
        let extra = Extra::new();
        ChatResponse { message, stop, usage, model: String::new(), id: String::new(), extra }
    }

    /// The same answer with what it cost.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same answer with the model that gave it.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// The same answer with the provider's id.
    pub fn with_response_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }
}

/// Why a model stopped. Open: a reason this crate has no name for is kept as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It said all it wanted to say.
    EndTurn,
    /// It reached the most tokens to write; the last block may be cut.
    MaxTokens,
    /// It wrote one of the stop texts.
    StopSequence,
    /// It waits for the results of its calls.
    ToolUse,
    /// The provider paused a long turn: send the message back unchanged to go on.
    PauseTurn,
    /// It refused.
    Refusal,
    /// The conversation does not fit into the model's window; the last block may be cut.
    ContextWindowExceeded,
    /// Another reason, in the provider's word; empty when it gave none.
    Other(String),
}

impl StopReason {
    /// Whether the last block may be cut.
    pub fn is_truncated(&self) -> bool {
        matches!(self, StopReason::MaxTokens | StopReason::ContextWindowExceeded)
    }

    /// The reason in one word.
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::ToolUse => "tool_use",
            StopReason::PauseTurn => "pause_turn",
            StopReason::Refusal => "refusal",
            StopReason::ContextWindowExceeded => "model_context_window_exceeded",
            StopReason::Other(reason) => reason,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What an answer cost in tokens, counted alike for every provider: the totals include all their parts.
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
    /// All tokens read, cached ones too.
    pub input_total: u64,
    /// Of these, read from a cache.
    pub input_cached_read: u64,
    /// Of these, written to a cache.
    pub input_cache_write: u64,
    /// All tokens written, thoughts too.
    pub output_total: u64,
    /// Of these, thoughts.
    pub output_reasoning: u64,
}

impl Usage {
    /// Tokens read and written, no cache, no thoughts.
    pub fn new(input_total: u64, output_total: u64) -> Self {
        Usage { input_total, output_total, ..Usage::default() }
    }

    /// Read and written together.
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
