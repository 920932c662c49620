//! A tolerant decoder of the responses of Anthropic's Messages API. Unknown content is kept raw, and missing
//! fields that are not needed are no error.

use crate::error::{Code, Error, Result};
use crate::http::says_error;
use crate::json::{Object, RawJson, WireValue, extension, is_same_json};
use crate::message::{
    Block, Message, MessageIds, RedactedThinking, Role, TextBlock, Thinking, ToolInput, ToolUse,
};
use crate::model::end::{Built, End};
use crate::model::{ChatResponse, StopReason, TokenCount, Usage};

use super::assembly::broken;
use super::failure;

/// Reads the body of a successful, unstreamed answer.
///
/// # Errors
/// `E_LLM_DECODE` if the body is not a JSON object with a list `content`; the provider's error if the body is
/// one; `E_LLM_STOP_REASON` or `E_LLM_TRUNCATED` if the message has no end.
///
/// ```
/// use agentgraph_llm::{StopReason, anthropic};
///
/// let body = br#"{"id": "msg_1", "model": "claude-test", "content": [{"type": "text", "text": "Hi"}],
///     "stop_reason": "end_turn", "usage": {"input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 1}}"#;
/// let response = anthropic::decode(body)?;
/// assert_eq!((response.message.text().as_str(), &response.stop), ("Hi", &StopReason::EndTurn));
/// assert_eq!(response.usage.input_total, 10);
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode(body: &[u8]) -> Result<ChatResponse> {
    let mut fields = parse_answer(body)?;
    let Some(content) = fields.take_as::<Vec<WireValue>>("content") else {
        return Err(undecodable("the answer has no list of `content`", body));
    };
    let mut usage = WireUsage::default();
    usage.update(fields.take_as("usage").unwrap_or_default());
    let blocks = content.into_iter().map(|raw| block(raw.0)).collect::<Result<Vec<_>>>()?;
    let mut response = ResponseHead::take(&mut fields).into_response(blocks);
    usage.add_to(&mut response);
    let end = end(fields.take("stop_reason"));
    keep_rest(&mut response, fields);
    Built { response, end }.into_response()
}

/// Reads the body of an answer with the number of tokens of a request.
///
/// # Errors
/// `E_LLM_DECODE` if the body has no number `input_tokens`; the provider's error if the body is one.
///
/// ```
/// use agentgraph_llm::anthropic;
///
/// let count = anthropic::decode_count(br#"{"input_tokens": 2095}"#)?;
/// assert_eq!((count.tokens, count.is_exact), (2095, true));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode_count(body: &[u8]) -> Result<TokenCount> {
    let fields = parse_answer(body)?;
    let tokens = fields.get_as("input_tokens");
    tokens.map(TokenCount::exact).ok_or_else(|| undecodable("the answer has no `input_tokens`", body))
}

/// The id and the model of a response.
#[derive(Debug, Default)]
pub(super) struct ResponseHead {
    id: String,
    model: String,
}

impl ResponseHead {
    pub(super) fn take(fields: &mut Object) -> Self {
        let mut text = |name| fields.take_as::<String>(name).unwrap_or_default();
        ResponseHead { id: text("id"), model: text("model") }
    }

    pub(super) fn into_response(self, content: impl IntoIterator<Item = Block>) -> ChatResponse {
        let message = Message::new(Role::Assistant, content);
        let response = ChatResponse::new(message, StopReason::EndTurn);
        response.with_model(self.model).with_response_id(self.id)
    }
}

/// Keeps the fields that were not read, except those without information.
pub(super) fn keep_rest(response: &mut ChatResponse, rest: Object) {
    for (name, value) in rest.iter() {
        if !matches!(name, "type" | "role") && value.get() != "null" {
            response.extra.insert(name, value.clone());
        }
    }
}

/// The object of an answer that is not an error.
fn parse_answer(body: &[u8]) -> Result<Object> {
    let fields = parse_object(body)?;
    match fields.get_as::<String>("type").as_deref() {
        Some("error") => Err(failure::from_event(&fields)),
        _ if says_error(&fields) => Err(failure::from_event(&fields)),
        _ => Ok(fields),
    }
}

pub(super) fn parse_object(body: &[u8]) -> Result<Object> {
    let text = std::str::from_utf8(body).map_err(|_| undecodable("the answer is not UTF-8", body))?;
    Object::parse(text)
        .map_err(|error| undecodable(&format!("the answer is not a JSON object ({error})"), body))
}

pub(super) fn undecodable(what: &str, body: &[u8]) -> Error {
    let message = format!(
        "{what}, in {} bytes: check that the base URL is that of a server that speaks the Messages API",
        body.len()
    );
    Error::new(Code::Decode, message)
}

/// Decodes a block if it has a known type and the fields of that type, and keeps it raw otherwise.
///
/// # Errors
/// If a text of it is half a character, which nothing could keep.
pub(super) fn block(raw: RawJson) -> Result<Block> {
    match known_block(&raw) {
        Some(block) => Ok(block),
        None if has_half_a_character(&raw) => Err(broken("half of a UTF-16 pair without its other half")),
        // Kept as an unknown block, the call would be lost.
        None if Object::parse(raw.get()).is_ok_and(|fields| is_call(&fields)) => {
            Err(broken("a tool call whose name or id cannot be read"))
        }
        None => Ok(Block::Unknown(raw)),
    }
}

