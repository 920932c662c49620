//! The HTTP driver of all providers: POST requests with retries, answered whole or as a stream.
//!
//! It knows keys, addresses, timeouts, retries and bytes, and no provider. A wire gives a [`Wire`] with what
//! is its own, a [`Decoder`] for its streams, and a [`Dialect`] for its errors and headers. The settings that
//! all wires share are a [`Connection`].
//!
//! So a provider of one's own is a codec and a few lines: encode the request, decode the stream, and give
//! both to the [`Endpoint`]. The example of [`PartialAnswer`] is a whole codec. Spans, retries, timeouts,
//! redacted keys, message ids and the rules for the end of an answer come with it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agentgraph_llm::http::{Call, Connection, Dialect, Endpoint, PartialAnswer, SseDecoder, Wire};
//! use agentgraph_llm::prelude::*;
//! use agentgraph_llm::{Authentication, Code, Error, ModelInfo, Result};
//! use serde_json::json;
//!
//! /// Where the server is, and what its errors are.
//! fn endpoint() -> Result<Arc<Endpoint>> {
//!     let refusal = |status, _: &_, _: &[u8]| Error::new(Code::Server, "refused").with_status(status);
//!     let dialect = Dialect { refusal, request_id: "x-request-id", limits: None };
//!     let wire = Wire { version: "v1".into(), missing_key: None, headers: Default::default(), dialect };
//!     Connection::new("https://models.internal", Authentication::Bearer).endpoint(wire)
//! }
//!
//! /// The `stream` of its `ChatModel`. `A` reads the events of the server.
//! async fn stream<A: PartialAnswer>(endpoint: &Arc<Endpoint>, request: ChatRequest) -> Result<ChatStream> {
//!     let body = json!({ "say": request.messages.last().map(|message| message.text()) }).to_string();
//!     let info = ModelInfo::new("house", "one");
//!     let call = Call { url: endpoint.url("talk"), body, info, request };
//!     endpoint.stream(call, || SseDecoder::new(A::default())).await
//! }
//!
//! assert_eq!(endpoint().unwrap().url("talk").as_str(), "https://models.internal/v1/talk");
//! ```

mod base_url;
mod clock;
mod connection;
mod endpoint;
mod events;
mod feed;
mod key;
mod limits;
pub(crate) mod refusal;
mod retry;
mod settings;

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::HeaderMap;

use crate::error::Error;
pub use crate::model::end::{Built, End};

pub use clock::{Clock, SystemClock};
pub use connection::http_client_builder;
pub use connection::{Connection, Wire};
pub(crate) use connection::{config, named, variable};
pub use endpoint::{Call, Endpoint};
pub use feed::{Decoder, PartialAnswer, SseDecoder};
pub(crate) use feed::{is_done_mark, says_error, stream_decoder};
pub(crate) use key::KeySource;
pub use key::{Authentication, KeyProvider};
pub use limits::{LimitHeaders, QuotaHeaders};
pub(crate) use retry::Policy;
pub(crate) use settings::{connection_settings, default_settings};

/// The limit of bytes of a response, streamed or not, and of an error's body.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// How a provider writes its errors and headers.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Turns an unsuccessful response into an [`Error`]. A wait in the headers and the verdict of
    /// `x-should-retry` are read by the driver.
    pub refusal: fn(status: u16, headers: &HeaderMap, body: &[u8]) -> Error,
    /// The header with the provider's id of the request.
    pub request_id: &'static str,
    /// The headers with the rate limits; `None` if there are none.
    pub limits: Option<LimitHeaders>,
}

/// The timeouts of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// From the start of an attempt until a stream begins or a whole body ends.
    pub(crate) total: Duration,
    pub(crate) connect: Duration,
    /// The longest silence within a stream.
    pub(crate) idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Timeouts { total: seconds(600), connect: seconds(5), idle: seconds(120) }
    }
}

/// The text of an error with its causes, each once.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}
