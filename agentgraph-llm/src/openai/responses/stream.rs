//! A streamed response of the Responses API.

use super::answer::PartialResponse;
use crate::http::{SseDecoder, stream_decoder};

stream_decoder! {
    /// Turns the bytes of a streamed response into events, without I/O. [`push`](Self::push) adds bytes,
    /// [`next_event`](Self::next_event) returns events, and [`end`](Self::end) ends the input.
    ///
    /// ```
    /// use agentgraph_llm::{ChatEvent, openai};
    ///
    /// let mut decoder = openai::responses::StreamDecoder::new();
    /// decoder.push(b"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"del");
    /// assert!(decoder.next_event().is_none());
    /// decoder.push(b"ta\":\"Hi\"}\n\n");
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { text, .. })) if text == "Hi"));
    /// decoder.end();                                                // without `response.completed`: cut
    /// assert_eq!(decoder.next_event().unwrap().unwrap_err().code().as_str(), "E_LLM_TRUNCATED");
    /// assert!(decoder.next_event().is_none());
    /// ```
    pub struct StreamDecoder(PartialResponse);
}

impl Default for StreamDecoder {
    fn default() -> Self {
        StreamDecoder::new()
    }
}

impl StreamDecoder {
    /// A decoder of one response.
    pub fn new() -> Self {
        StreamDecoder(SseDecoder::new(PartialResponse::default()))
    }
}
