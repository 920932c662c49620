//! The end of an answer: only what the provider calls an end is one.
//!
//! Each wire reads the provider's word into an enum of its own and turns that into an [`End`], without a
//! catch-all: an unknown word must not turn a message that broke off into an answer.

use futures_util::{StreamExt, stream};

use super::stream::truncated;
use super::{ChatEvent, ChatResponse, ChatStream, StopReason, Usage};
use crate::error::{Code, Error, Result};
use crate::json::{RawJson, is_same_json};
use crate::message::{Block, ToolUse};

/// How an answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The provider said nothing.
    #[default]
    Missing,
    /// By an end of the message.
    Stop(StopReason),
    /// By something else, such as a failure within the answer.
    Failed {
        /// The provider's word.
        reason: String,
        /// Whether the same request may succeed.
        is_retryable: bool,
    },
}

impl End {
    /// A failure, after which the same request may succeed.
    pub fn failed(reason: &str) -> Self {
        End::Failed { reason: reason.to_owned(), is_retryable: true }
    }

    /// A word that is not known. It would come again.
    pub fn unknown(reason: &str) -> Self {
        End::Failed { reason: reason.to_owned(), is_retryable: false }
    }

    fn rank(&self) -> u8 {
        match self {
            End::Missing => 0,
            End::Stop(StopReason::Refusal) => 2,
            End::Stop(stop) if stop.is_truncated() => 3,
            End::Stop(_) => 1,
            End::Failed { .. } => 4,
        }
    }

    /// Whether it says that the message is incomplete or refused.
    pub(crate) fn is_bad(&self) -> bool {
        self.rank() > 1
    }

    /// The end after a further word: a better one does not hide a worse one.
    #[must_use]
    pub fn or_worse(self, next: End) -> Self {
        if next.rank() >= self.rank() { next } else { self }
    }
}

/// A response as far as it came, and its end.
#[derive(Debug)]
pub struct Built {
    /// The response. Its `stop` is not read.
    pub response: ChatResponse,
    /// Its end.
    pub end: End,
}

impl Built {
    /// The response, if it ended.
    ///
    /// # Errors
    /// `E_LLM_STOP_REASON` if the provider's word is no end, `E_LLM_TRUNCATED` if it said none: with the
    /// message and its usage.
    pub fn into_response(self) -> Result<ChatResponse> {
        let error = match self.end {
            End::Stop(stop) => {
                let mut response = self.response.with_stop(stop);
                drop_repeated_calls(&mut response.message.content);
                if !lacks_its_calls(&response) {
                    return Ok(response);
                }
                let message = "the answer ended for calls, and has none: ask again";
                let error = Error::new(Code::StopReason, message).with_retryable(true);
                return Err(with_partial(error.with_stop_reason(response.stop.as_str()), response));
            }
            End::Missing => Error::new(
                Code::Truncated,
                "the provider did not say that the answer ended: ask again, or read what came as partial",
            ),
            End::Failed { reason, is_retryable } => no_end(&reason, is_retryable),
        };
        Err(with_partial(error, self.response))
    }
}

/// Whether the provider says that there are calls, and none came. A block without a name here may be one.
fn lacks_its_calls(response: &ChatResponse) -> bool {
    let may_call = |block: &Block| matches!(block, Block::ToolUse(_) | Block::Unknown(_));
    let content = &response.message.content;
    response.stop == StopReason::ToolUse && !content.is_empty() && !content.iter().any(may_call)
}

/// Adds to an error what came of the answer before it.
pub(crate) fn with_partial(error: Error, response: ChatResponse) -> Error {
    error.with_usage(response.usage).with_partial(response.message)
}

/// A longer word of a provider is cut.
const MAX_REASON: usize = 100;

fn no_end(reason: &str, is_retryable: bool) -> Error {
    let shown: String = reason.chars().take(MAX_REASON).collect();
    let advice = match is_retryable {
        true => "ask again",
        false => {
            "if it is one, update this crate, or give the profile of a Chat Completions server the word with \
             `also_ends_with(..)`"
        }
    };
    let message =
        format!("the answer ended with `{}`, which is no end of a message: {advice}", shown.escape_debug());
    Error::new(Code::StopReason, message).with_stop_reason(shown).with_retryable(is_retryable)
}

/// A call that comes a second time with its id and its arguments is one call.
fn drop_repeated_calls(content: &mut Vec<Block>) {
    let mut at = 0;
    while at < content.len() {
        let (before, rest) = content.split_at(at);
        let is_repeated = rest[0].as_tool_use().is_some_and(|call| {
            before.iter().filter_map(Block::as_tool_use).any(|known| is_same_call(known, call))
        });
        match is_repeated {
            true => drop(content.remove(at)),
            false => at += 1,
        }
    }
}

fn is_same_call(one: &ToolUse, other: &ToolUse) -> bool {
    let is_same_input = || {
        let (one, other) = (one.input.text(), other.input.text());
        one == other || is_same_json(one, other)
    };
    !one.id.is_empty() && one.id == other.id && one.name == other.name && is_same_input()
}

