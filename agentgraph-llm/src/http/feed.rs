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

/// Turns the bytes of one response into events, for the [`Endpoint`](super::Endpoint). Without I/O.
///
/// The decoders of the four wires implement it, and [`SseDecoder`] does for every [`PartialAnswer`]. A
/// server that streams in another way, such as one JSON value a line, has one of its own.
pub trait Decoder: Send + 'static {
    /// Adds bytes, split at any place. Bytes after the last event are ignored.
    fn push(&mut self, bytes: &[u8]);

    /// Ends the input. Before the end of the response this is `E_LLM_TRUNCATED`.
    fn end(&mut self);

    /// The next complete event. The last one is [`ChatEvent::Finished`] or an error.
    fn next_event(&mut self) -> Option<Result<ChatEvent>>;

    /// Ends the stream with an error, which gets what came of the answer.
    fn break_off(&mut self, error: Error) -> Error;

    /// Whether a stream of this server begins with a bracket, as one of JSON values does. Otherwise such a
    /// body is [whole](Self::whole), whatever its type says.
    fn streams_json(&self) -> bool {
        false
    }

    /// Reads the body of a server that answered with one JSON value instead of a stream.
    ///
    /// # Errors
    /// `E_LLM_DECODE`, or what the body says.
    fn whole(&mut self, body: &[u8]) -> Result<ChatResponse>;
}

/// A response in progress, of a server that sends server-sent events: the part of a wire that
/// [`SseDecoder`] lacks.
///
/// ```
/// use agentgraph_llm::http::{Built, Decoder, End, PartialAnswer, SseDecoder};
/// use agentgraph_llm::{ChatEvent, ChatResponse, Code, Error, Message, RawJson, Result, StopReason};
///
/// /// Events are `{"text": ".."}`, and the last one is `{"end": true}`.
/// #[derive(Debug, Default)]
/// struct Echo {
///     text: String,
///     end: End,
/// }
///
/// impl PartialAnswer for Echo {
///     fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool> {
///         let broken = |_| Error::new(Code::Decode, "the event is not JSON");
///         let event: serde_json::Value = serde_json::from_slice(data).map_err(broken)?;
///         if let Some(text) = event["text"].as_str() {
///             self.text += text;
///             out.push(ChatEvent::TextDelta { index: 0, text: text.to_owned() });
///             return Ok(false);
///         }
///         self.end = End::Stop(StopReason::EndTurn);
///         Ok(true)
///     }
///
///     fn build(self, _: &mut Vec<ChatEvent>) -> Result<Built> {
///         let response = ChatResponse::new(Message::assistant(self.text), StopReason::EndTurn);
///         Ok(Built { response, end: self.end })
///     }
///
///     fn whole(&self, _: &[u8]) -> Result<ChatResponse> {
///         Err(Error::new(Code::Decode, "this server only streams"))
///     }
///
///     fn refusal(fields: &RawJson) -> Error {
///         Error::new(Code::Server, fields.get())
///     }
/// }
///
/// let mut decoder = SseDecoder::new(Echo::default());
/// decoder.push(b"data: {\"text\": \"Hi\"}\n\ndata: {\"end\": true}\n\n");
/// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { .. }))));
/// let Some(Ok(ChatEvent::Finished(response))) = decoder.next_event() else { panic!("the answer ended") };
/// assert_eq!(response.message.text(), "Hi");
/// ```
pub trait PartialAnswer: fmt::Debug + Default + Send + 'static {
    /// Takes the data of one event, and says whether it was the last one.
    ///
    /// # Errors
    /// They end the stream.
    fn take(&mut self, data: &[u8], out: &mut Vec<ChatEvent>) -> Result<bool>;

    /// Whether the body may end here.
    fn may_end(&self) -> bool {
        false
    }

    /// The response, as far as it came, and its end. The events are those that only the end makes.
    ///
    /// # Errors
    /// If what came cannot be a message.
    fn build(self, out: &mut Vec<ChatEvent>) -> Result<Built>;

    /// Reads the body of a server that answered with one JSON value instead of a stream.
    ///
    /// # Errors
    /// `E_LLM_DECODE`, or what the body says.
    fn whole(&self, body: &[u8]) -> Result<ChatResponse>;

    /// The error that an object with a field `error` is.
    fn refusal(fields: &RawJson) -> Error;
}

