//! A streamed response of the Responses API.

use crate::error::Result;
use crate::http::{Decoder, Feed};
use crate::model::{ChatEvent, ChatResponse};

use super::answer::PartialResponse;

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
#[derive(Debug)]
pub struct StreamDecoder(Feed<PartialResponse>);

impl Default for StreamDecoder {
    fn default() -> Self {
        StreamDecoder::new()
    }
}

impl StreamDecoder {
    /// A decoder of one response.
    pub fn new() -> Self {
        StreamDecoder(Feed::new(PartialResponse::default()))
    }

    /// Adds bytes, split at any place. Bytes after the last event are ignored. An event of more than 32 MiB
    /// and a response of more than 64 MiB are `E_LLM_DECODE`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Ends the input. Without the stream's last event this is `E_LLM_TRUNCATED`.
    pub fn end(&mut self) {
        self.0.end();
    }

    /// The next complete event. The last one is [`ChatEvent::Finished`] or an error.
    pub fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.0.next_event()
    }
}

impl Decoder for StreamDecoder {
    type Answer = PartialResponse;

    fn feed(&mut self) -> &mut Feed<PartialResponse> {
        &mut self.0
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        super::decode(body)
    }
}