/// The error of an answer that was empty twice.
pub(crate) fn empty_answer(response: ChatResponse) -> Error {
    let message = "the model ended its answer twice with neither text nor call: change the last message, or use another \
                   model";
    with_partial(Error::new(Code::EmptyAnswer, message), response)
}

/// The events of an answer. If it is empty, the model is asked once more.
pub(crate) fn unless_empty<F>(stream: ChatStream, again: impl FnOnce() -> F + Send + 'static) -> ChatStream
where
    F: Future<Output = Result<ChatStream>> + Send + 'static,
{
    let first = Attempt { stream, again: Some(again), usage: Usage::default(), is_shown: false };
    ChatStream::new(stream::unfold(first, async |mut attempt| Some((attempt.next().await, attempt))))
}

/// The first answer, or the second one.
struct Attempt<A> {
    stream: ChatStream,
    /// How to ask again; `None` in the second answer.
    again: Option<A>,
    /// What the empty answer used.
    usage: Usage,
    is_shown: bool,
}

impl<A, F> Attempt<A>
where
    A: FnOnce() -> F,
    F: Future<Output = Result<ChatStream>>,
{
    async fn next(&mut self) -> Result<ChatEvent> {
        loop {
            let event = match self.stream.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(error.with_usage(self.usage)),
                None => return Err(truncated()),
            };
            let ChatEvent::Finished(mut response) = event else {
                self.is_shown = true;
                return Ok(event);
            };
            response.usage += self.usage;
            if !is_empty(&response) {
                return Ok(ChatEvent::Finished(response));
            }
            let Some(again) = self.again.take() else { return Err(empty_answer(response)) };
            tracing::debug!("the answer is empty: asking again");
            self.usage = response.usage;
            self.stream = again().await.map_err(|error| error.with_usage(self.usage))?;
            if self.is_shown {
                return Ok(ChatEvent::Restarted {});
            }
        }
    }
}

/// Whether a response ended without a text, a call or anything else to show. Thinking alone is no answer.
pub(crate) fn is_empty(response: &ChatResponse) -> bool {
    let is_end = match response.stop {
        StopReason::EndTurn | StopReason::ToolUse => true,
        StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContextWindowExceeded => false,
    };
    is_end && response.message.content.iter().all(says_nothing)
}

fn says_nothing(block: &Block) -> bool {
    match block {
        Block::Text(text) => text.text.is_empty(),
        Block::Thinking(_) | Block::RedactedThinking(_) => true,
        Block::Unknown(raw) => is_thinking(raw),
        Block::ToolUse(_)
        | Block::ToolResult(_)
        | Block::Image(_)
        | Block::Audio(_)
        | Block::Video(_)
        | Block::Document(_) => false,
    }
}

/// Whether an unknown block is thinking: a part of that type, or fields of a message that are all about it.
fn is_thinking(raw: &RawJson) -> bool {
    let is_about = |word: &str| word.contains("thinking") || word.contains("reasoning");
    let fields = raw.parse::<serde_json::Map<String, serde_json::Value>>().unwrap_or_default();
    match fields.get("type").and_then(serde_json::Value::as_str) {
        Some(kind) => is_about(kind),
        None => !fields.is_empty() && fields.keys().all(|name| is_about(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Role, Thinking};

    #[test]
    fn a_later_word_does_not_hide_a_worse_one() {
        let stop = |reason| End::Stop(reason);
        for (words, expected) in [
            (vec![stop(StopReason::ToolUse), stop(StopReason::EndTurn)], stop(StopReason::EndTurn)),
            (vec![stop(StopReason::MaxTokens), stop(StopReason::EndTurn)], stop(StopReason::MaxTokens)),
            (vec![End::failed("error"), stop(StopReason::EndTurn)], End::failed("error")),
            (vec![stop(StopReason::EndTurn), End::Missing], stop(StopReason::EndTurn)),
        ] {
            assert_eq!(words.into_iter().fold(End::Missing, End::or_worse), expected);
        }
    }

    #[test]
    fn thinking_alone_is_no_answer() {
        let response =
            |block: Block| ChatResponse::new(Message::new(Role::Assistant, [block]), StopReason::EndTurn);
        let unknown = |text: &str| Block::Unknown(RawJson::parse_text(text).unwrap());
        for block in [
            Block::text(""),
            Thinking::new("Hm.", None).into(),
            unknown(r#"{"reasoning_details": [{"type": "reasoning.text"}]}"#),
            unknown(r#"{"type": "thinking", "thinking": []}"#),
        ] {
            assert!(is_empty(&response(block.clone())), "{block:?}");
        }
        for block in [
            Block::text("a"),
            unknown(r#"{"audio": {"id": "a"}}"#),
            unknown(r#"{"type": "web_search_call"}"#),
            ToolUse::new("a", "f", RawJson::empty_object()).into(),
        ] {
            assert!(!is_empty(&response(block.clone())), "{block:?}");
        }
    }
}
