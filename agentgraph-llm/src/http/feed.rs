//! The bytes of a stream as its events, for all wires.

use std::collections::VecDeque;
use std::fmt;

use super::MAX_BODY;
use crate::error::{Code, Error, Result};
use crate::json::{Object, RawJson};
use crate::model::end::{Built, with_partial};
use crate::model::stream::truncated;
use crate::model::{ChatEvent, ChatResponse};
use crate::sse::{Event, MAX_EVENT, OversizedEvent, SseParser};

/// A response in progress.
pub(crate) trait Answer: fmt::Debug + Default + Send + 'static {
    /// Takes the data of one event, and says whether it was the last one.
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool>;

    /// Whether the body may end here.
    fn may_end(&self) -> bool {
        false
    }

    /// The response, as far as it came. The events are those that only the end makes.
    fn build(self, out: &mut Vec<ChatEvent>) -> Result<Built>;

    /// Reads the body of a server that answered with one JSON value instead of a stream.
    fn whole(&self, body: &[u8]) -> Result<ChatResponse>;

    /// The error that an object with a field `error` is.
    fn refusal(fields: &Object) -> Error;
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
        for event in found {
            self.take(&event);
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
            Some(event) if event.is_error || is_readable(&event.data) => self.take(&event),
            // An unreadable event at the very end was cut off.
            Some(event) if !event.data.trim_ascii().is_empty() => self.fail(truncated()),
            _ => {}
        }
        match self.answer.may_end() {
            _ if self.done => {}
            true => self.finish(),
            false => self.fail(truncated()),
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.events.pop_front()
    }

    /// Ends the stream with an error, which gets what came of the answer.
    pub(crate) fn break_off(&mut self, error: Error) -> Error {
        self.done = true;
        // What cannot be built from a part of an answer says nothing about the error.
        match std::mem::take(&mut self.answer).build(&mut Vec::new()) {
            Ok(built) => with_partial(error, built.response),
            Err(_) => error,
        }
    }

    pub(crate) fn whole(&self, body: &[u8]) -> Result<ChatResponse> {
        self.answer.whole(body)
    }

    fn take(&mut self, event: &Event) {
        if self.done {
            return;
        }
        if event.is_error {
            return self.fail(refusal::<A>(&event.data));
        }
        if event.data.trim_ascii().is_empty() {
            return;
        }
        let mut out = Vec::new();
        let taken = self.answer.take(&event.data, &mut out);
        self.events.extend(out.into_iter().map(Ok));
        match taken {
            Ok(true) => self.finish(),
            Ok(false) => {}
            Err(error) => self.fail(error),
        }
    }

    fn finish(&mut self) {
        self.done = true;
        let mut out = Vec::new();
        let ended = std::mem::take(&mut self.answer).build(&mut out).and_then(Built::into_response);
        self.events.extend(out.into_iter().map(Ok));
        self.events.push_back(ended.map(ChatEvent::Finished));
    }

    fn fail(&mut self, error: Error) {
        if !self.done {
            let error = self.break_off(error);
            self.events.push_back(Err(error));
        }
    }
}

/// The error of an event that is named so, with or without the field `error` or any JSON.
fn refusal<A: Answer>(data: &[u8]) -> Error {
    let text = String::from_utf8_lossy(data);
    let fields = match Object::parse(&text) {
        Ok(fields) if fields.get("error").is_some() => fields,
        Ok(fields) => Object::default().with("error", fields.to_json()),
        Err(_) => {
            let said = Object::default().with("message", RawJson::string(text.trim()));
            Object::default().with("error", said.to_json())
        }
    };
    A::refusal(&fields)
}

/// Whether a field `error` says that something failed: `null`, `""`, `{}` and `false` do not.
pub(crate) fn says_error(fields: &Object) -> bool {
    fields.get("error").is_some_and(|error| !error.is_blank() && error.get() != "false")
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

/// Writes the public decoder of a wire over its [`Answer`].
macro_rules! stream_decoder {
    ($(#[$doc:meta])* pub struct StreamDecoder($answer:ty);) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct StreamDecoder($crate::http::Feed<$answer>);

        impl StreamDecoder {
            /// Adds bytes, split at any place. Bytes after the last event are ignored. An event of more than
            /// 32 MiB and a response of more than 64 MiB are `E_LLM_DECODE`.
            pub fn push(&mut self, bytes: &[u8]) {
                self.0.push(bytes);
            }

            /// Ends the input. Before the end of the response this is `E_LLM_TRUNCATED`.
            pub fn end(&mut self) {
                self.0.end();
            }

            /// The next complete event. The last one is [`ChatEvent::Finished`](crate::ChatEvent::Finished)
            /// or an error.
            pub fn next_event(&mut self) -> Option<$crate::error::Result<$crate::model::ChatEvent>> {
                self.0.next_event()
            }
        }

        impl $crate::http::Decoder for StreamDecoder {
            type Answer = $answer;

            fn feed(&mut self) -> &mut $crate::http::Feed<$answer> {
                &mut self.0
            }
        }
    };
}

pub(crate) use stream_decoder;
