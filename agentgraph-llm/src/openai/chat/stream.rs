//! A streamed response of Chat Completions.

use super::answer::PartialResponse;
use crate::http::{SseDecoder, stream_decoder};
use crate::openai::Profile;

stream_decoder! {
    /// Turns the bytes of a streamed response into events, without I/O. [`push`](Self::push) adds bytes,
    /// [`next_event`](Self::next_event) returns events, and [`end`](Self::end) ends the input.
    ///
    /// A server may leave out the index or the id of a call, give several calls the same index, or send
    /// arguments as an object; each call comes out whole. Events of a call start with its first arguments,
    /// and at the end if the server sends no id.
    ///
    /// ```
    /// use agentgraph_llm::{ChatEvent, openai};
    ///
    /// let mut decoder = openai::chat::StreamDecoder::new(&openai::Profile::openai());
    /// decoder.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"H");
    /// assert!(decoder.next_event().is_none());
    /// decoder.push(b"i\"}}]}\n\n");
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { text, .. })) if text == "Hi"));
    /// decoder.end();                                                // without `[DONE]`: cut
    /// assert_eq!(decoder.next_event().unwrap().unwrap_err().code().as_str(), "E_LLM_TRUNCATED");
    /// assert!(decoder.next_event().is_none());
    /// ```
    pub struct StreamDecoder(PartialResponse);
}

impl StreamDecoder {
    /// A decoder of one response of a server with this profile.
    pub fn new(profile: &Profile) -> Self {
        StreamDecoder(SseDecoder::new(PartialResponse::new(profile)))
    }
}
