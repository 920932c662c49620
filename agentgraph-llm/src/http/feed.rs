//! The bytes of a stream as the data of its events, for all wires.

use std::collections::VecDeque;
use std::fmt;

use super::MAX_BODY;
use crate::error::{Code, Error, Result};
use crate::json::Object;
use crate::model::stream::truncated;
use crate::model::{ChatEvent, ChatResponse};
use crate::sse::{MAX_EVENT, OversizedEvent, SseParser};

/// A response in progress.
pub(crate) trait Answer: fmt::Debug + Send + 'static {
    /// Takes the data of one event. The response, if it is the last event.
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>>;

    /// The response, if the body may end here.
    fn end(&mut self, out: &mut Vec<ChatEvent>) -> Result<Option<ChatResponse>>;
}

/// A stream in progress.
#[derive(Debug)]
pub(crate) struct Feed<A> {
    sse: SseParser,
    events: VecDeque<Result<ChatEvent>>,
    done: bool,
    /// The number of bytes received.
    size: usize,
    answer: A,
}

impl<A: Answer> Feed<A> {
    pub(crate) fn new(answer: A) -> Self {
        Feed { sse: SseParser::new(MAX_EVENT), events: VecDeque::new(), done: false, size: 0, answer }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.done {
            return;
        }
        self.size = self.size.saturating_add(bytes.len());
        if self.size > MAX_BODY {
            return self.fail(too_large("the stream", MAX_BODY));
        }
        let mut found = Vec::new();
        let outcome = self.sse.push(bytes, &mut found);
        for data in found {
            self.take(&data);
        }
        if let Err(OversizedEvent) = outcome {
            self.fail(too_large("one event of the stream", MAX_EVENT));
        }
    }

    pub(crate) fn end(&mut self) {
        if self.done {
            return;
        }
        match self.sse.end() {
            Some(data) if is_readable(&data) => self.take(&data),
            // An unreadable event at the very end was cut off.
            Some(data) if !data.trim_ascii().is_empty() => self.fail(truncated()),
            _ => {}
        }
        if self.done {
            return;
        }
        let mut out = Vec::new();
        let ended = self.answer.end(&mut out);
        self.events.extend(out.into_iter().map(Ok));
        match ended {
            Ok(Some(response)) => self.finish(response),
            Ok(None) => self.fail(truncated()),
            Err(error) => self.fail(error),
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.events.pop_front()
    }

    fn take(&mut self, data: &[u8]) {
        if self.done || data.trim_ascii().is_empty() {
            return;
        }
        let mut out = Vec::new();
        let taken = self.answer.take(data, &mut out);
        self.events.extend(out.into_iter().map(Ok));
        match taken {
            Ok(Some(response)) => self.finish(response),
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
    }

    fn finish(&mut self, response: ChatResponse) {
        self.done = true;
        self.events.push_back(Ok(ChatEvent::Finished(response)));
    }

    fn fail(&mut self, error: Error) {
        if !self.done {
            self.done = true;
            self.events.push_back(Err(error));
        }
    }
}

fn is_readable(data: &[u8]) -> bool {
    is_done_mark(data) || std::str::from_utf8(data).is_ok_and(|text| Object::parse(text).is_ok())
}

/// `[DONE]`, the last event of OpenAI's streams, which some gateways add to those of others.
pub(crate) fn is_done_mark(data: &[u8]) -> bool {
    data.trim_ascii().starts_with(b"[DONE]")
}

fn too_large(what: &str, limit: usize) -> Error {
    Error::new(Code::Decode, format!("{what} has more than {limit} bytes: ask for a shorter answer"))
}
