//! The decoder of a streamed response, from bytes to events.

use std::collections::VecDeque;

use super::answer::Answer;
use super::decode;
use crate::error::{Code, Error, Result};
use crate::http::MAX_BODY;
use crate::message::MessageIds;
use crate::model::ChatEvent;
use crate::model::stream::truncated;
use crate::sse::{MAX_EVENT, OversizedEvent, SseParser};

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
    sse: SseParser,
    events: VecDeque<Result<ChatEvent>>,
    /// `None` after the last event.
    answer: Option<Answer>,
    /// The number of bytes received.
    size: usize,
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
        StreamDecoder {
            sse: SseParser::new(MAX_EVENT),
            events: VecDeque::new(),
            answer: Some(Answer::new(MessageIds::default())),
            size: 0,
            ids: MessageIds::default(),
        }
    }

    /// Sets the source of ids for calls that come without one. To be set before the first bytes.
    pub fn call_ids(mut self, ids: MessageIds) -> Self {
        self.answer = Some(Answer::new(ids.clone()));
        self.ids = ids;
        self
    }

    pub(super) fn ids(&self) -> &MessageIds {
        &self.ids
    }

    /// Adds bytes, split at any place. An event of more than 32 MiB and a response of more than 64 MiB are
    /// `E_LLM_DECODE`.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.answer.is_none() {
            return;
        }
        self.size = self.size.saturating_add(bytes.len());
        if self.size > MAX_BODY {
            let message = format!("the stream has more than {MAX_BODY} bytes: ask for a shorter answer");
            return self.fail(Error::new(Code::Decode, message));
        }
        let mut found = Vec::new();
        let outcome = self.sse.push(bytes, &mut found);
        for data in found {
            self.take(&data);
        }
        if let Err(OversizedEvent) = outcome {
            let message =
                format!("one event of the stream has more than {MAX_EVENT} bytes: ask for a shorter answer");
            self.fail(Error::new(Code::Decode, message));
        }
    }

    /// Ends the input. Without a reason to finish this is `E_LLM_TRUNCATED`.
    pub fn end(&mut self) {
        // An unreadable event at the very end was cut off.
        let last = self.sse.end();
        let readable = |data: &Vec<u8>| decode::text(data).and_then(decode::object).is_ok();
        match last {
            Some(data) if readable(&data) || is_done(&data) => self.take(&data),
            Some(data) if !data.trim_ascii().is_empty() => self.fail(truncated()),
            _ => {}
        }
        match self.answer.take() {
            Some(answer) if answer.is_complete() => {
                self.events.push_back(answer.finish().map(ChatEvent::Finished));
            }
            Some(_) => self.events.push_back(Err(truncated())),
            None => {}
        }
    }

    /// The next complete event. The last one is [`ChatEvent::Finished`] or an error.
    pub fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.events.pop_front()
    }

    fn fail(&mut self, error: Error) {
        if self.answer.take().is_some() {
            self.events.push_back(Err(error));
        }
    }

    fn take(&mut self, data: &[u8]) {
        let Some(answer) = &mut self.answer else { return };
        if data.trim_ascii().is_empty() || is_done(data) {
            return;
        }
        let mut events = Vec::new();
        let taken =
            decode::text(data).and_then(decode::object).and_then(|chunk| answer.take(chunk, &mut events));
        self.events.extend(events.into_iter().map(Ok));
        if let Err(error) = taken {
            self.fail(error);
        }
    }
}

/// The end of streams of other providers, which some gateways add.
fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}
