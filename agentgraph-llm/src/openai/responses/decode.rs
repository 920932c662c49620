//! A whole response of the Responses API.

use crate::error::{Code, Error, Result};
use crate::json::{Object, RawJson};
use crate::message::{Block, Message, Role, TextBlock};
use crate::model::end::{Built, End, with_partial};
use crate::model::{ChatResponse, StopReason, TokenCount};

use super::items;
use crate::openai::wire::{self, filled, parse_object, take_some, text_of, undecodable};
use crate::openai::{failure, usage};

/// Reads the body of a successful, unstreamed answer.
///
/// # Errors
/// `E_LLM_DECODE` if the body is not a JSON object with a list `output`; the provider's error if the response
/// failed or was cancelled; `E_LLM_STOP_REASON` or `E_LLM_TRUNCATED` if its status is no end.
///
/// ```
/// use agentgraph_llm::{StopReason, openai};
///
/// let body = br#"{"id": "resp_1", "model": "m", "status": "completed", "output": [{"type": "message", "id": "msg_1",
///     "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}],
///     "usage": {"input_tokens": 10, "output_tokens": 1}}"#;
/// let response = openai::responses::decode(body)?;
/// assert_eq!((response.message.text().as_str(), &response.stop), ("Hi", &StopReason::EndTurn));
/// assert_eq!(response.usage.input_total, 10);
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode(body: &[u8]) -> Result<ChatResponse> {
    let mut fields = parse_object(body)?;
    let output = items_of(&mut fields);
    if failure::says_error(&fields) {
        return Err(failure::from_event(&fields));
    }
    let Some(output) = output else {
        return Err(undecodable("the answer has no list of `output`", body));
    };
    let blocks = output.into_iter().map(items::blocks).collect::<Result<Vec<_>>>()?;
    response(fields, "", blocks.concat())?.into_response()
}

/// Reads the body of a token count.
///
/// # Errors
/// `E_LLM_DECODE` if it has no number `input_tokens`.
///
/// ```
/// use agentgraph_llm::{TokenCount, openai};
///
/// let count = openai::responses::decode_count(br#"{"object": "response.input_tokens", "input_tokens": 7}"#)?;
/// assert_eq!(count, TokenCount::exact(7));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode_count(body: &[u8]) -> Result<TokenCount> {
    let tokens = parse_object(body)?.get_as("input_tokens");
    tokens.map(TokenCount::exact).ok_or_else(|| undecodable("the answer has no `input_tokens`", body))
}

/// Fields that repeat the request, or say nothing.
const REPEATED: [&str; 26] = [
    "object",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "text",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "truncation",
    "reasoning",
    "user",
    "prompt",
    "previous_response_id",
    "conversation",
    "top_logprobs",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "stream",
    "include",
];

/// The values of `status`.
enum Status {
    Completed,
    Incomplete,
    Failed,
    Cancelled,
    /// Without an end yet, as a response in the background is.
    InProgress,
    Queued,
    Missing,
    Unknown,
}

impl Status {
    fn parse(word: &str) -> Self {
        match word {
            "completed" => Status::Completed,
            "incomplete" => Status::Incomplete,
            "failed" => Status::Failed,
            "cancelled" => Status::Cancelled,
            "in_progress" => Status::InProgress,
            "queued" => Status::Queued,
            "" => Status::Missing,
            _ => Status::Unknown,
        }
    }
}

/// The reasons of `incomplete_details`.
enum IncompleteReason {
    MaxOutputTokens,
    ContentFilter,
    Missing,
    Unknown,
}

impl IncompleteReason {
    fn parse(word: &str) -> Self {
        match word {
            "max_output_tokens" | "max_tokens" => IncompleteReason::MaxOutputTokens,
            "content_filter" => IncompleteReason::ContentFilter,
            "" => IncompleteReason::Missing,
            _ => IncompleteReason::Unknown,
        }
    }
}

