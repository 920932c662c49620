//! A whole response of Chat Completions.

use crate::error::Result;
use crate::json::Object;
use crate::model::ChatResponse;

use super::answer::PartialResponse;
use crate::http::PartialAnswer;
use crate::model::end::Built;
use crate::openai::wire::{parse_object, undecodable};
use crate::openai::{Profile, failure};

/// Reads the body of a successful, unstreamed answer.
///
/// # Errors
/// `E_LLM_DECODE` if the body is not a JSON object with a choice; the provider's error if the body is one;
/// `E_LLM_TRUNCATED` if it has no `finish_reason`, and `E_LLM_STOP_REASON` if that is no end.
///
/// ```
/// use agentgraph_llm::{StopReason, openai};
///
/// let body = br#"{"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
///     "message": {"role": "assistant", "content": "Hi"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}"#;
/// let response = openai::chat::decode(body)?;
/// assert_eq!((response.message.text().as_str(), &response.stop), ("Hi", &StopReason::EndTurn));
/// assert_eq!(response.usage.input_total, 10);
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
pub fn decode(body: &[u8]) -> Result<ChatResponse> {
    decode_of(&Profile::openai(), body)
}

/// Reads an answer of a server with this profile.
pub(super) fn decode_of(profile: &Profile, body: &[u8]) -> Result<ChatResponse> {
    let fields = parse_object(body)?;
    if !has_choice(&fields) {
        return Err(match failure::says_error(&fields) {
            true => failure::from_event(&fields),
            false => undecodable("the answer has no `choices`", body),
        });
    }
    let mut response = PartialResponse::new(profile);
    let mut events = Vec::new();
    response.add(fields, &mut events)?;
    response.build(&mut events).and_then(Built::into_response)
}

fn has_choice(fields: &Object) -> bool {
    fields.get("choices").is_some_and(|choices| !matches!(choices.get(), "null" | "[]"))
}
