//! A whole response of `generateContent`.

use super::answer::PartialResponse;
use crate::error::{Code, Error, Result};
use crate::http::PartialAnswer;
use crate::json::{Object, WireValue};
use crate::message::MessageIds;
use crate::model::end::Built;
use crate::model::{ChatResponse, TokenCount};

/// Decodes the body of a response, also one that holds the chunks of a stream as an array.
///
/// # Errors
/// `E_LLM_DECODE` if the body is not a response; `E_LLM_TRUNCATED` if it has no reason to finish, and
/// `E_LLM_STOP_REASON` if that is no end; the provider's error if the body is one.
///
/// ```
/// use agentgraph_llm::{StopReason, gemini};
///
/// let response = gemini::decode(
///     br#"{"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}],
///         "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "thoughtsTokenCount": 4}}"#,
/// )?;
/// assert_eq!((response.message.text().as_str(), response.stop), ("Hi", StopReason::EndTurn));
/// assert_eq!((response.usage.output_total, response.usage.output_reasoning), (5, 4));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode(body: &[u8]) -> Result<ChatResponse> {
    whole(body, &MessageIds::default())
}

/// Calls without an id get one of `ids`.
pub(super) fn whole(body: &[u8], ids: &MessageIds) -> Result<ChatResponse> {
    let text = text(body)?;
    let mut answer = PartialResponse::new(ids.clone());
    let mut events = Vec::new();
    if text.trim_start().starts_with('[') {
        let chunks: Vec<WireValue> =
            serde_json::from_str(text).map_err(|error| undecodable(&error.to_string(), body.len()))?;
        if chunks.is_empty() {
            return Err(undecodable("it is an empty list", body.len()));
        }
        for chunk in &chunks {
            answer.add(object(chunk.0.get())?, &mut events)?;
        }
        return answer.build(&mut events).and_then(Built::into_response);
    }
    let fields = object(text)?;
    let is_answer = ["candidates", "promptFeedback", "usageMetadata", "error"]
        .iter()
        .any(|name| fields.get(name).is_some());
    if !is_answer {
        return Err(undecodable("it has no candidates", body.len()));
    }
    answer.add(fields, &mut events)?;
    answer.build(&mut events).and_then(Built::into_response)
}

/// Reads the body of an answer with the number of tokens of a request.
///
/// # Errors
/// `E_LLM_DECODE` if the body has no number `totalTokens`; the provider's error if the body is one.
///
/// ```
/// let count = agentgraph_llm::gemini::decode_count(br#"{"totalTokens": 31}"#)?;
/// assert_eq!((count.tokens, count.is_exact), (31, true));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode_count(body: &[u8]) -> Result<TokenCount> {
    let fields = success(body)?;
    let tokens = fields.get_as("totalTokens").map(TokenCount::exact);
    tokens.ok_or_else(|| undecodable("it has no `totalTokens`", body.len()))
}

/// The object of a body that is not an error.
pub(super) fn success(body: &[u8]) -> Result<Object> {
    let fields = object(text(body)?)?;
    match fields.get("error") {
        Some(_) => Err(super::failure::from_body(&fields)),
        None => Ok(fields),
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| undecodable("it is not UTF-8", bytes.len()))
}

pub(super) fn object(text: &str) -> Result<Object> {
    Object::parse(text).map_err(|error| undecodable(&format!("it is not a JSON object: {error}"), text.len()))
}

pub(super) fn undecodable(why: &str, size: usize) -> Error {
    let message = format!(
        "the answer of {size} bytes cannot be read ({why}): check that the base URL is that of a server that speaks \
         `generateContent`"
    );
    Error::new(Code::Decode, message)
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(Code::Decode, format!("the answer has {what}: the server does not follow `generateContent`"))
}
