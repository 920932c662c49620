//! The values of `finish_reason`, of OpenAI and of the servers that are compatible with it.

use std::borrow::Cow;

use crate::model::StopReason;
use crate::model::end::End;
use crate::{anthropic, gemini};

/// An end is spelled as documented. What is no end is recognised in any case, because it only has to be
/// refused.
enum FinishReason {
    Stop,
    ToolCalls,
    /// The older name of `tool_calls`.
    FunctionCall,
    Length,
    ContextWindow,
    ContentFilter,
    /// The server failed within the answer, or was interrupted.
    Failure,
    /// The model wrote a call that the server could not read.
    MalformedCall,
    Unknown,
}

impl FinishReason {
    fn parse(word: &str, further_ends: &[Cow<'static, str>]) -> Self {
        match word {
            "stop" => return FinishReason::Stop,
            "tool_calls" => return FinishReason::ToolCalls,
            "function_call" => return FinishReason::FunctionCall,
            _ if further_ends.iter().any(|end| end == word) => return FinishReason::Stop,
            _ => {}
        }
        match word.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "max_output_tokens" | "max_completion_tokens" | "token_limit" => {
                FinishReason::Length
            }
            "model_length"
            | "context_length"
            | "context_length_exceeded"
            | "context_window_exceeded"
            | "model_context_window_exceeded" => FinishReason::ContextWindow,
            "content_filter" | "content_filtered" | "sensitive" | "safety" | "refusal" => {
                FinishReason::ContentFilter
            }
            "error"
            | "failed"
            | "failure"
            | "abort"
            | "aborted"
            | "cancelled"
            | "canceled"
            | "timeout"
            | "interrupted"
            | "network_error"
            | "server_error"
            | "insufficient_system_resource"
            | "load"
            | "unload" => FinishReason::Failure,
            word if word.contains("malformed") => FinishReason::MalformedCall,
            _ => FinishReason::Unknown,
        }
    }
}

/// The end that a value of `finish_reason` is.
pub(super) fn end(word: &str, further_ends: &[Cow<'static, str>]) -> End {
    match FinishReason::parse(word, further_ends) {
        FinishReason::Stop => End::Stop(StopReason::EndTurn),
        FinishReason::ToolCalls | FinishReason::FunctionCall => End::Stop(StopReason::ToolUse),
        FinishReason::Length => End::Stop(StopReason::MaxTokens),
        FinishReason::ContextWindow => End::Stop(StopReason::ContextWindowExceeded),
        FinishReason::ContentFilter => End::Stop(StopReason::Refusal),
        FinishReason::Failure | FinishReason::MalformedCall => End::failed(word),
        FinishReason::Unknown => End::unknown(word),
    }
}

/// The end that a router passes on beside its own, as the provider behind it wrote it. It counts only where
/// it is worse, and only if it is known, because the router has judged it.
pub(super) fn native_end(word: &str) -> End {
    let known = |end: End| match end {
        End::Failed { is_retryable: false, .. } => End::Missing,
        end => end,
    };
    let ends = [known(end(word, &[])), known(anthropic::end_of_word(word)), gemini::end_of_word(word)];
    let worst = ends.into_iter().fold(End::Missing, End::or_worse);
    if worst.is_bad() { worst } else { End::Missing }
}