/// The response of these blocks. `status` is that of the last event of a stream.
pub(super) fn response(mut fields: Object, status: &str, content: Vec<Block>) -> Result<Built> {
    let own = fields.take_as::<String>("status").unwrap_or_default();
    // Neither hides what the other one says.
    let end = end(&own, &fields, &content).or_worse(end(status, &fields, &content));
    let is = |word: &str| own == word || status == word;
    let error = if is("cancelled") {
        Some(Error::new(Code::Server, "the response was cancelled at the provider: ask again"))
    } else {
        (is("failed") || failure::says_error(&fields)).then(|| failure::from_event(&fields))
    };
    let mut text = |name| fields.take_as::<String>(name).unwrap_or_default();
    let (id, model) = (text("id"), text("model"));
    let usage = take_some(&mut fields, "usage");
    let mut response = ChatResponse::new(Message::new(Role::Assistant, content), StopReason::EndTurn)
        .with_model(model)
        .with_response_id(id);
    response.usage = usage.as_ref().map(usage::normalised).unwrap_or_default();
    response.raw_usage = usage;
    for (name, value) in fields.iter() {
        if !REPEATED.contains(&name) && !value.is_blank() {
            response.extra.insert(name, value.clone());
        }
    }
    match error {
        Some(error) => Err(with_partial(error, response)),
        None => Ok(Built { response, end }),
    }
}

fn end(status: &str, fields: &Object, content: &[Block]) -> End {
    let details: Object = fields.get_as("incomplete_details").unwrap_or_default();
    let reason = filled(&details, "reason").unwrap_or_default();
    match Status::parse(status) {
        // The reason says more than a status that was set too early.
        Status::Completed if !reason.is_empty() => end("incomplete", fields, content),
        Status::Completed if content.iter().any(is_incomplete) => End::Stop(StopReason::MaxTokens),
        Status::Completed if content.iter().any(|block| block.as_tool_use().is_some()) => {
            End::Stop(StopReason::ToolUse)
        }
        Status::Completed if content.iter().any(is_refusal) => End::Stop(StopReason::Refusal),
        Status::Completed => End::Stop(StopReason::EndTurn),
        Status::Incomplete => match IncompleteReason::parse(&reason) {
            IncompleteReason::MaxOutputTokens => End::Stop(StopReason::MaxTokens),
            IncompleteReason::ContentFilter => End::Stop(StopReason::Refusal),
            IncompleteReason::Missing => End::failed(status),
            IncompleteReason::Unknown => End::unknown(&reason),
        },
        Status::Failed | Status::Cancelled | Status::InProgress | Status::Queued => End::failed(status),
        Status::Missing => End::Missing,
        Status::Unknown => End::unknown(status),
    }
}

/// Whether the message that a text is part of was cut.
fn is_incomplete(block: &Block) -> bool {
    let Block::Text(text) = block else { return false };
    let item = text.extra.get(items::ITEM).and_then(|item| Object::parse(item.get()).ok());
    item.is_some_and(|item| filled(&item, "status").as_deref() == Some("incomplete"))
}

fn is_refusal(block: &Block) -> bool {
    matches!(block, Block::Text(TextBlock { extra, .. }) if text_of(extra, "type").as_deref() == Some("refusal"))
}

/// A list of items from a field that may be missing.
pub(super) fn output(fields: &mut Object) -> Vec<RawJson> {
    items_of(fields).unwrap_or_default()
}

/// The items of the output. One that comes again, with its id and all else, is one item.
fn items_of(fields: &mut Object) -> Option<Vec<RawJson>> {
    let mut all: Vec<RawJson> = Vec::new();
    for item in wire::items(&take_some(fields, "output")?)? {
        let has_id = || Object::parse(item.get()).is_ok_and(|item| filled(&item, "id").is_some());
        if !(all.contains(&item) && has_id()) {
            all.push(item);
        }
    }
    Some(all)
}
