//! The decoder of a streamed response, from bytes to events.

use super::answer::Answer;
use super::decode;
use crate::error::Result;
use crate::http::{Decoder, Feed, is_done_mark};
use crate::message::MessageIds;
use crate::model::{ChatEvent, ChatResponse};

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
#[derive(Debug)]
pub struct StreamDecoder {
    feed: Feed<InProgress>,
    ids: MessageIds,
}

impl Default for StreamDecoder {
    fn default() -> Self {
        StreamDecoder::new()
    }
}

impl StreamDecoder {
    /// A decoder of one response.
    pub fn new() -> Self {
        StreamDecoder::with_ids(MessageIds::default())
    }

    /// Sets the source of ids for calls that come without one. To be set before the first bytes.
    pub fn call_ids(self, ids: MessageIds) -> Self {
        StreamDecoder::with_ids(ids)
    }

    fn with_ids(ids: MessageIds) -> Self {
        StreamDecoder { feed: Feed::new(InProgress(Some(Answer::new(ids.clone())))), ids }
    }

    /// Adds bytes, split at any place. An event of more than 32 MiB and a response of more than 64 MiB are
    /// `E_LLM_DECODE`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.feed.push(bytes);
    }

    /// Ends the input. Without a reason to finish this is `E_LLM_TRUNCATED`.
    pub fn end(&mut self) {
        self.feed.end();
    }

    /// The next complete event. The last one is [`ChatEvent::Finished`] or an error.
    pub fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.feed.next_event()
    }
}

impl Decoder for StreamDecoder {
    type Answer = InProgress;

    fn feed(&mut self) -> &mut Feed<InProgress> {
        &mut self.feed
    }

    fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        decode::whole(body, &self.ids)
    }
}

/// The answer so far; `None` after its end.
#[derive(Debug)]
pub(crate) struct InProgress(Option<Answer>);

impl crate::http::Answer for InProgress {
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        if let Some(answer) = self.0.as_mut().filter(|_| !is_done_mark(data)) {
            answer.take(decode::text(data).and_then(decode::object)?, out)?;
        }
        Ok(None)
    }

    fn end(&mut self, _: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>> {
        self.0.take().filter(Answer::is_complete).map(Answer::finish).transpose()
    }
}