/// Whether a block is the same as its whole view, as far as that goes.
pub(super) fn is_same(known: &Block, raw: &RawJson) -> Result<bool> {
    Ok(match (known, &block(raw.clone())?) {
        (Block::Text(known), Block::Text(whole)) => extension(&known.text, &whole.text) == Ok(""),
        (Block::Thinking(known), Block::Thinking(whole)) => {
            extension(&known.thinking, &whole.thinking) == Ok("")
        }
        (Block::ToolUse(known), Block::ToolUse(whole)) => {
            let (text, whole_text) = (known.input.text(), whole.input.text());
            known.id == whole.id
                && known.name == whole.name
                && (whole_text == "{}" || text == whole_text || is_same_json(text, whole_text))
        }
        (known, whole) => std::mem::discriminant(known) == std::mem::discriminant(whole),
    })
}

fn has_half_a_character(raw: &RawJson) -> bool {
    let texts = ["text", "thinking", "name", "id", "data", "signature"];
    Object::parse(raw.get()).is_ok_and(|fields| {
        let is_half = |value: &RawJson| value.is_string() && value.parse::<String>().is_err();
        texts.iter().any(|name| fields.get(name).is_some_and(is_half))
    })
}

fn known_block(raw: &RawJson) -> Option<Block> {
    let mut fields = Object::parse(raw.get()).ok()?;
    let block = match fields.take_as::<String>("type")?.as_str() {
        "text" => TextBlock { text: fields.take_as("text")?, extra: fields.into_extra() }.into(),
        "tool_use" => ToolUse {
            id: fields
                .take("id")
                .filter(|id| !id.is_blank())
                .map_or_else(|| Some(made_id()), |id| id.parse().ok())?,
            name: fields.take_as::<String>("name").filter(|name| !name.is_empty())?,
            input: tool_input(fields.take("input")),
            extra: fields.into_extra(),
        }
        .into(),
        "thinking" => Thinking {
            thinking: fields.take_as("thinking")?,
            signature: fields.take_as("signature"),
            extra: fields.into_extra(),
        }
        .into(),
        "redacted_thinking" => {
            RedactedThinking { data: fields.take_as("data")?, extra: fields.into_extra() }.into()
        }
        _ => return None,
    };
    Some(block)
}

fn is_call(fields: &Object) -> bool {
    fields.get_as::<String>("type").as_deref() == Some("tool_use")
}

/// An id for a call that came without one, since its result has to name it.
pub(super) fn made_id() -> String {
    format!("call_{}", MessageIds::default().next_id())
}

/// Some servers give the input as the text of its JSON.
fn tool_input(raw: Option<RawJson>) -> ToolInput {
    match raw.filter(|raw| !raw.is_blank()) {
        None => ToolInput::Json(RawJson::empty_object()),
        Some(raw) => match raw.parse::<String>() {
            Ok(text) => ToolInput::from_text(text),
            Err(_) => ToolInput::Json(raw),
        },
    }
}

/// The reasons to stop of the Messages API.
enum WireStop {
    EndTurn,
    MaxTokens,
    StopSequence,
    ToolUse,
    PauseTurn,
    /// The server shortened the conversation: it goes on like a paused turn.
    Compaction,
    Refusal,
    ContextWindow,
    Unknown,
}

impl WireStop {
    fn parse(word: &str) -> Self {
        match word {
            "end_turn" => WireStop::EndTurn,
            "max_tokens" => WireStop::MaxTokens,
            "stop_sequence" => WireStop::StopSequence,
            "tool_use" => WireStop::ToolUse,
            "pause_turn" => WireStop::PauseTurn,
            "compaction" => WireStop::Compaction,
            "refusal" => WireStop::Refusal,
            "model_context_window_exceeded" => WireStop::ContextWindow,
            _ => WireStop::Unknown,
        }
    }
}

pub(super) fn end(reason: Option<RawJson>) -> End {
    match reason.filter(|raw| !raw.is_blank()) {
        Some(raw) => end_of_word(&raw.parse::<String>().unwrap_or_else(|_| raw.get().to_owned())),
        None => End::Missing,
    }
}

/// The end that a reason to stop is.
pub(crate) fn end_of_word(word: &str) -> End {
    match WireStop::parse(word) {
        WireStop::EndTurn => End::Stop(StopReason::EndTurn),
        WireStop::MaxTokens => End::Stop(StopReason::MaxTokens),
        WireStop::StopSequence => End::Stop(StopReason::StopSequence),
        WireStop::ToolUse => End::Stop(StopReason::ToolUse),
        WireStop::PauseTurn | WireStop::Compaction => End::Stop(StopReason::PauseTurn),
        WireStop::Refusal => End::Stop(StopReason::Refusal),
        WireStop::ContextWindow => End::Stop(StopReason::ContextWindowExceeded),
        WireStop::Unknown => End::unknown(word),
    }
}

/// The usage object of a response. Its `input_tokens` exclude tokens read from or written to the cache.
#[derive(Debug, Default)]
pub(super) struct WireUsage(Object);

impl WireUsage {
    pub(super) fn update(&mut self, fields: Object) {
        self.0.update_counts(fields);
    }

    pub(super) fn add_to(self, response: &mut ChatResponse) {
        response.usage = self.normalised();
        response.raw_usage = (!self.0.is_empty()).then(|| self.0.to_json());
    }

    fn normalised(&self) -> Usage {
        let count = |name| self.0.get_as::<u64>(name).unwrap_or_default();
        let cache_read = count("cache_read_input_tokens");
        let cache_write = count("cache_creation_input_tokens");
        let input_total = count("input_tokens").saturating_add(cache_write).saturating_add(cache_read);
        let mut usage = Usage::new(input_total, count("output_tokens"));
        usage.input_cached_read = cache_read;
        usage.input_cache_write = cache_write;
        let details = self.0.get_as::<Object>("output_tokens_details").unwrap_or_default();
        usage.output_reasoning = details.get_as("thinking_tokens").unwrap_or_default();
        usage
    }
}
