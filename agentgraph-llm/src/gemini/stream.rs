//! The decoder of a streamed response, from bytes to events.

use super::answer::PartialResponse;
use crate::http::{SseDecoder, stream_decoder};
use crate::message::MessageIds;

stream_decoder! {
    /// Turns the bytes of a streamed response into events, without I/O. [`push`](Self::push) adds bytes,
    /// [`next_event`](Self::next_event) returns events, and [`end`](Self::end) ends the input.
    ///
    /// The stream has no last event of its own: it is complete if it ends after a reason to finish.
    ///
    /// ```
    /// use agentgraph_llm::{ChatEvent, gemini::StreamDecoder};
    ///
    /// let mut decoder = StreamDecoder::new();
    /// decoder.push(b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"te");
    /// assert!(decoder.next_event().is_none());
    /// decoder.push(b"xt\":\"Hi\"}]}}]}\n\n");
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { text, .. })) if text == "Hi"));
    /// decoder.end();                                                // without a `finishReason`: cut
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

    /// Sets the source of ids for calls that come without one. To be set before the first bytes.
    pub fn call_ids(self, ids: MessageIds) -> Self {
        StreamDecoder(SseDecoder::new(PartialResponse::new(ids)))
    }
}
