//! The events of one response, read from its connection.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tokio::time::Instant;

use super::endpoint::Opened;
use super::{Decoder, Endpoint, chain};
use crate::error::{Code, Error, Result};
use crate::message::Origin;
use crate::model::stream::events_of;
use crate::model::{ChatEvent, ChatResponse, ChatStream, ModelInfo};
use crate::telemetry::ChatTrace;

/// The events of one response.
pub(super) struct Events<D> {
    endpoint: Arc<Endpoint>,
    opened: Opened,
    origin: Origin,
    decoder: D,
    /// Events that were read before the stream was returned.
    first: VecDeque<ChatEvent>,
}

impl<D: Decoder> Events<D> {
    /// Waits for the first event, or for the whole of a response that is not a stream.
    pub(super) async fn begin(
        endpoint: Arc<Endpoint>,
        opened: Opened,
        info: &ModelInfo,
        decoder: D,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let kind = media_type(opened.response.headers());
        let mut events = Events { endpoint, opened, origin: info.into(), decoder, first: VecDeque::new() };
        events.first = match kind.as_str() {
            "application/json" => events.read_whole(Vec::new(), deadline).await?,
            "text/html" => return Err(events.complete_error(no_stream(&kind))),
            kind => events.read_unsure(kind, deadline).await?,
        };
        Ok(events)
    }

    /// Reads the beginning of what should be a stream. Its first character says more than the type: servers
    /// and proxies answer with JSON under any type, and no line of a stream begins with a bracket.
    async fn read_unsure(&mut self, kind: &str, deadline: Option<Instant>) -> Result<VecDeque<ChatEvent>> {
        loop {
            let piece = match self.read_piece().await {
                Ok(Some(piece)) => piece.as_ref().to_vec(),
                Ok(None) => break self.decoder.end(),
                Err(error) => return Err(self.complete_error(error)),
            };
            match first_character(&piece) {
                Some((at, b'{' | b'[')) if !self.decoder.streams_json() => {
                    return self.read_whole(piece[at..].to_vec(), deadline).await;
                }
                Some((_, b'<')) => return Err(self.complete_error(no_stream(kind))),
                Some(_) => break self.decoder.push(&piece),
                None => self.decoder.push(&piece),
            }
        }
        match self.read_next().await {
            Err(error) if error.code() == Code::Truncated && !matches!(kind, "" | EVENT_STREAM) => {
                Err(self.complete_error(no_stream(kind)))
            }
            first => Ok(VecDeque::from([first?])),
        }
    }

    /// The span stays open until the stream ends or is dropped, and records its end.
    pub(super) fn into_stream(self, trace: ChatTrace) -> ChatStream {
        ChatStream::new(stream::unfold((self, trace), async |(mut events, trace)| {
            let item = match events.first.pop_front() {
                Some(first) => Ok(first),
                None => events.read_next().await,
            };
            trace.record(item.as_ref());
            Some((item, (events, trace)))
        }))
    }

    /// Reads one JSON value instead of a stream, from its beginning on.
    async fn read_whole(&mut self, begun: Vec<u8>, deadline: Option<Instant>) -> Result<VecDeque<ChatEvent>> {
        let endpoint = &self.endpoint;
        let rest = endpoint.read_after(begun, &mut self.opened.response);
        let body = endpoint.in_time(deadline, rest).await;
        match body.and_then(|body| self.decoder.whole(&body)) {
            Ok(mut response) => {
                self.complete(&mut response);
                Ok(events_of(&response).into())
            }
            Err(error) => Err(self.complete_error(error)),
        }
    }

    async fn read_next(&mut self) -> Result<ChatEvent> {
        loop {
            match self.decoder.next_event() {
                Some(Ok(ChatEvent::Finished(mut response))) => {
                    self.complete(&mut response);
                    return Ok(ChatEvent::Finished(response));
                }
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => return Err(self.complete_error(error)),
                None => match self.read_piece().await {
                    Ok(Some(piece)) => self.decoder.push(piece.as_ref()),
                    Ok(None) => self.decoder.end(),
                    Err(error) => {
                        let error = self.decoder.break_off(error);
                        return Err(self.complete_error(error));
                    }
                },
            }
        }
    }

    async fn read_piece(&mut self) -> Result<Option<impl AsRef<[u8]> + use<D>>> {
        let idle = self.endpoint.timeouts.idle;
        match tokio::time::timeout(idle, self.opened.response.chunk()).await {
            Err(_) => {
                let message = format!(
                    "the stream was silent for {idle:?}: try again, or set a longer `idle_timeout(..)`"
                );
                Err(Error::new(Code::Timeout, message))
            }
            Ok(Err(error)) if error.is_timeout() => Err(self.endpoint.transport(error)),
            // The body ended before its announced length. For the reader this is the same as a missing last
            // event.
            Ok(Err(error)) => {
                let why = chain(&error.without_url());
                Err(Error::new(
                    Code::Truncated,
                    format!("the stream broke before its last event: try again ({why})"),
                ))
            }
            Ok(Ok(piece)) => Ok(piece),
        }
    }

    /// Adds to a response what is not in its body.
    fn complete(&self, response: &mut ChatResponse) {
        let Endpoint { ids, dialect, clock, .. } = &*self.endpoint;
        let headers = self.opened.response.headers();
        response.message.id = ids.next_id();
        response.message.origin = Some(self.origin.clone());
        response.request_id = self.opened.request_id(&self.endpoint).map(str::to_owned);
        response.limits = dialect.limits.and_then(|limits| limits.read(headers, clock.now()));
    }

    fn complete_error(&self, error: Error) -> Error {
        self.opened.complete(&self.endpoint, error)
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

const EVENT_STREAM: &str = "text/event-stream";

/// The first character that is neither white space nor a byte order mark, and its place.
fn first_character(piece: &[u8]) -> Option<(usize, u8)> {
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
    piece.iter().copied().enumerate().find(|(_, byte)| !is_blank(*byte))
}

/// Without this error, a web page would look like a stream that was cut.
fn no_stream(kind: &str) -> Error {
    let message =
        format!("the server answered with {kind} instead of a stream of events: check the base URL");
    Error::new(Code::Decode, message)
}
