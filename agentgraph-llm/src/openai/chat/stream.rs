//! A streamed response of Chat Completions.

use crate::error::Result;
use crate::http::{Decoder, Feed};
use crate::model::{ChatEvent, ChatResponse};

use super::answer::PartialResponse;
use crate::openai::Profile;

/// Turns the bytes of a streamed response into events, without I/O. [`push`](Self::push) adds bytes,
/// [`next_event`](Self::next_event) returns events, and [`end`](Self::end) ends the input.
///
/// A server may leave out the index or the id of a call, give several calls the same index, or send arguments
/// as an object; each call comes out whole. Events of a call start with its first arguments, and at the end
/// if the server sends no id.
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
#[derive(Debug)]
pub struct StreamDecoder(Feed<PartialResponse>);

impl StreamDecoder {
    /// A decoder of one response of a server with this profile.
    pub fn new(profile: &Profile) -> Self {
        StreamDecoder(Feed::new(PartialResponse::of_stream(profile.ends_without_done)))
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