/// The decoder of a stream of server-sent events, over what a wire makes of one event. An event of more than
/// 32 MiB and a response of more than 64 MiB are `E_LLM_DECODE`. See [`PartialAnswer`] for an example.
#[derive(Debug)]
pub struct SseDecoder<A> {
    sse: SseParser,
    events: VecDeque<Result<ChatEvent>>,
    done: bool,
    /// The number of bytes received.
    size: usize,
    answer: A,
}

impl<A: PartialAnswer> SseDecoder<A> {
    /// A decoder of one response.
    pub fn new(answer: A) -> Self {
        SseDecoder { sse: SseParser::new(MAX_EVENT), events: VecDeque::new(), done: false, size: 0, answer }
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

impl<A: PartialAnswer> Decoder for SseDecoder<A> {
    fn push(&mut self, bytes: &[u8]) {
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

    fn end(&mut self) {
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

    fn next_event(&mut self) -> Option<Result<ChatEvent>> {
        self.events.pop_front()
    }

    fn break_off(&mut self, error: Error) -> Error {
        self.done = true;
        // What cannot be built from a part of an answer says nothing about the error.
        match std::mem::take(&mut self.answer).build(&mut Vec::new()) {
            Ok(built) => with_partial(error, built.response),
            Err(_) => error,
        }
    }

    fn whole(&mut self, body: &[u8]) -> Result<ChatResponse> {
        self.answer.whole(body)
    }
}

/// The error of an event that is named so, with or without the field `error` or any JSON.
fn refusal<A: PartialAnswer>(data: &[u8]) -> Error {
    let text = String::from_utf8_lossy(data);
    let fields = match Object::parse(&text) {
        Ok(fields) if fields.get("error").is_some() => fields,
        Ok(fields) => Object::default().with("error", fields.to_json()),
        Err(_) => {
            let said = Object::default().with("message", RawJson::string(text.trim()));
            Object::default().with("error", said.to_json())
        }
    };
    A::refusal(&fields.to_json())
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

/// Writes the public decoder of a wire over its [`PartialAnswer`].
macro_rules! stream_decoder {
    ($(#[$doc:meta])* pub struct StreamDecoder($answer:ty);) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct StreamDecoder($crate::http::SseDecoder<$answer>);

        impl StreamDecoder {
            /// Adds bytes, split at any place. Bytes after the last event are ignored. An event of more than
            /// 32 MiB and a response of more than 64 MiB are `E_LLM_DECODE`.
            pub fn push(&mut self, bytes: &[u8]) {
                $crate::http::Decoder::push(&mut self.0, bytes);
            }

            /// Ends the input. Before the end of the response this is `E_LLM_TRUNCATED`.
            pub fn end(&mut self) {
                $crate::http::Decoder::end(&mut self.0);
            }

            /// The next complete event. The last one is [`ChatEvent::Finished`](crate::ChatEvent::Finished)
            /// or an error.
            pub fn next_event(&mut self) -> Option<$crate::error::Result<$crate::model::ChatEvent>> {
                $crate::http::Decoder::next_event(&mut self.0)
            }
        }

        impl $crate::http::Decoder for StreamDecoder {
            fn push(&mut self, bytes: &[u8]) {
                self.0.push(bytes);
            }

            fn end(&mut self) {
                self.0.end();
            }

            fn next_event(&mut self) -> Option<$crate::error::Result<$crate::model::ChatEvent>> {
                self.0.next_event()
            }

            fn break_off(&mut self, error: $crate::error::Error) -> $crate::error::Error {
                self.0.break_off(error)
            }

            fn whole(&mut self, body: &[u8]) -> $crate::error::Result<$crate::model::ChatResponse> {
                self.0.whole(body)
            }
        }
    };
}

pub(crate) use stream_decoder;
