//! The events of a streamed response, read from its connection.

use futures_util::stream;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use tracing::Span;

use super::{Decoder, Endpoint, chain};
use crate::error::{Code, Error, Result};
use crate::model::{ChatEvent, ChatStream};
use crate::telemetry;

/// The events of one streamed response.
pub(super) struct Events<D> {
    endpoint: Endpoint,
    response: Response,
    decoder: D,
    /// The first event, which was read before the stream was returned.
    first: Option<ChatEvent>,
}

impl<D: Decoder> Events<D> {
    /// Waits for the first event.
    pub(super) async fn begin(endpoint: Endpoint, response: Response, decoder: D) -> Result<Self> {
        check_is_stream(response.headers())?;
        let mut events = Events { endpoint, response, decoder, first: None };
        let first = events.read_next().await?;
        events.first = Some(first);
        Ok(events)
    }

    /// The span stays open until the stream ends or is dropped, and records its end.
    pub(super) fn into_stream(self, span: Span) -> ChatStream {
        ChatStream::new(stream::unfold((self, span), async |(mut events, span)| {
            let item = match events.first.take() {
                Some(first) => Ok(first),
                None => events.read_next().await,
            };
            match &item {
                Ok(ChatEvent::Finished(response)) => telemetry::record_chat(&span, Ok(response)),
                Ok(_) => {}
                Err(error) => telemetry::record_chat(&span, Err(error)),
            }
            Some((item, (events, span)))
        }))
    }

    async fn read_next(&mut self) -> Result<ChatEvent> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return event.map_err(|error| self.endpoint.redacted(error));
            }
            match self.read_piece().await? {
                Some(piece) => self.decoder.push(piece.as_ref()),
                None => self.decoder.end(),
            }
        }
    }

    async fn read_piece(&mut self) -> Result<Option<impl AsRef<[u8]> + use<D>>> {
        let idle = self.endpoint.timeouts.idle;
        match tokio::time::timeout(idle, self.response.chunk()).await {
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
}

/// Without this check, a web page or a JSON body would look like a stream that was cut.
fn check_is_stream(headers: &HeaderMap) -> Result<()> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !matches!(kind, "text/html" | "application/json") {
        return Ok(());
    }
    let message =
        format!("the server answered with {kind} instead of a stream of events: check the base URL");
    Err(Error::new(Code::Decode, message))
}
